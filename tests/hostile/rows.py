"""Data that a broken or malicious server may send, and its effect in each state.

The three outcomes are for OPENING (INFO is expected), GREETING (PONG is) and CONNECTED:

    an error class   the transport is dropped for this reason, and another one is dialed
    GOES_ON          it is tolerated: the handshake or the connection continues
    STUCK            the end of a frame is missing: nothing happens until the deadline
"""

from __future__ import annotations

import json
import random
from typing import Any, NamedTuple

from natsproto.errors import AuthorizationFailed, ProtocolError, ServerFailed

GOES_ON = "goes on"
STUCK = "stuck"
P, S, A = ProtocolError, ServerFailed, AuthorizationFailed


class Row(NamedTuple):
    name: str
    data: bytes
    opening: Any
    greeting: Any
    connected: Any


def all_states(outcome: Any, rows: list[tuple[str, bytes]]) -> list[Row]:
    return [Row(name, data, outcome, outcome, outcome) for name, data in rows]


def info(fields: Any) -> bytes:
    return b"INFO " + json.dumps(fields).encode() + b"\r\n"


def junk(size: int) -> bytes:
    """Return random bytes without a line end."""
    return random.Random(size).randbytes(size).replace(b"\n", b"\x00")


URLS = [1, None, {}, [], "", ":", "::::", "a b", "\0", "@evil", "u:p@evil:1", "x:99999", "x:-1"]
URLS += ["[::1", "x/y", "x?y", "nats://x:1", "\ud800", "é" * 5000, "a:1\r\nPUB x 0\r\n\r\n"]

MANY = [f"h{i}:1" for i in range(50_000)]
FIELDS = ["nonce", "host", "port", "ldm", "proto", "headers", "version", "tls_required"]

INFO = [
    *all_states(
        P,
        [
            ("INFO with JSON cut short", b'INFO {"server_id":\r\n'),
            ("INFO with an array", b"INFO []\r\n"),
            ("INFO with a number", b"INFO 1\r\n"),
            ("INFO with a string", b'INFO "x"\r\n'),
            ("INFO with null", b"INFO null\r\n"),
            ("INFO with nothing", b"INFO\r\n"),
            ("INFO with two objects", b"INFO {}{}\r\n"),
            ("INFO with deep JSON", b'INFO {"a":' + b"[" * 200_000 + b"\r\n"),
            ("INFO with a huge integer", b'INFO {"max_payload":' + b"9" * 5000 + b"}\r\n"),
            ("INFO that is not UTF-8", b'INFO {"server_id":"\xff"}\r\n'),
            ("INFO in UTF-16", 'INFO {"a":1}\r\n'.encode("utf-16")),
            ("INFO with NUL", b"INFO {\0}\r\n"),
            ("INFO of 2 MiB", info({"x": "x" * 2 * 1024 * 1024})),
            ("INFO without an end", b"INFO {" + b" " * 2 * 1024 * 1024),
        ],
    ),
    *all_states(
        GOES_ON,
        [
            ("INFO without anything", b"INFO {}\r\n"),
            ("INFO in lower case with tabs", b"info\t{ }\t\n"),
            ("INFO with the same key twice", b'INFO {"headers":true,"headers":1}\r\n'),
            ("INFO of 900 KB", info({"x": "x" * 900_000})),
            ("INFO with max_payload below 0", info({"max_payload": -1})),
            ("INFO with a huge max_payload", info({"max_payload": 10**18})),
            ("INFO with max_payload as text", info({"max_payload": "1048576"})),
            ("INFO with a fraction for max_payload", b'INFO {"max_payload":1e308}\r\n'),
            ("INFO with NaN for max_payload", b'INFO {"max_payload":NaN}\r\n'),
            ("INFO with max_payload true", info({"max_payload": True})),
            ("INFO with max_payload as a list", info({"max_payload": [1]})),
            ("INFO with connect_urls as text", info({"connect_urls": "x:1"})),
            ("INFO with junk in connect_urls", info({"connect_urls": URLS})),
            ("INFO with 50,000 members", info({"connect_urls": MANY})),
            ("INFO with headers as text", info({"headers": "yes"})),
            ("INFO with every field a list", info({name: [] for name in FIELDS})),
            ("INFO with a nonce that is no text", b'INFO {"nonce":"\\ud800"}\r\n'),
            ("INFO with tls_required as text", info({"tls_required": "yes"})),
            ("INFO with a name like an attribute", info({"__class__": {}, "fields": 1})),
        ],
    ),
]  # fmt: skip

