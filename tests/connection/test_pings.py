"""PINGs, flushes and the count of confirmed messages, without a connection."""

from __future__ import annotations

import pytest

from natsproto.connection.bus import Bus
from natsproto.connection.outbound import Outbound
from natsproto.connection.pings import PING, Fence, Pings
from natsproto.connection.waitable import Request
from natsproto.errors import ConnectionClosed, ConnectionLost


class Rig:
    """Pings with an outbound queue that sends or holds."""

    def __init__(self, online=True):
        self.bus = Bus()
        self.outbound = Outbound(self.bus, 1000)
        self.pings = Pings(self.bus, self.outbound)
        if online:
            self.connect()

    def connect(self):
        self.bus.online = True
        self.outbound.release()
        self.pings.connected()

    def publish(self, count):
        for _ in range(count):
            self.outbound.publish("a")
        return self

    def take(self):
        return b"".join(self.outbound.take())

    def loss(self):
        loss = self.pings.close("it is closed")
        return (0, 0) if loss is None else (loss.unsent, loss.in_doubt)


def test_a_pong_is_for_the_oldest_ping():
    rig = Rig()
    flush = rig.pings.start_flush(9.0)
    rig.pings.ping()
    fence = Fence("drain", None, [])
    rig.pings.ping(fence)
    assert rig.take() == PING * 3
    assert (rig.pings.unanswered, rig.pings.fenced) == (1, True)
    assert [rig.pings.pong() for _ in range(4)] == [flush, None, fence, None]
    assert (rig.pings.unanswered, rig.pings.fenced) == (0, False)
    assert rig.bus.timers.next_deadline() == 9.0


@pytest.mark.rule("D-RECON-10")
def test_a_flush_waits_for_a_connection():
    rig = Rig(online=False).publish(1)
    flush, forgotten = rig.pings.start_flush(None), rig.pings.start_flush(None)
    rig.pings.forget(forgotten)
    rig.pings.forget(Request("not a flush"))
    assert (rig.take(), rig.pings.idle) == (b"", False)
    rig.connect()
    assert rig.take() == b"PUB a 0\r\n\r\n" + PING
    assert rig.pings.pong() is flush


def test_a_flush_after_the_end_fails_at_once():
    rig = Rig()
    rig.bus.closed = "it is closed"
    assert isinstance(rig.pings.start_flush(None).error, ConnectionClosed)


def test_idle_means_nothing_to_send_and_no_connection():
    rig = Rig(online=False)
    assert rig.pings.idle
    rig.publish(1)
    assert (rig.pings.idle, rig.pings.published) == (False, 1)
    assert not Rig().pings.idle


def test_a_lost_transport_fails_everything_that_waits_for_a_pong():
    rig = Rig()
    flush, cancelled = rig.pings.start_flush(None), rig.pings.start_flush(None)
    cancelled.finish()
    rig.pings.ping()
    rig.outbound.take_back()
    rig.bus.ready.clear()
    rig.pings.disconnected(closing=False)
    assert isinstance(flush.error, ConnectionLost)
    assert str(flush.error) == "connection lost before the flush was complete"
    assert (rig.bus.ready, cancelled.error, rig.pings.pong()) == ([flush], None, None)


def test_the_end_fails_everything():
    rig = Rig()
    sent = rig.pings.start_flush(None)
    rig.pings.ping()
    rig.outbound.hold()
    waiting = rig.pings.start_flush(None)
    rig.pings.close("it is closed")
    assert [type(each.error) for each in (sent, waiting)] == [ConnectionClosed] * 2
    assert rig.bus.ready == [sent, waiting]


LOSSES = [  # what happened before the end,                    unsent, in doubt
    ("nothing was published", [], (0, 0)),
    ("not taken", [2], (2, 0)),
    ("taken, not confirmed", [2, "take"], (0, 2)),
    ("confirmed", [2, "take", "pong"], (0, 0)),
    ("published after the PING", [2, "ping", 1, "take", "late pong"], (0, 1)),
    ("lost before", [2, "take", "lost"], (0, 0)),
    ("lost while closing", [2, "take", "lost while closing"], (0, 2)),
    ("confirmed, lost while closing", [3, "take", "pong", 2, "take", "lost while closing"], (0, 2)),
    ("lost while closing, not taken", [2, "lost while closing"], (2, 0)),
    ("sent by another process", [2, "take", 1, "disclaim"], (0, 0)),
]


@pytest.mark.rule("D-CONN-28")
@pytest.mark.parametrize(
    ("steps", "loss"), [pytest.param(steps, loss, id=case) for case, steps, loss in LOSSES]
)
def test_messages_that_the_server_may_not_have_received(steps, loss):
    rig = Rig()
    for step in steps:
        if isinstance(step, int):
            rig.publish(step)
        elif step == "take":
            rig.take()
        elif step == "ping":
            rig.pings.ping()
        elif step == "pong":
            rig.pings.ping()
            rig.pings.pong()
        elif step == "late pong":
            rig.pings.pong()
        elif step == "disclaim":
            rig.outbound.disclaim()
            rig.pings.disclaim()
        else:
            rig.outbound.take_back()
            rig.pings.disconnected(closing=step == "lost while closing")
    assert rig.loss() == loss
