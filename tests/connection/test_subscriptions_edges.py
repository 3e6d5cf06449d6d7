"""Subscriptions: messages of several subscriptions in one read, and deadlines of machines."""

from __future__ import annotations

import pytest

from natsproto.connection.bus import Bus
from natsproto.connection.effects import Unsubscribe
from natsproto.connection.outbound import Outbound
from natsproto.connection.receiver import Mailbox, Receiver
from natsproto.connection.subscriptions import Subscriptions
from natsproto.connection.tokens import Numbers
from natsproto.errors import ConnectionClosed
from natsproto.wire.frames import Msg, Pong


class Machine(Receiver):
    """Wants a timer after each message; leaves when the connection is lost."""

    def __init__(self, later=3.0):
        super().__init__()
        self.later = later
        self.msgs = []

    def receive(self, msg, now):
        self.msgs.append(msg.data)
        self.deadline = now + self.later
        return False

    def disconnected(self, now):
        self.leave()

    def pending(self):
        return 0


def make(online=True):
    bus = Bus()
    bus.online = online
    outbound = Outbound(bus, 1000)
    if online:
        outbound.release()
    return Subscriptions(bus, outbound, Numbers()), outbound, bus


def deliver(subscriptions, *pairs, now=1.0):
    frames = [Msg(b"s", sid, b"", b"%d" % number) for number, sid in enumerate(pairs)]
    return subscriptions.deliver(iter([*frames, Pong()]), now)


@pytest.mark.rule("SUB-4", "SUB-7")
@pytest.mark.parametrize(
    ("sids", "first", "second"),
    [
        ([1], [0], []),
        ([1, 1], [0, 1], []),
        ([1, 1, 1, 2], [0, 1, 2], [3]),
        ([1, 2, 1, 2], [0, 2], [1, 3]),
        ([1, 1, 2, 2, 1, 1], [0, 1, 4, 5], [2, 3]),
        ([3, 3, 1, 3, 3, 2], [2], [5]),  # nothing is subscribed with id 3
    ],
)
def test_messages_of_several_subscriptions_in_one_read(sids, first, second):
    subscriptions, outbound, bus = make()
    one, other = Mailbox(10, 1000), Mailbox(10, 1000)
    for mailbox in (one, other):
        subscriptions.subscribe("s", mailbox)
    assert isinstance(deliver(subscriptions, *sids), Pong)
    for mailbox, numbers in ((one, first), (other, second)):
        assert [int(mailbox.pop().data) for _ in range(mailbox.pending())] == numbers
        assert mailbox.received == len(numbers)
        assert bus.ready.count(mailbox) == (1 if numbers else 0)
    assert outbound.stats.in_msgs == len(sids)


@pytest.mark.rule("D-CLOCK-1")
@pytest.mark.parametrize("count", [1, 2])
def test_a_deadline_that_a_message_sets_is_armed(count):
    """Whether the message came alone or was followed by others of the same subscription."""
    subscriptions, _, bus = make()
    machine = Machine()
    subscriptions.subscribe("s", machine)
    deliver(subscriptions, *[1] * count)
    assert (bus.timers.next_deadline(), machine.msgs) == (4.0, [b"0", b"1"][:count])


@pytest.mark.rule("D-CLOCK-1")
def test_a_deadline_is_armed_after_the_effects_of_a_machine():
    subscriptions, outbound, bus = make()
    machine = Machine()
    machine.deadline = 7.0
    machine.emit(b"p", b"", b"")
    subscriptions.apply(machine)
    assert (bus.timers.next_deadline(), outbound.take()) == (7.0, [b"PUB p 0\r\n\r\n"])


@pytest.mark.rule("D-CLOCK-1")
def test_no_deadline_is_armed_for_a_mailbox():
    subscriptions, _, bus = make()
    subscriptions.subscribe("s", Mailbox(10, 1000))
    deliver(subscriptions, 1, 1)
    assert bus.timers.next_deadline() is None


@pytest.mark.rule("D-CONN-24")
def test_a_closed_connection_takes_no_subscription():
    subscriptions, outbound, bus = make()
    bus.closed = "the connection is closed"
    with pytest.raises(ConnectionClosed):
        subscriptions.subscribe("s", Mailbox(10, 1000))
    assert (subscriptions.by_sid, outbound.take()) == ({}, [])


@pytest.mark.rule("D-DRAIN-5", "RECON-4")
def test_what_a_lost_transport_means_for_each():
    subscriptions, _, bus = make()
    draining, mailbox, machine = Mailbox(10, 100), Mailbox(10, 100), Machine()
    for each in (draining, mailbox, machine):
        subscriptions.subscribe("s", each)
    subscriptions.drain([draining])
    bus.online = False
    subscriptions.disconnected(1.0)
    assert (draining.ended, mailbox.ended, machine.ended) == (True, False, False)
    assert machine.effects == [Unsubscribe()]
    assert subscriptions.busy == [machine]
    subscriptions.apply_all()
    assert (machine.ended, list(subscriptions.by_sid)) == (True, [2])


@pytest.mark.rule("SUB-3")
@pytest.mark.parametrize(("sids", "received"), [([1], 1), ([1, 1], 2), ([1, 1, 1, 1], 2)])
def test_a_subscription_ends_with_its_last_message(sids, received):
    subscriptions, _, bus = make()
    mailbox = Mailbox(10, 1000)
    subscriptions.subscribe("s", mailbox)
    subscriptions.unsubscribe(1, after=2)
    deliver(subscriptions, *sids)
    assert (mailbox.received, mailbox.pending()) == (received, received)
    assert mailbox.ended is (received == 2)
    assert mailbox in bus.ready