ERR = [
    Row("-ERR that is not UTF-8", b"-ERR '\xff\xfe'\r\n", S, GOES_ON, GOES_ON),
    Row("-ERR without a text", b"-ERR\r\n", S, GOES_ON, GOES_ON),
    Row("-ERR with empty quotes", b"-ERR ''\r\n", S, GOES_ON, GOES_ON),
    Row("-ERR with one quote", b"-ERR '\r\n", S, GOES_ON, GOES_ON),
    Row("-ERR without quotes", b"-ERR Something Else\r\n", S, GOES_ON, GOES_ON),
    Row("-ERR of 60 KB", b"-ERR '" + b"x" * 60_000 + b"'\r\n", S, GOES_ON, GOES_ON),
    Row("-ERR of 70 KB", b"-ERR '" + b"x" * 70_000 + b"'\r\n", P, P, P),
    Row("-ERR with a CR inside", b"-ERR 'a\rb'\r\n", S, GOES_ON, GOES_ON),
    Row("-ERR with formats", b"-ERR '%s %d {0}'\r\n", S, GOES_ON, GOES_ON),
    Row("-ERR about no subject", b"-ERR 'Permissions Violation'\r\n", S, GOES_ON, GOES_ON),
    Row("-ERR about an odd subject",
        b"-ERR 'Permissions Violation for Subscription to \"\xff\"'\r\n", S, GOES_ON, GOES_ON),
    Row("-ERR about an absurd id",
        b'-ERR \'Permissions Violation for Subscription to "x" (sid "' + b"9" * 9000 + b"\")'\r\n",
        S, GOES_ON, GOES_ON),
    Row("-ERR about an id that is no number",
        "-ERR 'Permissions Violation for Subscription to \"x\" (sid \"²\")'\r\n".encode(),
        S, GOES_ON, GOES_ON),
    Row("-ERR without an end of the subject",
        b"-ERR 'Permissions Violation for Publish to \"x'\r\n", S, GOES_ON, GOES_ON),
    Row("-ERR that ends the connection", b"-ERR 'Stale Connection'\r\n", S, S, S),
    Row("-ERR in other letters", b"-err 'MAXIMUM PAYLOAD violation'\r\n", S, S, S),
    Row("-ERR about credentials", b"-ERR 'Authorization Violation'\r\n", S, A, A),
]  # fmt: skip

