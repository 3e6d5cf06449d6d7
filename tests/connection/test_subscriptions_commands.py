"""Subscriptions of a connection: commands, permissions, drains."""

from __future__ import annotations

import pytest

from natsproto.connection.effects import Poke, Publish, Resubscribe
from natsproto.connection.receiver import Receiver
from natsproto.errors import (
    ConnectionLost,
    InvalidSubject,
    InvalidValue,
    PermissionDenied,
    TimeoutExpired,
)
from natsproto.events import Closed, ServerError, SlowConsumer
from tests.connection.support import PING, PONG, Wire, err, msg, texts

INBOX = "_INBOX." + "0" * 22  # the tokens of the scripted randomness


def reconnect(wire):
    """Lose the transport and get another; return the data sent after CONNECT and PING."""
    wire.lost(at=wire.now + 10).greet().sent()
    return wire.data(PONG).sent()


# Subscriptions


@pytest.mark.rule("D-SUB-1")
def test_ids_count_from_1_and_are_not_used_again():
    wire = Wire().up()
    first = wire.subscribe("a.*")
    assert wire.sent() == b"SUB a.* 1\r\n"
    wire.connection.unsubscribe(first.sid)
    wire.subscribe("b.>", queue="q")
    assert wire.sent() == b"UNSUB 1\r\nSUB b.> q 2\r\n"


@pytest.mark.rule("D-SUB-1", "RECON-4")
def test_without_a_connection_a_subscription_is_only_noted():
    wire = Wire()
    wire.subscribe("a")
    gone = wire.subscribe("b")
    wire.connection.unsubscribe(gone.sid)
    assert gone.ended
    wire.connection.publish("c")
    wire.connect().greet()
    assert wire.sent().count(b"\r\n") == 2  # CONNECT and PING
    assert wire.data(PONG).sent() == b"SUB a 1\r\nPUB c 0\r\n\r\n"


@pytest.mark.rule("SUB-4")
def test_messages_without_a_subscription_are_dropped():
    wire = Wire().up()
    a = wire.subscribe("a")
    b = wire.subscribe("a")
    wire.connection.unsubscribe(a.sid)
    wire.data(msg("a", 1, b"1") + msg("a", 2, b"1") + msg("a", 99))
    assert (a.pending(), texts(b)) == (0, [b"1"])
    assert wire.connection.stats.in_msgs == 3


@pytest.mark.rule("SUB-2", "SUB-3")
def test_a_maximum_and_a_reconnect():
    wire = Wire().up()
    mailbox = wire.subscribe("a")
    wire.connection.unsubscribe(1, after=3)
    assert wire.sent() == b"SUB a 1\r\nUNSUB 1 3\r\n"
    wire.data(msg("a", 1))
    assert reconnect(wire) == b"SUB a 1\r\nUNSUB 1 2\r\n"
    wire.lost(at=99.0).connection.unsubscribe(1, after=4)
    wire.greet().sent()
    assert wire.data(PONG).sent() == b"SUB a 1\r\nUNSUB 1 3\r\n"
    wire.data(msg("a", 1) * 3)
    assert (mailbox.ended, reconnect(wire)) == (True, b"")


@pytest.mark.rule("D-SUB-8")
@pytest.mark.parametrize("after", [-1, True, 10**18, "3", 1.5])
def test_a_maximum_that_cannot_be_sent_changes_nothing(after):
    wire = Wire()
    mailbox = wire.subscribe("a")
    with pytest.raises(InvalidValue):
        wire.connection.unsubscribe(1, after=after)
    assert (mailbox.max_received, mailbox.ended) == (0, False)


@pytest.mark.rule("D-SUB-8")
def test_a_subscription_that_cannot_be_sent_does_not_exist():
    wire = Wire().up()
    for subject, queue in [("a b", ""), ("a..b", ""), ("a", "q q")]:
        with pytest.raises(InvalidSubject):
            wire.subscribe(subject, queue)
    assert wire.sent() == b""
    assert wire.subscribe("a").sid == 1
    wire.connection.unsubscribe(99)


