from __future__ import annotations

import random

import pytest

from jetstream.errors import (
    ConsumerDeleted,
    ConsumerUnavailable,
    HeartbeatMissed,
    UnknownStatus,
)
from jetstream.events import ConsumerSequenceReset, Gap, PushWarning
from jetstream.push.machine import MAX_BYTES, MAX_MESSAGES, Push
from jetstream.push.policy import PlainPush
from natsproto.connection.effects import Publish
from natsproto.errors import ConnectionClosed
from natsproto.wire.frames import Msg
from tests.effects import count_drops, publishes, woken
from tests.jetstream.pushes import beat, flow, message, pushing, status

A = "$JS.FC.S.C.aaaa"
B = "$JS.FC.hub.szMpdrwD.S.C.bbbb"
M = [message(number) for number in range(20)]
INPUTS = {
    "tick": "handle_timer",
    "lost": "disconnected",
    "back": "connected",
    "pop": "pop",
    "end": "end",
}


def play(machine, steps):
    """Play the steps: (time, message), ("pop", time) and the like."""
    for first, second in steps:
        if first == "drain":
            machine.start_draining()
        elif first == "end":
            machine.end()
        elif isinstance(first, str):
            getattr(machine, INPUTS[first])(second)
        else:
            machine.receive(second, first)


def event_names(machine):
    """Return all events, in short: those about gaps as they are, of warnings the error."""
    found = [
        str(each.error) if isinstance(each, PushWarning) else each for each in machine.events.items
    ]
    machine.events.items.clear()
    return found


def silent(seconds):
    return f"the server was silent for {seconds:g} s"


def answers(machine):
    """Return the subjects of empty answers."""
    orders = publishes(machine)
    assert [order for order in orders if order.data or order.reply or order.block] == []
    return [order.subject.decode() for order in orders]


# fmt: off
SILENCE = [  # case, inputs, deadline, events
    ("nothing", [], 15.0, []),
    ("just before", [("tick", 14.99)], 15.0, []),
    ("three heartbeats", [("tick", 15.0)], 25.0, [silent(15)]),
    ("a moment later", [("tick", 15.09)], 25.09, [silent(15.1)]),
    ("and 10 s more", [("tick", 15.0), ("tick", 25.0)], 45.0, [silent(15), silent(25)]),
    ("and not yet", [("tick", 15.0), ("tick", 24.9)], 25.0, [silent(15)]),
    ("less and less often", [("tick", at) for at in (15.0, 25.0, 45.0, 85.0, 145.0)],
     205.0, [silent(each) for each in (15, 25, 45, 85, 145)]),
    ("a message", [(3.0, M[1]), ("tick", 15.0)], 18.0, []),
    ("silence behind a message", [(3.0, M[1]), ("tick", 18.0)], 28.0, [silent(15)]),
    ("a heartbeat", [(5.0, beat(0)), ("tick", 15.0)], 20.0, []),
    ("flow control", [(5.0, flow(A)), ("tick", 15.0)], 20.0, []),
    ("back to life", [("tick", 15.0), ("tick", 25.0), (26.0, beat(0)), ("tick", 30.0)],
     41.0, [silent(15), silent(25)]),
    ("watched again", [("tick", 15.0), ("tick", 25.0), (26.0, beat(0))],
     41.0, [silent(15), silent(25)]),
    ("silent again", [("tick", 15.0), ("tick", 25.0), (26.0, beat(0)), ("tick", 41.0)],
     51.0, [silent(15), silent(25), silent(15)]),
    ("nobody has read", [("tick", 16.0)], 21.0, []),
    ("nobody came", [("tick", 16.0), ("tick", 21.0)], 31.0, [silent(21)]),
    ("late twice", [("tick", 16.0), ("tick", 23.0)], 33.0, [silent(23)]),
    ("somebody came", [("tick", 16.0), (16.0, beat(0)), ("tick", 31.0)], 41.0, [silent(15)]),
    ("late, but not at first", [("tick", 15.0), ("tick", 26.0)], 31.0, [silent(15)]),
    ("lost", [("lost", 2.0)], None, []),
    ("lost and silent", [("lost", 2.0), ("tick", 50.0)], None, []),
    ("back", [("lost", 2.0), ("back", 60.0)], 75.0, []),
    ("lost when silent", [("tick", 15.0), ("lost", 16.0), ("back", 17.0), ("tick", 32.0)],
     42.0, [silent(15)] * 2),
    ("drained", [("drain", 1.0), ("tick", 15.0)], None, []),
    ("ended", [("end", 1.0), ("tick", 15.0)], None, []),
]
# fmt: on


