from __future__ import annotations

import re

import pytest

from jetstream.api.metadata import Metadata
from jetstream.errors import NotJetStreamMessage
from jetstream.message import JsMsg, wrap_all
from natsproto.errors import (
    ConnectionClosed,
    InvalidSubject,
    InvalidValue,
    NoResponders,
    TimeoutExpired,
)
from natsproto.wire.frames import Msg
from natsproto.wire.headers import Headers
from tests.jetstream.support import NOBODY, SILENCE, Stage

REPLY = b"$JS.ACK.S.C.1.2.3.1700000000000000001.4"


def make(stage, settled=False, reply=REPLY):
    block = b"NATS/1.0\r\nA: b\r\n\r\n"
    return JsMsg(Msg(b"s.x", 7, reply, b"data", block, 99), stage.client.session, settled)


def test_it_has_everything_of_its_message():
    msg = make(Stage())
    assert (msg.subject, msg.reply, msg.sid, msg.data) == ("s.x", REPLY.decode(), 7, b"data")
    assert (msg.headers, msg.status, msg.description) == (Headers({"A": "b"}), 0, "")
    assert (msg.raw_subject, msg.raw_reply, msg.size) == (b"s.x", REPLY, 99)
    assert msg.raw_headers == b"NATS/1.0\r\nA: b\r\n\r\n"
    assert repr(msg) == f"JsMsg(subject='s.x', data=b'data', reply={REPLY.decode()!r})"


@pytest.mark.rule("ACK-8")
@pytest.mark.parametrize("settled", [False, True])
def test_several_messages_are_like_single_ones(settled):
    stage = Stage()
    msgs = [Msg(b"s.x", 7, REPLY, b"%d" % number) for number in range(3)]
    wrapped = wrap_all(msgs, stage.client.session, settled)
    assert [(msg.data, msg.settled) for msg in wrapped] == [(b"%d" % n, settled) for n in range(3)]
    stage.run(wrapped[1].ack())
    assert stage.wire.sent() == (b"" if settled else b"PUB %s 4\r\n+ACK\r\n" % REPLY)


@pytest.mark.rule("D-META-4")
def test_metadata_is_read_once():
    msg = make(Stage())
    assert msg.metadata == Metadata("S", "C", "", 1, 2, 3, 1700000000000000001, 4)
    assert msg.metadata is msg.metadata
    with pytest.raises(NotJetStreamMessage):
        _ = make(Stage(), reply=b"_INBOX.x").metadata


ACKS = [
    # rule,   call, arguments, payload
    ("ACK-2", "ack", (), b"+ACK"),
    ("ACK-2", "nak", (), b"-NAK"),
    ("ACK-5", "nak", (0.3,), b'-NAK {"delay":300000000}'),
    ("ACK-5", "nak", (0,), b'-NAK {"delay":0}'),
    ("ACK-5", "nak", (1e-9,), b'-NAK {"delay":1}'),
    ("ACK-5", "nak", (86400,), b'-NAK {"delay":86400000000000}'),
    ("ACK-5", "nak", (10**9,), b'-NAK {"delay":1000000000000000000}'),
    ("ACK-2", "term", (), b"+TERM"),
    ("ACK-6", "term", ("bad data",), b"+TERM bad data"),
    ("ACK-6", "term", ("schlecht: é",), "+TERM schlecht: é".encode()),
    ("ACK-2", "in_progress", (), b"+WPI"),
]


@pytest.mark.rule("ACK-1")
@pytest.mark.parametrize(
    ("call", "args", "payload"),
    [pytest.param(*row[1:], marks=pytest.mark.rule(row[0])) for row in ACKS],
)
@pytest.mark.parametrize("reply", [REPLY, b"$JS.ACK.\xff.odd", b"$JS.ACK.a..b"])
def test_the_bytes_of_each(call, args, payload, reply):
    stage = Stage()
    msg = make(stage, reply=reply)
    stage.run(getattr(msg, call)(*args))
    assert stage.wire.sent() == b"PUB %s %d\r\n%s\r\n" % (reply, len(payload), payload)
    assert msg.settled is (call != "in_progress")


@pytest.mark.rule("ACK-3")
@pytest.mark.parametrize("first", ["ack", "nak", "term", "ack_sync"])
def test_the_first_one_counts(first):
    stage = Stage(b"")
    msg = make(stage)
    stage.run(msg.in_progress())
    stage.run(msg.in_progress())
    stage.run(getattr(msg, first)())
    for later in ("ack", "nak", "term", "in_progress", "ack_sync"):
        stage.run(getattr(msg, later)())
    payload = {"nak": b"-NAK", "term": b"+TERM"}.get(first, b"+ACK")
    assert [data for _, data in stage.asked] == [b"+WPI", b"+WPI", payload]


@pytest.mark.rule("ACK-2", "ACK-3")
def test_an_ack_without_a_coroutine():
    stage = Stage()
    msg = make(stage)
    msg.ack_nowait()
    msg.ack_nowait()
    assert stage.wire.sent() == b"PUB %s 4\r\n+ACK\r\n" % REPLY
    assert msg.settled


@pytest.mark.rule("ACK-4", "D-ACK-10")
def test_an_ack_without_a_coroutine_waits_for_a_connection_and_checks_the_reply():
    stage = Stage()
    stage.wire.lost()
    msg = make(stage)
    msg.ack_nowait()
    assert (msg.settled, stage.wire.sent()) == (True, b"")
    odd = make(stage, reply=b"admin.shutdown")
    with pytest.raises(InvalidSubject, match="is not an acknowledgment subject"):
        odd.ack_nowait()
    assert not odd.settled


