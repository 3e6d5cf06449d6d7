from __future__ import annotations

import json
import sys

import pytest

from natsproto.connection.effects import Dial, Hangup, StartTls
from natsproto.errors import (
    AuthorizationFailed,
    ConnectFailed,
    ConnectionClosed,
    ConnectionLost,
    InvalidValue,
    MissingExtra,
    ProtocolError,
    ServerFailed,
    TimeoutExpired,
    TlsFailed,
)
from natsproto.events import AttemptFailed, Closed, Connected
from natsproto.version import VERSION
from tests.connection.support import PING, PONG, Script, Wire, err, hmsg, info, msg, names

SERVERS = ["nats://a", "nats://b", "nats://c"]


def connect_fields(wire):
    """Return the fields of the CONNECT that was sent, and that PING follows it."""
    connect, ping, rest = wire.sent().split(b"\r\n")
    assert (connect[:8], ping, rest) == (b"CONNECT ", b"PING", b"")
    return json.loads(connect[8:])


def failed(wire):
    """Return the error of the attempt that failed last."""
    return [event.error for event in wire.events() if isinstance(event, AttemptFailed)][-1]


# INFO, CONNECT, PING, PONG


@pytest.mark.rule("CONN-1", "CONN-6", "EVENT-1")
def test_a_handshake_step_by_step():
    wire = Wire(ping_interval=60.0)
    wire.connect(at=1.0)
    assert (wire.state, wire.deadline, wire.effects()) == ("DIALING", 6.0, [Dial("a", 4222, False)])
    wire.opened(at=2.0)
    assert (wire.state, wire.deadline, wire.effects(), wire.sent()) == ("OPENING", 6.0, [], b"")
    wire.data(info(), at=3.0)
    assert (wire.state, wire.deadline, wire.effects()) == ("GREETING", 6.0, [])
    connect_fields(wire)
    assert (wire.events(), wire.connection.opened.done) == ([], False)
    wire.data(PONG, at=4.0)
    assert (wire.state, wire.sent(), wire.effects()) == ("CONNECTED", b"", [])
    assert wire.events() == [Connected("nats://a:4222", False)]
    assert (wire.connection.opened.done, wire.connection.opened.error) == (True, None)
    assert wire.ready() == [wire.connection.events, wire.connection.opened]
    wire.timer(at=6.0)
    assert (wire.state, wire.deadline) == ("CONNECTED", 64.0)


FIELDS = [
    # options,                           INFO,                 fields that differ
    ({}, {}, {}),
    ({"verbose": True, "pedantic": True}, {}, {"verbose": True, "pedantic": True}),
    ({"no_echo": True, "name": "n"}, {}, {"echo": False, "name": "n"}),
    ({}, {"headers": False}, {"headers": False, "no_responders": False}),
    ({"user": "u", "password": "p"}, {}, {"user": "u", "pass": "p"}),
    ({"token": "t"}, {}, {"auth_token": "t"}),
    ({"servers": "nats://u:p@a"}, {}, {"user": "u", "pass": "p"}),
    ({"token": lambda: "fresh"}, {}, {"auth_token": "fresh"}),
]


@pytest.mark.rule("CONN-4")
@pytest.mark.parametrize(("options", "fields", "differ"), FIELDS)
def test_the_fields_of_connect(options, fields, differ):
    assert connect_fields(Wire(**options).connect().greet(**fields)) == {
        "verbose": False,
        "pedantic": False,
        "tls_required": False,
        "name": "",
        "lang": "python",
        "version": VERSION,
        "protocol": 1,
        "echo": True,
        "headers": True,
        "no_responders": True,
        **differ,
    }


@pytest.mark.rule("CONN-16")
def test_the_nonce_is_signed_again_at_each_attempt():
    nonces = []

    def sign(nonce):
        nonces.append(nonce)
        return bytes(64)

    key = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
    wire = Wire(servers=SERVERS[:2], nkey=key, sign=sign).connect().greet(nonce="one")
    fields = connect_fields(wire)
    assert (fields["nkey"], fields["sig"]) == (key, "A" * 86)
    wire.lost().greet(nonce="two")
    assert nonces == [b"one", b"two"]


BEFORE_INFO = [
    (PING, ProtocolError, "PING instead of INFO"),
    (PONG, ProtocolError, "PONG instead of INFO"),
    (b"+OK\r\n", ProtocolError, "OK instead of INFO"),
    (msg("a", 1, b"x"), ProtocolError, "MSG instead of INFO"),
    (hmsg("a", 1, b"NATS/1.0\r\n\r\n"), ProtocolError, "MSG instead of INFO"),
    (b"HTTP/1.1 400 Bad Request\r\n", ProtocolError, "unknown operation"),
    (b"INFO []\r\n", ProtocolError, "JSON is not an object"),
    (err("maximum connections exceeded"), ServerFailed, "maximum connections exceeded"),
    (err("who knows"), ServerFailed, "who knows"),
]


