from __future__ import annotations

import random

import pytest

from jetstream.errors import (
    ConsumerDeleted,
    ConsumerIsPush,
    PullRefused,
)
from jetstream.pull.consume import Consume
from natsproto.errors import TimeoutExpired
from natsproto.wire.frames import Msg
from tests.effects import publishes, will_publish
from tests.jetstream.consumes import (
    BATCH,
    FULL,
    GONE,
    LEADER,
    MISSED,
    REFUSED,
    SIZE,
    TIMEOUT,
    A,
    consuming,
    event_names,
    play,
)
from tests.jetstream.pulls import (
    INBOX,
    batches,
    beat,
    message,
    ordered,
    status,
    template,
)


@pytest.mark.rule("PULL-2")
@pytest.mark.rule("CONSUME-1")
def test_the_first_pull():
    machine = Consume(INBOX, template(expires=30.0, a=1), max_messages=10, threshold=5)
    assert (machine.deadline, will_publish(machine)) == (None, False)
    machine.connected(100.0)
    assert ordered(machine) == [{"a": 1, "batch": 10, "token": 1}]
    assert (machine.ledger.messages, machine.deadline, machine.pending()) == (10, 110.0, 0)


# What happens to a limit of 10 with threshold 5, beginning with a pull of 10 at 0.0:
# inputs, pulls (batches), asked, buffered, deadline, events


