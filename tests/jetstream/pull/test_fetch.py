from __future__ import annotations

import pytest

from jetstream.errors import (
    ConsumerDeleted,
    ConsumerUnavailable,
    HeartbeatMissed,
    PullRefused,
    UnknownStatus,
)
from jetstream.machine.snapshot import OpenPull
from jetstream.pull.fetch import SLACK_BYTES, SLACK_MESSAGES, Fetcher
from natsproto.connection.effects import Unsubscribe
from natsproto.errors import ConnectionClosed, ConnectionLost, TimeoutExpired
from natsproto.wire.frames import Msg
from tests.effects import publishes, will_publish, woken
from tests.jetstream.pulls import INBOX, PIN, beat, message, ordered, pinned, status, template

TIMEOUT = "408 Request Timeout"
DELETED = "409 Consumer Deleted"
SIZE = "409 Message Size Exceeds MaxBytes"


def fetching(batch=3, size=0, at=0.0, online=True, **options):
    """Return a fetch that has begun, after its pull was sent."""
    fetcher = Fetcher(INBOX)
    fetcher.start(template(**options), batch, size, 30.0, at, online)
    publishes(fetcher)
    return fetcher


def play(fetcher, steps):
    """Play the steps: (time, message), ("timer", time) and the like."""
    for first, second in steps:
        if isinstance(first, str):
            getattr(fetcher, "handle_timer" if first == "tick" else first)(second)
        else:
            fetcher.receive(second, first)


@pytest.mark.rule("PULL-2")
def test_the_pull_and_its_deadlines():
    fetcher = Fetcher(INBOX)
    assert (fetcher.done, fetcher.deadline) == (True, None)
    fetcher.start(template(expires=30.0, heartbeat=0.0), 3, 0, 30.0, 100.0)
    assert ordered(fetcher) == [{"batch": 3, "token": 1}]
    assert (fetcher.done, fetcher.deadline) == (False, 131.0)
    fetcher.give_up(100.0)
    fetcher.start(template(), 1_000_000, 400, 30.0, 101.0)
    assert ordered(fetcher) == [{"batch": 1_000_000, "max_bytes": 400, "token": 2}]
    assert fetcher.deadline == 111.0


A, B, C = message(100, 1), message(100, 2), message(100, 3)
TABLE = [  # case, inputs, done, messages, failure, deadline
    ("nothing", [], False, 0, None, 10.0),
    ("some", [(1.0, A)], False, 1, None, 11.0),
    ("all", [(1.0, A), (2.0, B), (3.0, C)], True, 3, None, 33.0),
    ("heartbeats", [(5.0, beat()), (10.0, beat())], False, 0, None, 20.0),
    ("until the end", [(28.0, beat())], False, 0, None, 31.0),
    ("no messages", [(1.0, status(1, "404 No Messages"))], True, 0, None, 31.0),
    ("time is over", [(1.0, A), (30.0, status(1, TIMEOUT, 2))], True, 1, None, 60.0),
    ("interest", [(1.0, status(1, "408 Interest Expired", 3))], True, 0, None, 31.0),
    ("leader", [(1.0, A), (2.0, status(1, "409 Leadership Change"))], True, 1, None, 32.0),
    ("shutdown", [(2.0, status(1, "409 Server Shutdown", 3))], True, 0, None, 32.0),
    ("unpinned", [(2.0, status(1, "423 Nats-Pin-Id mismatch"))], True, 0, None, 32.0),
    ("refused", [(2.0, status(1, "409 Exceeded MaxWaiting"))], True, 0, PullRefused, 32.0),
    ("nobody", [(2.0, status(1, "503"))], True, 0, ConsumerUnavailable, 32.0),
    ("deleted", [(1.0, A), (2.0, status(1, DELETED))], True, 1, ConsumerDeleted, 32.0),
    ("bad", [(2.0, status(1, "400 Bad Request - x"))], True, 0, PullRefused, 32.0),
    ("unknown", [(2.0, status(1, "499 Huh"))], True, 0, UnknownStatus, 32.0),
    ("size, first", [(2.0, status(1, SIZE, 3))], True, 0, PullRefused, 32.0),
    ("size", [(1.0, A), (2.0, status(1, SIZE, 2))], True, 1, None, 32.0),
    ("of another pull", [(2.0, status(7, "409 Consumer Deleted"))], False, 0, None, 10.0),
    ("after the end", [(2.0, status(1, "404 x")), (3.0, status(1, "503"))], True, 0, None, 32.0),
    ("no status", [(2.0, Msg(INBOX + b".1", 1, b"", b"{}"))], False, 0, None, 10.0),
    ("early timer", [("tick", 9.9)], False, 0, None, 10.0),
    ("silence", [("tick", 10.0)], True, 0, HeartbeatMissed, 40.0),
    ("silence later", [(1.0, A), ("tick", 11.0)], True, 1, HeartbeatMissed, 41.0),
    ("nobody has read", [("tick", 40.0)], True, 0, TimeoutExpired, 70.0),
    ("excused", [("tick", 12.0)], False, 0, None, 17.0),
    ("excused once", [("tick", 12.0), ("tick", 17.2)], True, 0, HeartbeatMissed, 47.2),
    ("excused again", [("tick", 12.0), (13.0, beat()), ("tick", 23.2)], False, 0, None, 28.2),
    ("the end", [(29.0, beat()), ("tick", 31.0)], True, 0, TimeoutExpired, 61.0),
    ("messages to the end", [(29.0, A), (30.9, B), ("tick", 31.0)], True, 2, TimeoutExpired, 61.0),
    ("lost", [(1.0, A), ("disconnected", 2.0)], True, 1, ConnectionLost, 32.0),
    ("lost afterwards", [(1.0, status(1, "404 x")), ("disconnected", 2.0)], True, 0, None, 31.0),
    ("cancelled", [(1.0, A), ("give_up", 2.0)], True, 0, None, 32.0),
    ("idle", [("give_up", 2.0), ("tick", 31.9)], True, 0, None, 32.0),
]  # fmt: skip