# Sizes and ids: garbage in any position, because the line is read before it is used.
LINES = all_states(
    P,
    [
        ("MSG without fields", b"MSG\r\n"),
        ("MSG with one field", b"MSG a\r\n"),
        ("MSG with too many fields", b"MSG a 1 r 0 0 0\r\n\r\n"),
        ("MSG without a subject", b"MSG  1 0\r\n\r\n"),
        ("size below 0", b"MSG a 1 -1\r\n\r\n"),
        ("size with a sign", b"MSG a 1 +2\r\nhi\r\n"),
        ("size with an underscore", b"MSG a 1 1_0\r\n0123456789\r\n"),
        ("size in hexadecimal", b"MSG a 1 0x2\r\nhi\r\n"),
        ("size as a fraction", b"MSG a 1 2.0\r\nhi\r\n"),
        ("size in other digits", "MSG a 1 ²\r\nhi\r\n".encode()),
        ("size of 99,999,999,999", b"MSG a 1 99999999999\r\n"),
        ("size of 20 digits", b"MSG a 1 " + b"9" * 20 + b"\r\n"),
        ("size of 60,000 digits", b"MSG a 1 " + b"9" * 60_000 + b"\r\n"),
        ("size above 64 MiB", b"MSG a 1 67108865\r\n"),
        ("id of 19 digits", b"MSG a " + b"9" * 19 + b" 0\r\n\r\n"),
        ("id below 0", b"MSG a -1 0\r\n\r\n"),
        ("id that is no number", b"MSG a x 0\r\n\r\n"),
        ("HMSG without sizes", b"HMSG a 1\r\n"),
        ("HMSG with headers longer than all", b"HMSG a 1 14 12\r\nNATS/1.0\r\n\r\n\r\n"),
        ("HMSG with headers below 0", b"HMSG a 1 -1 12\r\nNATS/1.0\r\n\r\n\r\n"),
        ("HMSG with a size above 64 MiB", b"HMSG a 1 12 99999999\r\n"),
        ("payload longer than announced", b"MSG a 1 2\r\nhello\r\n"),
        ("payload without its line end", b"MSG a 1 2\r\nhiPING\r\n"),
        ("empty line", b"\r\n"),
        ("many empty lines", b"\r\n" * 100),
        ("unknown operation", b"HELLO\r\n"),
        ("operations without a space", b"PINGPONG\r\n"),
        ("operation with a mark before it", b"\xef\xbb\xbfPING\r\n"),
        ("operation of a client, PUB", b"PUB a 0\r\n\r\n"),
        ("operation of a client, CONNECT", b"CONNECT {}\r\n"),
        ("operation of a client, SUB", b"SUB a 1\r\n"),
        ("answer of a web server", b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        ("greeting of SSH", b"SSH-2.0-OpenSSH_9.6\r\n"),
        ("greeting of SMTP", b"220 mail.example ESMTP\r\n"),
        ("line without an end", b"x" * 3 * 1024 * 1024),
        ("random bytes without an end", junk(200_000)),
        ("NULs without an end", bytes(100_000)),
        ("subject without an end", b"MSG " + b"a" * 100_000),
    ],
)

STUCK_ROWS = all_states(
    STUCK,
    [
        ("half a line", b"PIN"),
        ("half of INFO", b'INFO {"server_id":'),
        ("half a message", b"MSG a 1 1000\r\nhal"),
        ("payload shorter than announced", b"MSG a 1 50\r\nhi\r\nPING\r\nPING\r\n"),
        ("alert of TLS", b"\x15\x03\x01\x00\x02\x02\x28"),
    ],
)

FRAMES = [
    # Valid frames at the wrong time: before INFO no other frame is accepted, before PONG no
    # message.
    Row("message for an id that never was", b"MSG a 777 2\r\nhi\r\n", P, P, GOES_ON),
    Row("message for id 0", b"MSG a 0 2\r\nhi\r\n", P, P, GOES_ON),
    Row("message for an id of 18 digits", b"MSG a " + b"9" * 18 + b" 0\r\n\r\n", P, P, GOES_ON),
    Row("message for a subscription", b"MSG a 1 2\r\nhi\r\n", P, P, GOES_ON),
    Row("message with odd headers", b"HMSG a 1 3 5\r\n\xff\0\nhi\r\n", P, P, GOES_ON),
    Row("message with headers of size 0", b"HMSG a 1 0 2\r\nhi\r\n", P, P, GOES_ON),
    Row("message of 1 MiB", b"MSG a 1 1048576\r\n" + b"x" * 1048576 + b"\r\n", P, P, GOES_ON),
    Row("many messages", b"MSG a 1 2\r\nhi\r\n" * 5000, P, P, GOES_ON),
    Row("many messages for nobody", b"MSG a 9 2\r\nhi\r\n" * 5000, P, P, GOES_ON),
    Row("+OK that nobody asked for", b"+OK\r\n", P, GOES_ON, GOES_ON),
    Row("many +OK", b"+OK\r\n" * 5000, P, GOES_ON, GOES_ON),
    Row("PONG that nobody asked for", b"PONG\r\n", P, GOES_ON, GOES_ON),
    Row("many PONGs", b"PONG\r\n" * 5000, P, GOES_ON, GOES_ON),
    Row("many PINGs", b"PING\r\n" * 5000, P, GOES_ON, GOES_ON),
    Row("PING with a text", b"PING and more\r\n", P, GOES_ON, GOES_ON),
    Row("operations in lower case", b"ping\npong\n+ok\n", P, GOES_ON, GOES_ON),
    Row("many INFOs", b'INFO {"headers":true}\r\n' * 500, GOES_ON, GOES_ON, GOES_ON),
    Row("many complaints", b"-ERR 'who knows'\r\n" * 1000, S, GOES_ON, GOES_ON),
]

ROWS = INFO + ERR + LINES + STUCK_ROWS + FRAMES
