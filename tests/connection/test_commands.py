from __future__ import annotations

import random

import pytest

from natsproto.connection.effects import Publish
from natsproto.connection.waitable import Receiver, Waitable
from natsproto.errors import (
    ConnectionClosed,
    ConnectionLost,
    InvalidSubject,
    InvalidValue,
    PendingBufferFull,
    PermissionDenied,
    TimeoutExpired,
)
from natsproto.events import Closed, ServerError, SlowConsumer
from tests.connection.support import PING, PONG, Wire, err, info, msg, texts

INBOX = "_INBOX." + "0" * 22  # what scripted randomness gives


def reconnect(wire):
    """Lose the transport and get another; returns what is sent behind CONNECT and PING."""
    wire.lost(at=wire.now + 10).greet().sent()
    return wire.data(PONG).sent()


# Subscriptions


@pytest.mark.rule("SUB-1")
def test_ids_count_from_1_and_are_not_used_again():
    wire = Wire().up()
    first = wire.subscribe("a.*")
    assert wire.sent() == b"SUB a.* 1\r\n"
    wire.connection.unsubscribe(first.sid)
    wire.subscribe("b.>", queue="q")
    assert wire.sent() == b"UNSUB 1\r\nSUB b.> q 2\r\n"


@pytest.mark.rule("SUB-1", "RECON-4")
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
def test_messages_for_nobody_are_dropped():
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


@pytest.mark.rule("SUB-8")
@pytest.mark.parametrize("after", [-1, True, 10**18, "3", 1.5])
def test_a_maximum_that_cannot_be_sent_changes_nothing(after):
    wire = Wire()
    mailbox = wire.subscribe("a")
    with pytest.raises(InvalidValue):
        wire.connection.unsubscribe(1, after=after)
    assert (mailbox.after, mailbox.ended) == (0, False)


@pytest.mark.rule("SUB-8")
def test_a_subscription_that_cannot_be_sent_does_not_exist():
    wire = Wire().up()
    for subject, queue in [("a b", ""), ("a..b", ""), ("a", "q q")]:
        with pytest.raises(InvalidSubject):
            wire.subscribe(subject, queue)
    assert wire.sent() == b""
    assert wire.subscribe("a").sid == 1
    wire.connection.unsubscribe(99)


@pytest.mark.rule("SUB-6", "EVENT-6")
def test_drops_right_before_the_end_are_told_before_it():
    wire = Wire(max_reconnects=0).up()
    wire.subscribe("a", max_msgs=1)
    wire.data(msg("a", 1) * 3 + err("Stale Connection"))
    events = wire.events()
    assert SlowConsumer("a", 1, 2) in events
    assert isinstance(events[-1], Closed)


class Machine(Receiver):
    """Orders a publish at each message, asks to be woken, and leaves behind the second."""

    def receive(self, msg, now):
        self.leaving = msg.data == b"2"
        self.deadline = now + 1.0
        self.busy.append(self)
        return False

    def take_orders(self):
        return [Publish(b"pull", b"", b"", None)]


@pytest.mark.rule("RECON-9")
def test_what_a_machine_may_ask_for():
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


@pytest.mark.rule("ERR-6")
def test_a_request_that_may_not_be_published_fails_at_once():
    wire = Wire().up()
    mailbox = wire.subscribe("a")
    one = wire.connection.start_request("a", deadline=5.0)
    other = wire.connection.start_request("b", deadline=5.0)
    wire.data(err('Permissions Violation for Publish to "a"'))
    assert isinstance(one.error, PermissionDenied)
    assert one in wire.ready()
    assert (other.done, mailbox.ended) == (False, False)
    wire.data(err("Permissions Violation for Publish to"))  # to nobody knows what
    assert not other.done


@pytest.mark.rule("ERR-7")
def test_an_inbox_that_may_not_be_subscribed_to():
    wire = Wire(rng=random.Random(1)).up()
    requests = [wire.connection.start_request(subject, deadline=5.0) for subject in "ab"]
    inbox = wire.sent().split()[1].decode()
    wire.data(err(f'Permissions Violation for Subscription to "{inbox}"'))
    assert [type(request.error) for request in requests] == [PermissionDenied] * 2
    again = wire.connection.start_request("a", deadline=5.0)
    sub, _, _ = wire.sent().partition(b"\r\n")
    assert sub.startswith(b"SUB _INBOX.")
    assert inbox.encode() not in sub
    assert not again.done


