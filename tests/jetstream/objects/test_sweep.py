"""Sweep: purges of chunks without an object, on a scripted server."""

from __future__ import annotations

import json

import pytest

from jetstream.api.client import ApiClient
from jetstream.objects.sweep import PURGING, ExpectedMeta, sweep
from tests.jetstream.object_stores import NO_MESSAGE, NO_STREAM, PURGED, by_api, info_json
from tests.jetstream.support import NOBODY, SILENCE, Lost, Stage

PURGE = ("$JS.API.STREAM.PURGE.OBJ_b", {"filter": "$O.b.C.NEW"})
OLD = ("$JS.API.STREAM.PURGE.OBJ_b", {"filter": "$O.b.C.OLD"})
GET = ("$JS.API.STREAM.MSG.GET.OBJ_b", {"last_by_subj": "$O.b.M.bw=="})
OURS = by_api(info_json(nuid="NEW"))
OTHER = by_api(info_json(nuid="OLD"))
EMPTY = {"message": {"subject": "$O.b.M.bw==", "seq": 7}}
SEALED = {"error": {"code": 400, "err_code": 10109, "description": "sealed"}}
BUSY = {"error": {"code": 503, "err_code": 10008, "description": "unavailable"}}


def begin(stage, expected=None):
    api = ApiClient(stage.client.session, "", "$JS.API", 5.0)
    return sweep(api, "OBJ_b", "$O.b.C.NEW", expected=expected)


def play(stage, machine):
    """Run the machine until it is over; return when it was done."""
    done = None
    while not machine.ended:
        if not stage.serve():
            stage.wire.ring()
        if machine.done and done is None:
            done = stage.now()
    return done


PURGES = [  # the answers; the requests; when it was done, and over
    ("three times", [PURGED] * 3, [PURGE] * 3, 0.05, 1.05),
    ("there is nothing", [{"success": True}] * 3, [PURGE] * 3, 0.05, 1.05),
    ("the bucket is sealed", [SEALED], [PURGE], 0.0, 0.0),
    ("it is gone", [NO_STREAM], [PURGE], 0.0, 0.0),
    ("garbage is answered", [b"-ERR", *[PURGED] * 3], [PURGE] * 4, 1.05, 2.05),
    ("it has no leader now", [BUSY, *[PURGED] * 3], [PURGE] * 4, 1.05, 2.05),
    ("no responders at first", [NOBODY, SILENCE, *[PURGED] * 3], [PURGE] * 5, 2.05, 3.05),
    ("never any responders", [NOBODY] * 10, [PURGE] * 10, 10.0, 10.0),
    ("the connection is lost", [Lost(), *[PURGED] * 3], [PURGE] * 4, None, None),
]


@pytest.mark.rule("OBJ-25")
@pytest.mark.parametrize(("name", "answers", "asked", "done", "over"), PURGES)
def test_purges(name, answers, asked, done, over):
    stage = Stage(*answers)
    machine = begin(stage)
    at = play(stage, machine)
    assert stage.asked == asked
    assert stage.answers == []
    assert machine.pending() == 0
    assert stage.connection.subscriptions.receivers() == []
    if done is not None:
        assert (round(at, 6), round(stage.now(), 6)) == (done, over)


LOOKS = [  # the answers; the requests; when it was over
    ("it is not there", [NO_MESSAGE, *[PURGED] * 3], [GET, *[PURGE] * 3], 2.05),
    ("the one before is", [OTHER, *[PURGED] * 3], [GET, *[PURGE] * 3], 2.05),
    ("ours is", [OURS, *[PURGED] * 3], [GET, *[OLD] * 3], 2.05),
    ("it is empty", [EMPTY, *[PURGED] * 3], [GET, *[PURGE] * 3], 2.05),
    ("the bucket is gone", [NO_STREAM], [GET], 1.0),
    ("temporary error", [BUSY, NO_STREAM], [GET, GET], 2.0),
    ("later", [SILENCE, b"-ERR", OURS, *[PURGED] * 3], [GET, GET, GET, *[OLD] * 3], 4.05),
    ("the connection is lost", [Lost(), OURS, *[PURGED] * 3], [GET, GET, *[OLD] * 3], None),
]


@pytest.mark.rule("OBJ-25")
@pytest.mark.parametrize(("name", "answers", "asked", "over"), LOOKS)
def test_looks(name, answers, asked, over):
    stage = Stage(*answers)
    machine = begin(stage, ExpectedMeta("$O.b.M.bw==", "NEW", "$O.b.C.OLD"))
    play(stage, machine)
    assert stage.asked == asked
    assert stage.answers == []
    if over is not None:
        assert round(stage.now(), 6) == over


