from __future__ import annotations

import json

import pytest

from jetstream.api.client import ApiClient
from jetstream.errors import (
    ApiError,
    ConsumerExists,
    InvalidResponse,
    JetStreamNotAvailable,
    NoSuitablePeers,
    ResetFailed,
    StreamNotFound,
    TemporarilyUnavailable,
)
from jetstream.ordered.cursor import Cursor
from jetstream.ordered.recreate import (
    BACKOFF,
    CHECKING,
    CREATING,
    ENDED,
    OFFLINE,
    READY,
    Recreator,
    clean_up_after,
)
from natsproto.errors import TimeoutExpired
from natsproto.wire.frames import Msg
from tests.jetstream.support import Stage

INBOX = b"_INBOX.i"
WHY = TimeoutExpired("so it goes")
NOBODY = "503"


def cursor(**config):
    return Cursor("S", "o", {"ack_policy": "none", **config})


def created(seq=0, consumer_seq=0):
    """Return an answer, in short."""
    delivered = {"consumer_seq": consumer_seq, "stream_seq": seq}
    return {"stream_name": "S", "name": "o", "config": {}, "delivered": delivered}


def error(code, err_code):
    return {"error": {"code": code, "err_code": err_code, "description": "no"}}


def answer(serial, reply):
    subject = INBOX + b".c%d" % serial
    if reply == NOBODY:
        return Msg(subject, 1, b"", b"", b"NATS/1.0 503\r\n\r\n")
    data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
    return Msg(subject, 1, b"", data, None)


def asked(recreator):
    """Return the serials of requested consumers, and those of deleted ones as negative numbers."""
    found = []
    for effect in recreator.take_effects():
        subject, data, reply = effect.subject, effect.data, effect.reply
        name = subject.decode().split(".")[-1]
        serial = int(name.split("_")[1]) if "_" in name else 0
        if b"CREATE" in subject:
            assert subject == b"$JS.API.CONSUMER.CREATE.S.o_%d" % serial
            assert reply == INBOX + b".c%d" % serial
            assert json.loads(data)["config"]["name"] == name
            found.append(serial)
        elif b"STREAM.INFO" in subject:
            assert subject == b"$JS.API.STREAM.INFO.S"
            assert (data, reply) == (b"", INBOX + b".s%d" % recreator.cursor.serial)
            found.append("stream")
        else:
            assert subject == b"$JS.API.CONSUMER.DELETE.S.o_%d" % serial
            assert (data, reply) == (b"", INBOX + b".x")
            found.append(-serial)
    return found


def there(**options):
    """Return a recreator whose first consumer exists and works."""
    recreator = Recreator(cursor(), "$JS.API", INBOX, **options)
    recreator.connected(0.0)
    assert asked(recreator) == [1]
    assert recreator.receive(answer(1, created()), 0.0) is None
    recreator.proved()
    assert recreator.state == READY
    return recreator


# The recreator: steps are (time, input); inputs are an answer to the last creation, or a name


def play(recreator, steps):
    for now, step in steps:
        if step == "reset":
            recreator.reset(WHY, now)
        elif step == "timer":
            recreator.handle_timer(now)
        elif step == "proved":
            recreator.proved()
        elif step == "disconnected":
            recreator.disconnected()
        elif step == "connected":
            recreator.connected(now)
        elif step == "close":
            recreator.close()
        else:
            recreator.receive(answer(recreator.cursor.serial, step), now)


