"""The drain of a client; test_subscriptions_commands.py has that of a subscription."""

from __future__ import annotations

import pytest

from natsproto.connection.effects import Hangup
from natsproto.errors import (
    ConnectionClosed,
    ConnectionLost,
    MessagesUnconfirmed,
    TimeoutExpired,
)
from natsproto.events import Closed
from tests.connection.support import PING, PONG, Wire, err, msg, names, texts


def take(wire, mailbox):
    """Take messages like the API: the connection learns of the last one of an ended receiver."""
    payloads = texts(mailbox)
    wire.tell("consumed")
    return payloads


def draining(deadline=30.0, **options):
    """Return a wire with one subscription, and its drain."""
    wire = Wire(**options).up()
    mailbox = wire.subscribe("a")
    wire.forget()
    drain = wire.connection.start_drain(deadline)
    return wire, mailbox, drain


@pytest.mark.rule("DRAIN-2", "DRAIN-3", "D-EVENT-6")
def test_a_drain_step_by_step():
    wire, mailbox, drain = draining()
    request = wire.connection.start_request("b", deadline=99.0)
    assert wire.sent().startswith(b"UNSUB 1\r\n" + PING + b"SUB _INBOX")
    wire.data(msg("a", 1, b"1"))
    wire.data(msg("a", 1, b"2") + PONG + msg("a", 1, b"too late"))
    assert (mailbox.ended, drain.done, wire.sent(), wire.state) == (True, False, b"", "CONNECTED")
    wire.connection.publish("answer")
    assert take(wire, mailbox) == [b"1", b"2"]
    assert wire.sent() == b"PUB answer 0\r\n\r\n" + PING
    assert not drain.done
    wire.forget().data(PONG)
    assert (drain.done, drain.error, wire.state) == (True, None, "CLOSED")
    assert wire.effects() == [Hangup()]
    assert {id(drain), id(request)} <= {id(each) for each in wire.ready()}
    assert isinstance(request.error, ConnectionClosed)
    assert (wire.events(), wire.deadline) == ([Closed(None)], None)


@pytest.mark.rule("DRAIN-1", "DRAIN-3")
def test_the_pong_of_an_earlier_flush_does_not_end_it():
    wire = Wire().up()
    mailbox = wire.subscribe("a")
    flush = wire.connection.start_flush(9.0)
    wire.connection.start_drain(30.0)
    wire.data(PONG)
    assert (flush.done, mailbox.ended) == (True, False)
    wire.data(msg("a", 1, b"1") + PONG)
    assert (mailbox.ended, texts(mailbox)) == (True, [b"1"])


@pytest.mark.rule("DRAIN-3")
def test_a_client_without_subscriptions_is_flushed_and_closed():
    wire = Wire().up()
    wire.connection.publish("a")
    drain = wire.connection.start_drain(30.0)
    assert wire.sent() == b"PUB a 0\r\n\r\n" + PING * 2
    wire.data(PONG + PONG)
    assert (drain.done, drain.error, wire.state) == (True, None, "CLOSED")


@pytest.mark.rule("D-DRAIN-6")
@pytest.mark.parametrize("busy", [False, True])
def test_publishes_after_the_flush_get_another_one_but_not_forever(busy):
    wire, mailbox, drain = draining()
    wire.data(msg("a", 1) + PONG)
    take(wire, mailbox)
    wire.sent()
    wire.connection.publish("answer")
    assert wire.sent() == b"PUB answer 0\r\n\r\n"
    assert wire.data(PONG).sent() == PING
    assert not drain.done
    if busy:
        wire.connection.publish("more")
    wire.data(PONG)
    assert (drain.done, wire.state) == (True, "CLOSED")


@pytest.mark.rule("DRAIN-4")
@pytest.mark.parametrize(
    ("steps", "left"),
    [([], 0), ([msg("a", 1) * 3], 3), ([msg("a", 1) * 3 + PONG], 3), ([PONG], 0)],
)
def test_the_deadline_ends_it_in_every_step(steps, left):
    wire, mailbox, drain = draining(deadline=3.0)
    wire.data(*steps).forget()
    assert wire.deadline == 3.0
    wire.timer(at=3.0)
    assert (wire.state, wire.effects()) == ("CLOSED", [Hangup()])
    assert str(drain.error) == f"drain timed out: {left} messages were not taken"
    assert isinstance(drain.error, TimeoutExpired)
    assert drain in wire.ready()
    assert (mailbox.ended, mailbox.pending()) == (True, left)  # and they can still be taken


@pytest.mark.rule("D-DRAIN-5")
def test_a_loss_before_the_fence_and_nothing_to_send():
    wire, mailbox, drain = draining()
    wire.data(msg("a", 1, b"1")).lost()
    assert (mailbox.ended, mailbox.error, drain.done) == (True, None, False)
    assert take(wire, mailbox) == [b"1"]
    assert (drain.done, drain.error, wire.state) == (True, None, "CLOSED")


@pytest.mark.rule("D-DRAIN-5")
def test_a_loss_before_the_flush_and_something_to_send():
    wire, mailbox, drain = draining()
    wire.lost(at=5.0)
    assert (mailbox.ended, drain.done, wire.state) == (True, True, "CLOSED")
    wire, mailbox, drain = draining(deadline=99.0)
    wire.data(msg("a", 1)).lost(at=5.0)
    wire.connection.publish("answer")
    take(wire, mailbox)
    assert not drain.done
    wire.greet().sent()
    assert wire.data(PONG).sent() == b"PUB answer 0\r\n\r\n" + PING  # and no SUB
    wire.data(PONG)
    assert (drain.done, drain.error) == (True, None)