@pytest.mark.rule("CONSUME-1")
@pytest.mark.rule("CONSUME-3")
@pytest.mark.rule("CONSUME-5")
@pytest.mark.rule("D-CONSUME-7")
@pytest.mark.rule("CONSUME-8")
@pytest.mark.rule("CONSUME-9")
@pytest.mark.parametrize(
    ("name", "steps", "pulls", "asked", "buffered", "deadline", "events"),
    [
        ("nothing", [], [], 10, 0, 10.0, []),
        ("a message", [(1.0, A)], [], 9, 1, 10.0, []),
        ("taken", [(1.0, A), ("pop", 1.0)], [], 9, 0, 10.0, []),
        ("at the threshold", [(1.0, A)] * 5 + [("pop", 2.0)] * 5, [], 5, 0, 10.0, []),
        ("below it", [(1.0, A)] * 6 + [("pop", 2.0)] * 6, [6], 10, 0, 12.0, []),
        ("buffered counts", [(1.0, A)] * 10 + [("pop", 2.0)] * 5, [], 0, 5, 10.0, []),
        ("and below", [(1.0, A)] * 10 + [("pop", 2.0)] * 6, [6], 6, 4, 12.0, []),
        ("heartbeat", [(5.0, beat())], [], 10, 0, 10.0, []),
        ("rang early", [(5.0, beat()), ("tick", 10.0)], [], 10, 0, 15.0, []),
        ("expired", [(30.0, status(1, TIMEOUT, 10))], [10], 10, 0, 40.0, []),
        ("expired with some", [(1.0, A), (30.0, status(1, TIMEOUT, 9))], [9], 9, 1, 40.0, []),
        ("full enough", [(1.0, A)] * 5 + [(30.0, status(1, TIMEOUT, 5))], [], 0, 5, None, []),
        ("leader", [(1.0, status(1, LEADER))], [10], 10, 0, 11.0, GONE),
        ("stops", [(1.0, status(1, "409 Server Shutdown", 10))], [10], 10, 0, 11.0, GONE),
        ("stops, leader", [(1.0, status(1, "409 Server Shutdown", 10)), (1.07, status(1, LEADER))],
         [10], 10, 0, 11.0, GONE),
        ("no messages", [(1.0, status(1, "404 No Messages"))], [10], 10, 0, 11.0, []),
        ("at once", [(0.01, status(1, LEADER))], [], 0, 0, 0.05, GONE),
        ("a little later", [(0.01, status(1, LEADER)), ("tick", 0.05)], [10], 10, 0, 10.05, GONE),
        ("brought one", [(0.01, A), (0.02, status(1, LEADER))], [9], 9, 1, 10.02, GONE),
        ("waiting", [(1.0, status(1, FULL))], [], 0, 0, 1.05, REFUSED),
        ("batch", [(1.0, status(1, BATCH))], [], 0, 0, 1.05, REFUSED),
        ("nobody", [(1.0, status(1, "503"))], [], 0, 0, 1.05, GONE),
        ("silence", [("tick", 10.0)], [10], 10, 0, 20.0, MISSED),
        ("just before", [("tick", 9.99)], [], 10, 0, 10.0, []),
        ("silence behind a message", [(3.0, A), ("tick", 13.0)], [9], 9, 1, 23.0, MISSED),
        ("late answer", [("tick", 10.0), (11.0, status(1, LEADER))], [10], 10, 0, 20.0, MISSED),
        ("nobody has read", [("tick", 12.0)], [], 10, 0, 17.0, []),
        ("nobody came", [("tick", 12.0), ("tick", 17.0)], [10], 10, 0, 27.0, MISSED),
        ("late twice", [("tick", 12.0), ("tick", 18.0)], [10], 10, 0, 28.0, MISSED),
        ("somebody came", [("tick", 12.0), (12.0, A), ("tick", 30.0)], [], 9, 1, 35.0, []),
        ("lost", [(1.0, A), ("lost", 2.0)], [], 0, 1, None, []),
        ("lost and silent", [("lost", 2.0), ("tick", 50.0)], [], 0, 0, None, []),
        ("lost and taken",
         [(1.0, A)] * 9 + [("lost", 2.0)] + [("pop", 3.0)] * 9, [], 0, 0, None, []),
        ("back", [("lost", 2.0), ("back", 9.0)], [10], 10, 0, 19.0, []),
        ("back with some", [(1.0, A)] * 3 + [("lost", 2.0), ("back", 9.0)], [7], 7, 3, 19.0, []),
        ("back with enough", [(1.0, A)] * 5 + [("lost", 2.0), ("back", 9.0)], [], 0, 5, None, []),
        ("late one of before", [("lost", 2.0), ("back", 9.0), (9.1, status(1, LEADER))],
         [10], 10, 0, 19.0, []),
        ("lost in a pause", [(1.0, status(1, "503")), ("lost", 1.01), ("tick", 1.05)],
         [], 0, 0, None, GONE),
    ],
)  # fmt: skip
def test_table(name, steps, pulls, asked, buffered, deadline, events):
    machine = consuming()
    assert play(machine, steps) == pulls
    assert (machine.ledger.messages, machine.pending()) == (asked, buffered)
    assert machine.deadline == (None if deadline is None else pytest.approx(deadline))
    assert event_names(machine) == events


@pytest.mark.rule("CONSUME-4")
def test_a_limit_of_one():
    machine = consuming(1, 1)
    for number in range(1, 4):
        assert machine.receive(message(number=number), float(number)) is True
        assert batches(machine) == []
        machine.pop(float(number))
        assert batches(machine) == [1]


@pytest.mark.rule("CONSUME-1")
def test_messages_in_order():
    machine = consuming(100, 1)
    for number in range(3):
        machine.receive(message(number=number), 1.0)
    taken = [machine.pop(1.0)]
    machine.receive(message(number=3), 1.0)
    taken += [machine.pop(1.0) for _ in range(3)]
    assert [int(msg.raw_reply.split(b".")[5]) for msg in taken] == [0, 1, 2, 3]


@pytest.mark.rule("D-CONSUME-7")
@pytest.mark.parametrize(
    ("line", "pauses", "longest"),
    [(FULL, 9, 10.0), ("503", 7, 2.0), (SIZE, 9, 10.0)],
)
def test_pauses_double(line, pauses, longest):
    machine = consuming(max_bytes=400, threshold=200)
    expected = 0.05
    now = 0.0
    for token in range(1, pauses + 1):
        machine.receive(status(token, line), now)
        assert machine.deadline == pytest.approx(now + expected)
        now += expected
        assert not machine.handle_timer(now - 0.001)
        assert batches(machine) == []
        machine.handle_timer(now)
        assert batches(machine) == [1_000_000]
        expected = min(2 * expected, longest)
    assert expected == longest
    machine.receive(message(), now)
    machine.receive(status(pauses + 1, line), now)
    assert machine.refill.due == pytest.approx(now + 0.05)


