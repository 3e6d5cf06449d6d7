from __future__ import annotations

import pytest

from natsproto import Err, Headers, Info, LocalError, Msg, Ok, Parser, Ping, Pong
from natsproto.wire import encode_server as encode
from tests.wire.support import byte_by_byte, read_all

BLOCK = b"NATS/1.0\r\nA: b\r\n\r\n"  # 18 bytes
MAX = 999_999_999_999_999_999

TABLE = [
    (encode.ping(), b"PING\r\n", Ping()),
    (encode.pong(), b"PONG\r\n", Pong()),
    (encode.ok(), b"+OK\r\n", Ok()),
    (encode.err("Stale Connection"), b"-ERR 'Stale Connection'\r\n", Err("Stale Connection")),
    (encode.err("it's 'quoted'"), b"-ERR 'it's 'quoted''\r\n", Err("it's 'quoted'")),
    (encode.err(""), b"-ERR ''\r\n", Err("")),
    (encode.err("\udcff"), b"-ERR '\xff'\r\n", Err("\udcff")),
    (
        encode.info({"server_id": "X", "max_payload": 1048576}),
        b'INFO {"server_id":"X","max_payload":1048576} \r\n',
        Info({"server_id": "X", "max_payload": 1048576}),
    ),
    (encode.msg("a", 1), b"MSG a 1 0\r\n\r\n", Msg(b"a", 1)),
    (encode.msg("a", 0, b"hi"), b"MSG a 0 2\r\nhi\r\n", Msg(b"a", 0, data=b"hi")),
    (encode.msg("a", MAX, reply="r"), b"MSG a %d r 0\r\n\r\n" % MAX, Msg(b"a", MAX, b"r")),
    (
        encode.msg("a.\udcff", 1, bytearray(b"\r\nPING\r\n")),
        b"MSG a.\xff 1 8\r\n\r\nPING\r\n\r\n",
        Msg(b"a.\xff", 1, data=b"\r\nPING\r\n"),
    ),
    (
        encode.msg("a", 1, b"pay", headers={"A": "b"}),
        b"HMSG a 1 18 21\r\n" + BLOCK + b"pay\r\n",
        Msg(b"a", 1, data=b"pay", headers=BLOCK),
    ),
    (
        encode.msg("a", 1, reply="r", headers=Headers({"A": "b"})),
        b"HMSG a 1 r 18 18\r\n" + BLOCK + b"\r\n",
        Msg(b"a", 1, b"r", headers=BLOCK),
    ),
    (
        encode.msg("a", 1, status=503),
        b"HMSG a 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n",
        Msg(b"a", 1, headers=b"NATS/1.0 503\r\n\r\n"),
    ),
    (
        encode.msg("a", 1, status=404, description="No Messages"),
        b"HMSG a 1 28 28\r\nNATS/1.0 404 No Messages\r\n\r\n\r\n",
        Msg(b"a", 1, headers=b"NATS/1.0 404 No Messages\r\n\r\n"),
    ),
    (
        encode.msg("a", 1, b"x", status=100, description="Idle Heartbeat", headers={"A": "b"}),
        b"HMSG a 1 37 38\r\nNATS/1.0 100 Idle Heartbeat\r\nA: b\r\n\r\nx\r\n",
        Msg(b"a", 1, data=b"x", headers=b"NATS/1.0 100 Idle Heartbeat\r\nA: b\r\n\r\n"),
    ),
    (
        encode.msg_checked(b"a.*\0", 1, b"", b"", b"no header block"),
        b"HMSG a.*\0 1 15 15\r\nno header block\r\n",
        Msg(b"a.*\0", 1, headers=b"no header block"),
    ),
]


@pytest.mark.rule("ENC-1", "ENC-8", "ENC-9")
@pytest.mark.parametrize(("encoded", "wire", "frame"), TABLE)
def test_encoded_values_are_parsed_back(encoded, wire, frame):
    assert encoded == wire
    assert read_all(encoded) == [frame]
    assert read_all(*byte_by_byte(encoded)) == [frame]


@pytest.mark.rule("ENC-9")
def test_a_status_is_read_back():
    [msg] = Parser().feed(
        encode.msg("a", 1, status=409, description="Leadership Change", headers={"K": "v"})
    )
    assert (msg.status, msg.description, msg.headers["K"]) == (409, "Leadership Change", "v")


@pytest.mark.rule("ENC-5", "ENC-9", "D-ENC-6", "D-ENC-7", "D-ENC-10")
@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda: encode.msg("a b", 1), "subject 'a b' contains a space (SUBJ-4)"),
        (lambda: encode.msg("a.*", 1), "subject 'a.*' has a wildcard (SUBJ-2)"),
        (lambda: encode.msg("a", 1, reply="r\n"), r"reply 'r\n' contains an LF (SUBJ-4)"),
        (lambda: encode.msg("a", -1), f"sid -1 is not a whole number from 0 to {MAX} (D-ENC-7)"),
        (lambda: encode.msg("a", 1, "text"), "payload 'text' is str, not bytes (D-ENC-6)"),
        (
            lambda: encode.msg("a", 1, headers={"A": "b\n"}),
            r"value 'b\n' of header 'A' contains '\n' (HDR-10)",
        ),
        (
            lambda: encode.msg("a", 1, description="No Messages"),
            "status 0 is not a number of three digits (HDR-5)",
        ),
        (
            lambda: encode.msg("a", 1, status=1000),
            "status 1000 is not a number of three digits (HDR-5)",
        ),
        (
            lambda: encode.msg("a", 1, status=True),
            "status True is not a number of three digits (HDR-5)",
        ),
        (
            lambda: encode.msg("a", 1, status=404, description="a\r\nB: c"),
            r"description 'a\r\nB: c' contains '\r' (D-ENC-10)",
        ),
        (
            lambda: encode.msg("a", 1, status=404, description=" a"),
            "description ' a' has whitespace around it (D-ENC-10)",
        ),
        (lambda: encode.err("a\n"), r"text 'a\n' contains '\n' (D-ENC-10)"),
        (lambda: encode.err("a\0"), r"text 'a\x00' contains '\x00' (D-ENC-10)"),
        (lambda: encode.err(b"a"), "text b'a' is not a str (D-ENC-10)"),
        (
            lambda: encode.err("\ud800"),
            r"text '\ud800' cannot be encoded as UTF-8 (D-ENC-10)",
        ),
    ],
)
def test_values_that_cannot_be_sent_are_rejected(call, problem):
    with pytest.raises(LocalError) as error:
        call()
    assert str(error.value) == problem
