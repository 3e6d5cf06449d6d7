from __future__ import annotations

import pytest

from jetstream.dead_letters.capture import (
    ACK_WAIT,
    ensure_capture,
    open_capture,
    subjects_to_capture,
)
from jetstream.schema.info import StreamInfo
from natsproto.errors import InvalidName, InvalidValue
from tests.jetstream.dead_letters.desks import api_of
from tests.jetstream.support import SILENCE, Stage

EVENTS = "$JS.EVENT.ADVISORY.CONSUMER."
SUBJECTS = [EVENTS + "MAX_DELIVERIES.S.c", EVENTS + "MSG_TERMINATED.S.c"]
NO_STREAM = {"error": {"code": 404, "err_code": 10059, "description": "stream not found"}}
NO_CONSUMER = {"error": {"code": 404, "err_code": 10014, "description": "consumer not found"}}
INFO = StreamInfo.from_json({"config": {"name": "S", "num_replicas": 3}})
CONFIG = {
    "name": "dead",
    "description": "Dead letters of consumer c of stream S",
    "subjects": SUBJECTS,
    "retention": "workqueue",
    "storage": "file",
    "num_replicas": 3,
}
CONSUMER = {
    "stream_name": "dead",
    "name": "dead-letters-S-c",
    "config": {"filter_subjects": SUBJECTS},
}


def found(*subjects):
    return {"config": {"name": "dead", "subjects": list(subjects)}}


@pytest.mark.rule("DEAD-1")
def test_the_subjects():
    assert subjects_to_capture("S", "c") == SUBJECTS


@pytest.mark.rule("D-DEAD-10")
@pytest.mark.parametrize(("known", "replicas"), [(3, 3), (0, 1)])
def test_a_capture_is_created(known, replicas):
    stage = Stage(NO_STREAM, found(*SUBJECTS))
    info = StreamInfo.from_json({"config": {"name": "S", "num_replicas": known}})
    stage.run(ensure_capture(api_of(stage), "dead", info, "c"))
    assert stage.asked == [
        ("$JS.API.STREAM.INFO.dead", None),
        ("$JS.API.STREAM.CREATE.dead", {**CONFIG, "num_replicas": replicas}),
    ]


EXISTING = [
    # subjects, the missing one
    (SUBJECTS, ""),
    ([EVENTS + ">"], ""),
    ([EVENTS + "MAX_DELIVERIES.*.*", EVENTS + "MSG_TERMINATED.S.*"], ""),
    (SUBJECTS[:1], SUBJECTS[1]),
    ([EVENTS + "MAX_DELIVERIES.S.d", SUBJECTS[1]], SUBJECTS[0]),
    ([], SUBJECTS[0]),
]


@pytest.mark.rule("D-DEAD-10")
@pytest.mark.parametrize(("subjects", "missing"), EXISTING)
def test_a_capture_that_exists(subjects, missing):
    stage = Stage(found(*subjects))
    call = ensure_capture(api_of(stage), "dead", INFO, "c")
    if missing:
        with pytest.raises(InvalidValue, match="does not capture dead letters") as caught:
            stage.run(call)
        assert missing in str(caught.value)
    else:
        stage.run(call)
    assert len(stage.asked) == 1


def test_wrong_names():
    stage = Stage()
    with pytest.raises(InvalidName):
        stage.run(ensure_capture(api_of(stage), "a.b", INFO, "c"))
    assert stage.quiet()


@pytest.mark.rule("D-DEAD-10")
@pytest.mark.parametrize("exists", [True, False])
def test_the_consumer_of_a_capture(exists):
    answers = [found(*SUBJECTS), CONSUMER] if exists else [found(*SUBJECTS), NO_CONSUMER, CONSUMER]
    stage = Stage(*answers, SILENCE)
    messages = stage.run(open_capture(api_of(stage), "dead", INFO, "c"))
    asked = stage.asked
    assert asked[1] == ("$JS.API.CONSUMER.INFO.dead.dead-letters-S-c", None)
    if not exists:
        endpoint, body = asked[2]
        assert endpoint == "$JS.API.CONSUMER.CREATE.dead.dead-letters-S-c"
        assert body["config"] == {
            "durable_name": "dead-letters-S-c",
            "ack_policy": "explicit",
            "ack_wait": int(ACK_WAIT * 10**9),
            "filter_subjects": SUBJECTS,
        }
    endpoint, pull = asked[-1]
    assert endpoint == "$JS.API.CONSUMER.MSG.NEXT.dead.dead-letters-S-c"
    assert pull["batch"] == 16
    assert messages.nak_on_exit
    stage.run(messages.stop())