@pytest.mark.rule("FETCH-1")
@pytest.mark.rule("FETCH-3")
@pytest.mark.rule("FETCH-4")
@pytest.mark.rule("FETCH-5")
@pytest.mark.rule("FETCH-6")
@pytest.mark.rule("FETCH-9")
@pytest.mark.rule("PULL-8")
@pytest.mark.parametrize(
    ("name", "steps", "done", "count", "failure", "deadline"), TABLE, ids=[row[0] for row in TABLE]
)
def test_table(name, steps, done, count, failure, deadline):
    fetcher = fetching()
    play(fetcher, steps)
    assert fetcher.done is done
    assert fetcher.pending() == count
    assert type(fetcher.failure) is (failure or type(None))
    assert fetcher.deadline == pytest.approx(deadline)
    assert not will_publish(fetcher)


LOST = [  # inputs, and how many messages the server reports as undelivered
    ([(1.0, A), (30.0, status(1, TIMEOUT, 2))], 0),
    ([(1.0, A), (30.0, status(1, TIMEOUT, 1))], 1),
    ([(30.0, status(1, TIMEOUT, 0))], 3),
    ([(1.0, A), (30.0, status(1, TIMEOUT, 9))], 0),
    ([(1.0, A), (30.0, status(1, "404 No Messages"))], 0),
]


@pytest.mark.rule("D-ORDERED-24")
@pytest.mark.parametrize(("steps", "lost"), LOST)
def test_lost(steps, lost):
    fetcher = fetching()
    play(fetcher, steps)
    assert fetcher.lost == lost
    fetcher.start(template(), 3, 0, 30.0, 50.0)
    assert fetcher.lost == 0


@pytest.mark.rule("FETCH-5")
def test_without_heartbeats_there_is_one_deadline():
    fetcher = fetching(heartbeat=0.0)
    for at in (1.0, 30.5):
        fetcher.receive(message(), at)
        assert fetcher.deadline == 31.0
    assert not fetcher.handle_timer(30.9)
    assert fetcher.handle_timer(31.0)
    assert isinstance(fetcher.failure, TimeoutExpired)
    assert len(fetcher.take()) == 2


@pytest.mark.rule("FETCH-1")
@pytest.mark.parametrize(
    ("sizes", "done", "left"),
    [([90], False, 1), ([90, 90], True, 0), ([90, 89], False, 0), ([200], True, 0)],
)
def test_bytes(sizes, done, left):
    fetcher = fetching(1_000_000, 180)
    ready = [fetcher.receive(message(size), 1.0) for size in sizes]
    assert (fetcher.done, ready[-1], len(fetcher.take())) == (done, done, len(sizes))


@pytest.mark.rule("D-FETCH-8")
def test_late_messages_are_kept_for_the_next_fetch():
    fetcher = fetching(3)
    fetcher.receive(message(100, 1), 1.0)
    fetcher.give_up(2.0)
    fetcher.give_up(2.5)
    assert (fetcher.take(), fetcher.deadline) == ([], 32.0)
    assert fetcher.receive(message(100, 2), 3.0) is False
    fetcher.start(template(), 3, 0, 30.0, 4.0)
    assert [body["batch"] for body in ordered(fetcher)] == [1]
    assert fetcher.receive(message(100, 3), 5.0) is True
    fetcher.receive(message(100, 4), 5.0)
    assert [msg.raw_reply.split(b".")[5] for msg in fetcher.take()] == [b"1", b"2", b"3"]
    fetcher.start(template(), 1, 0, 30.0, 6.0)
    assert (fetcher.done, will_publish(fetcher), len(fetcher.take())) == (True, False, 1)