@pytest.mark.rule("PUSH-1")
@pytest.mark.rule("PUSH-2")
@pytest.mark.rule("PUSH-3")
@pytest.mark.rule("D-PUSH-4")
@pytest.mark.rule("D-PUSH-18")
@pytest.mark.parametrize(
    ("steps", "deadline", "events"), [pytest.param(*row[1:], id=row[0]) for row in SILENCE]
)
def test_silence(steps, deadline, events):
    machine = pushing()
    play(machine, steps)
    assert machine.deadline == deadline
    assert event_names(machine) == events


@pytest.mark.rule("PUSH-1")
@pytest.mark.parametrize(
    ("heartbeat", "alarm_after", "deadline"), [(5.0, 2, 10.0), (0.5, 3, 1.5), (0.0, 3, None)]
)
def test_how_much_silence_is_too_much(heartbeat, alarm_after, deadline):
    machine = pushing(heartbeat=heartbeat, alarm_after=alarm_after)
    assert machine.deadline == deadline
    assert machine.handle_timer(100.0) is False
    assert machine.handle_timer(200.0) is (deadline is not None)


@pytest.mark.rule("D-PUSH-18")
def test_alarms_are_at_least_a_heartbeat_apart():
    machine = pushing(heartbeat=90.0)
    machine.handle_timer(270.0)
    assert machine.deadline == 360.0
    machine.handle_timer(360.0)
    assert machine.deadline == 450.0


@pytest.mark.rule("PUSH-3")
def test_no_alarm_before_the_consumer_is_there():
    machine = Push(heartbeat=5.0)
    assert machine.deadline is None
    machine.receive(M[1], 1.0)
    machine.handle_timer(100.0)
    assert (machine.deadline, machine.events.items) == (None, [])
    machine.connected(100.0)
    assert machine.deadline == 115.0


@pytest.mark.rule("PUSH-1")
def test_an_alarm_is_a_missed_heartbeat():
    machine = pushing()
    assert machine.handle_timer(15.0)
    (event,) = machine.events.items
    assert isinstance(event.error, HeartbeatMissed)


AGAIN = message(3, stream_seq=1, count=2)
# fmt: off
GAPS = [  # case, last sequence, inputs, events, last sequence
    ("in order", 0, [M[1], M[2], M[3]], [], 3),
    ("the first is missing", 0, [M[2]], [Gap(1, 1)], 2),
    ("some are missing", 0, [M[1], M[5], M[6]], [Gap(2, 4)], 6),
    ("twice", 0, [M[2], M[3], M[6]], [Gap(1, 1), Gap(4, 5)], 6),
    ("the last is missing", 0, [M[1], beat(3)], [Gap(2, 3)], 3),
    ("reported once", 0, [M[1], beat(3), beat(3), M[4]], [Gap(2, 3)], 4),
    ("all are missing", 0, [beat(7)], [Gap(1, 7)], 7),
    ("none is missing", 0, [M[1], M[2], beat(2)], [], 2),
    ("a redelivery", 0, [M[1], M[2], AGAIN, M[4]], [], 4),
    ("somebody else's consumer", None, [M[7], M[8]], [], 8),
    ("somebody else's heartbeat", None, [beat(7), M[8]], [], 8),
    ("somebody else's gap", None, [beat(7), M[9]], [Gap(8, 8)], 9),
    ("reset", 0, [M[1], M[2], M[1], M[2]], [ConsumerSequenceReset(2, 1)], 2),
    ("reset to one", 0, [M[1], M[1]], [ConsumerSequenceReset(1, 1)], 1),
    ("reset, in a heartbeat", 0, [M[1], M[2], beat(0), M[1]], [ConsumerSequenceReset(2, 0)], 1),
    ("leader behind", 0, [M[1], M[2], M[3], M[2], M[3]], [ConsumerSequenceReset(3, 2)], 3),
    ("a heartbeat without numbers", 0, [M[1], beat("no"), beat("")], [], 1),
    ("a number too long", 0, [M[1], beat("1" * 21)], [], 1),
    ("eleven tokens", 0, [message(1, tokens=11), message(3, tokens=11)], [Gap(2, 2)], 3),
    ("twelve tokens", 0, [message(1, tokens=12), message(3, tokens=12)], [Gap(2, 2)], 3),
    ("no token at all", 0, [M[1], Msg(b"s", 1, b"", b"x", None), M[2]], [], 2),
]
# fmt: on


