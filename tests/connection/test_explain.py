"""Sentences for the frames of core NATS: each is compared as a whole."""

from __future__ import annotations

import pytest

from natsproto import explain
from natsproto.connection import server_errors
from natsproto.explain import Explainer, Note, printable, seconds, wire_text
from natsproto.wire.frames import Connect, Err, Info, Msg, Ok, Ping, Pong, Pub, Sub, Unsub
from natsproto.wire.parser import Parser

SENT = [
    (Sub("a.b", 1), "subscribe", "The client subscribes to `a.b` under id 1."),
    (
        Sub("a.b", 2, "workers"),
        "subscribe",
        "The client subscribes to `a.b` under id 2 as a member of queue group `workers`.",
    ),
    (Unsub(7), "unsubscribe", "The client ends subscription 7."),
    (Unsub(7, 1), "unsubscribe", "The client limits subscription 7 to 1 message in all."),
    (Unsub(7, 5), "unsubscribe", "The client limits subscription 7 to 5 messages in all."),
    (Pub(b"a", b"", b"12345"), "publish", "The client publishes a message of 5 bytes to `a`."),
    (Pub(b"a"), "publish", "The client publishes an empty message to `a`."),
    (
        Pub(b"a", b"_INBOX.1", b"?"),
        "request",
        "The client sends a message of 1 byte to `a`, with `_INBOX.1` as the subject for "
        "responses.",
    ),
    (
        Ping(),
        "ping",
        "The client asks for a PONG: it proves that the server accepted CONNECT.",
    ),
    (Pong(), "pong", "The client answers the PING: it is alive."),
]


@pytest.mark.parametrize(("frame", "kind", "text"), SENT, ids=lambda value: str(value)[:30])
def test_frames_of_the_client(frame, kind, text):
    note = Explainer().sent(frame)
    assert (note.kind, note.text) == (kind, text)


CONNECTS = [
    ({}, "It does not accept headers: messages arrive without them."),
    ({"headers": True}, ""),
    (
        {"headers": True, "no_responders": True, "verbose": True},
        "It asks for a +OK after each operation. It wants headers, and a 503 for requests that no "
        "one receives.",
    ),
    (
        {"headers": True, "jwt": "secret", "sig": "secret"},
        "It presents credentials: jwt. The signature of the nonce proves that it holds the "
        "private key.",
    ),
    ({"headers": True, "user": "u", "pass": "secret"}, "It presents credentials: user."),
]


@pytest.mark.parametrize(("fields", "text"), CONNECTS)
def test_connect(fields, text):
    note = Explainer().sent(Connect(fields))
    assert note.text == f"The client introduces itself. {text}".strip()
    assert "secret" not in note.text
    assert "secret" not in wire_text(Connect(fields))


RECEIVED = [
    (Ok(), "ok", "In verbose mode the server confirms each operation."),
    (Ping(), "ping", "The server checks that the client is alive."),
    (
        Pong(),
        "pong",
        "The PONG answers the PING after CONNECT: the connection is established.",
    ),
    (Msg(b"a", 1, b"", b"x"), "message", "A message of 1 byte to `a`, for subscription 1."),
    (Msg(b"a", 1), "message", "An empty message to `a`, for subscription 1."),
    (
        Msg(b"a", 1, headers=b"NATS/1.0 404\r\n\r\n"),
        "message",
        "An empty message to `a`, for subscription 1. Its header block starts with a status line, "
        "which its publisher wrote.",
    ),
    (
        Msg(b"a", 1, headers=b"NATS/1.0 503\r\n\r\n"),
        "message",
        "An empty message to `a`, for subscription 1. Its header block starts with a status line, "
        "which its publisher wrote.",
    ),
    (
        Msg(b"a", 1, headers=b"NATS/1.0 503\r\nNats-Subject: q\r\n\r\n"),
        "status",
        "503 No Responders. No one is subscribed to receive the request.",
    ),
    (
        Err("Stale Connection"),
        "error",
        "The client left too many PINGs unanswered; the server closes the connection.",
    ),
    (
        Err('Permissions Violation for Publish to "a"'),
        "error",
        "The user may not publish there; the connection stays open.",
    ),
    (Err("Full Moon"), "error", "The server reports an error that is not known here."),
]


@pytest.mark.parametrize(("frame", "kind", "text"), RECEIVED, ids=lambda value: str(value)[:30])
def test_frames_of_the_server(frame, kind, text):
    note = Explainer().received(frame)
    assert (note.kind, note.text) == (kind, text)


INFOS = [
    ({}, "The server introduces itself."),
    ({"version": "2.15.1"}, "The server introduces itself: version 2.15.1."),
    ({"nonce": "x"}, "The server introduces itself. The client has to sign the nonce."),
    (
        {"auth_required": True},
        "The server introduces itself. The client has to present credentials.",
    ),
    ({"tls_required": True}, "The server introduces itself. It requires TLS."),
    (
        {"connect_urls": ["a:1"]},
        "The server introduces itself. The cluster lists 1 address to connect to.",
    ),
    (
        {"ldm": True},
        "The server enters lame duck mode: it will close all connections. The client should move "
        "to another server.",
    ),
]


@pytest.mark.parametrize(("fields", "text"), INFOS)
def test_the_first_info(fields, text):
    assert Explainer().received(Info(fields)).text == text


def test_later_infos():
    explainer = Explainer()
    explainer.received(Info({}))
    repeated = explainer.received(Info({"connect_info": True}))
    assert repeated.text == "The server repeats INFO after CONNECT, now with the account's details."
    changed = explainer.received(Info({"connect_urls": ["a:1", "b:2"]}))
    assert changed.text == (
        "The server updates its INFO. The cluster lists 2 addresses to connect to."
    )