BUSY = error(503, 10008)
TABLE = [  # case, steps, effects, state, due
    ("lost", [(9.0, "reset")], [-1, 2], CREATING, 14.0),
    ("lost and found", [(9.0, "reset"), (9.1, created())], [-1, 2], READY, None),
    ("lost twice at once", [(9.0, "reset"), (9.0, "reset")], [-1, 2], CREATING, 14.0),
    (
        "lost, and the next one is of no use",
        [(9.0, "reset"), (9.1, created()), (9.2, "reset"), (10.1, "timer"), (10.2, "timer")],
        [-1, 2, -2, 3],
        CREATING,
        15.2,
    ),
    (
        "lost, and the next one is of use for a while",
        [(9.0, "reset"), (9.1, created()), (9.15, "proved"), (9.2, "reset")],
        [-1, 2, -2, 3],
        CREATING,
        14.2,
    ),
    ("nobody there", [(9.0, "reset"), (9.1, NOBODY)], [-1, 2], BACKOFF, 10.1),
    (
        "nobody there, again and again",
        [(0.0, "reset"), (0.0, NOBODY), (1.0, "timer"), (1.0, NOBODY), (3.0, "timer")]
        + [(3.0, BUSY), (7.0, "timer"), (7.0, NOBODY), (15.0, "timer"), (15.0, b"no JSON")],
        [-1, 2, 3, 4, 5, 6],
        BACKOFF,
        25.0,
    ),
    (
        "nobody there, and then all is well",
        [(0.0, "reset"), (0.0, NOBODY), (1.0, "timer"), (1.0, created())]
        + [(1.5, "proved"), (2.0, "reset")],
        [-1, 2, 3, -3, 4],
        CREATING,
        7.0,
    ),
    (
        "no answer",
        [(9.0, "reset"), (13.9, "timer"), (14.0, "timer"), (15.0, "timer")],
        [-1, 2, -2, 3],
        CREATING,
        20.0,
    ),
    ("the stream is gone", [(9.0, "reset"), (9.1, error(404, 10059))], [-1, 2], ENDED, None),
    (
        "the end is the end",
        [(9.0, "reset"), (9.1, error(404, 10059)), (9.2, "disconnected"), (9.3, "connected")],
        [-1, 2],
        ENDED,
        None,
    ),
    ("not to be placed now", [(9.0, "reset"), (9.1, error(400, 10005))], [-1, 2], BACKOFF, 10.1),
    (
        "taken by somebody else",
        [(9.0, "reset"), (9.1, created(5, 5)), (10.1, "timer")],
        [-1, 2, 3],
        CREATING,
        15.1,
    ),
    ("disconnected", [(9.0, "disconnected"), (9.5, "timer")], [], OFFLINE, None),
    (
        "disconnected while there is none",
        [(9.0, "reset"), (9.1, "disconnected"), (9.2, created()), (9.3, "connected")],
        [-1, 2, -2, 3],
        CREATING,
        14.3,
    ),
    (
        "disconnected while asked",
        [(9.0, "reset"), (9.1, "disconnected"), (14.0, "timer"), (15.0, "timer")],
        [-1, 2],
        OFFLINE,
        None,
    ),
    (
        "disconnected for longer than the rest",
        [(9.0, "reset"), (9.1, NOBODY), (9.2, "disconnected"), (20.0, "timer")],
        [-1, 2],
        OFFLINE,
        None,
    ),
    ("reconnected", [(9.0, "disconnected"), (9.5, "connected")], [-1, 2], CREATING, 14.5),
    (
        "reconnected, and nobody there",
        [(9.0, "disconnected"), (9.5, "connected"), (9.6, NOBODY)],
        [-1, 2],
        BACKOFF,
        10.6,
    ),
    (
        "disconnected while resting",
        [(9.0, "reset"), (9.1, NOBODY), (9.2, "disconnected"), (9.3, "connected")],
        [-1, 2, 3],
        CREATING,
        14.3,
    ),
    ("connected all the time", [(9.0, "connected")], [], READY, None),
    ("closed", [(9.0, "close")], [-1], ENDED, None),
    ("closed twice", [(9.0, "close"), (9.1, "close"), (9.2, "reset")], [-1], ENDED, None),
    ("closed on the way", [(9.0, "reset"), (9.1, "close")], [-1, 2, -2], ENDED, None),
    ("closed while resting", [(9.0, "reset"), (9.1, NOBODY), (9.2, "close")], [-1, 2], ENDED, None),
]


@pytest.mark.rule("ORDERED-8")
@pytest.mark.rule("ORDERED-9")
@pytest.mark.rule("ORDERED-10")
@pytest.mark.rule("ORDERED-12")
@pytest.mark.parametrize(("what", "steps", "orders", "state", "due"), TABLE)
def test_successive_consumers(what, steps, orders, state, due):
    recreator = there()
    play(recreator, steps)
    assert asked(recreator) == orders
    assert (recreator.state, recreator.due) == (state, pytest.approx(due) if due else None)
    assert recreator.cursor.ready == (state == READY)
    assert (recreator.error is not None) == ("error" in str(steps) and state == ENDED)