@pytest.mark.rule("D-SUB-6", "D-EVENT-6")
def test_drops_right_before_the_end_are_reported_before_it():
    wire = Wire(max_reconnects=0).up()
    wire.subscribe("a", max_msgs=1)
    wire.data(msg("a", 1) * 3 + err("Stale Connection"))
    events = wire.events()
    assert SlowConsumer("a", 1, 2) in events
    assert isinstance(events[-1], Closed)


class Machine(Receiver):
    """Emits a publish for each message, requests a wake-up, and leaves after the second one."""

    def receive(self, msg, now):
        self.emit(b"pull", b"", b"")
        if msg.data == b"2":
            self.leave()
        self.deadline = now + 1.0
        return False


@pytest.mark.rule("D-RECON-9")
def test_effects_that_a_machine_may_emit():
    wire = Wire()
    assert not wire.connection.online
    wire.up().timer(at=6.0)
    assert wire.connection.online
    machine = Machine()
    wire.connection.subscribe("m", machine)
    wire.sent()
    wire.data(msg("m", 1, b"1"), at=7.0)
    assert (wire.sent(), wire.deadline, machine.ended) == (b"PUB pull 0\r\n\r\n", 8.0, False)
    wire.data(msg("m", 1, b"2"))
    assert (wire.sent(), machine.ended) == (b"PUB pull 0\r\n\r\nUNSUB 1\r\n", True)


# Permissions


@pytest.mark.rule("ERR-5", "EVENT-4")
@pytest.mark.parametrize(
    ("text", "ended"),
    [
        ('to "a"', [1]),
        ('to "a" using queue "q"', [3]),
        ('to "a" (sid "2")', [2]),
        ('to "a" (sid 4)', [4]),
        ('to "a" (sid "77")', []),
        ('to "b"', []),
        ('to "\udcff"', [5]),
        ("", []),
    ],
)
def test_the_subscription_that_a_permission_error_means(text, ended):
    wire = Wire().up()
    boxes = [wire.subscribe(*row) for row in [("a",), ("a",), ("a", "q"), ("c",), ("\udcff",)]]
    wire.data(err("Permissions Violation for Subscription " + text.replace("\udcff", "~"))
              .replace(b"~", b"\xff"))  # fmt: skip
    assert [box.sid for box in boxes if box.ended] == ended
    assert all(isinstance(box.error, PermissionDenied) for box in boxes if box.ended)
    assert [box for box in boxes if box.ended] == [r for r in wire.ready() if r in boxes]
    [event] = wire.events()
    assert isinstance(event, ServerError)
    assert isinstance(event.error, PermissionDenied)
    assert wire.state == "CONNECTED"
    assert reconnect(wire).count(b"SUB") == 5 - len(ended)


# Draining a subscription; the client's is in test_drain.py


@pytest.mark.rule("DRAIN-1", "DRAIN-2")
def test_a_drain_ends_with_its_own_pong():
    wire = Wire().up()
    mailbox = wire.subscribe("a")
    other = wire.subscribe("a")
    flush = wire.connection.start_flush(9.0)
    fence = wire.connection.start_drain_of([mailbox], 9.0)
    assert wire.sent() == b"SUB a 1\r\nSUB a 2\r\n" + PING + b"UNSUB 1\r\n" + PING
    wire.data(msg("a", 1, b"1") + PONG + msg("a", 1, b"2"))
    assert (flush.done, fence.done, mailbox.ended) == (True, False, False)
    wire.forget().data(msg("a", 1, b"3") + PONG + msg("a", 1, b"4"))
    assert (fence.done, fence.error, mailbox.ended, other.ended) == (True, None, True, False)
    assert wire.ready() == [mailbox, fence]
    assert texts(mailbox) == [b"1", b"2", b"3"]
    assert reconnect(wire) == b"SUB a 2\r\n"


@pytest.mark.rule("DRAIN-1", "SUB-3")
def test_draining_subscriptions_that_have_ended_or_end_during_the_drain():
    wire = Wire().up()
    ended = wire.subscribe("a")
    wire.connection.unsubscribe(ended.sid)
    mailbox = wire.subscribe("a")
    wire.connection.unsubscribe(mailbox.sid, after=1)
    wire.forget()
    fence = wire.connection.start_drain_of([ended, mailbox], 9.0)
    assert wire.sent() == b"UNSUB 2\r\n" + PING
    wire.data(msg("a", 2)).forget()
    assert mailbox.ended
    assert wire.data(PONG).ready() == [fence]