@pytest.mark.rule("PUSH-5")
@pytest.mark.rule("PUSH-6")
@pytest.mark.rule("PUSH-10")
@pytest.mark.parametrize(
    ("last", "msgs", "events", "now"), [pytest.param(*row[1:], id=row[0]) for row in GAPS]
)
def test_gaps(last, msgs, events, now):
    machine = pushing(last=last)
    for msg in msgs:
        before = len(machine.events.items), machine.pending()
        new = machine.receive(msg, 1.0)
        assert new == (
            len(machine.events.items) > before[0] or (before[1] == 0 and machine.pending() == 1)
        )
    assert (event_names(machine), machine.policy.last) == (events, now)
    assert machine.pending() == len([msg for msg in msgs if msg.data])


@pytest.mark.rule("PUSH-5")
@pytest.mark.rule("PUSH-6")
@pytest.mark.parametrize(
    ("last", "msgs", "events", "now"), [pytest.param(*row[1:], id=row[0]) for row in GAPS]
)
def test_gaps_within_one_read(last, msgs, events, now):
    machine = pushing(last=last)
    messages = [msg for msg in msgs if msg.data]
    assert machine.receive_all(msgs, 1.0) == bool(events or messages)
    assert (event_names(machine), machine.policy.last, machine._heard) == (events, now, 1.0)
    assert [machine.pop(1.0) for _ in range(machine.pending())] == messages
    assert machine._bytes == 0


@pytest.mark.rule("PUSH-5")
@pytest.mark.parametrize("together", [False, True])
def test_in_a_queue_group_nothing_is_checked(together):
    machine = pushing(queue=True)
    msgs = [M[1], M[5], beat(9), M[2]]
    if together:
        machine.receive_all(msgs, 1.0)
    else:
        for msg in msgs:
            machine.receive(msg, 1.0)
    assert (machine.pending(), machine.events.items) == (3, [])


def test_messages_of_one_read_wake_once():
    machine = pushing()
    assert machine.receive_all([M[1], M[2]], 1.0)
    assert not machine.receive_all([M[3], M[4]], 1.0)
    assert machine.receive_all([M[6], M[7]], 1.0)
    assert event_names(machine) == [Gap(5, 5)]


@pytest.mark.rule("PUSH-7")
def test_poll():
    machine = pushing()
    assert machine.poll() is None
    machine.receive_all(M[1:4], 1.0)
    assert (machine.poll(), machine.pop(1.0), machine.poll()) == (None, M[1], M[2])
    assert (machine.pending(), machine._bytes, machine._taken) == (1, 1, 2)
    machine.receive(flow(A), 1.0)
    assert (machine.poll(), machine.pop(1.0), answers(machine)) == (None, M[3], [A])
    machine.receive_all(M[4:7], 1.0)
    machine.pop(1.0)
    machine.end()
    assert (machine.poll(), machine.pending()) == (None, 2)


@pytest.mark.rule("PUSH-7")
def test_take_several():
    machine = pushing()
    machine.receive_all(M[1:5], 1.0)
    assert (machine.peek(9), machine.pop(1.0)) == ([], M[1])
    assert machine.peek(2) == M[2:4]
    machine.take(2)
    assert (machine.pending(), machine._bytes, machine._taken) == (1, 1, 3)
    machine.receive(flow(A), 1.0)
    assert (machine.peek(9), machine.pop(1.0), answers(machine)) == ([], M[4], [A])
    machine.receive_all(M[5:7], 1.0)
    machine.pop(1.0)
    machine.end()
    assert (machine.peek(9), machine.pending()) == ([], 1)