@pytest.mark.rule("OBJ-24")
def test_purge_up_to_a_sequence():
    stage = Stage(*[PURGED] * 3)
    api = ApiClient(stage.client.session, "", "$JS.API", 5.0)
    play(stage, sweep(api, "OBJ_b", "$O.b.M.bw==", 8))
    assert stage.asked == [(PURGE[0], {"filter": "$O.b.M.bw==", "seq": 8})] * 3


GONE = by_api(info_json(nuid="OLD", deleted=True))
DELETIONS = [  # the answers; the requests
    ("it is deleted", [GONE, *[PURGED] * 3], [GET, *[OLD] * 3]),
    ("the object exists", [OTHER], [GET]),
    ("another one is", [OURS], [GET]),
    ("another one is deleted", [by_api(info_json(nuid="NEW", deleted=True))], [GET]),
    ("it is not there", [NO_MESSAGE], [GET]),
    ("invalid info", [by_api({"name": "o", "nuid": "OLD", "deleted": 1})], [GET]),
]


@pytest.mark.rule("OBJ-34")
@pytest.mark.parametrize(("name", "answers", "asked"), DELETIONS)
def test_a_deletion_in_doubt(name, answers, asked):
    stage = Stage(*answers)
    api = ApiClient(stage.client.session, "", "$JS.API", 5.0)
    expected = ExpectedMeta("$O.b.M.bw==", "OLD", "$O.b.C.OLD", deleted=True)
    play(stage, sweep(api, "OBJ_b", "", expected=expected))
    assert stage.asked == asked
    assert stage.answers == []


@pytest.mark.rule("OBJ-25")
def test_a_server_that_was_frozen():
    """It answers all requests at once: only the last counts, and the pauses are kept."""

    def answer(*numbers, data):
        for number in numbers:
            reply = "_INBOX.%s.%d" % ("0" * 22, number)
            stage.wire.data(b"MSG %s 1 %d\r\n%s\r\n" % (reply.encode(), len(data), data))

    stage = Stage(*[SILENCE] * 8)
    machine = begin(stage, ExpectedMeta("$O.b.M.bw==", "NEW", "$O.b.C.OLD"))
    for _ in range(3):
        stage.wire.ring()
    stage.serve()
    answer(1, 2, 3, data=json.dumps(NO_MESSAGE).encode())  # each was asked, with a second between
    assert (machine.state, stage.asked) == (PURGING, [GET] * 3 + [PURGE])
    for _ in range(2):
        stage.wire.ring()
    answer(4, 5, 6, data=b'{"purged":1}')
    assert (machine.done, stage.asked) == (False, [PURGE] * 2)
    stage.wire.ring()
    answer(4, 5, 6, 7, data=b'{"purged":1}')
    assert (machine.done, machine.ended, stage.asked) == (True, False, [PURGE])
    stage.wire.ring()
    answer(8, data=b'{"purged":1}')
    assert (machine.ended, stage.asked) == (True, [PURGE])
    assert stage.answers == []


@pytest.mark.rule("OBJ-25")
@pytest.mark.parametrize("data", ["bm8=", "W10=", "Nw==", "e30=", 7])
def test_an_invalid_info_does_not_match(data):
    assert not ExpectedMeta("s", "N", "t").matches({"message": {"data": data}})


@pytest.mark.rule("OBJ-25")
def test_an_object_that_replaced_nothing():
    stage = Stage(OURS)
    machine = begin(stage, ExpectedMeta("$O.b.M.bw==", "NEW", ""))
    assert play(stage, machine) == 1.0
    assert stage.asked == [GET]


@pytest.mark.rule("OBJ-25")
@pytest.mark.parametrize("expected", [None, ExpectedMeta("$O.b.M.bw==", "NEW", "")])
def test_without_a_connection_it_waits_for_one(expected):
    stage = Stage(*([PURGED] * 3 if expected is None else [OURS]))
    stage.wire.lost()
    stage.forget_transport()
    machine = begin(stage, expected)
    assert machine.deadline is None
    stage.wire.greet(jetstream=True).data(b"PONG\r\n")
    play(stage, machine)
    assert stage.answers == []


@pytest.mark.rule("OBJ-25")
def test_a_closed_client_does_not_purge():
    stage = Stage()
    stage.wire.tell("close")
    machine = begin(stage)
    assert machine.done
    assert stage.connection.subscriptions.receivers() == []
    stage = Stage(SILENCE)
    machine = begin(stage)
    stage.serve()
    assert not machine.done
    stage.wire.tell("close")
    assert machine.done
