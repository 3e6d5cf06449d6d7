"""Traffic: what a copy of the process disclaims, what a close counts, and drains."""

from __future__ import annotations

import pytest

from natsproto.connection.bus import Bus
from natsproto.connection.pings import PING
from natsproto.connection.receiver import Receiver
from natsproto.connection.tokens import Numbers
from natsproto.connection.traffic import Traffic
from natsproto.errors import ConnectionClosed, ConnectionLost
from natsproto.events import Closed, SlowConsumer
from natsproto.options import Options
from tests.connection.support import Script


class Machine(Receiver):
    """Drops a message when it ends."""

    def end(self, error=None):
        self.drop()
        return super().end(error)

    def pending(self):
        return 0


def online():
    bus = Bus()
    traffic = Traffic(bus, Options(), Numbers(), Script())
    bus.online = True
    traffic.connected(0.0)
    return bus, traffic


def events(bus):
    found = []
    while (event := bus.events.pop()) is not None:
        found.append(event)
    return found


@pytest.mark.rule("D-RECON-13", "D-CONN-28")
def test_a_copy_neither_sends_nor_counts_what_was_published():
    bus, traffic = online()
    traffic.outbound.publish("sent")
    traffic.outbound.take()
    traffic.outbound.publish("queued")
    traffic.disclaim()
    assert traffic.outbound.take() == []
    bus.closed = "closed"
    traffic.close(None)
    assert events(bus) == [Closed(None, 0)]
    assert traffic.ending.report_loss().error is None


@pytest.mark.rule("D-CONN-28", "D-EVENT-6")
def test_closed_counts_what_is_unsent_and_what_is_in_doubt():
    bus, traffic = online()
    for _ in range(2):
        traffic.outbound.publish("doubt")
    traffic.outbound.take()
    for _ in range(3):
        traffic.outbound.publish("unsent")
    bus.closed = "closed"
    traffic.close(None)
    assert events(bus) == [Closed(None, 5)]
    loss = traffic.ending.report_loss().error
    assert (loss.unsent, loss.in_doubt) == (3, 2)


@pytest.mark.rule("D-EVENT-6", "D-SUB-6")
def test_drops_of_the_last_moment_are_reported_before_the_end():
    bus, traffic = online()
    traffic.subscriptions.subscribe("s", Machine())
    bus.closed = "closed"
    traffic.close(None)
    assert events(bus) == [SlowConsumer("s", 1, 1), Closed(None, 0)]


@pytest.mark.rule("D-CONN-24")
def test_everything_ends_with_the_connection():
    bus, traffic = online()
    mailbox = traffic.mailbox(0, 0)
    traffic.subscriptions.subscribe("s", mailbox)
    request = traffic.requests.start_request("r", deadline=9.0)
    bus.closed = "closed: why"
    traffic.close(ConnectionLost("why"))
    assert isinstance(mailbox.error, ConnectionClosed)
    assert (request.done, str(request.error)) == (True, "closed: why")
    assert traffic.outbound.take() == []
    with pytest.raises(ConnectionClosed, match="why"):
        traffic.outbound.publish("late")


@pytest.mark.rule("DRAIN-1", "DRAIN-4", "D-CLOCK-1")
def test_the_fence_of_a_drain_has_a_deadline():
    bus, traffic = online()
    mailbox = traffic.mailbox(0, 0)
    traffic.subscriptions.subscribe("s", mailbox)
    fence = traffic.start_drain_of([mailbox], 9.0)
    assert traffic.outbound.take() == [b"SUB s 1\r\nUNSUB 1\r\n" + PING]
    assert bus.timers.next_deadline() == 9.0
    assert (fence.done, mailbox.ended, mailbox.draining) == (False, False, True)


@pytest.mark.rule("D-DRAIN-9")
def test_without_a_connection_a_drain_is_complete_at_once():
    bus = Bus()
    traffic = Traffic(bus, Options(), Numbers(), Script())
    mailbox = traffic.mailbox(0, 0)
    traffic.subscriptions.subscribe("s", mailbox)
    fence = traffic.start_drain_of([mailbox], 9.0)
    assert (fence.done, fence.error, mailbox.ended) == (True, None, True)
    assert bus.timers.next_deadline() is None