@pytest.mark.rule("D-CONSUME-7")
def test_a_new_connection_ends_the_pause():
    machine = consuming()
    for token in (1, 2, 3):
        machine.receive(status(token, "503"), float(token))
        machine.handle_timer(token + 0.5)
    machine.receive(status(4, "503"), 4.0)
    publishes(machine)
    assert machine.needs_poke
    machine.disconnected(4.1)
    machine.connected(4.15)
    assert batches(machine) == [10]


@pytest.mark.rule("D-CONSUME-7")
def test_a_pause_that_begins_when_a_message_is_taken():
    machine = consuming()
    for _ in range(9):
        machine.receive(A, 1.0)
    machine.receive(status(1, FULL), 1.0)
    assert (machine.deadline, machine.needs_poke) == (None, False)
    for _ in range(5):
        machine.pop(1.01)
    assert (machine.deadline, machine.needs_poke, will_publish(machine)) == (1.05, True, False)
    machine.handle_timer(1.05)
    assert batches(machine) == [6]


@pytest.mark.rule("CONSUME-6")
@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("409 Consumer Deleted", ConsumerDeleted),
        ("409 Consumer is push based", ConsumerIsPush),
        ("400 Bad Request - Priority Group missing", PullRefused),
    ],
)
def test_the_end(line, error):
    machine = consuming()
    machine.receive(A, 1.0)
    assert machine.receive(status(1, line), 2.0) is True
    assert (machine.ended, type(machine.error), machine.leaving) == (True, error, True)
    assert (machine.deadline, machine.pending(), machine.events.items) == (None, 1, [])
    assert machine.receive(status(1, line), 3.0) is False
    machine.pop(3.0)
    machine.connected(4.0)
    machine.handle_timer(99.0)
    assert batches(machine) == []


@pytest.mark.rule("PULL-14")
def test_overdue():
    machine = consuming()
    for _ in range(6):
        machine.receive(A, 1.0)
    for _ in range(6):
        machine.pop(2.0)
    assert batches(machine) == [6]  # heartbeats of one pull hide the loss of the other
    for at in (10.0, 15.0, 20.0, 25.0, 30.0):
        machine.receive(beat(2), at)
        machine.handle_timer(at)
    assert (machine.deadline, machine.ledger.messages) == (31.0, 10)
    assert machine.handle_timer(31.0) is True
    assert event_names(machine) == ["TimeoutExpired"]
    assert (machine.ledger.messages, machine.deadline) == (6, 33.0)
    assert machine.handle_timer(33.05) is True
    assert isinstance(machine.events.items[0].error, TimeoutExpired)
    assert batches(machine) == [10]


@pytest.mark.rule("D-CONSUME-10")
def test_an_overdue_pull_may_only_be_unread():
    machine = consuming()
    machine.receive(beat(), 30.0)
    assert machine.handle_timer(60.0) is False
    assert machine.deadline == 65.0
    machine.receive(status(1, TIMEOUT, 10), 60.0)
    assert (event_names(machine), batches(machine)) == ([], [10])


