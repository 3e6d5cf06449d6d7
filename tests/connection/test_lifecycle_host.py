"""Hosts that open WebSockets and sign by themselves, such as a browser."""

from __future__ import annotations

import json
import sys

import pytest

from natsproto.connection.effects import Dial, Hangup, Sign
from natsproto.errors import (
    AuthorizationFailed,
    ConnectionLost,
    MissingExtra,
    ProtocolError,
    ServerFailed,
    TlsFailed,
)
from natsproto.events import AttemptFailed
from tests.connection.support import PING, PONG, Wire, err, info, msg, names

KEY = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
SIGNATURE = bytes(64)


def sent_fields(wire):
    """The fields of the CONNECT that was sent, and that PING follows it."""
    connect, ping, rest = wire.sent().split(b"\r\n")
    assert (connect[:8], ping, rest) == (b"CONNECT ", b"PING", b"")
    return json.loads(connect[8:])


def failed(wire):
    return [event.error for event in wire.events() if isinstance(event, AttemptFailed)][-1]


# WebSockets


@pytest.mark.rule("D-WS-12")
@pytest.mark.parametrize(
    ("url", "dial", "tls"),
    [
        ("ws://a", Dial("a", 80, False, "ws://a:80"), False),
        ("wss://a/nats", Dial("a", 443, False, "wss://a:443/nats"), True),
        ("ws://me:hush@[::1]:9", Dial("::1", 9, False, "ws://[::1]:9"), False),
    ],
)
def test_the_host_opens_frames_and_secures(monkeypatch, url, dial, tls):
    monkeypatch.setitem(sys.modules, "wsproto", None)
    wire = Wire(servers=url, host_websocket=True).connect()
    assert wire.effects() == [dial]
    assert (wire.opened().state, wire.effects(), wire.sent()) == ("OPENING", [], b"")
    wire.data(info())
    assert sent_fields(wire)["tls_required"] is tls
    assert wire.data(PONG).state == "CONNECTED"
    wire.subscribe("s")
    assert wire.sent() == b"SUB s 1\r\n"  # not in a frame
    wire.data(msg("s", 1, b"x")[:5], msg("s", 1, b"x")[5:] + PING)
    assert (wire.sent(), wire.connection.stats.in_msgs) == (PONG, 1)


@pytest.mark.rule("D-WS-12", "CONN-10")
def test_wss_is_secured_whatever_info_says():
    wire = Wire(servers="wss://a", host_websocket=True, tls=True).connect()
    wire.greet(tls_required=True)
    assert (wire.state, names(wire.effects())) == ("GREETING", ["Dial"])


@pytest.mark.rule("D-WS-12", "CONN-11")
def test_ws_cannot_be_upgraded():
    wire = Wire(servers="ws://a", host_websocket=True, retry_on_first_connect=True).connect()
    wire.greet(tls_required=True)
    assert type(failed(wire)) is TlsFailed
    assert wire.sent() == b""


@pytest.mark.rule("D-WS-12")
def test_a_lost_websocket_is_opened_again():
    wire = Wire(servers=["wss://a", "wss://b"], host_websocket=True).up()
    wire.lost(at=3.0)
    assert wire.effects() == [Dial("b", 443, False, "wss://b:443")]
    wire.greet()
    assert sent_fields(wire)["tls_required"] is True
    assert wire.data(PONG).state == "CONNECTED"


# Signatures


def signing(**options):
    """Return a wire that waits for a signature."""
    options = {"nkey": KEY, "sign": print, "retry_on_first_connect": True, **options}
    return Wire(host_signing=True, **options).connect().greet(nonce="one")


@pytest.mark.rule("D-AUTH-14", "CONN-16")
def test_the_adapter_signs():
    wire = signing()
    _, sign = wire.effects()
    assert (wire.state, wire.sent(), wire.deadline) == ("SIGNING", b"", 5.0)
    assert type(sign) is Sign
    assert sign.challenge.nonce == b"one"
    assert repr(sign) == "Sign(challenge=Challenge(***))"
    wire.tell_signed(SIGNATURE, at=1.0)
    assert (wire.state, wire.effects()) == ("GREETING", [])
    fields = sent_fields(wire)
    assert (fields["nkey"], fields["sig"]) == (KEY, "A" * 86)
    assert wire.data(PONG).state == "CONNECTED"
    wire.forget().lost(at=3.0).greet(nonce="two")
    assert wire.effects()[-1].challenge.nonce == b"two"