@pytest.mark.rule("CONN-2", "D-CONN-3", "CONN-11", "D-CONN-20")
@pytest.mark.parametrize(("data", "error", "text"), BEFORE_INFO)
@pytest.mark.parametrize("url", ["nats://a", "tls://a"])
def test_data_before_info(url, data, error, text):
    wire = Wire(servers=url)
    mailbox = wire.subscribe("a")
    wire.connect().opened().data(data + info(tls_required=True) + PONG)
    assert wire.effects()[1:] == [Hangup()]
    assert (wire.sent(), mailbox.pending(), wire.state) == (b"", 0, "CLOSED")
    reason = failed(wire)
    assert type(reason) is error
    assert text in str(reason)


@pytest.mark.rule("D-ERR-8")
def test_credentials_that_were_not_sent_are_not_refused():
    wire = Wire(max_reconnects=-1).up().lost()
    for _ in range(5):
        wire.opened().data(err("Authorization Violation"))
        assert type(failed(wire)) is ServerFailed
        wire.ring()
    assert wire.state == "DIALING"


# TLS

TLS = [
    # url, options, INFO: tls_required / tls_available, what happens
    ("nats://a", {}, {}, "GREETING"),
    ("nats://a", {}, {"tls_available": True}, "GREETING"),
    ("nats://a", {}, {"tls_required": True}, "SECURING"),
    ("tls://a", {}, {"tls_required": True}, "SECURING"),
    ("tls://a", {}, {"tls_available": True}, "SECURING"),
    ("tls://a", {}, {}, TlsFailed),
    ("tls://a", {}, {"tls_required": False, "tls_available": False}, TlsFailed),
    ("tls://a", {}, {"tls_required": "yes"}, TlsFailed),
    ("nats://a", {"tls": True}, {"tls_required": True}, "SECURING"),
    ("nats://a", {"tls": True}, {}, TlsFailed),
    ("nats://a", {"tls": object()}, {}, TlsFailed),
    ("nats://a", {"tls": False}, {}, "GREETING"),
]


@pytest.mark.rule("CONN-10", "CONN-11")
@pytest.mark.parametrize(("url", "options", "fields", "outcome"), TLS)
def test_without_the_required_tls_nothing_is_sent(url, options, fields, outcome):
    wire = Wire(servers=url, user="joe", password="hush", **options).connect().greet(**fields)
    if outcome == "GREETING":
        assert connect_fields(wire)["tls_required"] is False
        return
    assert wire.sent() == b""
    if outcome == "SECURING":
        assert (wire.state, wire.effects()[1:]) == ("SECURING", [StartTls("a")])
        assert wire.deadline == 5.0
        wire.secured()
        assert wire.state == "GREETING"
        assert connect_fields(wire)["tls_required"] is True
    else:
        assert wire.effects()[1:] == [Hangup()]
        assert type(failed(wire)) is outcome
        assert wire.state == "CLOSED"


@pytest.mark.rule("CONN-13")
@pytest.mark.parametrize("behind", [PING, PONG, msg("a", 1), err("x"), info(), b"+OK\r\n"])
def test_a_plaintext_frame_after_info_fails_the_attempt(behind):
    wire = Wire(servers=["tls://a", "tls://b"])
    mailbox = wire.subscribe("a")
    wire.connect().opened().data(info(tls_required=True) + behind)
    assert wire.effects()[1:] == [StartTls("a"), Hangup(), Dial("b", 4222, False)]
    assert str(failed(wire)) == "tls://a:4222 sent data before TLS"
    assert (wire.sent(), mailbox.pending()) == (b"", 0)


@pytest.mark.rule("CONN-13")
@pytest.mark.parametrize("behind", [b"PO", b"MSG a 1 100\r\nhalf", b"\x16\x03"])
def test_half_a_plaintext_frame_is_discarded_when_tls_starts(behind):
    wire = Wire(servers="tls://a").connect()
    wire.opened().data(info(tls_required=True) + behind).secured().sent()
    wire.data(PONG)
    assert wire.state == "CONNECTED"


@pytest.mark.rule("CONN-14", "CONN-15")
@pytest.mark.parametrize(
    ("options", "name"), [({}, "a"), ({"tls_hostname": "cluster.example"}, "cluster.example")]
)
def test_tls_before_info(options, name):
    wire = Wire(tls_first=True, **options).connect().opened()
    assert (wire.state, wire.effects()[1:]) == ("SECURING", [StartTls(name)])
    assert wire.secured().state == "OPENING"
    wire.data(info(host="evil", tls_required=False))
    assert connect_fields(wire)["tls_required"] is True
    assert wire.data(PONG).state == "CONNECTED"


