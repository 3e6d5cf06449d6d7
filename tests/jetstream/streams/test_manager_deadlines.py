"""Calls that make several requests take one timeout at most; those of their handles begin again."""

from __future__ import annotations

import pytest

from jetstream import JetStream
from jetstream.errors import ConsumerExists, StreamNameInUse
from natsproto.errors import TimeoutExpired
from tests.jetstream.support import SILENCE, SlowStage, Stage

CREATED = "2026-01-01T00:00:00Z"
STREAM = {
    "config": {"name": "S", "subjects": ["s.>"], "max_msgs_per_subject": 1},
    "created": CREATED,
    "state": {},
}
CONSUMER = {"stream_name": "S", "name": "c", "created": CREATED, "config": {"durable_name": "c"}}
NAMES = {"streams": ["S"], "total": 1, "offset": 0, "limit": 1024}
ACCOUNT = {"api": {"level": 1, "total": 0, "errors": 0}}


def error(code, err_code):
    return {"error": {"code": code, "err_code": err_code, "description": "x"}}


NO_STREAM = error(404, 10059)
NO_CONSUMER = error(404, 10014)
IN_USE = error(400, 10058)
EXISTS = error(400, 10148)


CALLS = [
    # what is called, and the answers before the one that is missing
    (lambda js: js.update_stream(name="S", max_msgs=5), [STREAM]),
    (lambda js: js.create_or_update_stream(name="S", max_msgs=5), [NO_STREAM]),
    (lambda js: js.create_or_update_stream(name="S", max_msgs=5), [STREAM, NO_STREAM]),
    (lambda js: js.update_consumer("S", durable_name="c", max_deliver=3), [CONSUMER]),
    (lambda js: js.create_or_update_consumer("S", durable_name="c"), [NO_CONSUMER]),
    (lambda js: js.subscribe("s.a", durable="c"), [NAMES, NO_CONSUMER]),
    (lambda js: js.pull_subscribe("s.a", durable="c"), [NAMES, NO_CONSUMER]),
    (lambda js: js.create_key_value(bucket="b"), [IN_USE]),
    (lambda js: js.create_key_value(bucket="b", limit_marker_ttl=9.0), [ACCOUNT, IN_USE]),
    (lambda js: js.update_key_value(bucket="b"), [STREAM]),
    (lambda js: js.create_or_update_key_value(bucket="b"), [STREAM, NO_STREAM]),
    (lambda js: js.create_object_store(bucket="b"), [IN_USE]),
    (lambda js: js.create_or_update_object_store(bucket="b"), [NO_STREAM, NO_STREAM]),
]


@pytest.mark.rule("D-CALL-18")
@pytest.mark.parametrize(("call", "answers"), CALLS)
def test_the_requests_of_a_call_share_its_timeout(call, answers):
    stage = SlowStage(*answers, SILENCE)
    js = JetStream(stage.client, timeout=5.0)
    with pytest.raises(TimeoutExpired):
        stage.run(call(js))
    assert stage.answers == []
    assert stage.now() == 5.0


@pytest.mark.rule("D-CALL-17", "D-CALL-18")
@pytest.mark.parametrize(
    ("call", "answer", "refusal"),
    [
        (lambda js: js.create_stream(name="S"), IN_USE, StreamNameInUse),
        (lambda js: js.create_consumer("S", durable_name="c"), EXISTS, ConsumerExists),
    ],
)
def test_an_explanation_is_sought_within_the_timeout(call, answer, refusal):
    stage = SlowStage(answer, SILENCE)
    with pytest.raises(refusal):
        stage.run(call(JetStream(stage.client, timeout=5.0)))
    assert (stage.answers, stage.now()) == ([], 5.0)


@pytest.mark.rule("D-CALL-18")
@pytest.mark.parametrize(
    ("call", "answers"),
    [
        (lambda js: js.update_stream(name="S", max_msgs=5), [STREAM, STREAM]),
        (lambda js: js.create_or_update_consumer("S", durable_name="c"), [CONSUMER, CONSUMER]),
        (lambda js: js.pull_subscribe("s.a", durable="c"), [NAMES, NO_CONSUMER, CONSUMER]),
    ],
)
def test_the_calls_of_a_handle_have_a_timeout_of_their_own(call, answers):
    stage = SlowStage(*answers, SILENCE)
    handle = stage.run(call(JetStream(stage.client, timeout=10.0)))
    began = stage.now()
    assert began == 2.0 * len(answers)
    with pytest.raises(TimeoutExpired):
        stage.run(handle.info())
    assert stage.now() == began + 10.0


@pytest.mark.rule("D-CALL-18")
def test_a_deadline_is_not_extended():
    stage = Stage(SILENCE, SILENCE)
    streams = JetStream(stage.client, timeout=5.0)._streams
    bounded = streams.bounded()
    stage.wire.now = 3.0
    assert bounded.bounded().calls is bounded.calls
    assert bounded.root is bounded.bounded().root is streams
    with pytest.raises(TimeoutExpired):
        stage.run(bounded.account_info())
    assert stage.now() == 5.0
    with pytest.raises(TimeoutExpired):
        stage.run(streams.account_info())
    assert stage.now() == 10.0