@pytest.mark.rule("DRAIN-3")
def test_a_drain_of_all_leaves_the_inbox_of_requests():
    wire = Wire().up()
    wire.connection.start_request("a", deadline=9.0)
    boxes = [wire.subscribe("a"), wire.subscribe("b", "q")]
    wire.forget()
    wire.connection.start_drain(9.0)
    assert [box.draining for box in boxes] == [True, True]
    assert wire.sent() == b"UNSUB 2\r\nUNSUB 3\r\n" + PING
    wire.data(PONG)
    assert list(wire.connection.subscriptions.by_sid) == [1]


@pytest.mark.rule("D-DRAIN-5", "D-DRAIN-9")
def test_a_drain_and_the_transport():
    wire = Wire().up()
    mailbox = wire.subscribe("a")
    fence = wire.connection.start_drain_of([mailbox], 9.0)
    wire.connection.pings.ping(None)
    wire.lost()
    assert isinstance(fence.error, ConnectionLost)
    assert (mailbox.ended, mailbox.error) == (True, None)
    offline = wire.subscribe("b")
    done = wire.connection.start_drain_of([offline], 9.0)
    assert (done.done, done.error, offline.ended) == (True, None, True)
    assert wire.connection.pings.idle
    wire.connection.publish("c")
    assert not wire.connection.pings.idle


@pytest.mark.rule("DRAIN-4")
def test_a_drain_that_takes_too_long_still_ends_when_the_pong_comes():
    wire = Wire().up()
    mailbox = wire.subscribe("a")
    fence = wire.connection.start_drain_of([mailbox], 2.0)
    wire.timer(at=2.0)
    assert isinstance(fence.error, TimeoutExpired)
    assert not mailbox.ended
    wire.data(PONG)
    assert mailbox.ended


def test_a_receiver_that_wants_to_leave():
    wire = Wire().up()
    mailbox = wire.subscribe("a")
    mailbox.leave()
    wire.connection.apply(mailbox)
    assert wire.sent() == b"SUB a 1\r\nUNSUB 1\r\n"
    assert mailbox.ended


@pytest.mark.rule("D-SUB-9")
def test_a_receiver_that_wants_another_subject():
    wire = Wire().up()
    machine = Machine()
    connection = wire.connection
    connection.subscribe("a", machine)
    machine.subject = b"b"
    machine.effects += [Resubscribe(), Publish(b"pull", b"", b"", None)]
    connection.apply(machine)
    assert wire.sent() == b"SUB a 1\r\nUNSUB 1\r\nSUB b 1\r\nPUB pull 0\r\n\r\n"
    connection.apply(machine)
    assert wire.sent() == b""
    wire.lost()
    machine.subject = b"c"
    machine.effects.append(Resubscribe())
    connection.apply(machine)
    assert wire.greet().data(PONG).sent().partition(b"SUB")[2] == b" c 1\r\n"
    connection.unsubscribe(1)
    wire.sent()
    machine.effects.append(Resubscribe())
    connection.apply(machine)
    assert wire.sent() == b""


@pytest.mark.rule("D-RECON-9")
def test_a_machine_that_calls_another_has_its_effects_applied():
    wire = Wire().up()
    first, second = Machine(), Machine()
    wire.connection.subscribe("a", first)
    wire.connection.subscribe("b", second)
    wire.sent()
    second.emit(b"pull", b"", b"")
    second.wake()
    first.effects.append(Poke(second))
    wire.connection.apply(first)
    assert (wire.sent(), wire.ready()) == (b"PUB pull 0\r\n\r\n", [second])


@pytest.mark.rule("D-RECON-9")
def test_a_machine_that_leaves_without_a_subscription():
    wire = Wire().up()
    machine = Machine()
    machine.leave()
    wire.connection.apply(machine)
    assert wire.sent() == b""