@pytest.mark.rule("ACK-8")
def test_with_policy_none_all_are_ignored():
    stage = Stage()
    msg = make(stage, settled=True)
    for call in ("ack", "nak", "term", "in_progress", "ack_sync"):
        stage.run(getattr(msg, call)())
    assert stage.quiet()


@pytest.mark.rule("ACK-4", "ACK-7")
def test_a_double_ack_is_a_request():
    stage = Stage(b"")
    msg = make(stage)
    stage.run(msg.ack_sync())
    [pub] = stage.pubs
    assert (pub.raw_subject, pub.data, bool(pub.reply)) == (REPLY, b"+ACK", True)
    assert msg.settled


@pytest.mark.rule("ACK-4", "ACK-7")
@pytest.mark.parametrize(
    ("reply", "error", "at"), [(SILENCE, TimeoutExpired, 1.5), (NOBODY, NoResponders, 0.0)]
)
def test_a_double_ack_without_an_answer_can_be_tried_again(reply, error, at):
    stage = Stage(reply, b"")
    msg = make(stage)
    with pytest.raises(error):
        stage.run(msg.ack_sync(timeout=1.5))
    assert (msg.settled, stage.now()) == (False, at)
    stage.run(msg.ack_sync())
    assert msg.settled


@pytest.mark.rule("ACK-4")
def test_no_other_ack_is_sent_during_a_double_ack():
    stage = Stage()
    msg = make(stage)
    waiting = msg.ack_sync()
    stage.wait = lambda waitable: Suspend()
    waiting.send(None)
    stage.run(msg.nak())
    stage.run(msg.in_progress())
    assert stage.wire.sent().count(b"PUB") == 1
    waiting.close()  # the caller is cancelled
    assert not msg.settled
    stage.run(msg.nak())
    assert stage.wire.sent().endswith(b" 4\r\n-NAK\r\n")


class Suspend:
    def __await__(self):
        yield


@pytest.mark.rule("ACK-4", "ACK-9")
def test_it_is_settled_only_if_it_could_be_sent():
    stage = Stage()
    msg = make(stage)
    stage.connection.close(0.0)
    for call in (msg.ack, msg.nak, msg.term, msg.in_progress, msg.ack_sync):
        with pytest.raises(ConnectionClosed):
            stage.run(call())
    assert not msg.settled


@pytest.mark.rule("ACK-9")
def test_a_message_without_a_reply_cannot_be_acknowledged():
    stage = Stage()
    for call in ("ack", "nak", "term", "in_progress", "ack_sync"):
        with pytest.raises(InvalidSubject):
            stage.run(getattr(make(stage, reply=b""), call)())


@pytest.mark.rule("D-ACK-10")
@pytest.mark.parametrize("call", ["ack", "nak", "term", "in_progress", "ack_sync"])
@pytest.mark.parametrize("reply", ["admin.shutdown", "$JS.ACK", "$JS.API.STREAM.DELETE.S", "a..b"])
def test_only_jetstream_is_acknowledged_to(call, reply):
    stage = Stage()
    msg = make(stage, reply=reply.encode())
    text = f"reply {reply!r} is not an acknowledgment subject"
    with pytest.raises(InvalidSubject, match=re.escape(text)):
        stage.run(getattr(msg, call)())
    assert not msg.settled
    assert stage.quiet()


@pytest.mark.rule("ACK-11")
@pytest.mark.parametrize(
    ("version", "sent"),
    [
        ("2.9.10", b"+TERM"),
        ("2.10.3", b"+TERM"),
        ("2.10.4", b"+TERM why"),
        ("2.11.0", b"+TERM why"),
        ("2.15.1", b"+TERM why"),
        ("", b"+TERM why"),
    ],
)
def test_a_reason_needs_a_server_that_knows_reasons(version, sent):
    stage = Stage(version=version)
    msg = make(stage)
    stage.run(msg.term("why"))
    assert stage.asked == [(REPLY.decode(), sent)]
    assert msg.settled


@pytest.mark.rule("ACK-4")
def test_without_a_connection_it_waits_for_one():
    stage = Stage()
    stage.wire.lost()
    msg = make(stage)
    stage.run(msg.ack())
    assert (msg.settled, stage.wire.sent()) == (True, b"")
    stage.wire.greet().data(b"PONG\r\n")
    assert stage.wire.sent().endswith(b"PUB %s 4\r\n+ACK\r\n" % REPLY)


@pytest.mark.parametrize(
    ("call", "args"),
    [
        pytest.param("nak", (-1,), marks=pytest.mark.rule("ACK-5")),
        pytest.param("nak", (float("nan"),), marks=pytest.mark.rule("ACK-5")),
        pytest.param("nak", (float("inf"),), marks=pytest.mark.rule("ACK-5")),
        pytest.param("nak", (10**9 + 1,), marks=pytest.mark.rule("ACK-5")),
        pytest.param("nak", ("1",), marks=pytest.mark.rule("ACK-5")),
        pytest.param("term", ("a\nb",), marks=pytest.mark.rule("ACK-6")),
        pytest.param("term", ("a\rb",), marks=pytest.mark.rule("ACK-6")),
        pytest.param("term", (b"a",), marks=pytest.mark.rule("ACK-6")),
        pytest.param("term", ("\ud800",), marks=pytest.mark.rule("ACK-6")),
        pytest.param("ack_sync", (-1,), marks=pytest.mark.rule("ACK-7")),
    ],
)
def test_invalid_arguments_are_rejected(call, args):
    stage = Stage()
    msg = make(stage)
    with pytest.raises(InvalidValue):
        stage.run(getattr(msg, call)(*args))
    assert stage.quiet()
    assert not msg.settled
