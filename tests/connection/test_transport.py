"""Everything that belongs to one dial, without a connection."""

from __future__ import annotations

import json

import pytest

from natsproto.connection import transport as module
from natsproto.connection.servers import Server
from natsproto.connection.states import GREET, SIGN, START_TLS
from natsproto.connection.transport import Transport
from natsproto.errors import (
    ConnectionLost,
    InvalidValue,
    NatsError,
    ProtocolError,
    ServerFailed,
    TlsFailed,
)
from natsproto.options import Options
from natsproto.urls import ServerUrl
from natsproto.wire.frames import Err, Info, Ok
from tests.connection.support import PING


def make(url="nats://a", **options):
    parsed = ServerUrl.parse(url)
    return Transport(Server(parsed, False, parsed.host), Options(servers=url, **options))


FIRST = [  # URL,     options,       INFO,                     outcome
    ("nats://a", {}, {}, GREET),
    ("nats://a", {}, {"tls_available": True}, GREET),
    ("nats://a", {}, {"tls_required": True}, START_TLS),
    ("nats://a", {"tls": True}, {"tls_available": True}, START_TLS),
    ("nats://a", {"tls": True}, {}, TlsFailed),
    ("tls://a", {}, {"tls_required": True}, START_TLS),
    ("tls://a", {}, {}, TlsFailed),
    ("ws://a", {}, {}, GREET),
    ("ws://a", {}, {"tls_required": True}, TlsFailed),
]


@pytest.mark.rule("CONN-11", "CONN-12")
@pytest.mark.parametrize(("url", "options", "fields", "outcome"), FIRST)
def test_info_can_require_more_tls_but_never_less(url, options, fields, outcome):
    transport = make(url, **options)
    if outcome in (GREET, START_TLS):
        assert transport.greet(Info(fields))[0] == outcome
        assert transport.info == Info(fields)
    else:
        with pytest.raises(outcome, match="TLS is required, but"):
            transport.greet(Info(fields))


@pytest.mark.rule("CONN-13", "CONN-2", "D-ERR-8")
@pytest.mark.parametrize(
    ("frames", "error", "text"),
    [
        ([Err("Authorization Violation")], ServerFailed, "Authorization Violation"),
        ([Ok()], ProtocolError, "OK instead of INFO"),
        ([Info({"tls_required": True}), Ok()], TlsFailed, "nats://a:4222 sent data before TLS"),
    ],
)
def test_the_first_frame_must_be_info(frames, error, text):
    transport = make()
    *before, last = frames
    for frame in before:
        transport.greet(frame)
    with pytest.raises(error, match=text):
        transport.greet(last)


@pytest.mark.rule("CONN-13")
def test_plaintext_bytes_are_discarded():
    transport = make()
    transport.parser.feed(b"INFO {")
    assert transport.secured() == ("", b"")
    assert len(transport.parser.feed(PING)) == 1
    assert transport.greet(Info({"tls_required": True}))[0] == GREET


@pytest.mark.rule("CONN-14")
@pytest.mark.parametrize(
    ("url", "options", "first"),
    [
        ("nats://a", {}, False),
        ("tls://a", {}, False),
        ("tls://a", {"tls_first": True}, True),
        ("ws://a", {}, False),
        ("wss://a", {}, True),
        ("wss://a", {"host_websocket": True}, False),
    ],
)
def test_tls_before_info(url, options, first):
    transport = make(url, **options)
    if url == "ws://a":
        pytest.importorskip("wsproto")
    assert transport.opened() == (START_TLS if first else "", b"")


@pytest.mark.rule("D-WS-12", "CONN-11")
@pytest.mark.parametrize(
    ("url", "fields", "outcome"),
    [
        ("ws://a", {}, GREET),
        ("wss://a", {}, GREET),
        ("wss://a", {"tls_required": True}, GREET),
        ("ws://a", {"tls_required": True}, TlsFailed),
    ],
)
def test_the_websocket_of_a_host(url, fields, outcome):
    transport = make(url, host_websocket=True)
    assert transport.opened() == ("", b"")
    assert transport.websocket is None
    if outcome == GREET:
        assert transport.greet(Info(fields))[0] == GREET
    else:
        with pytest.raises(outcome):
            transport.greet(Info(fields))