@pytest.mark.rule("D-FETCH-8")
@pytest.mark.parametrize(
    ("limit", "kept", "taken", "asked"),
    [
        (250, [100, 100], 2, 50),
        (200, [100, 100, 100], 2, None),
        (150, [100, 100], 1, None),
        (50, [100, 100], 1, None),  # at least one: otherwise it would block the consumer forever
    ],
)
def test_kept_messages_are_returned_within_the_limit(limit, kept, taken, asked):
    fetcher = Fetcher(INBOX)
    for size in kept:
        fetcher.receive(message(size), 0.0)
    fetcher.start(template(), 1_000_000, limit, 30.0, 1.0)
    assert [body["max_bytes"] for body in ordered(fetcher)] == ([] if asked is None else [asked])
    assert fetcher.pending() == taken
    fetcher.take()
    assert len(fetcher.messages) == len(kept) - taken


@pytest.mark.rule("D-FETCH-7")
@pytest.mark.rule("FETCH-6")
def test_begun_without_a_connection():
    fetcher = fetching(online=False)
    assert not will_publish(fetcher)
    fetcher.disconnected(1.0)  # another attempt that failed
    assert (fetcher.done, fetcher.deadline) == (False, 31.0)
    fetcher.connected(5.0)
    assert (ordered(fetcher), fetcher.deadline) == ([{"batch": 3, "token": 1}], 15.0)
    fetcher.disconnected(6.0)
    assert isinstance(fetcher.failure, ConnectionLost)
    assert woken(fetcher) == [fetcher]
    fetcher.connected(7.0)
    assert not will_publish(fetcher)


@pytest.mark.rule("D-FETCH-7")
@pytest.mark.parametrize(
    ("error", "failure"),
    [(None, ConnectionClosed), (ConnectionLost("x"), ConnectionLost)],
)
def test_the_end_of_the_subscription(error, failure):
    fetcher = fetching()
    assert fetcher.end(error) is True
    assert (type(fetcher.failure), fetcher.deadline) == (failure, None)
    assert fetcher.end() is False


@pytest.mark.rule("D-FETCH-10")
def test_idleness():
    fetcher = fetching()
    fetcher.receive(status(1, "404 No Messages"), 2.0)
    assert fetcher.handle_timer(32.0) is False
    assert (fetcher.leaving, fetcher.effects, fetcher.deadline) == (True, [Unsubscribe()], None)
    assert fetcher.handle_timer(33.0) is False
    fetcher.end()
    assert fetcher.failure is None


@pytest.mark.rule("PULL-12")
def test_pins():
    fetcher = fetching(1, pinned=True, group="A")
    fetcher.receive(pinned(), 1.0)
    assert fetcher.pin == PIN
    fetcher.start(template(pinned=True), 2, 0, 30.0, 2.0)
    fetcher.take()
    fetcher.start(template(pinned=True), 2, 0, 30.0, 2.0)
    assert [body["id"] for body in ordered(fetcher)] == [PIN, PIN]
    fetcher.receive(message(), 3.0)
    assert fetcher.pin == PIN
    fetcher.receive(status(3, "423 Nats-Wrong-Pin-Id", 2), 3.0)
    assert fetcher.pin == ""
    other = fetching(1)
    other.receive(pinned(), 1.0)
    assert other.pin == ""


@pytest.mark.rule("PULL-8")
def test_readiness():
    fetcher = fetching(2)
    assert fetcher.receive(message(), 1.0) is False
    assert fetcher.receive(beat(), 1.0) is False
    assert fetcher.receive(message(), 1.0) is True
    other = fetching(2)
    assert other.receive(status(1, "404 No Messages"), 1.0) is True
    assert other.receive(status(1, "404 No Messages"), 1.0) is False