FAILURES = [  # the answer, the error that is reported, whether it is the end
    (created(), None, False),
    (NOBODY, JetStreamNotAvailable, False),
    (error(503, 10008), TemporarilyUnavailable, False),
    (error(400, 10005), NoSuitablePeers, False),
    (error(400, 10148), ConsumerExists, False),
    (created(3, 3), ConsumerExists, False),
    (b"[]", InvalidResponse, False),
    (error(500, 10999), Exception, False),
    (error(404, 10059), StreamNotFound, True),
    (error(400, 10999), Exception, True),
]


@pytest.mark.rule("ORDERED-10")
@pytest.mark.parametrize(("reply", "reported", "end"), FAILURES)
def test_failures(reply, reported, end):
    recreator = there()
    recreator.reset(WHY, 0.0)
    failure = recreator.receive(answer(2, reply), 0.0)
    assert failure is None if reported is None else isinstance(failure, reported)
    assert recreator.error is (failure if end else None)


def test_late_responses_are_ignored():
    recreator = there()
    recreator.reset(WHY, 0.0)
    for token in (b"c1", b"c3", b"x", b"2", b""):
        msg = Msg(INBOX + b"." + token, 1, b"", json.dumps(created()).encode(), None)
        assert recreator.receive(msg, 0.0) is None
        assert recreator.state == CREATING
    assert recreator.receive(answer(2, created()), 0.0) is None
    assert recreator.receive(answer(2, error(404, 10059)), 0.0) is None
    assert recreator.state == READY


def test_an_overdue_response_is_reported():
    recreator = there(timeout=2.0)
    recreator.reset(WHY, 0.0)
    assert recreator.handle_timer(1.9) is None
    failure = recreator.handle_timer(2.0)
    assert isinstance(failure, TimeoutExpired)
    assert "'o_2'" in str(failure)


@pytest.mark.rule("D-ORDERED-25")
def test_a_timer_that_fires_late():
    recreator = there(timeout=2.0)
    recreator.reset(WHY, 0.0)
    assert recreator.handle_timer(2.2) is None
    assert (recreator.state, recreator.due) == (CREATING, 3.2)
    assert recreator.handle_timer(3.1) is None
    assert isinstance(recreator.handle_timer(3.4), TimeoutExpired)  # once
    assert (recreator.state, recreator.due) == (BACKOFF, 4.4)
    recreator.handle_timer(9.0)
    assert (recreator.state, recreator.due) == (CREATING, 11.0)
    assert recreator.handle_timer(12.0) is None
    assert recreator.receive(answer(3, created()), 12.0) is None
    assert recreator.state == READY


@pytest.mark.rule("ORDERED-11")
@pytest.mark.parametrize("most", [1, 2, 3])
def test_the_number_of_attempts(most):
    recreator = there(max_attempts=most)
    recreator.reset(WHY, 0.0)
    for _ in range(most):
        assert recreator.error is None
        assert recreator.state == CREATING
        recreator.receive(answer(recreator.cursor.serial, NOBODY), 100.0)
        recreator.handle_timer(200.0)
    assert isinstance(recreator.error, ResetFailed)
    assert recreator.error.attempts == most
    assert isinstance(recreator.error.error, JetStreamNotAvailable)
    assert recreator.state == ENDED
    assert len(asked(recreator)) == 1 + most


def test_one_that_is_there():
    line = cursor()
    line.next_consumer()
    line.installed(created())
    recreator = Recreator(line, "$JS.API", INBOX)
    recreator.connected(0.0)
    assert (recreator.state, asked(recreator)) == (READY, [])


def test_push_consumers_have_subjects_of_their_own():
    recreator = Recreator(cursor(), "$JS.hub.API", INBOX, delivers=True)
    for serial in (1, 2):
        recreator.connected(0.0)
        last = recreator.take_effects()[-1]
        subject, data, reply = last.subject, last.data, last.reply
        assert subject == b"$JS.hub.API.CONSUMER.CREATE.S.o_%d" % serial
        assert reply == recreator.deliver_subject
        assert json.loads(data)["config"]["deliver_subject"] == "_INBOX.i.d%d" % serial
        assert recreator.deliver_subject == INBOX + b".d%d" % serial
        recreator.disconnected()


