"""Calls of an object store take one timeout, or one timeout after the last response."""

from __future__ import annotations

import pytest

from jetstream import JetStream
from jetstream.errors import PublishInDoubt
from jetstream.objects.info import ObjectInfo
from natsproto.errors import TimeoutExpired
from tests.jetstream.object_stores import (
    NO_MESSAGE,
    NOT_FOUND,
    PURGED,
    ack,
    direct,
    info_json,
    stream,
)
from tests.jetstream.support import SILENCE, SlowStage, Stage

THERE = direct(info_json(data=b"12", chunks=1))
LINK = {"options": {"link": {"bucket": "c", "name": "x"}}}
TARGET = ObjectInfo.from_json({"name": "x", "bucket": "c"})


def store_of(kind, *answers):
    """Return a stage at 2.0, and a bucket whose timeout is 5 seconds."""
    stage = kind(stream(), *answers)
    bucket = stage.run(JetStream(stage.client, timeout=5.0).object_store("b"))
    stage.wire.now = 2.0
    return stage, bucket


BOUNDED = [
    # what is called; the answers, two seconds each, before the silence; how it ends
    ("info", lambda store: store.get("o"), [], TimeoutExpired),
    ("consumer", lambda store: store.get("o"), [THERE], TimeoutExpired),
    ("linked bucket", lambda store: store.get("o"), [direct(info_json(**LINK))], TimeoutExpired),
    (
        "linked object",
        lambda store: store.get("o"),
        [direct(info_json(**LINK)), stream("c")],
        TimeoutExpired,
    ),
    ("deleted", lambda store: store.delete("o"), [THERE], PublishInDoubt),
    ("purged", lambda store: store.delete("o"), [THERE, ack(8)], None),
    ("changed", lambda store: store.update_meta("o", description="d"), [THERE], PublishInDoubt),
    ("dated", lambda store: store.update_meta("o", description="d"), [THERE, ack(8)], None),
    (
        "renamed",
        lambda store: store.update_meta("o", new_name="p"),
        [THERE, NOT_FOUND],
        PublishInDoubt,
    ),
    ("linked", lambda store: store.add_link("l", TARGET), [NOT_FOUND], PublishInDoubt),
    ("dated link", lambda store: store.add_link("l", TARGET), [NOT_FOUND, ack(8)], None),
    ("a link to a bucket", lambda store: store.add_bucket_link("l", store), [], TimeoutExpired),
    ("status", lambda store: store.seal(), [], TimeoutExpired),
    ("sealed", lambda store: store.seal(), [stream()], TimeoutExpired),
]


@pytest.mark.rule("D-CALL-18")
@pytest.mark.parametrize(("name", "call", "answers", "error"), BOUNDED)
def test_the_requests_of_a_call_share_its_timeout(name, call, answers, error):
    stage, bucket = store_of(SlowStage, *answers, *[SILENCE] * 3)
    if error is None:
        stage.run(call(bucket))
    else:
        with pytest.raises(error):
            stage.run(call(bucket))
    assert stage.now() == 2.0 + 5.0


@pytest.mark.rule("D-CALL-18")
def test_the_reads_of_an_object_have_a_timeout_of_their_own():
    created = {"stream_name": "OBJ_b", "name": "1" * 22 + "_1", "config": {}}
    created["created"] = "2026-01-01T00:00:00Z"
    stage, bucket = store_of(SlowStage, THERE, created, *[SILENCE] * 9)
    reader = stage.run(bucket.get("o"))
    assert stage.now() == 6.0
    with pytest.raises(TimeoutExpired):
        stage.run(reader.read())
    assert stage.now() == 6.0 + 5.0


@pytest.mark.rule("D-CALL-21")
def test_a_second_attempt_has_the_second_half_of_the_timeout():
    stage, bucket = store_of(Stage, SILENCE, NO_MESSAGE, SILENCE, SILENCE)
    with pytest.raises(TimeoutExpired):
        stage.run(bucket.add_bucket_link("l", bucket))
    assert stage.now() == 2.0 + 5.0


PUTS = [
    # the answers before the silence; when the put ends, and how
    ([], 2.0 + 5.0, PublishInDoubt),
    ([ack(1)], 4.0 + 5.0, TimeoutExpired),
    ([ack(1), THERE], 6.0 + 5.0, PublishInDoubt),
    ([ack(1), THERE, ack(9)], 8.0 + 5.0, None),
    ([ack(1), THERE, ack(9), PURGED], 10.0 + 3.0, None),
]


@pytest.mark.rule("D-CALL-21")
@pytest.mark.parametrize(("answers", "end", "error"), PUTS)
def test_a_put_ends_after_a_timeout_of_silence(answers, end, error):
    """The last two requests share one, because the put succeeds without them."""
    stage, bucket = store_of(SlowStage, *answers, *[SILENCE] * 4)
    if error is None:
        assert stage.run(bucket.put("o", b"12")).size == 2
    else:
        with pytest.raises(error):
            stage.run(bucket.put("o", b"12"))
    assert stage.now() == end