# Requests


@pytest.mark.rule("REQ-1", "REQ-2")
def test_requests_share_one_inbox():
    wire = Wire().up()
    start = wire.connection.start_request
    a = start("a", b"1", deadline=5.0)
    b = start("b", b"22", deadline=5.0, headers={})
    c = start("c.*", deadline=5.0, wildcards=True)
    block = b"NATS/1.0\r\n\r\n"
    assert wire.sent() == (
        f"SUB {INBOX}.* 1\r\nPUB a {INBOX}.1 1\r\n1\r\nHPUB b {INBOX}.2 12 14\r\n".encode()
        + block + f"22\r\nPUB c.* {INBOX}.3 0\r\n\r\n".encode()
    )  # fmt: skip
    wire.data(msg(INBOX + ".2", 1, b"B") + msg(INBOX + ".2", 1, b"again"))
    assert (b.reply.data, a.done, c.done) == (b"B", False, False)
    assert wire.ready() == [b]
    wire.data(msg(INBOX + ".3", 1, b"C") + msg(INBOX + ".1", 1, b"A"))
    assert (a.reply.data, c.reply.data, wire.connection._replies.open) == (b"A", b"C", {})


@pytest.mark.rule("REQ-5")
@pytest.mark.parametrize(
    ("subject", "data", "error"),
    [("a b", b"", InvalidSubject), ("*", b"", InvalidSubject), ("a", "text", InvalidValue),
     ("a", b"x" * 99, PendingBufferFull)],
)  # fmt: skip
@pytest.mark.parametrize("start", ["start_request", "start_gather"])
def test_a_request_that_cannot_be_sent_leaves_nothing(start, subject, data, error):
    connection = Wire(max_pending_out=99).connection
    with pytest.raises(error):
        getattr(connection, start)(subject, data, deadline=1.0)
    assert connection.next_deadline() is None
    assert connection._replies is None or connection._replies.open == {}


@pytest.mark.rule("REQ-6", "REQ-8")
def test_many_answers():
    wire = Wire().up()
    gather = wire.connection.start_gather("a", deadline=9.0, most=3, stall=0.5)
    wire.data(msg(INBOX + ".1", 1, b"1"), at=5.0)
    assert wire.ready() == [gather]
    wire.timer()  # an old alarm of the handshake
    assert wire.deadline == 5.5
    wire.data(msg(INBOX + ".1", 1, b"2"), at=5.4).timer(at=5.5)
    assert not gather.done
    assert wire.deadline == 5.9
    wire.timer(at=5.9)
    assert (gather.done, gather.error, len(gather.replies)) == (True, None, 2)
    assert wire.connection._replies.open == {}


# Flushes


@pytest.mark.rule("PING-4", "RECON-10")
def test_flushes_are_settled_in_their_order():
    wire = Wire().up()
    flushes = [wire.connection.start_flush(9.0) for _ in range(3)]
    assert wire.sent() == PING * 3
    for i in range(3):
        wire.data(PONG)
        assert [flush.done for flush in flushes] == [j <= i for j in range(3)]
    assert wire.ready() == flushes
    wire.data(PONG)  # one too many


@pytest.mark.rule("RECON-10")
def test_a_flush_and_the_transport():
    wire = Wire().up()
    lost = wire.connection.start_flush(9.0)
    wire.lost()
    assert isinstance(lost.error, ConnectionLost)
    assert str(lost.error) == "the connection was lost before the flush was done"
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


@pytest.mark.rule("RECON-10", "CLOCK-2")
def test_flushes_that_gave_up_are_not_kept():
    wire = Wire(max_reconnects=-1).up().lost()
    for _ in range(1000):
        wire.connection.start_flush(wire.now + 0.001)
        wire.timer(at=wire.now + 0.001)
    assert wire.connection._flushes == []