ORPHANS = [  # what happens before the end, the consumer that one deletion may not reach
    ("there", [], ""),
    ("asked", [(9.0, "reset")], "o_2"),
    ("there again", [(9.0, "reset"), (9.1, created())], ""),
    ("refused", [(9.0, "reset"), (9.1, NOBODY)], ""),
    ("no answer", [(9.0, "reset"), (14.0, "timer")], "o_2"),
    ("no answer, and asked again", [(9.0, "reset"), (14.0, "timer"), (15.0, "timer")], "o_3"),
    ("disconnected", [(9.0, "disconnected")], "o_1"),
    ("disconnected while asked", [(9.0, "reset"), (9.1, "disconnected")], "o_2"),
    ("reconnected", [(9.0, "disconnected"), (9.1, "connected"), (9.2, created())], ""),
]


@pytest.mark.rule("D-ORDERED-29")
@pytest.mark.parametrize(("what", "steps", "orphan"), ORPHANS)
def test_orphans(what, steps, orphan):
    recreator = there()
    play(recreator, steps)
    assert recreator.take_orphan()[0] == ""
    recreator.close()
    assert recreator.take_orphan() == (orphan, orphan in ("", "o_1"))
    assert recreator.take_orphan()[0] == ""


# Whether the stream is still the same

T = ["2026-01-01T00:00:0%dZ" % second for second in range(6)]
SAME = {"config": {}, "created": T[0]}
OTHER = {"config": {}, "created": T[4]}


def born(**options):
    """Return a recreator whose first consumer is known to be created at T[2]."""
    recreator = Recreator(cursor(deliver_policy="all"), "$JS.API", INBOX, **options)
    recreator.connected(0.0)
    assert asked(recreator) == [1]
    recreator.receive(answer(1, dict(created(), created=T[2])), 0.0)
    recreator.proved()
    assert recreator.state == READY
    return recreator


def stream(serial, reply):
    msg = answer(serial, reply)
    return Msg(INBOX + b".s%d" % serial, 1, b"", msg.data, msg.raw_headers)


CHECKS = [  # the response to STREAM.INFO, or steps instead; orders, state, due, the error
    ("the same", SAME, [], READY, None, None),
    ("nobody there", NOBODY, [], BACKOFF, 10.2, JetStreamNotAvailable),
    ("not allowed", error(400, 10000), [], BACKOFF, 10.2, ApiError),
    ("no JSON", b"-ERR", [], BACKOFF, 10.2, InvalidResponse),
    ("no time in it", {"config": {}}, [], READY, None, None),
    ("another one", OTHER, [-2, 3], CREATING, 14.2, None),
    ("it is gone", error(404, 10059), [-2], ENDED, None, StreamNotFound),
    ("no answer yet", [(10.0, "timer")], [], CHECKING, 10.1, None),
    ("no answer", [(10.1, "timer")], [], BACKOFF, 11.1, None),
    ("no answer, and again", [(10.1, "timer"), (11.1, "timer")], [-2, 3], CREATING, 16.1, None),
    ("a timer that fires late", [(11.0, "timer")], [], CHECKING, 12.0, None),
    ("late, and no answer", [(11.0, "timer"), (12.0, "timer")], [], BACKOFF, 13.0, None),
    ("disconnected", [(9.2, "disconnected"), (20.0, "timer")], [], OFFLINE, None, None),
    ("reconnected", [(9.2, "disconnected"), (9.3, "connected")], [-2, 3], CREATING, 14.3, None),
    ("closed", [(9.2, "close")], [-2], ENDED, None, None),
    ("reset", [(9.2, "reset")], [], CHECKING, 10.1, None),
]


@pytest.mark.rule("D-ORDERED-30")
@pytest.mark.rule("D-ORDERED-31")
@pytest.mark.parametrize(("what", "reply", "orders", "state", "due", "failure"), CHECKS)
def test_the_stream_of_the_next_one(what, reply, orders, state, due, failure):
    recreator = born()
    play(recreator, [(9.0, "reset"), (9.1, created())])
    assert asked(recreator) == [-1, 2, "stream"]
    assert (recreator.state, recreator.due, recreator.cursor.ready) == (CHECKING, 10.1, False)
    if isinstance(reply, list):
        play(recreator, reply)
        found = None
    else:
        found = recreator.receive(stream(2, reply), 9.2)
    assert type(found) is (failure or type(None))
    assert (asked(recreator), recreator.state) == (orders, state)
    assert recreator.due == (due if due is None else pytest.approx(due))
    assert recreator.cursor.ready == (state == READY)
    recreated = what == "another one"
    assert len(recreator.take_events()) == recreated
    assert recreator.take_events() == []
    assert recreator.take_orphan()[0] == ""


