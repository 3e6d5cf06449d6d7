"""Requests: the defaults of a gather, and held requests that the next server does not accept."""

from __future__ import annotations

import pytest

from natsproto.connection.encoded import reply_of
from natsproto.errors import MessagesUnconfirmed, PayloadTooLarge
from tests.connection.support import PONG, Wire, msg


@pytest.mark.rule("REQ-6", "REQ-8")
def test_by_default_neither_a_number_nor_a_pause_ends_a_gather():
    wire = Wire().up()
    gather = wire.connection.start_gather("a", deadline=10.0)
    assert (gather.max_msgs, gather.stall, gather.end) == (0, 0.0, 10.0)
    prefix = wire.connection.requests.inbox.prefix.decode()
    for count in (1, 2, 3):
        wire.data(msg(prefix + gather.token.decode(), 1, b"x"), at=float(count))
        assert (gather.done, gather.deadline, len(gather.replies)) == (False, 10.0, count)


@pytest.mark.rule("D-CONN-28")
def test_requests_that_wait_for_a_connection_are_not_counted_as_lost():
    """Their callers learn of the loss by an error of the request."""
    wire = Wire(max_reconnects=-1).connect()
    wire.connection.start_request("a", deadline=99.0)
    wire.connection.publish("b")
    close = wire.connection.start_close(5.0)
    wire.timer(at=5.0)
    assert isinstance(close.error, MessagesUnconfirmed)
    assert (close.error.unsent, close.error.in_doubt) == (1, 0)


@pytest.mark.rule("D-RECON-14")
def test_a_held_request_that_is_too_large_for_the_next_server():
    wire = Wire().connect()
    request = wire.connection.start_request("a", b"x" * 11, deadline=99.0)
    inbox = wire.connection.requests.inbox
    [frame] = wire.connection.outbound._held
    assert reply_of(frame) == inbox.prefix + request.token
    wire.greet(max_payload=10).data(PONG)
    assert isinstance(request.error, PayloadTooLarge)
    assert request in wire.ready()
    assert inbox.open == {}
    assert wire.connection.outbound.accepted == 0
