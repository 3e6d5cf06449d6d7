"""Push: limits of one, the last moment before an alarm, and messages that are no sign of life."""

from __future__ import annotations

import pytest

from jetstream.events import PushWarning
from jetstream.push.machine import LAST, Push, header_value
from jetstream.push.policy import PlainPush
from natsproto.errors import ConnectionClosed
from natsproto.wire.frames import Msg
from tests.effects import woken
from tests.jetstream.push import test_machine_in_order as in_order
from tests.jetstream.pushes import beat, flow, message, pushing, status

A = "$JS.FC.S.C.aaaa"
M = [message(number) for number in range(5)]


def silences(machine):
    found = [str(event.error) for event in machine.events.items if isinstance(event, PushWarning)]
    machine.events.items.clear()
    return found


@pytest.mark.rule("PUSH-1")
def test_without_heartbeats_silence_means_nothing():
    machine = Push(PlainPush(0))
    machine.connected(0.0)
    assert (machine.deadline, machine.handle_timer(99.0), machine.events.items) == (None, False, [])


@pytest.mark.rule("D-PUSH-4")
@pytest.mark.parametrize(
    ("at", "reported"), [(0.0, True), (0.1, True), (0.125, False)], ids=["due", "just", "late"]
)
def test_a_timer_is_late_after_a_tenth_of_a_second(at, reported):
    """The alarm is due at 0.0."""
    machine = pushing(at=-15.0)
    machine.handle_timer(at)
    assert bool(silences(machine)) is reported


@pytest.mark.rule("D-PUSH-4")
def test_after_a_sign_of_life_a_late_timer_is_excused_again():
    machine = pushing()
    machine.handle_timer(16.0)  # late: excused
    machine.receive(beat(0), 17.0)
    machine.handle_timer(33.0)  # late by a second again
    assert (silences(machine), machine.deadline) == ([], 38.0)
    machine.handle_timer(38.0)
    assert silences(machine) == ["the server was silent for 21 s"]


@pytest.mark.rule("D-SNAPSHOT-1", "D-PUSH-18")
@pytest.mark.parametrize(("ticks", "at", "silence"), [([], 7.0, 8.0), ([15.0], 16.0, 9.0)])
def test_a_snapshot_shows_the_next_alarm(ticks, at, silence):
    machine = pushing()
    for tick in ticks:
        machine.handle_timer(tick)
    assert machine.snapshot(at).deadlines == {"silence": silence}


@pytest.mark.rule("D-SNAPSHOT-1")
def test_a_snapshot_shows_when_the_next_consumer_is_created():
    machine = in_order.using()
    machine.receive(in_order.M[2], 1.0)  # a gap at first: another consumer a second later
    assert machine.snapshot(1.5).deadlines == {"recreate": 0.5}
    machine.stop()
    assert machine.snapshot(1.5).deadlines == {}


@pytest.mark.rule("PUSH-3")
def test_the_end_and_the_loss_of_the_connection_disarm_the_alarm():
    machine = pushing()
    machine.disconnected(1.0)
    assert machine.deadline is None
    machine = pushing()
    machine.end(ConnectionClosed("x"))
    assert machine.deadline is None


# Signs of life, with an ordered consumer: its alarm is 15 s after the last one


@pytest.mark.rule("PUSH-2", "D-ORDPUSH-6")
@pytest.mark.parametrize(
    ("msg", "room", "alive"),
    [
        (in_order.message(2), 2, True),
        (in_order.message(2), 1, False),  # dropped: it shows as a gap
        (in_order.message(9, 9, serial=7), 2, False),  # of an earlier consumer
        (in_order.beat(1, serial=7), 2, False),
        (in_order.beat(1), 2, True),
    ],
)
def test_what_shows_that_the_current_consumer_is_alive(msg, room, alive):
    machine = in_order.using(max_messages=room)
    machine.receive(in_order.M[1], 1.0)
    machine.receive(msg, 4.0)
    machine.handle_timer(15.0)
    assert machine.deadline == (19.0 if alive else 16.0)