@pytest.mark.rule("CONN-12", "CONN-15")
def test_a_discovered_member_gets_no_credentials_in_plaintext():
    wire = Wire(servers="tls://joe:hush@a", max_reconnects=-1, rng=Script())
    wire.connect().greet(tls_required=True).secured().data(PONG + info(connect_urls=["evil:1"]))
    wire.forget().lost(at=9.0)
    assert wire.effects() == [Dial("evil", 1, False)]
    wire.opened().data(info(host="evil"))
    assert (wire.sent(), type(failed(wire))) == (b"", TlsFailed)
    wire.ring().lost()  # the server that announced it
    wire.ring().opened().forget().data(info(tls_required=True, host="evil"))
    assert wire.effects() == [StartTls("a")]  # the name of the announcing server


@pytest.mark.rule("CONN-11")
def test_a_connect_that_was_not_taken_dies_with_its_transport():
    wire = Wire(servers=["nats://joe:hush@a", "tls://b"])
    wire.writable = False
    wire.connect().greet().lost().opened()
    wire.writable = True
    assert wire.data(info(tls_required=True)).sent() == b""
    connect_fields(wire.secured())


@pytest.mark.rule("CONN-6")
def test_tls_that_fails():
    wire = Wire(servers=["tls://a", "tls://b"]).connect().greet(tls_required=True)
    wire.lost(OSError("bad certificate"))
    assert str(failed(wire)) == "TLS handshake failed: bad certificate"
    wire.greet(tls_required=True).timer(at=5.0)
    assert str(failed(wire)) == "tls://b:4222 did not provide TLS within 5 s"
    assert wire.state == "CLOSED"


# WebSocket; test_websocket.py tests the layer itself


@pytest.mark.rule("D-CONN-18", "CONN-21", "D-WS-9")
@pytest.mark.parametrize("scheme", ["ws", "wss"])
def test_a_library_that_is_missing_is_noticed_before_dialing(monkeypatch, scheme):
    monkeypatch.setitem(sys.modules, "wsproto", None)
    wire = Wire(servers=[scheme + "://a", scheme + "://b"]).connect()
    assert (wire.state, names(wire.effects())) == ("CLOSED", [])
    assert type(wire.connection.opened.error) is MissingExtra


@pytest.mark.rule("D-CONN-18", "CONN-21")
def test_a_host_that_http_cannot_carry_ends_it_at_once():
    pytest.importorskip("wsproto")
    wire = Wire(servers="ws://a/é", retry_on_first_connect=True).connect().opened()
    assert wire.state == "CLOSED"
    events = wire.events()
    assert names(events) == ["AttemptFailed", "Closed"]
    assert type(events[-1].error) is InvalidValue


@pytest.mark.rule("CONN-14", "CONN-21", "CONN-11")
def test_wss_is_tls_before_http():
    pytest.importorskip("wsproto")
    wire = Wire(servers="wss://a").connect().opened()
    assert (wire.state, wire.sent(), wire.effects()[1:]) == ("SECURING", b"", [StartTls("a")])
    wire.secured()
    assert (wire.state, wire.sent()[:4]) == ("OPENING", b"GET ")


# Which server, and when to give up


@pytest.mark.rule("CONN-9", "EVENT-2", "D-EVENT-6")
def test_the_first_connect_tries_each_server_once():
    wire = Wire(servers=SERVERS).connect()
    wire.lost(OSError("refused")).timer(at=5.0).opened().data(b"garbage\r\n")
    assert wire.effects() == [
        Dial("a", 4222, False),
        Dial("b", 4222, False),
        Hangup(),
        Dial("c", 4222, False),
        Hangup(),
    ]
    error = wire.connection.opened.error
    assert isinstance(error, ConnectFailed)
    assert [url for url, _ in error.errors] == ["nats://a:4222", "nats://b:4222", "nats://c:4222"]
    assert [type(each) for _, each in error.errors] == [
        ConnectionLost,
        TimeoutExpired,
        ProtocolError,
    ]
    assert "nats://b:4222 did not provide a connection within 5 s" in str(error)
    events = wire.events()
    assert names(events) == ["AttemptFailed"] * 3 + ["Closed"]
    assert (events[-1], wire.state, wire.deadline) == (Closed(error), "CLOSED", None)


@pytest.mark.rule("CONN-9")
def test_rejected_credentials_are_reported_to_the_user():
    wire = Wire(servers=SERVERS).connect()
    wire.lost().greet().data(err("Authorization Violation")).lost()
    assert type(wire.connection.opened.error) is AuthorizationFailed
    assert "server error: Authorization Violation" in str(wire.connection.closed)