def test_a_subscription_is_remembered():
    explainer = Explainer()
    explainer.sent(Sub("a.*", 1))
    explainer.sent(Sub("a.*", 2, "q"))
    assert explainer.received(Msg(b"a.b", 1)).text == (
        "An empty message to `a.b`, for subscription 1 (`a.*`)."
    )
    assert explainer.received(Msg(b"a.b", 2)).text == (
        "An empty message to `a.b`, for subscription 2 (`a.*` in queue group `q`)."
    )
    assert explainer.sent(Unsub(1)).text == "The client ends subscription 1 (`a.*`)."


def test_a_response_is_explained_by_its_request():
    explainer = Explainer()
    explainer.sent(Pub(b"time", b"_INBOX.1"))
    response = explainer.received(Msg(b"_INBOX.1", 1, b"", b"noon"))
    assert response == Note(
        "response", "response", "A message of 4 bytes in response to the request to `time`."
    )
    refused = explainer.received(Msg(b"_INBOX.1", 1, headers=b"NATS/1.0 503\r\n\r\n"))
    assert refused.text == (
        "503 No Responders. No one is subscribed to receive the request to `time`."
    )


def test_the_second_ping_and_pong_are_not_about_connect():
    explainer = Explainer()
    explainer.received(Pong())
    assert explainer.sent(Ping()).text == "The client asks for a PONG."
    assert explainer.received(Pong()).text == (
        "The PONG answers the oldest PING: the server has processed all before it."
    )


def test_requests_do_not_pile_up():
    explainer = Explainer()
    for number in range(2500):
        explainer.sent(Pub(b"a", b"_INBOX.%d" % number))
    assert explainer.request_of(Msg(b"_INBOX.0", 1)) is None
    assert explainer.request_of(Msg(b"_INBOX.2499", 1)) is not None


TEXTS = [
    (Ping(), "PING"),
    (Pong(), "PONG"),
    (Ok(), "+OK"),
    (Err("No"), "-ERR 'No'"),
    (Sub("a", 1), "SUB a 1"),
    (Sub("a", 1, "q"), "SUB a q 1"),
    (Unsub(1), "UNSUB 1"),
    (Unsub(1, 5), "UNSUB 1 5"),
    (Pub(b"a", b"r", b"data"), "PUB a r 4\ndata"),
    (Pub(b"a"), "PUB a 0"),
    (Msg(b"a", 3, b"", b"data"), "MSG a 3 4\ndata"),
    (Msg(b"a", 3, headers=b"NATS/1.0\r\nA: b\r\n\r\n"), "HMSG a 3 18 18\nNATS/1.0\nA: b"),
    (
        Pub(b"a", b"", b"x", b"NATS/1.0\r\nA: b\r\n\r\n"),
        "HPUB a 18 19\nNATS/1.0\nA: b\n\nx",
    ),
    (Pub(b"a", b"", b"z" * 5000), "PUB a 5000\nzzz... (5000 times)"),
    (Pub(b"a", b"", b"ab" * 500), "PUB a 1000\n" + "ab" * 98 + "a..."),
    (Err("z" * 200), "-ERR '%s'" % ("z" * 200)),
    (Err("z" * 201), "-ERR '%s...'" % ("z" * 197)),
    (Err("\n" * 100), "-ERR '%s'" % ("\\n" * 100)),
    (Err("\n" * 101), "-ERR '%s\\...'" % ("\\n" * 98)),
    (Connect({"user": "u", "pass": "p", "sig": ""}), 'CONNECT {"user":"u","pass":"***","sig":""}'),
    (Info({"version": "2", "go": "go1"}), 'INFO {"version":"2",...}'),
    (Info({"version": "2"}), 'INFO {"version":"2"}'),
]


@pytest.mark.parametrize(("frame", "text"), TEXTS, ids=lambda value: str(value)[:30])
def test_the_text_on_the_wire(frame, text):
    assert wire_text(frame) == text


class Long(str):
    """A text that is too long to look at each of its characters."""

    __slots__ = ()

    def __iter__(self):
        raise AssertionError("all of it is escaped, to show the start")


def test_only_the_start_of_a_long_text_is_escaped():
    """Otherwise `trace` would spend a third of a second on a message of 768,000 bytes."""
    assert wire_text(Err(Long("\n" * 1000))) == "-ERR '%s\\...'" % ("\\n" * 98)


def test_bytes_that_are_not_text_become_escapes():
    (frame,) = Parser().feed(b"MSG t.\xff\x00 1 4\r\n\t\r\n\xfe\r\n")
    assert wire_text(frame) == "MSG t.\\xff\\x00 1 4\n\\t\\r\\n\\xfe"
    assert printable("é☃\x7f") == "é☃\\x7f"


def test_durations():
    cases = [1_500_000_000, 300_000_000, 30_000_000_000, 0, "soon"]
    assert [seconds(each) for each in cases] == ["1.5 s", "0.3 s", "30 s", "0 s", "soon"]


def test_every_known_error_of_a_server_has_a_sentence():
    """The sentences agree with the table that the connection acts on."""
    for start, meaning in server_errors.CLASSIFICATION:
        found = [row for row in explain.ERRORS if start.startswith(row[0]) or row[0] == start]
        assert found, start
        stays = meaning in (server_errors.RECOVERABLE, server_errors.DENIED)
        assert found[0][2] is stays, start