@pytest.mark.rule("PUSH-2", "D-ORDERED-24")
def test_a_message_that_the_user_has_shows_that_the_consumer_is_alive():
    """The consumer delivers one of each subject before the position where it should start."""
    machine = in_order.using()
    cursor = machine.policy.cursor
    cursor.ahead, cursor.start = 5, 100
    machine.receive(in_order.message(7, 1), 4.0)
    assert machine.pending() == 0
    machine.handle_timer(15.0)
    assert machine.deadline == 19.0


# What the server itself sends


@pytest.mark.rule("PUSH-12")
@pytest.mark.parametrize(
    "msg",
    [
        in_order.flow(A),
        in_order.beat("no"),
        in_order.beat(""),
        in_order.beat(0),
        Msg(in_order.deliver(1), 1, b"", b"", None),  # neither a status nor a payload
        Msg(in_order.deliver(1), 1, b"", b"", b"NATS/1.0\r\nA: b\r\n\r\n"),
        Msg(in_order.deliver(1), 1, b"", b'{"late": "response"}', None),
        Msg(in_order.deliver(1), 1, b"", b"x", b"NATS/1.0 409 Consumer Deleted\r\n\r\n"),
    ],
)
def test_what_concerns_no_caller(msg):
    machine = in_order.using()
    assert machine.receive(msg, 1.0) is False
    assert (machine.pending(), machine.ended, machine.events.items) == (0, False, [])
    assert machine.policy.ready


@pytest.mark.rule("ORDPUSH-10")
def test_a_machine_that_stops_takes_no_heed_of_statuses():
    machine = in_order.using()
    machine.start_draining()
    assert machine.receive(in_order.status("409 Consumer Deleted"), 1.0) is False
    assert (machine.ended, machine.events.items) == (False, [])


@pytest.mark.rule("PUSH-12")
@pytest.mark.parametrize("line", ["100 Idle Heartbeat", "100 FlowControl Request", "100"])
def test_heartbeats_and_flow_control_wake_no_caller(line):
    machine = pushing()
    assert machine.receive(status(line), 1.0) is False
    assert machine.receive(flow(A), 1.0) is False


@pytest.mark.parametrize(
    ("block", "value"),
    [
        (b"NATS/1.0 100\r\nNats-Last-Consumer: 7\r\n\r\n", b"7"),
        (b"\r\nNats-Last-Consumer: 7\r\n\r\n", b"7"),
        (b"NATS/1.0 100\r\n\r\n", b""),
    ],
)
def test_headers_are_read_from_the_block(block, value):
    assert header_value(block, LAST) == value


# Consumers that are replaced


@pytest.mark.rule("ORDPUSH-2", "ORDERED-14")
def test_a_lost_connection_is_reported_and_wakes_the_caller():
    machine = in_order.using()
    machine.disconnected(1.0)
    assert woken(machine) == [machine]
    assert in_order.event_names(machine) == ["ConnectionLost"]


@pytest.mark.rule("D-ORDPUSH-7")
@pytest.mark.parametrize("how", ["gap", "lost connection"])
def test_flow_control_of_a_lost_consumer_is_not_answered(how):
    """Nor while there is no other consumer yet, because of a pause or without a connection."""
    machine = in_order.using()
    for msg in (in_order.M[1], in_order.flow(A)):
        machine.receive(msg, 1.0)
    if how == "gap":
        machine.policy.recreator.failures = 1  # so that the next consumer is created after a pause
        machine.receive(in_order.M[3], 1.0)
        assert machine.policy.consumer == "backoff"
    else:
        machine.disconnected(1.0)
    assert in_order.orders(machine) == []
    machine.pop(1.5)
    assert (in_order.orders(machine), machine.subject) == ([], in_order.deliver(1))