@pytest.mark.rule("PULL-10")
@pytest.mark.parametrize(
    ("msg", "buffered"),
    [
        (Msg(b"s", 1, b"$JS.ACK.x", b"", b"NATS/1.0\r\nStatus: 409\r\n\r\n"), 1),
        (Msg(b"s", 1, b"$JS.ACK.x", b"", b"NATS/1.0 409 Consumer Deleted\r\n\r\n"), 1),
        (Msg(INBOX + b".1", 1, b"$JS.ACK.x", b"", b"NATS/1.0 409 Consumer Deleted\r\n\r\n"), 1),
        (Msg(INBOX + b".1", 1, b"", b"{}", b"NATS/1.0 409 Consumer Deleted\r\n\r\n"), 0),
        (Msg(INBOX + b".1", 1, b"", b"{}"), 0),
    ],
)  # fmt: skip
def test_messages_that_are_not_statuses(msg, buffered):
    machine = consuming()
    machine.receive(msg, 1.0)
    assert (machine.ended, machine.pending()) == (False, buffered)


@pytest.mark.rule("CONSUME-1")
@pytest.mark.rule("CONSUME-3")
@pytest.mark.rule("CONSUME-16")
@pytest.mark.parametrize("stop_after", [0, 40])
@pytest.mark.parametrize("seed", range(50))
def test_shortcuts_give_the_same_result(seed, stop_after):
    """Several messages at once, and buffered ones, cause the same pulls as single messages."""
    rng = random.Random(seed)
    threshold = rng.choice([1, 7, 20])
    one = consuming(20, threshold, stop_after=stop_after)
    other = consuming(20, threshold, stop_after=stop_after)
    number = 0
    for step in range(60):
        now = float(step) / 10
        count = rng.randint(0, one.ledger.messages)
        news = [message(60, number + index) for index in range(count)]
        number += count
        woken = [one.receive(msg, now) for msg in news]
        if news:
            assert other.receive_all(news, now) is any(woken)
        if rng.random() < 0.2 and one.ledger.open:
            token, rest = int(one.ledger.open[0].token), one.ledger.open[0].messages
            for machine in (one, other):
                machine.receive(status(token, TIMEOUT, rest), now)
        elif rng.random() < 0.1:
            for machine in (one, other):
                machine.disconnected(now)
                machine.connected(now)
        for _ in range(rng.randint(0, one.pending())):
            msg = other.ready.pop() if other.ready else other.poll(rng.choice([1, 3, 30]))
            assert (msg or other.pop(now)) is one.pop(now)
            if one.finished:
                break
        assert ordered(one) == ordered(other)
        assert (one.finished, one.leaving) == (other.finished, other.leaving)
        assert one.ledger.open == other.ledger.open
        if one.finished:
            break


@pytest.mark.rule("CONSUME-1")
def test_poll():
    machine = consuming(10, 5)
    assert machine.poll() is None
    machine.receive_all([A] * 8, 1.0)
    assert machine.poll() is None  # received messages must be processed first
    machine.pop(1.0)
    assert [machine.poll() for _ in range(5)] == [A] * 4 + [None]  # then a pull is due
    machine.pop(1.0)
    assert batches(machine) == [6]


@pytest.mark.rule("CONSUME-1")
def test_poll_messages_that_arrive_one_by_one():
    machine = consuming(10, 5)
    machine.receive(A, 1.0)
    machine.pop(1.0)
    for _ in range(4):
        assert machine.poll() is None  # there is none
        other = message(60, 2)
        machine.receive(other, 2.0)
        assert machine.poll() is other
    machine.receive(A, 3.0)
    assert machine.poll() is None  # a pull is due
    assert machine.pop(3.0) is A
    assert batches(machine) == [6]


@pytest.mark.rule("CONSUME-1")
def test_take_several():
    msgs = [message(100, number) for number in range(9)]
    machine = consuming(10, 5)
    machine.receive_all(msgs[1:9], 1.0)
    assert machine.peek(9) == []  # as with `poll`
    machine.pop(1.0)
    assert (machine.peek(2), machine.peek(9)) == (msgs[2:4], msgs[2:6])
    machine.take(3)
    assert (machine.peek(9), machine.pending(), machine._taken) == ([msgs[5]], 4, 4)
    machine.take(1)
    assert (machine.peek(9), machine.poll(), batches(machine)) == ([], None, [])  # a pull is due
    assert machine.pop(1.0) is msgs[6]
    assert batches(machine) == [6]