@pytest.mark.rule("PUSH-7")
def test_poll_several():
    machine = pushing()
    machine.receive_all(M[1:9], 1.0)
    machine.pop(1.0)
    assert (machine.poll(3), machine.ready, machine.pending()) == (M[2], [M[4], M[3]], 6)
    assert (machine._bytes, machine._taken) == (4, 4)
    assert (machine.poll(), machine.ready.pop(), machine.ready) == (M[3], M[4], [])
    assert (machine.poll(99), machine.ready, machine.pending()) == (M[5], M[8:5:-1], 3)
    assert (machine._bytes, machine._taken) == (0, 8)


def readied(**options):
    """Return a machine with a message of eight taken and three in `ready`, and the other seven."""
    machine = pushing(**options)
    machine.receive_all(M[1:9], 1.0)
    machine.pop(1.0)
    assert machine.poll(4) is M[2]
    assert (len(machine.ready), machine._bytes, machine._taken) == (3, 3, 5)
    return machine, M[3:9]


@pytest.mark.rule("PUSH-7")
def test_messages_are_put_back():
    machine, rest = readied()
    assert (machine.snapshot(1.0).received, machine.snapshot(1.0).pending_bytes) == (8, 6)
    assert (machine.ready, machine._taken) == ([], 2)
    machine, rest = readied()
    assert (machine.peek(9), machine.ready) == (rest, [])
    machine, rest = readied()
    assert [machine.pop(2.0) for _ in range(6)] == rest
    assert (machine._bytes, machine._taken) == (0, 8)
    machine, rest = readied()
    assert (machine.stop(), machine.pending(), machine.ready) == (rest, 0, [])
    machine, rest = readied()
    machine.end()
    assert (machine.ready, machine.poll(9), machine.pending()) == ([], None, 6)
    machine, rest = readied()
    machine.receive(flow(A), 2.0)
    assert (machine.ready, machine.poll(9), answers(machine)) == ([], None, [])
    assert [machine.pop(2.0) for _ in range(6)] == rest
    assert answers(machine) == [A]


@pytest.mark.rule("PUSH-7")
@pytest.mark.parametrize(("max_messages", "max_bytes"), [(7, 0), (0, 7)])
@pytest.mark.parametrize("together", [True, False])
def test_ready_messages_count_as_pending(max_messages, max_bytes, together):
    machine, _ = readied()
    machine._max_messages = max_messages
    machine._max_bytes = max_bytes
    news = M[9:11]
    if together:
        assert machine.receive_all(news, 2.0) is False
    else:
        assert [machine.receive(msg, 2.0) for msg in news] == [False, False]
    assert (machine.dropped, machine.pending()) == (1, 7)  # there was room for one of them


@pytest.mark.rule("PUSH-7", "PUSH-10")
@pytest.mark.parametrize("seed", range(50))
def test_shortcuts_give_the_same_result(seed):
    """Several messages at once cause the same answers and events as single messages."""
    rng = random.Random(seed)
    limits = {"max_messages": rng.choice([0, 9]), "max_bytes": rng.choice([0, 9])}
    one, other = pushing(**limits), pushing(**limits)
    number = 0
    for step in range(40):
        now = 1.0 + step / 10
        news = []
        for _ in range(rng.randint(0, 8)):
            number += 1 if rng.random() < 0.98 else 2
            news.append(message(number))
        woken = [one.receive(msg, now) for msg in news]
        if news:
            assert other.receive_all(news, now) is any(woken)
        if rng.random() < 0.2:
            request = flow("%s%d" % (A, step))
            assert one.receive(request, now) is other.receive(request, now)
        for _ in range(rng.randint(0, one.pending())):
            msg = other.ready.pop() if other.ready else other.poll(rng.choice([1, 3, 30]))
            assert (msg or other.pop(now)) is one.pop(now)
        assert answers(one) == answers(other)
        assert (one.pending(), one.dropped) == (other.pending(), other.dropped)
        assert event_names(one) == event_names(other)