@pytest.mark.rule("D-DRAIN-5", "D-DRAIN-10")
@pytest.mark.parametrize("early", [False, True])
def test_a_loss_during_the_flush(early):
    wire, mailbox, drain = draining(deadline=99.0)
    wire.data(msg("a", 1) + PONG).forget()
    wire.writable = False
    if early:
        wire.connection.publish("answer")
        take(wire, mailbox)
    else:
        take(wire, mailbox)
        wire.connection.publish("answer")
    wire.lost(at=5.0)
    wire.writable = True
    assert not drain.done
    wire.greet().sent()
    assert wire.data(PONG).sent() == b"PUB answer 0\r\n\r\n" + PING
    wire.lost(at=6.0)  # the message was taken, so the drain has nothing left to wait for
    assert (drain.done, wire.state) == (True, "CLOSED")
    assert isinstance(drain.error, MessagesUnconfirmed)
    assert (drain.error.unsent, drain.error.in_doubt) == (0, 1)


@pytest.mark.rule("D-DRAIN-5", "DRAIN-4", "D-DRAIN-10")
def test_there_is_never_a_connection():
    wire = Wire(max_reconnects=-1).up().lost(at=5.0)
    wire.connection.publish("a")
    drain = wire.connection.start_drain(20.0)
    while wire.now < 20.0:
        assert not drain.done
        if wire.state == "DIALING":
            wire.lost()
        wire.ring()
    assert (wire.now, type(drain.error), wire.state) == (20.0, MessagesUnconfirmed, "CLOSED")
    assert isinstance(drain.error, TimeoutExpired)


@pytest.mark.rule("DRAIN-7")
def test_a_close_in_the_middle():
    wire, _, drain = draining()
    wire.connection.close(1.0)
    assert isinstance(drain.error, ConnectionClosed)
    assert drain in wire.ready()


@pytest.mark.rule("DRAIN-7")
def test_a_failure_in_the_middle():
    wire, mailbox, drain = draining(max_reconnects=0)
    wire.data(msg("a", 1))
    wire.data(err("Stale Connection"))
    assert isinstance(drain.error, ConnectionClosed)
    assert (mailbox.ended, wire.state) == (True, "CLOSED")
    assert names(wire.events())[-1] == "Closed"


@pytest.mark.rule("D-DRAIN-8")
def test_no_caller_waits_for_it_anymore():
    wire, _, drain = draining()
    wire.connection.cancel(drain)
    assert not drain.done
    wire.data(PONG).data(PONG)
    assert wire.state == "CLOSED"


@pytest.mark.rule("D-DRAIN-9")
def test_a_client_that_was_never_connected_and_one_that_is_closed():
    wire = Wire()
    drain = wire.connection.start_drain(30.0)
    assert (drain.done, drain.error, wire.state, wire.effects()) == (True, None, "CLOSED", [])
    assert wire.connection.start_drain(40.0) is drain
    wire = Wire()
    wire.connection.close(0.0)
    drain = wire.connection.start_drain(30.0)
    assert (drain.done, drain.error, wire.events()) == (True, None, [Closed(None)])


@pytest.mark.rule("DRAIN-3")
def test_a_second_drain_is_the_first():
    wire, _, drain = draining()
    wire.forget()
    assert wire.connection.start_drain(60.0) is drain
    assert wire.sent() == b""


@pytest.mark.rule("D-DRAIN-5")
def test_the_drain_of_a_subscription_within_that_of_the_client():
    wire = Wire().up()
    mailbox = wire.subscribe("a")
    fence = wire.connection.start_drain_of([mailbox], 9.0)
    drain = wire.connection.start_drain(30.0)
    wire.data(PONG)
    assert (fence.done, mailbox.ended, drain.done) == (True, True, False)
    wire.data(PONG)
    assert isinstance(fence.error, ConnectionLost) is False
    wire.data(PONG)
    assert (drain.done, wire.state) == (True, "CLOSED")


# The part that holds the drain and the close; test_machine_close.py has the close as a whole.


@pytest.mark.rule("CONN-27")
def test_a_later_close_may_only_bring_the_deadline_forward():
    ending = Wire().up().connection.traffic.ending
    close = ending.start_close(4.0)
    assert [ending.start_close(at).deadline for at in (8.0, 3.0, 5.0)] == [4.0, 3.0, 3.0]
    assert ending.start_close(9.0) is close
    assert (ending.owns(close), ending.has_begun) == (True, True)


@pytest.mark.rule("D-CONN-28")
def test_a_loss_that_no_drain_or_close_reports_is_kept_for_one_caller():
    ending = Wire().up().connection.traffic.ending
    loss = MessagesUnconfirmed(2, 1)
    ending.closed(loss, "closed by the client")
    assert [ending.report_loss().error for _ in range(2)] == [loss, None]


@pytest.mark.rule("D-CONN-28")
def test_a_loss_that_a_close_reports_is_not_kept():
    ending = Wire().up().connection.traffic.ending
    close = ending.start_close(4.0)
    loss = MessagesUnconfirmed(2, 1)
    ending.closed(loss, "closed by the client")
    assert (close.done, close.error, ending.report_loss().error) == (True, loss, None)