@pytest.mark.rule("D-AUTH-14", "CONN-16")
@pytest.mark.parametrize("host_signing", [False, True])
def test_a_challenge_is_for_the_adapter_or_answered(host_signing):
    key = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
    transport = make(nkey=key, sign=lambda nonce: bytes(64), host_signing=host_signing)
    outcome, frame = transport.greet(Info({"nonce": "n"}))
    if host_signing:
        assert (outcome, frame) == (SIGN, b"")
        with pytest.raises(NatsError, match="sign did not return 64 bytes"):
            transport.signed(b"", b"", None)
        outcome, frame = transport.signed(bytes(64), b"", None)
    assert (outcome, json.loads(frame.partition(b" ")[2])["sig"]) == (GREET, "A" * 86)


@pytest.mark.rule("D-AUTH-14")
def test_nothing_to_sign_for_the_adapter():
    outcome, frame = make(token="t", host_signing=True).greet(Info({"nonce": "n"}))
    assert (outcome, json.loads(frame.partition(b" ")[2])["auth_token"]) == (GREET, "t")


@pytest.mark.rule("CONN-13")
def test_connect_is_written_after_tls():
    transport = make()
    assert transport.greet(Info({"tls_required": True})) == (START_TLS, b"")
    outcome, frame = transport.secured()
    assert (outcome, json.loads(frame.partition(b" ")[2])["tls_required"]) == (GREET, True)


@pytest.mark.rule("CONN-4")
def test_connect_describes_the_transport():
    transport = make(name="it", no_echo=True, verbose=True)
    _, frame = transport.greet(Info({"headers": True}))
    fields = json.loads(frame.partition(b" ")[2])
    assert (fields["name"], fields["echo"], fields["verbose"]) == ("it", False, True)
    assert (fields["tls_required"], fields["headers"], fields["no_responders"]) == (
        False,
        True,
        True,
    )


def test_credentials_that_cannot_be_read():
    def token():
        raise InvalidValue("no token today")

    with pytest.raises(NatsError, match="credentials callback token failed"):
        make(token=token).greet(Info({}))


@pytest.mark.rule("D-CONN-36")
def test_a_later_info_does_not_unset_omitted_fields():
    transport = make()
    first = {"headers": True, "max_payload": 9, "version": "2", "ldm": True}
    transport.greet(Info(first))
    info = transport.learn(Info({"max_payload": 5, "version": None}))
    assert (info.headers, info.max_payload, info.version, info.ldm) == (True, 5, "2", False)
    assert transport.info is info


@pytest.mark.rule("D-PING-5")
def test_pongs_that_nothing_reads(monkeypatch):
    monkeypatch.setattr(module, "_MAX_OWED", 10)
    transport = make()
    transport.opened()
    transport.owed = 10
    assert (transport.websocket, transport.overdue()) == (None, None)
    transport.owed = 11
    assert str(transport.overdue()) == "server sends PINGs but does not read PONGs"


@pytest.mark.rule("WS-4", "WS-6")
def test_a_websocket():
    pytest.importorskip("wsproto")
    from wsproto import ConnectionType, WSConnection
    from wsproto.events import AcceptConnection, BytesMessage, CloseConnection
    from wsproto.events import Ping as WsPing

    transport = make("ws://a")
    transport.opened()
    server = WSConnection(ConnectionType.SERVER)
    [request] = transport.wrap([])
    server.receive_data(request)
    assert [type(event).__name__ for event in server.events()] == ["Request"]
    assert transport.receive(server.send(AcceptConnection())) == []
    assert len(transport.receive(server.send(BytesMessage(PING)))) == 1
    assert (transport.owed, transport.overdue()) == (0, None)
    transport.receive(server.send(WsPing()))
    assert transport.owed > 0
    pieces = transport.wrap([b"PONG\r\n"])
    assert len(pieces) == 2
    server.receive_data(b"".join(pieces))
    assert [type(event).__name__ for event in server.events()] == ["Pong", "BytesMessage"]
    transport.receive(server.send(CloseConnection(code=1000)))
    assert isinstance(transport.overdue(), ConnectionLost)