# fmt: off
FLOW = [  # case, inputs, the answers
    ("nothing waits", [(1.0, flow(A))], [A]),
    ("odd subjects", [(1.0, flow("$JS.FC.thing-at*all"))], ["$JS.FC.thing-at*all"]),
    ("stalled at no subject", [(1.0, beat(0, A + " b")), (1.0, beat(0, A + "a" * 2049))], []),
    ("stalled at a subject of others", [(1.0, beat(0, "admin.delete"))], []),
    ("stalled at an acknowledgment", [(1.0, beat(0, "$JS.ACK.S.C.1.1.1.1.0"))], []),
    ("asked by others", [(1.0, flow("admin.delete"))], []),
    ("almost", [(1.0, flow("$JS.FC")), (1.0, beat(0, "x.$JS.FC.a"))], []),
    ("one waits", [(1.0, M[1]), (1.0, flow(A))], []),
    ("one was taken", [(1.0, M[1]), (1.0, flow(A)), ("pop", 2.0)], [A]),
    ("one of two was taken", [(1.0, M[1]), (1.0, M[2]), (1.0, flow(A)), ("pop", 2.0)], []),
    ("those behind it do not count",
     [(1.0, M[1]), (1.0, flow(A)), (1.0, M[2]), (1.0, M[3]), ("pop", 2.0)], [A]),
    ("two requests", [(1.0, M[1]), (1.0, flow(A)), (1.0, M[2]), (1.0, flow(B)), ("pop", 2.0)], [A]),
    ("two requests, all taken",
     [(1.0, M[1]), (1.0, flow(A)), (1.0, M[2]), (1.0, flow(B)), ("pop", 2.0), ("pop", 3.0)],
     [A, B]),
    ("the newer of two in a row", [(1.0, M[1]), (1.0, flow(A)), (1.0, flow(B)), ("pop", 2.0)], [B]),
    ("stalled, and nothing waits", [(1.0, beat(0, A))], [A]),
    ("stalled, and one waits", [(1.0, M[1]), (1.0, beat(1, A))], []),
    ("stalled, and one was taken", [(1.0, M[1]), (1.0, beat(1, A)), ("pop", 2.0)], [A]),
    ("named again while it waits",
     [(1.0, M[1]), (1.0, flow(A)), (1.3, beat(1, A)), (1.6, beat(1, A)), ("pop", 2.0)], [A]),
    ("named by one that crossed", [(1.0, flow(A)), (1.1, beat(0, A))], [A]),
    ("asked for again", [(1.0, flow(A)), (1.1, flow(A))], [A]),
    ("named a heartbeat later", [(1.0, flow(A)), (1.1, beat(0, A)), (6.0, beat(0, A))], [A, A]),
    ("named on and on",
     [(1.0, flow(A)), (6.0, beat(0, A)), (8.0, beat(0, A)), (11.0, beat(0, A))], [A, A, A]),
    ("named by the next connection",
     [(1.0, flow(A)), ("lost", 1.1), ("back", 1.2), (1.3, beat(0, A))], [A, A]),
    ("the next one", [(1.0, flow(A)), (1.1, beat(0, B))], [A, B]),
    ("while draining", [(1.0, M[1]), (1.0, flow(A)), ("drain", 1.5), ("pop", 2.0)], [A]),
    ("after the end", [(1.0, M[1]), (1.0, flow(A)), ("end", 1.5), ("pop", 2.0)], []),
]
# fmt: on


@pytest.mark.rule("PUSH-7")
@pytest.mark.rule("PUSH-8")
@pytest.mark.rule("PUSH-9")
@pytest.mark.rule("D-PUSH-17")
@pytest.mark.parametrize(("steps", "expected"), [pytest.param(*row[1:], id=row[0]) for row in FLOW])
def test_flow_control(steps, expected):
    machine = pushing(flow_control=True)
    play(machine, steps)
    assert answers(machine) == expected


@pytest.mark.rule("PUSH-7")
def test_an_answer_is_an_empty_publish_and_not_delivered_to_the_user():
    machine = pushing(flow_control=True)
    assert machine.receive(flow(A), 1.0) is False
    assert machine.needs_poke
    assert publishes(machine) == [Publish(A.encode(), b"", b"", None)]
    assert machine.receive(beat(0, B), 1.0) is False
    assert machine.pending() == 0


