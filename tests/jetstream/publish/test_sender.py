"""Sender, with a mailbox in the place of a machine."""

from __future__ import annotations

import pytest

from jetstream.publish.sender import Sender
from natsproto.connection.receiver import Mailbox
from natsproto.errors import InvalidSubject
from natsproto.wire.frames import Sub, Unsub
from tests.jetstream.support import Stage


def make():
    stage = Stage()
    return stage, Sender(stage.client.session, Mailbox(10, 10), "i.*")


def test_checked_subjects_are_remembered():
    _, sender = make()
    assert sender._check_subject("s.é") == "s.é".encode()
    assert sender._checked == {"s.é": "s.é".encode()}
    with pytest.raises(InvalidSubject):
        sender._check_subject("s..a")
    for number in range(1024):
        sender._check_subject("s.%d" % number)
    assert sender._checked == {"s.1023": b"s.1023"}  # their number is bounded


def test_headers_of_options():
    _, sender = make()
    assert sender._header_block({"msg_id": "1"}) == b"NATS/1.0\r\nNats-Msg-Id: 1\r\n\r\n"
    assert sender._header_block({"msg_id": ""}) is None


def test_leaving_ends_the_subscription():
    stage, sender = make()
    assert stage.run(sender.__aenter__()) is sender
    sender._leave()
    frames = stage._parser.feed(stage.wire.sent())
    assert [type(frame) for frame in frames] == [Sub, Unsub]


def test_the_subscription_is_sent_at_once(monkeypatch):
    """A frame that waits would hold back later publishes, which flush an empty queue only."""
    stage = Stage()
    session = stage.client.session
    waiting = []
    outbound = session.connection.outbound
    monkeypatch.setattr(session.port, "flush_soon", lambda: waiting.append(outbound.size))
    Sender(session, Mailbox(10, 10), "i.*")
    assert waiting == [len(b"SUB i.* 1\r\n")]