@pytest.mark.rule("FETCH-1")
@pytest.mark.rule("D-FETCH-8")
@pytest.mark.parametrize("size", [0, 250])
@pytest.mark.parametrize("kept", [0, 1])
@pytest.mark.parametrize("pins", [False, True])
@pytest.mark.parametrize(
    "chunks",
    [
        [[A], [B], [C]],
        [[A, B], [C]],
        [[A, B, C]],
        [[A, B, C, A]],
        [[A, B], [C, A, B]],
        [[A, status(1, TIMEOUT, 2)]],
        [[A, beat(), B]],
        [[A, B], [status(1, DELETED)], [C]],
    ],
)
@pytest.mark.parametrize("late", [0.0, 12.0])
def test_several_at_once_equal_one_by_one(chunks, pins, kept, size, late):
    """This also holds after a timer that fired late, which counts only the second time."""
    one, other = Fetcher(INBOX), Fetcher(INBOX)
    for fetcher in (one, other):
        fetcher.messages = [A] * kept
        fetcher.start(template(pinned=pins), 3, size, 30.0, 0.0)
        fetcher.handle_timer(late)
        assert fetcher._grace_used == (late > 0)
    for number, chunk in enumerate(chunks, 1 + int(late)):
        woken = [one.receive(msg, float(number)) for msg in chunk]
        assert other.receive_all(chunk, float(number)) is any(woken)
        for name in ("done", "deadline", "messages", "_mine", "_left", "_grace_used"):
            assert getattr(one, name) == getattr(other, name), name
    assert type(one.failure) is type(other.failure)


@pytest.mark.rule("D-FETCH-8")
def test_several_messages_between_fetches():
    fetcher = Fetcher(INBOX)
    assert fetcher.receive_all([A, B], 1.0) is False
    assert fetcher.messages == [A, B]


@pytest.mark.rule("D-SNAPSHOT-1")
def test_snapshots_of_a_fetch():
    fetcher = fetching()
    fetcher.receive(A, 1.0)
    made = fetcher.snapshot(2.0)
    assert (made.limit, made.level, made.received, made.pending) == (3, 3, 1, 1)
    assert (made.pulls, made.deadlines) == ([OpenPull(2, 0, 29.0)], {"silence": 9.0})
    fetcher.receive(status(1, "503"), 2.0)
    made = fetcher.snapshot(3.0)
    assert (made.ended, made.pulls, made.deadlines) == (True, [], {})
    assert isinstance(made.error, ConsumerUnavailable)
    assert fetching(online=False).snapshot(0.0).pulls == []


def test_limits_and_a_fetcher_that_has_not_begun():
    assert (SLACK_MESSAGES, SLACK_BYTES) == (64, 1024 * 1024)
    fetcher = Fetcher(INBOX)
    assert (fetcher.open, fetcher.streaming, fetcher.failure) == (False, False, None)
    assert (fetcher.lost, fetcher.uncounted, fetcher.dropped) == (0, 0, 0)


def test_the_next_fetch_forgets_how_the_last_one_ended():
    fetcher = fetching()
    fetcher.receive(status(1, "409 Leadership Change"), 1.0)
    assert fetcher.uncounted == 409
    fetcher.start(template(), 3, 0, 30.0, 2.0)
    assert (fetcher.uncounted, fetcher.lost) == (0, 0)


@pytest.mark.parametrize(
    ("msg", "taken"),
    [
        (Msg(b"s.x", 1, b"", b"x", None), 1),  # without a reply subject
        (Msg(INBOX + b".1", 1, b"$JS.ACK.S.C.1.1.1.1.0", b"", b"NATS/1.0 404 No\r\n\r\n"), 1),
        (Msg(INBOX + b".1", 1, b"", b"x", None), 0),  # in the place of statuses
        (Msg(INBOX + b".", 1, b"", b"", b"NATS/1.0 404 No\r\n\r\n"), 0),
    ],
)
def test_what_is_a_message(msg, taken):
    fetcher = fetching()
    assert fetcher.receive(msg, 1.0) is False
    assert (len(fetcher.messages), fetcher.done) == (taken, False)


@pytest.mark.rule("D-FETCH-15")
@pytest.mark.parametrize("at_once", [False, True])
def test_messages_that_come_at_once_use_up_the_same_room(at_once):
    fetcher = fetching(3)
    msgs = [message(100, number) for number in (1, 2, 3)]
    if at_once:
        assert fetcher.receive_all(msgs, 1.0)
    else:
        assert [fetcher.receive(msg, 1.0) for msg in msgs] == [False, False, True]
    late = [message(100, number) for number in range(4, 4 + SLACK_MESSAGES + 2)]
    assert not any(fetcher.receive(msg, 2.0) for msg in late)
    assert (len(fetcher.messages), fetcher.dropped) == (3 + SLACK_MESSAGES, 2)


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize(("pending", "lost"), [(2, 0), (1, 1), (0, 2)])
def test_messages_that_come_at_once_are_counted(at_once, pending, lost):
    fetcher = fetching(3)
    if at_once:
        fetcher.receive_all([message(100, 1)], 1.0)
    else:
        fetcher.receive(message(100, 1), 1.0)
    fetcher.receive(status(1, TIMEOUT, pending), 2.0)
    assert fetcher.lost == lost


def test_the_error_of_a_silent_server():
    fetcher = fetching(heartbeat=5.0)
    fetcher.handle_timer(10.0)
    assert str(fetcher.failure) == "the server of the consumer was silent for 10 s"