@pytest.mark.rule("PUSH-9")
def test_requests_do_not_pile_up():
    machine = pushing(flow_control=True)
    machine.receive(M[1], 0.0)
    for number in range(1000):
        machine.receive(flow(f"$JS.FC.{number}"), 0.0)
    assert len(machine._requests) == 1


@pytest.mark.rule("D-PUSH-11")
@pytest.mark.parametrize(
    ("options", "sizes", "kept"),
    [
        ({}, [1] * 5, 5),
        ({"max_messages": 3}, [1] * 5, 3),
        ({"max_messages": 0}, [1] * 5, 5),
        ({"max_bytes": 20}, [8] * 5, 2),
        ({"max_bytes": 20}, [100], 0),
        ({"max_bytes": 0}, [100], 1),
        ({"max_bytes": 20, "flow_control": True}, [8] * 5, 2),
        ({"max_messages": 3, "flow_control": True}, [1] * 5, 3),
        ({"max_messages": 1}, [1, 1], 1),
        ({"max_messages": 2}, [1, 1], 2),
        ({"max_bytes": 1}, [2, 2], 0),
        ({"max_bytes": 1}, [1, 1], 1),
        ({"max_bytes": 2}, [1, 1], 2),
    ],
)
@pytest.mark.parametrize("together", [False, True])
def test_limits(options, sizes, kept, together):
    machine = pushing(**options)
    msgs = [message(number, b"x" * size) for number, size in enumerate(sizes, 1)]
    if together:
        machine.receive_all(msgs, 0.0)
    else:
        for msg in msgs:
            machine.receive(msg, 0.0)
    assert (machine.pending(), machine.dropped) == (kept, len(sizes) - kept)
    assert count_drops(machine) == machine.dropped
    while machine.pending():
        machine.pop(1.0)
    assert machine._bytes == 0


@pytest.mark.rule("D-PUSH-11")
@pytest.mark.parametrize(("flow_control", "messages"), [(False, MAX_MESSAGES), (True, 0)])
def test_default_limits(flow_control, messages):
    machine = Push(flow_control=flow_control)
    assert (machine._max_messages, machine._max_bytes) == (messages, MAX_BYTES)


@pytest.mark.rule("PUSH-5")
@pytest.mark.rule("D-PUSH-11")
def test_dropped_messages_are_a_gap():
    machine = pushing(max_messages=2)
    for number in (1, 2, 3, 4):
        machine.receive(M[number], 0.0)
    assert machine.events.items == []
    machine.receive(beat(4), 1.0)
    assert event_names(machine) == [Gap(3, 4)]
    machine.receive(M[5], 1.0)
    machine.pop(2.0)
    machine.receive(M[6], 2.0)
    assert (event_names(machine), machine.dropped) == ([Gap(5, 5)], 3)


# fmt: off
STATUSES = [  # status, error, whether it is the end
    ("409 Consumer Deleted", ConsumerDeleted, True),
    ("409 Leadership Change", ConsumerUnavailable, False),
    ("409 Server Shutdown", ConsumerUnavailable, False),
    ("409 Consumer is push based", UnknownStatus, True),
    ("409 Whatever", UnknownStatus, True),
    ("503", ConsumerUnavailable, True),
    ("404 No Messages", UnknownStatus, True),
    ("408 Request Timeout", UnknownStatus, True),
    ("777 Lucky", UnknownStatus, True),
]
# fmt: on


@pytest.mark.rule("PUSH-12")
@pytest.mark.parametrize(("line", "error", "is_end"), STATUSES)
def test_statuses(line, error, is_end):
    machine = pushing()
    machine.receive(M[1], 1.0)
    assert machine.receive(status(line), 1.0)
    assert machine.pending() == 1
    found = machine.error if is_end else machine.events.items[0].error
    assert type(found) is error
    assert str(found) == line
    assert (machine.ended, machine.leaving, machine.stopped) == (is_end, is_end, is_end)
    assert machine.deadline == (None if is_end else 15.0)


