"""The outcomes of a request: responses, no responders, timeouts, lost transports, rejections."""

from __future__ import annotations

import pytest

from natsproto.errors import NoResponders, TimeoutExpired
from natsproto.events import ServerError
from tests.connection.support import NO_RESPONDERS, PONG, Wire, err, hmsg, msg

INBOX = "_INBOX." + "0" * 22  # the tokens of the scripted randomness


@pytest.mark.rule("REQ-3")
def test_a_request_without_responders():
    wire = Wire().up()
    request = wire.connection.start_request("a", deadline=5.0)
    wire.data(hmsg(INBOX + ".1", 1, NO_RESPONDERS))
    assert isinstance(request.error, NoResponders)


@pytest.mark.rule("REQ-4")
def test_a_request_times_out_and_a_late_response_is_dropped():
    wire = Wire().up()
    request = wire.connection.start_request("a", deadline=2.0)
    assert wire.deadline == 2.0
    wire.timer(at=1.9)
    assert not request.done
    wire.timer(at=2.0)
    assert isinstance(request.error, TimeoutExpired)
    assert wire.ready()[-1] is request
    wire.data(msg(INBOX + ".1", 1))
    assert (request.reply, wire.ready(), wire.connection.requests.inbox.open) == (None, [], {})


@pytest.mark.rule("REQ-4")
def test_a_canceled_request_is_forgotten():
    wire = Wire().up()
    request = wire.connection.start_request("a", deadline=2.0)
    wire.connection.cancel(request)
    wire.forget().data(msg(INBOX + ".1", 1)).timer(at=2.0)
    assert (request.done, wire.ready(), wire.connection.requests.inbox.open) == (True, [], {})


@pytest.mark.rule("D-RECON-11")
def test_a_request_outlives_the_transport():
    wire = Wire().up()
    request = wire.connection.start_request("a", deadline=9.0)
    wire.forget().lost(at=5.0).greet().sent()
    # No PUB, because it was already taken.
    assert wire.data(PONG).sent() == f"SUB {INBOX}.* 1\r\n".encode()
    wire.data(msg(INBOX + ".1", 1, b"late"))
    assert request.reply.data == b"late"


@pytest.mark.rule("ERR-5")
def test_one_error_for_each_of_two_equal_subscriptions():
    wire = Wire().up()
    boxes = [wire.subscribe("a"), wire.subscribe("a")]
    for ended in ([True, False], [True, True], [True, True]):
        wire.data(err('Permissions Violation for Subscription to "a"'))
        assert [box.ended for box in boxes] == ended


@pytest.mark.rule("ERR-6")
def test_a_denied_publish_concerns_no_request():
    wire = Wire().up()
    wire.connection.publish("a")
    wire.data(err('Permissions Violation for Publish to "a"'))
    assert [type(event) for event in wire.events()] == [ServerError]