@pytest.mark.rule("CONN-17")
@pytest.mark.parametrize(
    ("texts", "closed"),
    [
        (["Authorization Violation"] * 2, True),
        (["User Authentication Expired", "Authorization Violation"], False),
        (["Authorization Violation", "", "Authorization Violation"], False),
        (["User Authentication Expired", *["Authorization Violation"] * 2], True),
    ],
)
def test_the_same_rejection_twice_in_a_row_is_the_end(texts, closed):
    wire = Wire(max_reconnects=-1).up().lost(at=5.0)
    for text in texts:
        if wire.state == "WAITING":
            wire.ring()
        wire.greet()
        wire.data(err(text)) if text else wire.lost()
    assert (wire.state == "CLOSED") is closed
    if closed:
        assert isinstance(wire.events()[-1].error, AuthorizationFailed)


@pytest.mark.rule("CONN-16")
def test_a_callback_that_fails_costs_the_attempt_only():
    def vault():
        raise OSError("vault is sealed")

    answers = [vault, vault, vault, lambda: "t"]
    wire = Wire(token=lambda: answers.pop(0)(), retry_on_first_connect=True).connect()
    for _ in range(3):
        wire.greet()
        assert type(failed(wire)) is AuthorizationFailed
        assert (wire.sent(), wire.state) == (b"", "WAITING")
        wire.ring()
    assert connect_fields(wire.greet())["auth_token"] == "t"


@pytest.mark.rule("CONN-22", "RECON-1")
def test_retry_in_the_background():
    wire = Wire(servers=SERVERS[:2], retry_on_first_connect=True, max_reconnects=2)
    wire.connect()
    assert wire.ready() == [wire.connection.opened]
    assert wire.connection.opened.done
    wire.lost().lost()  # each once and at once, then with pauses
    assert (wire.state, wire.alarm) == ("WAITING", 0.25)
    for alarm in (0.75, 1.75, 3.75):
        wire.ring().lost()
        assert (wire.state, wire.alarm) == ("WAITING", alarm)
    wire.ring().lost()
    assert (wire.state, names(wire.events())[-1]) == ("CLOSED", "Closed")


@pytest.mark.rule("CONN-22")
def test_retry_and_no_reconnects_is_still_one_attempt_for_each():
    wire = Wire(servers=SERVERS[:2], retry_on_first_connect=True, max_reconnects=0).connect()
    assert wire.lost().greet().data(PONG).state == "CONNECTED"


@pytest.mark.rule("RECON-6")
@pytest.mark.parametrize(("servers", "dialled"), [(["x"], "x"), (["x", "a"], "a")])
def test_new_servers_are_used_from_the_next_attempt(servers, dialled):
    wire = Wire(max_reconnects=-1).up().lost(at=9.0).lost()
    assert wire.state == "WAITING"
    wire.connection.pool.set_servers(servers)
    wire.effects()
    assert wire.ring().effects() == [Dial(dialled, 4222, False)]


@pytest.mark.rule("RECON-3")
def test_errors_of_a_long_outage_are_kept_once_for_each_server():
    wire = Wire(servers=SERVERS, max_reconnects=-1).up().lost(at=9.0)
    for i in range(100):
        wire.lost(OSError(str(i))).ring()
    assert [str(error) for _, error in wire.connection.lifecycle.attempts._errors] == [
        "97",
        "98",
        "99",
    ]


@pytest.mark.rule("D-CONN-24")
def test_closing_in_each_state():
    for steps in (
        [],
        ["connect"],
        ["connect", "opened"],
        ["connect", "greet"],
    ):
        wire = Wire()
        for step in steps:
            getattr(wire, step)()
        wire.forget()
        wire.connection.close(1.0)
        assert wire.effects() == [Hangup()] * bool(steps)
        assert (wire.state, wire.sent(), wire.deadline) == ("CLOSED", b"", None)
        assert type(wire.connection.opened.error) is ConnectionClosed
        wire.connection.close(2.0)
        assert wire.events() == [Closed(None)]


@pytest.mark.rule("D-RECON-15")
def test_an_attempt_is_under_way_from_the_dial_to_the_pong():
    wire = Wire(tls=True, max_reconnects=-1)
    seen = [(wire.state, wire.connection.connecting)]
    for step in (
        wire.connect,
        wire.opened,
        lambda: wire.data(info(tls_available=True)),
        wire.secured,
        lambda: wire.data(PONG),
        wire.lost,
        wire.lost,
        lambda: wire.connection.close(0.0),
    ):
        step()
        seen.append((wire.state, wire.connection.connecting))
    assert seen == [
        ("NEW", False),
        ("DIALING", True),
        ("OPENING", True),
        ("SECURING", True),
        ("GREETING", True),
        ("CONNECTED", False),
        ("DIALING", True),
        ("WAITING", False),
        ("CLOSED", False),
    ]