@pytest.mark.rule("PUSH-12")
@pytest.mark.rule("PUSH-13")
@pytest.mark.parametrize(
    ("msg", "count"),
    [
        (message(1, b"", headers=b"NATS/1.0\r\nStatus: 409\r\n\r\n"), 1),
        (message(1, b"", headers=b"NATS/1.0\r\nStatus: 100\r\nNats-Last-Consumer: 9\r\n\r\n"), 1),
        (message(1, b"x", headers=b"NATS/1.0 100 Idle Heartbeat\r\n\r\n"), 1),
        (message(1, b""), 1),
        (Msg(b"s.x", 1, b"", b"", b"NATS/1.0\r\nA: b\r\n\r\n"), 1),
        (status("100 Idle Heartbeat"), 0),
        (status("100"), 0),
    ],
)
def test_which_messages_are_statuses(msg, count):
    machine = pushing()
    machine.receive(msg, 1.0)
    assert (machine.pending(), machine.ended, machine.events.items) == (count, False, [])


LINES = [*(row[0] for row in STATUSES), "100", "100 Idle Heartbeat", "100 FlowControl Request"]
BEATS = "Nats-Last-Consumer: 9\r\nNats-Consumer-Stalled: $JS.FC.S.C.x\r\n"


@pytest.mark.rule("PUSH-16")
@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("headers", ["", BEATS])
@pytest.mark.parametrize("tokens", [9, 11, 12])
@pytest.mark.parametrize("together", [False, True])
def test_a_stored_status_is_a_message(line, headers, tokens, together):
    """Before 2.12.6 servers deliver the status lines of publishers as they were stored."""
    block = f"NATS/1.0 {line}\r\n{headers}\r\n".encode()
    stored = message(1, b"", headers=block, tokens=tokens)
    machine = pushing(flow_control=True)
    if together:
        assert machine.receive_all([stored, M[2]], 1.0)
    else:
        assert machine.receive(stored, 1.0)
        machine.receive(M[2], 1.0)
    assert [machine.pop(1.0) for _ in range(machine.pending())] == [stored, M[2]]
    assert (machine.ended, machine.events.items, answers(machine), machine.policy.last) == (
        False,
        [],
        [],
        2,
    )


@pytest.mark.rule("D-PUSH-17")
@pytest.mark.parametrize("reply", [b"admin.delete", b"_INBOX.x", b"$JS.FC", b"$JS.API.INFO"])
@pytest.mark.parametrize("line", LINES)
def test_a_status_with_the_reply_of_others_is_not_from_the_server(line, reply):
    machine = pushing(flow_control=True)
    odd = status(line, BEATS, reply=reply)
    machine.receive(odd, 1.0)
    assert (machine.pop(1.0), machine.ended, machine.events.items) == (odd, False, [])
    assert answers(machine) == []


@pytest.mark.rule("PUSH-14")
def test_stop():
    machine = pushing()
    for msg in (M[1], M[2], flow(A), M[3]):
        machine.receive(msg, 1.0)
    assert machine.pop(2.0) is M[1]
    assert machine.stop() == [M[2], M[3]]
    assert (machine.pending(), machine._bytes, machine.leaving) == (0, 0, True)
    assert (machine.needs_poke, machine.deadline, answers(machine)) == (True, None, [])
    assert machine.end()
    assert not machine.end(ConnectionClosed("late"))
    assert (machine.needs_poke, machine.error, machine.stop()) == (False, None, [])


@pytest.mark.rule("PUSH-14")
def test_messages_in_flight_can_still_be_taken():
    machine = pushing()
    machine.start_draining()
    machine.draining = True
    assert machine.receive(M[1], 1.0)
    assert (machine.pop(2.0), machine.finished, machine.deadline) == (M[1], False, None)