@pytest.mark.rule("D-AUTH-14")
def test_tls_comes_before_the_signature():
    wire = Wire(servers="tls://a", host_signing=True, nkey=KEY, sign=print).connect()
    wire.greet(nonce="one", tls_required=True).secured()
    assert (wire.state, names(wire.effects())) == ("SIGNING", ["Dial", "StartTls", "Sign"])
    wire.tell_signed(SIGNATURE)
    assert sent_fields(wire)["tls_required"] is True


@pytest.mark.rule("D-AUTH-14")
@pytest.mark.parametrize("options", [{}, {"user": "u", "password": "p"}])
def test_nothing_to_sign(options):
    wire = Wire(host_signing=True, **options).connect().greet(nonce="one")
    assert (wire.state, names(wire.effects())) == ("GREETING", ["Dial"])


@pytest.mark.rule("D-AUTH-14", "D-AUTH-10")
@pytest.mark.parametrize(
    ("signature", "error", "failure", "text"),
    [
        (b"", ValueError("s3cr3t"), AuthorizationFailed, "callback sign failed: ValueError"),
        (b"short", None, AuthorizationFailed, "callback sign did not return 64 bytes"),
        (b"", AuthorizationFailed("no key"), AuthorizationFailed, "no key"),
    ],
)
def test_a_nonce_that_cannot_be_signed_ends_the_attempt(signature, error, failure, text):
    wire = signing().forget()
    wire.tell_signed(signature, error=error)
    assert (wire.state, names(wire.effects()), wire.sent()) == ("WAITING", ["Hangup"], b"")
    found = failed(wire)
    assert type(found) is failure
    assert text in str(found)
    assert "s3cr3t" not in str(found)


@pytest.mark.rule("D-AUTH-14", "D-CONN-18")
def test_a_host_that_cannot_sign_closes_the_client():
    wire = signing()
    wire.tell_signed(error=MissingExtra("no Ed25519"))
    assert wire.state == "CLOSED"


@pytest.mark.rule("D-AUTH-14", "CONN-7")
def test_a_signature_that_takes_too_long():
    wire = signing().forget().timer(at=5.0)
    assert (wire.state, wire.effects()) == ("WAITING", [Hangup()])
    assert str(failed(wire)) == "nonce of nats://a:4222 was not signed within 5 s"


@pytest.mark.rule("D-AUTH-14")
@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        (PONG, ProtocolError, "PONG before CONNECT"),
        (PING, ProtocolError, "PING before CONNECT"),
        (info(), ProtocolError, "INFO before CONNECT"),
        (msg("a", 1, b"x"), ProtocolError, "MSG before CONNECT"),
        (err("Authentication Timeout"), ServerFailed, "Authentication Timeout"),
    ],
)
def test_only_errors_are_accepted_before_connect(data, error, text):
    wire = signing().forget().data(data)
    assert wire.state != "SIGNING"
    found = failed(wire)
    assert isinstance(found, error)
    assert text in str(found)


@pytest.mark.rule("D-AUTH-14", "D-ERR-4")
def test_the_reason_of_a_server_that_closes_meanwhile():
    wire = signing().data(err("maximum something")).lost()
    assert str(failed(wire)) == "server error: maximum something"
    wire = signing().lost()
    assert type(failed(wire)) is ConnectionLost


@pytest.mark.rule("D-AUTH-14", "D-CONN-25")
def test_a_signature_for_a_transport_that_is_being_dropped():
    wire = signing(max_reconnects=-1)
    wire.connection.handle_timer(5.0)  # the adapter has not taken the Hangup yet
    wire.connection.nonce_signed(5.0, SIGNATURE)
    assert (wire.state, names(wire.effects()[2:])) == ("WAITING", ["Hangup"])
    wire.tell("close")
    wire.tell_signed(SIGNATURE)
    assert (wire.state, wire.sent()) == ("CLOSED", b"")
