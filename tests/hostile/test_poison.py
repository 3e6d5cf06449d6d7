"""Malformed messages of other publishers do not end the connection, and are delivered."""

from __future__ import annotations

import pytest

from jetstream.message import JsMsg
from jetstream.push.machine import Push
from jetstream.push.policy import PlainPush
from natsproto.errors import InvalidSubject
from natsproto.port import run_sync
from natsproto.session import Session
from natsproto.wire.frames import Msg
from tests.connection.support import PING, PONG, Wire
from tests.wire.test_poison import POISON, on_the_wire


def pieces(data, size):
    return [data[i : i + size] for i in range(0, len(data), size)]


@pytest.mark.rule("D-CONN-20", "WIRE-15", "SUB-7")
@pytest.mark.parametrize("size", [1 << 20, 1])
@pytest.mark.parametrize("poison", POISON, ids=lambda poison: poison.name)
def test_a_subscriber_receives_it_and_continues(poison, size):
    wire = Wire().up()
    mailbox = wire.subscribe("p.>")
    wire.forget()
    good = b"MSG good 1 2\r\nok\r\n"
    wire.data(*pieces(good + on_the_wire(poison) + good + PING, size))
    assert (wire.state, wire.sent(), wire.events()) == ("CONNECTED", PONG, [])
    before, odd, after = [mailbox.pop() for _ in range(3)]
    assert before.data == after.data == b"ok"
    assert (odd.raw_subject, odd.raw_reply) == (poison.subject, poison.reply)
    assert (odd.data, odd.raw_headers) == (poison.data, poison.block)
    assert (mailbox.pending(), mailbox.bytes) == (0, 0)


@pytest.mark.rule("D-CONN-20", "REQ-2")
@pytest.mark.parametrize("poison", POISON, ids=lambda poison: poison.name)
def test_as_an_answer_it_settles_only_its_request(poison):
    wire = Wire().up()
    request = wire.connection.start_request("q", deadline=9.0)
    gather = wire.connection.start_gather("q", deadline=9.0)
    inbox = wire.connection.requests.inbox.subject[:-1]
    wire.forget()
    for token in (b"1", b"2", b"3"):
        wire.data(on_the_wire(poison._replace(subject=inbox + token)))
    wire.data(on_the_wire(poison))  # on the inbox, with another subject
    assert request.done
    assert request.error is None
    assert request.reply.data == poison.data
    assert [msg.data for msg in gather.replies] == [poison.data]
    assert wire.data(PING).sent() == PONG


@pytest.mark.rule("D-CONN-20")
@pytest.mark.parametrize("poison", [p for p in POISON if p.reply], ids=lambda poison: poison.name)
def test_an_odd_reply_subject_can_be_answered(poison):
    wire = Wire().up()
    mailbox = wire.subscribe("p.>")
    wire.forget().data(on_the_wire(poison))
    wire.connection.respond(mailbox.pop().raw_reply, b"yes")
    assert wire.sent() == b"PUB " + poison.reply + b" 3\r\nyes\r\n"


@pytest.mark.rule("SUB-5", "D-SUB-6", "D-CONN-20")
def test_a_flood_of_headers_stays_within_the_limit():
    """3,000 messages with 60 KB of headers and no payload arrive, with room for 1 MB."""
    wire = Wire().up()
    mailbox = wire.subscribe("a", max_bytes=1_000_000)
    block = b"NATS/1.0\r\nK: " + b"v" * 60_000 + b"\r\n\r\n"
    one = b"HMSG a 1 %d %d\r\n%s\r\n" % (len(block), len(block), block)
    for _ in range(300):
        wire.data(one * 10)
    assert mailbox.bytes <= 1_000_000
    assert mailbox.pending() == 16
    assert mailbox.dropped == 3000 - 16
    assert sum(event.dropped for event in wire.events()) == mailbox.dropped


@pytest.mark.rule("PUSH-16")
@pytest.mark.parametrize("poison", POISON, ids=lambda poison: poison.name)
def test_a_push_subscription_receives_it_and_sends_nothing(poison):
    push = Push(PlainPush(last=0), flow_control=True, heartbeat=5.0)
    push.connected(0.0)
    reply = b"$JS.ACK.S.C.1.1.1.1794786870000000000.0"
    odd = Msg(poison.subject, 1, reply, poison.data, poison.block)
    assert push.receive(odd, 1.0)
    assert (push.pop(1.0), push.ended) == (odd, False)
    assert (push.events.items, push.take_effects()) == ([], [])


@pytest.mark.rule("D-PUSH-17", "D-ACK-10")
@pytest.mark.parametrize("poison", [p for p in POISON if p.reply], ids=lambda poison: poison.name)
def test_a_push_subscription_ignores_reply_subjects_of_others(poison):
    push = Push(PlainPush(last=0), flow_control=True, heartbeat=5.0)
    push.connected(0.0)
    beat = b"NATS/1.0 100 Idle Heartbeat\r\nNats-Consumer-Stalled: %s\r\n\r\n" % poison.reply
    push.receive(Msg(b"d", 1, poison.reply, b"", b"NATS/1.0 100\r\n\r\n"), 1.0)
    push.receive(Msg(b"d", 1, b"", b"", beat), 1.0)
    assert push.take_effects() == []
    wire = Wire().up()
    msg = JsMsg(push.pop(1.0), Session(wire.connection, None))
    wire.forget()
    with pytest.raises(InvalidSubject):
        run_sync(msg.ack())
    assert wire.sent() == b""


def test_the_number_of_poisoned_messages():
    assert len(POISON) >= 18