@pytest.mark.rule("CONSUME-1")
def test_poll_several():
    msgs = [message(100, number) for number in range(9)]
    machine = consuming(10, 5)
    machine.receive_all(msgs[1:9], 1.0)
    machine.pop(1.0)
    assert (machine.poll(3), machine.ready, machine.pending()) == (msgs[2], [msgs[4], msgs[3]], 6)
    assert (machine.poll(), machine.ready.pop(), machine.ready) == (msgs[3], msgs[4], [])
    assert (machine.poll(9), machine.ready) == (msgs[5], [])  # no more without a pull
    assert (machine.poll(9), machine.pop(1.0), batches(machine)) == (None, msgs[6], [6])
    machine.pop(1.0)
    assert (machine.poll(9), machine.ready, machine._taken) == (msgs[8], [], 8)
    machine = consuming(10, 2)
    machine.receive_all(msgs[1:9], 1.0)
    machine.pop(1.0)
    assert (machine.poll(), machine.ready) == (msgs[2], [])
    assert (machine.poll(2), machine.ready) == (msgs[3], [msgs[4]])


def readied():
    """Return a machine with a message of eight taken and three in `ready`, and the other seven."""
    msgs = [message(100, number) for number in range(9)]
    machine = consuming(10, 2)
    machine.receive_all(msgs[1:9], 1.0)
    machine.pop(1.0)
    assert machine.poll(4) is msgs[2]
    assert (len(machine.ready), machine._taken) == (3, 5)
    return machine, msgs[3:]


@pytest.mark.rule("CONSUME-1")
def test_messages_are_put_back():
    machine, rest = readied()
    machine.peek(0)
    assert (machine.ready, machine._taken) == ([], 2)
    assert [machine.poll(9), *reversed(machine.ready)] == rest
    machine, rest = readied()
    assert (machine.peek(9), machine.ready) == (rest, [])
    machine, rest = readied()
    assert [machine.pop(2.0) for _ in range(6)] == rest
    machine, rest = readied()
    assert machine.receive(A, 2.0) is False
    machine.start_draining()
    assert [machine.pop(2.0) for _ in range(7)] == [*rest, A]
    machine, rest = readied()
    assert (machine.stop(), machine.pending(), machine.ready) == (rest, 0, [])


@pytest.mark.rule("CONSUME-9", "CONSUME-15")
@pytest.mark.parametrize("what", ["disconnected", "start_draining", "end"])
def test_after_a_change_each_message_is_popped(what):
    machine, rest = readied()
    arguments = (2.0,) if what == "disconnected" else ()
    getattr(machine, what)(*arguments)
    assert (machine.ready, machine.poll(9), machine.pending()) == ([], None, 6)
    assert [machine.pop(2.0) for _ in range(6)] == rest


@pytest.mark.rule("CONSUME-15")
@pytest.mark.parametrize("what", ["disconnected", "draining", "end"])
def test_poll_returns_nothing_after_a_change(what):
    machine = consuming(10, 2)
    machine.receive_all([A] * 8, 1.0)
    machine.pop(1.0)
    if what == "disconnected":
        machine.disconnected(1.0)
    elif what == "draining":
        machine.start_draining()
    else:
        machine.end()
    assert (machine.poll(), machine.peek(9)) == (None, [])
    assert machine.pop(1.0) is A


@pytest.mark.rule("PULL-10")
def test_a_status_among_messages():
    machine = consuming(10, 5)
    assert machine.receive_all([A, status(1, TIMEOUT, 9), A], 1.0) is True
    assert (machine.pending(), batches(machine)) == (2, [9])


@pytest.mark.rule("CONSUME-5")
def test_more_messages_than_requested():
    machine = consuming(10, 5)
    assert machine.receive_all([A] * 12, 1.0) is True
    assert machine.receive_all([A], 1.0) is False
    assert (machine.pending(), machine.ledger.open, batches(machine)) == (13, [], [])
