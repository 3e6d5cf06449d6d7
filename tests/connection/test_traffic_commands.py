"""Flushes and the end of a connection, as its callers see them."""

from __future__ import annotations

import pytest

from natsproto.connection.waitable import Waitable
from natsproto.errors import (
    ConnectionClosed,
    ConnectionLost,
    TimeoutExpired,
)
from tests.connection.support import PING, PONG, Wire

INBOX = "_INBOX." + "0" * 22  # the tokens of the scripted randomness


def reconnect(wire):
    """Lose the transport and get another; return the data sent after CONNECT and PING."""
    wire.lost(at=wire.now + 10).greet().sent()
    return wire.data(PONG).sent()


# Flushes


@pytest.mark.rule("PING-4", "D-RECON-10")
def test_flushes_are_settled_in_their_order():
    wire = Wire().up()
    flushes = [wire.connection.start_flush(9.0) for _ in range(3)]
    assert wire.sent() == PING * 3
    for i in range(3):
        wire.data(PONG)
        assert [flush.done for flush in flushes] == [j <= i for j in range(3)]
    assert wire.ready() == flushes
    wire.data(PONG)  # one too many


@pytest.mark.rule("D-RECON-10")
def test_a_flush_and_the_transport():
    wire = Wire().up()
    lost = wire.connection.start_flush(9.0)
    wire.lost()
    assert isinstance(lost.error, ConnectionLost)
    assert str(lost.error) == "connection lost before the flush was complete"
    assert lost in wire.ready()
    wire.connection.publish("a")
    waiting = wire.connection.start_flush(9.0)
    short = wire.connection.start_flush(0.5)
    cancelled = wire.connection.start_flush(9.0)
    wire.connection.cancel(cancelled)
    wire.timer(at=0.5)
    assert isinstance(short.error, TimeoutExpired)
    wire.greet().sent()
    assert wire.data(PONG).sent() == b"PUB a 0\r\n\r\n" + PING
    wire.data(PONG)
    assert (waiting.done, waiting.error) == (True, None)


@pytest.mark.rule("D-RECON-10", "CLOCK-2")
def test_flushes_that_gave_up_are_not_kept():
    wire = Wire(max_reconnects=-1).up().lost()
    for _ in range(1000):
        wire.connection.start_flush(wire.now + 0.001)
        wire.timer(at=wire.now + 0.001)
    assert wire.connection.pings._flushes == []


@pytest.mark.rule("D-CLOCK-1")
def test_a_wake_up_is_at_the_earliest_requested_time():
    wire = Wire().up()
    bell = Waitable()
    for deadline in (5.0, 3.0, 4.0):
        wire.connection.wake_at(bell, deadline)
    assert wire.timer(at=3.0).ready() == [bell]
    wire.connection.wake_at(bell, 4.0)
    assert wire.timer(at=4.0).ready() == [bell]


# The end


@pytest.mark.rule("D-CONN-24")
def test_all_waiting_callers_are_notified_of_the_end():
    wire = Wire().up()
    mailbox = wire.subscribe("a")
    waiting = [
        wire.connection.start_flush(9.0),
        wire.connection.start_request("a", deadline=9.0),
        wire.connection.start_gather("a", deadline=9.0),
    ]
    wire.connection.pings.ping(None)
    wire.connection.close(1.0)
    assert all(isinstance(request.error, ConnectionClosed) for request in waiting)
    assert {*map(id, waiting), id(mailbox), id(wire.connection.writable)} <= {
        *map(id, wire.ready())
    }
    assert (mailbox.ended, mailbox.error) == (True, None)
    late = wire.connection.start_flush(9.0)
    assert isinstance(late.error, ConnectionClosed)
    for call in (
        lambda: wire.subscribe("a"),
        lambda: wire.connection.publish("a"),
        lambda: wire.connection.start_request("a", deadline=9.0),
        lambda: wire.connection.force_reconnect(2.0),
    ):
        with pytest.raises(ConnectionClosed):
            call()
    wire.connection.unsubscribe(1)
    assert (wire.sent(), wire.deadline) == (b"", None)


@pytest.mark.rule("D-CONN-24")
def test_subscriptions_and_flushes_of_a_connection_that_failed():
    wire = Wire(max_reconnects=0)
    mailbox = wire.subscribe("a")
    flush = wire.connection.start_flush(9.0)
    wire.connect().lost(OSError("refused"))
    for error in (mailbox.error, flush.error):
        assert isinstance(error, ConnectionClosed)
        assert "nats://a:4222: refused" in str(error)