@pytest.mark.rule("CLOCK-1")
def test_a_wake_up_is_the_earliest_that_was_asked_for():
    wire = Wire().up()
    bell = Waitable()
    for deadline in (5.0, 3.0, 4.0):
        wire.connection.wake_at(bell, deadline)
    assert wire.timer(at=3.0).ready() == [bell]
    wire.connection.wake_at(bell, 4.0)
    assert wire.timer(at=4.0).ready() == [bell]


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
def test_a_drain_of_what_has_ended_or_ends_meanwhile():
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
    assert wire.connection.start_drain_of_all() == boxes
    assert wire.sent() == b"UNSUB 2\r\nUNSUB 3\r\n" + PING
    wire.data(PONG)
    assert list(wire.connection._subs) == [1]


@pytest.mark.rule("DRAIN-5", "DRAIN-9")
def test_a_drain_and_the_transport():
    wire = Wire().up()
    mailbox = wire.subscribe("a")
    fence = wire.connection.start_drain_of([mailbox], 9.0)
    wire.connection._send_ping(None)
    wire.lost()
    assert isinstance(fence.error, ConnectionLost)
    assert (mailbox.ended, mailbox.error) == (True, None)
    offline = wire.subscribe("b")
    done = wire.connection.start_drain_of([offline], 9.0)
    assert (done.done, done.error, offline.ended) == (True, None, True)
    assert wire.connection.idle
    wire.connection.publish("c")
    assert not wire.connection.idle


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


# The end


@pytest.mark.rule("CONN-24")
def test_everybody_is_told_of_the_end():
    wire = Wire().up()
    mailbox = wire.subscribe("a")
    waiting = [
        wire.connection.start_flush(9.0),
        wire.connection.start_request("a", deadline=9.0),
        wire.connection.start_gather("a", deadline=9.0),
    ]
    wire.connection._send_ping(None)
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


@pytest.mark.rule("CONN-24")
def test_subscriptions_and_flushes_of_a_connection_that_failed():
    wire = Wire(max_reconnects=0)
    mailbox = wire.subscribe("a")
    flush = wire.connection.start_flush(9.0)
    wire.connect().lost(OSError("refused"))
    for error in (mailbox.error, flush.error):
        assert isinstance(error, ConnectionClosed)
        assert "nats://a:4222: refused" in str(error)


def test_names_that_nobody_else_has():
    connection = Wire(inbox_prefix="in.\udcff").connection
    assert connection.new_token() == "0" * 22
    assert connection.new_inbox() == "in.\udcff." + "0" * 22
    connection.start_request("a", deadline=1.0)
    assert connection._replies.subject.startswith(b"in.\xff.0")


def test_info_of_the_first_server_is_known_before_the_last_is_lost():
    wire = Wire().up(max_payload=7)
    assert wire.connection.info.max_payload == 7
    wire.data(info(max_payload=8))
    assert wire.connection.info.max_payload == 8


def test_a_receiver_that_wants_to_leave():
    wire = Wire().up()
    mailbox = wire.subscribe("a")
    mailbox.leaving = True
    wire.connection.perform(mailbox)
    assert wire.sent() == b"SUB a 1\r\nUNSUB 1\r\n"
    assert mailbox.ended


@pytest.mark.rule("SUB-9")
def test_a_receiver_that_wants_another_subject():
    wire = Wire().up()
    machine = Machine()
    connection = wire.connection
    connection.subscribe("a", machine)
    machine.subject, machine.moving = b"b", True
    connection.perform(machine)
    assert wire.sent() == b"SUB a 1\r\nUNSUB 1\r\nSUB b 1\r\nPUB pull 0\r\n\r\n"
    connection.perform(machine)
    assert wire.sent() == b"PUB pull 0\r\n\r\n"
    wire.lost()
    machine.subject, machine.moving = b"c", True
    connection.perform(machine)
    assert (wire.greet().data(PONG).sent().partition(b"SUB")[2], machine.moving) == (
        b" c 1\r\n",
        False,
    )
    connection.unsubscribe(1)
    wire.sent()
    machine.moving = True
    connection.perform(machine)
    assert wire.sent() == b"PUB pull 0\r\n\r\n"
