"""Publishes that wait for a connection: which of them are sent, and which are counted."""

from __future__ import annotations

import pytest

from natsproto.errors import PayloadTooLarge
from natsproto.events import Closed, Connected, PublishDropped
from tests.connection.support import PING, PONG, Wire


def offline():
    return Wire(max_reconnects=-1).up().lost(at=1.0).forget()


def up_again(wire, **fields):
    """Connect to a server with this INFO; return the data sent after CONNECT and PING."""
    wire.greet(**fields).sent()
    return wire.data(PONG).sent()


@pytest.mark.rule("D-RECON-14")
@pytest.mark.parametrize("asked", [False, True])
def test_a_publish_that_is_too_large_for_the_next_server_is_dropped_alone(asked):
    wire = offline()
    if asked:  # there is an inbox of requests
        wire.connection.cancel(wire.connection.start_request("svc", deadline=9.0))
    for data in (b"1", b"x" * 6, b"2"):
        wire.connection.publish("é", data, headers=None)
    flush = wire.connection.start_flush(9.0)
    sent = up_again(wire, max_payload=5)
    assert sent.endswith(b"PUB \xc3\xa9 1\r\n1\r\nPUB \xc3\xa9 1\r\n2\r\n" + PING)
    assert wire.events() == [Connected("nats://a:4222", True), PublishDropped("é", 6)]
    wire.data(PONG)
    assert flush.done
    wire.connection.close(2.0)
    assert wire.events() == [Closed(None, 0)]  # it was reported before


@pytest.mark.rule("D-RECON-14")
def test_a_request_that_is_too_large_for_the_next_server_fails():
    wire = offline()
    large, forgotten = (
        wire.connection.start_request("svc", b"x" * 6, deadline=9.0) for _ in range(2)
    )
    small = wire.connection.start_request("svc", b"1", deadline=9.0)
    wire.connection.cancel(forgotten)
    up_again(wire, max_payload=5)
    assert isinstance(large.error, PayloadTooLarge)
    assert str(large.error) == "6 bytes of headers and payload exceed the server's max_payload 5"
    assert large in wire.ready()
    assert (forgotten.error, small.done) == (None, False)
    assert [type(event) for event in wire.events()] == [Connected]
    wire.connection.close(2.0)
    assert wire.events() == [Closed(None, 0)]


@pytest.mark.rule("D-CONN-28")
@pytest.mark.parametrize(
    ("confirmed", "taken", "waiting"), [(0, 0, 0), (3, 0, 0), (0, 3, 0), (0, 0, 3), (1, 2, 4)]
)
def test_unconfirmed_messages_at_the_end(confirmed, taken, waiting):
    wire = Wire().up()
    for _ in range(confirmed):
        wire.connection.publish("a")
    wire.connection.start_flush(9.0)
    wire.data(PONG)
    for _ in range(taken):
        wire.connection.publish("a")
    wire.look()
    for _ in range(waiting):
        wire.connection.publish("a")
    wire.connection.close(1.0)
    loss = wire.connection.start_close(2.0).error
    counts = (0, 0) if loss is None else (loss.unsent, loss.in_doubt)
    assert counts == (waiting, taken)


@pytest.mark.rule("D-CONN-28")
@pytest.mark.parametrize(("closing", "in_doubt"), [(False, 0), (True, 2)])
def test_frames_taken_by_a_lost_transport_are_in_doubt(closing, in_doubt):
    wire = Wire(max_reconnects=-1).up()
    wire.connection.start_request("svc", deadline=9.0)
    for _ in range(2):
        wire.connection.publish("a")
    wire.look()
    wire.connection.outbound.take_back()
    wire.connection.pings.disconnected(closing)
    wire.connection.bus.online = False
    wire.connection.publish("a")
    assert not wire.connection.pings.idle
    loss = wire.connection.pings.close("it")
    assert loss is not None
    assert (loss.unsent, loss.in_doubt) == (1, in_doubt)