@pytest.mark.rule("D-ORDERED-30")
@pytest.mark.parametrize("reply", [NOBODY, error(400, 10000), None])
def test_users_without_permission_for_stream_info(reply):
    """The second time in a row, and every time after that, the consumer is used anyway."""
    recreator = born()
    play(recreator, [(9.0, "reset"), (9.0, created())])
    for serial, state in ((2, BACKOFF), (3, READY), (4, READY)):
        due = recreator.due
        failure = recreator.handle_timer(due) if reply is None else None
        failure = failure if reply is None else recreator.receive(stream(serial, reply), due)
        assert (failure is None, recreator.state) == (state == READY, state)
        if state == BACKOFF:
            play(recreator, [(recreator.due, "timer")])
        else:
            play(recreator, [(19.0, "proved"), (20.0, "reset")])
        play(recreator, [(20.0, created())])
        assert recreator.state == CHECKING


@pytest.mark.rule("D-ORDERED-30")
@pytest.mark.parametrize("timeout", [0.5, 5.0])
def test_how_long_the_check_may_take(timeout):
    recreator = born(timeout=timeout)
    play(recreator, [(9.0, "reset"), (9.0, created())])
    assert recreator.due == 9.0 + min(timeout, 1.0)


@pytest.mark.rule("D-ORDERED-31")
def test_the_first_message_of_another_stream():
    """This consumer is checked, too, because the stream may have been recreated once more."""
    recreator = born()
    recreator.cursor.admit(b"$JS.ACK.S.o_1.1.70.1.1794786870000000000.0")
    play(recreator, [(9.0, "reset"), (9.1, created(70))])
    recreator.receive(stream(2, OTHER), 9.2)
    last = recreator.take_effects()[-1]
    subject, data = last.subject, last.data
    assert subject == b"$JS.API.CONSUMER.CREATE.S.o_3"
    assert json.loads(data)["config"]["deliver_policy"] == "all"
    recreator.receive(answer(3, created()), 9.3)
    assert asked(recreator) == ["stream"]
    recreator.receive(stream(3, OTHER), 9.4)
    assert (recreator.state, recreator.cursor.start) == (READY, 1)
    assert len(recreator.take_events()) == 1


def test_other_responses_while_the_stream_is_checked():
    recreator = born()
    play(recreator, [(9.0, "reset"), (9.1, created()), (9.2, created())])
    for msg in (stream(1, OTHER), stream(3, OTHER), answer(2, error(404, 10059))):
        assert recreator.receive(msg, 9.3) is None
        assert recreator.state == CHECKING


@pytest.mark.rule("D-ORDERED-29")
@pytest.mark.parametrize("answered", [True, False])
def test_a_consumer_whose_creation_was_not_answered_is_looked_for(answered):
    stage = Stage({"config": {}}, {"success": True})
    recreator = Recreator(cursor(), "$JS.API", INBOX)
    recreator.connected(0.0)
    if answered:
        recreator.receive(answer(1, created()), 0.0)
    recreator.close()
    api = ApiClient(stage.client.session, "", "$JS.API", 5.0)
    for _ in range(2):
        clean_up_after(api, recreator)
    receivers = stage.connection.subscriptions.receivers()
    stage.serve()
    expected = [("$JS.API.CONSUMER.INFO.S.o_1", None)] * (not answered)
    assert (stage.asked[:1], len(receivers)) == (expected, not answered)


def test_before_anything_has_happened():
    recreator = Recreator(cursor(), "$JS.API", INBOX)
    assert (recreator.state, recreator.failures, recreator.due) == (OFFLINE, 0, None)
    assert recreator.take_orphan() == ("", False)


@pytest.mark.rule("D-ORDERED-25")
@pytest.mark.parametrize(("now", "believed"), [(0.1, True), (0.11, False)])
def test_how_late_a_timer_may_fire(now, believed):
    recreator = there(timeout=2.0)
    recreator.reset(WHY, -2.0)
    assert recreator.due == 0.0  # so that the difference is exact
    assert isinstance(recreator.handle_timer(now), TimeoutExpired) is believed
