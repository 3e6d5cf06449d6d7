"""Requests of a connection: one inbox, permissions, many responses."""

from __future__ import annotations

import random

import pytest

from natsproto.connection.bus import Bus
from natsproto.connection.outbound import Outbound
from natsproto.connection.requests import Requests
from natsproto.connection.subscriptions import Subscriptions
from natsproto.connection.tokens import Numbers
from natsproto.connection.waitable import Request
from natsproto.errors import (
    ConnectionClosed,
    InvalidSubject,
    InvalidValue,
    PayloadTooLarge,
    PendingBufferFull,
    PermissionDenied,
)
from natsproto.options import Options
from natsproto.wire.frames import Info
from tests.connection.support import Script, Wire, err, msg

INBOX = "_INBOX." + "0" * 22  # the tokens of the scripted randomness


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
    wire.data(err("Permissions Violation for Publish to"))  # to an unknown request
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
    assert (a.reply.data, c.reply.data, wire.connection.requests.inbox.open) == (b"A", b"C", {})


@pytest.mark.rule("D-REQ-5")
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
    assert connection.requests.inbox is None or connection.requests.inbox.open == {}


@pytest.mark.rule("REQ-6", "REQ-8")
def test_many_answers():
    wire = Wire().up()
    gather = wire.connection.start_gather("a", deadline=9.0, max_msgs=3, stall=0.5)
    wire.data(msg(INBOX + ".1", 1, b"1"), at=5.0)
    assert wire.ready() == [gather]
    wire.timer()  # an old alarm of the handshake
    assert wire.deadline == 5.5
    wire.data(msg(INBOX + ".1", 1, b"2"), at=5.4).timer(at=5.5)
    assert not gather.done
    assert wire.deadline == 5.9
    wire.timer(at=5.9)
    assert (gather.done, gather.error, len(gather.replies)) == (True, None, 2)
    assert wire.connection.requests.inbox.open == {}


def test_new_tokens_and_inboxes():
    connection = Wire(inbox_prefix="in.\udcff").connection
    assert connection.new_token() == "0" * 22
    assert connection.new_inbox() == "in.\udcff." + "0" * 22
    connection.start_request("a", deadline=1.0)
    assert connection.requests.inbox.subject.startswith(b"in.\xff.0")


# Without a connection


def parts(**fields):
    bus = Bus()
    outbound = Outbound(bus, 1000)
    outbound.learn(Info(fields))
    subscriptions = Subscriptions(bus, outbound, Numbers())
    return Requests(bus, outbound, subscriptions, Options(), Script()), outbound, bus


@pytest.mark.rule("D-RECON-14")
def test_a_held_request_that_the_server_does_not_accept():
    requests, outbound, bus = parts()
    request, forgotten = (requests.start_request("a", b"12", deadline=9.0) for _ in range(2))
    requests.forget(forgotten)
    outbound.learn(Info({"max_payload": 1}))
    for frame in outbound.release():
        requests.refuse(frame)
    assert isinstance(request.error, PayloadTooLarge)
    assert (bus.ready, forgotten.done, outbound.accepted) == ([request], False, 0)


@pytest.mark.rule("D-CONN-24")
def test_a_request_after_the_end():
    requests, _, bus = parts()
    bus.closed = "it is closed"
    with pytest.raises(ConnectionClosed, match="it is closed"):
        requests.start_request("a", deadline=9.0)
    requests.fail(ConnectionClosed("it is closed"))
    requests.forget(Request("never started"))
    assert requests.inbox is None


def test_the_next_request_after_a_failure_has_another_inbox():
    requests, _, _ = parts()
    first = requests.start_request("a", deadline=9.0)
    inbox = requests.inbox
    requests.fail(ConnectionClosed("it is closed"))
    assert isinstance(first.error, ConnectionClosed)
    requests.start_request("a", deadline=9.0)
    assert requests.inbox not in (None, inbox)
