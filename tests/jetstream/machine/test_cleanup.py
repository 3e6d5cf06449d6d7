from __future__ import annotations

import pytest

from jetstream.api.client import ApiClient
from jetstream.errors import InvalidResponse, JetStreamNotAvailable, StreamNotFound
from jetstream.machine.cleanup import clean_up, may_exist
from natsproto.errors import ConnectionLost, InvalidState, TimeoutExpired
from tests.jetstream.stages import Cancelled
from tests.jetstream.support import NOBODY, SILENCE, Lost, Stage

ASK = ("$JS.API.CONSUMER.INFO.S.c", None)
DELETE = ("$JS.API.CONSUMER.DELETE.S.c", None)
OURS = {"stream_name": "S", "name": "c", "config": {"deliver_subject": "t"}}
OTHER = {"stream_name": "S", "name": "c", "config": {"deliver_subject": "u"}}
ABSENT = {"error": {"code": 404, "err_code": 10014, "description": "consumer not found"}}
DONE = {"success": True}

TABLE = [  # the answers; the requests, until when
    ("it is there and ours", [OURS, DONE], [ASK, DELETE], 0.0),
    ("it is somebody else's", [OTHER], [ASK], 0.0),
    ("it was never there", [ABSENT] * 3, [ASK] * 3, 3.0),
    ("it comes later", [ABSENT, ABSENT, OURS, DONE], [ASK, ASK, ASK, DELETE], 2.0),
    ("nobody knows", [NOBODY, b"-ERR", SILENCE], [ASK] * 3, 3.0),
    ("the deletion is not answered", [OURS, SILENCE, DONE], [ASK, DELETE, DELETE], 1.0),
    ("nor ever", [OURS, SILENCE, SILENCE, SILENCE], [ASK, DELETE, DELETE, DELETE], 3.0),
    ("the deletion fails", [OURS, ABSENT], [ASK, DELETE], 0.0),
    ("it was another connection", [Lost(), OURS, DONE], [ASK, ASK, DELETE], None),
]


@pytest.mark.rule("D-JSSUB-12")
@pytest.mark.parametrize(("name", "answers", "asked", "until"), TABLE)
def test_cleanup(name, answers, asked, until):
    stage = Stage(*answers)
    begin = stage.now()
    clean_up(ApiClient(stage.client.session, "", "$JS.API", 5.0), "S", "c", "t")
    [machine] = stage.connection.subscriptions.receivers()
    while not machine.ended:
        if not stage.serve():
            stage.wire.ring()
    assert stage.asked == asked
    assert stage.answers == [] or name == "nor ever"
    assert machine.pending() == 0
    assert stage.connection.subscriptions.receivers() == []
    if until is not None:
        assert stage.now() - begin == until


@pytest.mark.rule("D-ORDERED-29")
@pytest.mark.parametrize(
    ("found", "used", "deleted"),
    [
        ({}, False, True),
        ({"delivered": {"consumer_seq": 1}}, False, False),
        ({"num_waiting": 1}, False, False),
        ({"delivered": {"consumer_seq": 1}, "num_waiting": 1}, True, True),
    ],
)
def test_by_its_name_alone(found, used, deleted):
    """One that is in use is not the one that was just created."""
    stage = Stage(ABSENT, {"stream_name": "S", "name": "c", "config": {}, **found}, DONE)
    clean_up(ApiClient(stage.client.session, "", "$JS.API", 5.0), "S", "c", used=used)
    [machine] = stage.connection.subscriptions.receivers()
    while not machine.ended:
        if not stage.serve():
            stage.wire.ring()
    assert stage.asked == [ASK, ASK] + [DELETE] * deleted


@pytest.mark.rule("D-ORDERED-29")
@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TimeoutExpired("t"), True),
        (ConnectionLost("c"), True),
        (InvalidResponse("r"), True),
        (Cancelled(), True),
        (StreamNotFound(404, 10059, "no"), False),
        (JetStreamNotAvailable("503"), False),
        (InvalidState("s"), False),
    ],
)
def test_whether_there_may_be_a_consumer(error, expected):
    assert may_exist(error) is expected


@pytest.mark.rule("D-JSSUB-12")
def test_without_a_connection_it_waits_for_one():
    stage = Stage(OURS, DONE)
    stage.wire.lost()
    stage.forget_transport()
    clean_up(ApiClient(stage.client.session, "", "$JS.API", 5.0), "S", "c", "t")
    [machine] = stage.connection.subscriptions.receivers()
    assert machine.deadline is None
    stage.wire.greet(jetstream=True).data(b"PONG\r\n")
    while not machine.ended:
        assert stage.serve()
    assert stage.asked == [ASK, DELETE]


@pytest.mark.rule("D-JSSUB-12")
def test_a_closed_client_does_not_clean_up():
    stage = Stage()
    stage.wire.tell("close")
    clean_up(ApiClient(stage.client.session, "", "$JS.API", 5.0), "S", "c", "t")
    assert stage.connection.subscriptions.receivers() == []