@pytest.mark.rule("PUSH-7")
def test_transcripts():
    """[46]: the frames of the server, and the answers of the client."""
    machine = pushing(heartbeat=0.3)
    for number in range(1, 132):
        machine.receive(message(number), 0.015)
    machine.receive(flow("$JS.FC.FC.C.nQ9i"), 0.015)
    for at in (0.31, 0.611, 0.911, 1.212):
        machine.receive(beat(131, "$JS.FC.FC.C.nQ9i"), at)
    for _ in range(130):
        machine.pop(1.216)
    assert answers(machine) == []
    machine.pop(1.216)
    assert answers(machine) == ["$JS.FC.FC.C.nQ9i"]
    assert machine.events.items == []


def test_a_consumer_that_is_gone_ends_it_after_the_messages_in_the_queue():
    machine = pushing()
    machine.receive(M[1], 1.0)
    machine.lose(HeartbeatMissed("x"))
    assert isinstance(machine.error, HeartbeatMissed)
    assert (machine.pending(), machine.ended, machine.leaving) == (1, True, True)
    assert woken(machine) == [machine]
    machine.lose(HeartbeatMissed("y"))
    assert (str(machine.error), woken(machine)) == ("x", [machine])


SNAPSHOTS = [  # options, steps, attributes at 7.0
    ({}, [], {"limit": MAX_MESSAGES, "unit": "messages", "deadlines": {"silence": 9.0}}),
    ({}, [(2.0, M[1]), (3.0, M[2]), ("pop", 4.0)], {"pending": 1, "received": 2, "heard_ago": 4.0}),
    (
        {"flow_control": True},
        [(2.0, M[1])],
        {"limit": MAX_BYTES, "unit": "bytes", "level": 1, "pending_bytes": 1},
    ),
    ({"max_messages": 1}, [(2.0, M[1]), (2.0, M[2])], {"dropped": 1, "level": 1}),
    ({"heartbeat": 0.0}, [], {"deadlines": {}, "heard_ago": 6.0}),
    ({}, [("lost", 5.0)], {"online": False, "deadlines": {}}),
    ({}, [("end", ConnectionClosed("x"))], {"ended": True, "deadlines": {}}),
]


@pytest.mark.rule("D-SNAPSHOT-1")
@pytest.mark.parametrize(("options", "steps", "attributes"), SNAPSHOTS)
def test_what_a_snapshot_shows(options, steps, attributes):
    machine = pushing(1.0, **options)
    play(machine, steps)
    made = machine.snapshot(7.0)
    assert {name: getattr(made, name) for name in attributes} == attributes


def test_limits_by_default():
    assert (MAX_MESSAGES, MAX_BYTES) == (65536, 64 * 1024 * 1024)


@pytest.mark.rule("PUSH-8")
@pytest.mark.parametrize(("length", "answered"), [(2048, 1), (2049, 0)])
def test_the_longest_subject_of_a_stalled_consumer(length, answered):
    machine = pushing(flow_control=True)
    subject = "$JS.FC." + "x" * (length - len("$JS.FC."))
    machine.receive(beat(0, subject), 1.0)
    assert len(publishes(machine)) == answered


@pytest.mark.rule("PUSH-1")
@pytest.mark.parametrize("limit", [0, 1])
def test_a_message_that_is_dropped_is_a_sign_of_life(limit):
    machine = pushing(max_messages=limit)
    machine.receive(M[1], 1.0)
    machine.receive(M[2], 4.0)
    assert machine.dropped == limit
    machine.handle_timer(15.0)
    assert machine.deadline == 19.0
    assert event_names(machine) == []


@pytest.mark.rule("D-SNAPSHOT-1")
def test_a_snapshot_of_a_machine_that_stops():
    machine = pushing()
    assert machine.snapshot(1.0).stopped is False
    machine.stopped = True
    assert machine.snapshot(1.0).stopped is True
    draining = pushing()
    draining.receive(M[1], 1.0)
    draining.start_draining()
    assert draining.snapshot(1.0).stopped is True
    assert pushing(at=2.0).snapshot(3.0).heard_ago == 1.0
    assert Push(PlainPush()).snapshot(3.0).heard_ago is None


@pytest.mark.rule("PUSH-12")
def test_nothing_of_the_server_itself_is_delivered():
    machine = pushing()
    assert machine.receive(beat(0), 1.0) is False
    assert machine.receive(status("100 Idle Heartbeat", data=b"x"), 1.0) is True  # a message
    assert machine.pending() == 1
