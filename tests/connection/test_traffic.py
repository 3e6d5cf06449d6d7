"""What survives a transport, without a connection."""

from __future__ import annotations

import pytest

from natsproto.connection.bus import Bus
from natsproto.connection.pings import PING
from natsproto.connection.receiver import Receiver
from natsproto.connection.tokens import Numbers
from natsproto.connection.traffic import Traffic
from natsproto.connection.waitable import Alarm, Request, Waitable
from natsproto.errors import (
    ConnectionClosed,
    ConnectionLost,
    MessagesUnconfirmed,
    PermissionDenied,
    TimeoutExpired,
)
from natsproto.events import Closed, SlowConsumer
from natsproto.options import Options
from tests.connection.support import Script


class Machine(Receiver):
    """Notes what happens to it."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def handle_timer(self, now):
        self.deadline = None
        self.seen.append(now)
        self.drop()
        return False

    def pending(self):
        return 0


class Rig:
    """Traffic on a bus, with or without a connection."""

    def __init__(self, online=True):
        self.bus = Bus()
        self.traffic = Traffic(self.bus, Options(max_msgs=5), Numbers(), Script())
        if online:
            self.bus.online = True
            self.traffic.connected(0.0)

    def subscribe(self, subject, receiver=None):
        receiver = receiver or self.traffic.mailbox(0, 0)
        self.traffic.subscriptions.subscribe(subject, receiver)
        return receiver

    def sent(self):
        return b"".join(self.traffic.outbound.take())

    def ready(self):
        ready, self.bus.ready = self.bus.ready, []
        return ready


@pytest.mark.rule("RECON-4", "RECON-7")
def test_a_new_transport_gets_subscriptions_publishes_and_flushes_in_this_order():
    rig = Rig(online=False)
    rig.traffic.outbound.publish("p")
    flush = rig.traffic.pings.start_flush(None)
    rig.subscribe("s")
    assert rig.sent() == b""
    rig.bus.online = True
    rig.traffic.connected(1.0)
    assert rig.sent() == b"SUB s 1\r\nPUB p 0\r\n\r\n" + PING
    rig.traffic.disconnected(2.0)
    assert isinstance(flush.error, ConnectionLost)


@pytest.mark.rule("PING-4", "DRAIN-2", "D-LDM-5")
def test_pongs():
    rig = Rig()
    rig.traffic.pong(None)  # for no PING at all
    leaving = Request("move")
    rig.traffic.pings.ping(leaving)
    mailbox = rig.subscribe("s")
    fence = rig.traffic.start_drain_of([mailbox], 9.0)
    assert rig.sent() == PING + b"SUB s 1\r\nUNSUB 1\r\n" + PING
    rig.traffic.pong(leaving)
    assert (leaving.done, rig.sent()) == (False, PING)  # the drain has to be settled first
    rig.traffic.pong(leaving)
    assert (fence.done, mailbox.ended, leaving.done) == (True, True, False)
    rig.traffic.pong(leaving)
    assert leaving.done
    assert leaving in rig.ready()
    rig.traffic.pings.ping(fence)
    rig.traffic.pong(None)
    assert rig.ready() == []  # it was settled before


@pytest.mark.rule("ERR-5", "ERR-6", "ERR-7")
@pytest.mark.parametrize(
    ("text", "subject", "ended", "failed"),
    [
        ('Permissions Violation for Publish to "r"', "r", False, True),
        ('Permissions Violation for Subscription to "s"', "s", True, False),
        ('Permissions Violation for Subscription to "_INBOX.x.*" (sid 2)', "", False, True),
    ],
)
def test_a_permission_error_ends_what_it_is_about(text, subject, ended, failed):
    rig = Rig()
    mailbox = rig.subscribe("s")
    request = rig.traffic.requests.start_request("r", deadline=9.0)
    rig.traffic.deny(PermissionDenied(text, subject, ""), text)
    assert (mailbox.ended, request.done) == (ended, failed)


@pytest.mark.rule("REQ-4", "D-CLOCK-1", "D-SUB-6")
def test_deadlines():
    rig = Rig()
    request = rig.traffic.requests.start_request("r", deadline=1.0)
    target = Waitable()
    machine = rig.subscribe("s", Machine())
    rig.traffic.handle_timer(request, 1.0)
    assert (type(request.error), rig.traffic.requests.inbox.open) == (TimeoutExpired, {})
    rig.traffic.handle_timer(Alarm(target), 1.0)
    assert rig.ready() == [request, target]
    rig.traffic.handle_timer(machine, 1.0)
    rig.traffic.settle()
    assert (machine.seen, rig.bus.events.pop()) == ([1.0], SlowConsumer("s", machine.sid, 1))
    rig.traffic.settle()
    assert rig.bus.events.pop() is None


@pytest.mark.rule("D-RECON-13")
def test_in_a_copy_of_the_process_mailboxes_stay():
    rig = Rig()
    mailbox, machine = rig.subscribe("s"), rig.subscribe("t", Machine())
    request = rig.traffic.requests.start_request("r", deadline=9.0)
    error = ConnectionLost("the process was forked")
    rig.traffic.forked(error)
    assert (mailbox.ended, machine.error, request.error, rig.sent()) == (False, error, error, b"")


@pytest.mark.rule("D-CONN-24", "D-CONN-28", "D-EVENT-6")
@pytest.mark.parametrize(
    ("reason", "error"), [(None, type(None)), (ConnectionLost("gone"), ConnectionClosed)]
)
def test_the_end(reason, error):
    rig = Rig()
    mailbox = rig.subscribe("s")
    waiting = Waitable()
    rig.bus.wake_at(waiting, 9.0)
    rig.traffic.outbound.publish("p")
    rig.bus.closed = "closed"
    rig.traffic.close(reason)
    assert rig.bus.events.pop() == Closed(reason, 1)
    assert (mailbox.ended, type(mailbox.error)) == (
        True,
        ConnectionClosed if reason else type(None),
    )
    assert waiting in rig.ready()
    assert isinstance(rig.traffic.ending.report_loss().error, MessagesUnconfirmed)


@pytest.mark.rule("DRAIN-3", "D-DRAIN-8", "D-DRAIN-9")
@pytest.mark.parametrize(("online", "ended"), [(True, False), (False, True)])
def test_a_drain_of_everything_but_the_inbox(online, ended):
    rig = Rig(online)
    mailbox = rig.subscribe("s")
    request = rig.traffic.requests.start_request("r", deadline=9.0)
    drain = rig.traffic.start_drain(5.0)
    assert rig.traffic.start_drain(6.0) is drain
    assert (mailbox.ended, rig.traffic.requests.inbox.ended) == (ended, False)
    rig.traffic.cancel(drain)
    rig.traffic.cancel(request)
    assert (drain.done, request.done, rig.traffic.requests.inbox.open) == (False, True, {})


@pytest.mark.parametrize(("given", "expected"), [((0, 0), (5, 67108864)), ((3, 4), (3, 4))])
def test_the_limits_of_a_mailbox(given, expected):
    mailbox = Rig().traffic.mailbox(*given)
    assert (mailbox.max_msgs, mailbox.max_bytes) == expected
