"""Values that try to break out of their field: none may add a frame or change one.

Each is refused with an error that names the value and the rule or, where the protocol can carry it,
arrives as exactly one frame with exactly that value.
"""

from __future__ import annotations

import random

import pytest

from natsproto import LocalError, Ping, Pub, Sub, encode
from natsproto.wire.subjects import check_known_name, check_new_name, inbox
from tests.wire.support import read_all

OK, NONE = "carried", "means none"
S1, S2, S3, S4, S5, S7, S8 = (f"SUBJ-{i}" for i in (1, 2, 3, 4, 5, 7, 8))
H9, H10 = "HDR-9", "HDR-10"

FIELDS = [  # what the call gives for the value, and the value as the frame has it
    ("subject", lambda v: encode.pub(v, b"x"), lambda f: f.subject),
    ("reply", lambda v: encode.pub("a", b"x", reply=v), lambda f: f.reply),
    ("subscription", lambda v: encode.sub(v, 1), lambda f: f.subject),
    ("queue", lambda v: encode.sub("a", 1, queue=v), lambda f: f.queue),
    ("header name", lambda v: encode.pub("a", headers=[(v, "x")]), lambda f: f.headers.keys()[0]),
    ("header value", lambda v: encode.pub("a", headers={"K": v}), lambda f: f.headers["K"]),
    (
        "inbox prefix",
        lambda v: encode.pub("a", reply=inbox(random.Random(1).randrange, v)),
        lambda f: f.reply.rpartition(".")[0],
    ),
    (
        "new name",
        lambda v: encode.pub("$JS.API.STREAM.CREATE." + check_new_name("stream", v)),
        lambda f: f.subject.removeprefix("$JS.API.STREAM.CREATE."),
    ),
    (
        "known name",
        lambda v: encode.pub("$JS.API.CONSUMER.INFO.S." + check_known_name("consumer", v)),
        lambda f: f.subject.removeprefix("$JS.API.CONSUMER.INFO.S."),
    ),
]

VALUES = [  # value,  subject, reply, subscription, queue, header name, value, prefix, new, known
    ("a",                    OK, OK,   OK, OK,   OK, OK,  OK, OK, OK),
    ("",                     S4, NONE, S4, NONE, H9, OK,  S4, S7, S8),
    (" ",                    S4, S4,   S4, S5,   H9, H10, S4, S7, S8),
    ("a b",                  S4, S4,   S4, S5,   H9, OK,  S4, S7, S8),
    (" a",                   S4, S4,   S4, S5,   H9, H10, S4, S7, S8),
    ("a ",                   S4, S4,   S4, S5,   H9, H10, S4, S7, S8),
    ("a\tb",                 S4, S4,   S4, S5,   H9, OK,  S4, S7, S8),
    ("a\t",                  S4, S4,   S4, S5,   H9, H10, S4, S7, S8),
    ("\r",                   S4, S4,   S4, S5,   H9, H10, S4, S7, S8),
    ("\n",                   S4, S4,   S4, S5,   H9, H10, S4, S7, S8),
    ("\r\n",                 S4, S4,   S4, S5,   H9, H10, S4, S7, S8),
    ("a\rb",                 S4, S4,   S4, S5,   H9, H10, S4, S7, S8),
    ("a\nb",                 S4, S4,   S4, S5,   H9, H10, S4, S7, S8),
    ("a\r\nb",               S4, S4,   S4, S5,   H9, H10, S4, S7, S8),
    ("a\n",                  S4, S4,   S4, S5,   H9, H10, S4, S7, S8),
    ("a\r\nPING",            S4, S4,   S4, S5,   H9, H10, S4, S7, S8),
    ("a\r\nPING\r\n",        S4, S4,   S4, S5,   H9, H10, S4, S7, S8),
    ("a\nPING\n",            S4, S4,   S4, S5,   H9, H10, S4, S7, S8),
    ("a 1\r\nSUB > 9",       S4, S4,   S4, S5,   H9, H10, S4, S7, S8),
    ("a 1\r\nx\r\nPUB b 1",  S4, S4,   S4, S5,   H9, H10, S4, S7, S8),
    ("a\r\n\r\nPUB b 0\r\n", S4, S4,   S4, S5,   H9, H10, S4, S7, S8),
    ("a\r\nB: c",            S4, S4,   S4, S5,   H9, H10, S4, S7, S8),
    ("a 5",                  S4, S4,   S4, S5,   H9, OK,  S4, S7, S8),
    ("a\t5",                 S4, S4,   S4, S5,   H9, OK,  S4, S7, S8),
    ("\0",                   S4, S4,   S4, S5,   H9, H10, S4, S7, S8),
    ("a\0b",                 S4, S4,   S4, S5,   H9, H10, S4, S7, S8),
    ("a\fb",                 S4, S4,   S4, S5,   H9, OK,  S4, S7, S8),
    ("a\vb",                 OK, OK,   OK, OK,   H9, OK,  OK, S7, OK),
    ("a\x1b\x7f",            OK, OK,   OK, OK,   H9, OK,  OK, S7, OK),
    ("a\x85b",               OK, OK,   OK, OK,   H9, OK,  OK, S7, OK),  # a line end to str
    ("a\u2028b",             OK, OK,   OK, OK,   H9, OK,  OK, S7, OK),  # a line end to str
    ("a\xa0b\u3000",         OK, OK,   OK, OK,   H9, OK,  OK, S7, OK),  # white space to str
    ("é☃😀한",                OK, OK,   OK, OK,   H9, OK,  OK, S7, OK),
    ("\udcff",               OK, OK,   OK, OK,   H9, OK,  OK, S7, OK),  # the byte FF
    ("a\udc8a",              OK, OK,   OK, OK,   H9, OK,  OK, S7, OK),  # the byte 8A, no LF
    ("a\udc0a",              S4, S4,   S4, S5,   H9, H10, S4, S7, S8),  # no byte at all
    ("a\udc0d\udc0aPING",    S4, S4,   S4, S5,   H9, H10, S4, S7, S8),
    ("\ud800",               S4, S4,   S4, S5,   H9, H10, S4, S7, S8),
    ("a\ud83d",              S4, S4,   S4, S5,   H9, H10, S4, S7, S8),
    ("*",                    S2, S2,   OK, OK,   OK, OK,  S2, S7, S8),
    (">",                    S2, S2,   OK, OK,   OK, OK,  S2, S7, S8),
    ("a.*",                  S2, S2,   OK, OK,   OK, OK,  S2, S7, S8),
    (">.a",                  S2, S2,   S3, OK,   OK, OK,  S2, S7, S8),
    (".",                    S1, S1,   S1, OK,   OK, OK,  S1, S7, S8),
    ("a..b",                 S1, S1,   S1, OK,   OK, OK,  S1, S7, S8),
    ("a.",                   S1, S1,   S1, OK,   OK, OK,  S1, S7, S8),
    (".a",                   S1, S1,   S1, OK,   OK, OK,  S1, S7, S8),
    ("a:b",                  OK, OK,   OK, OK,   H9, OK,  OK, OK, OK),
    ("a/b",                  OK, OK,   OK, OK,   OK, OK,  OK, S7, S8),
    ("a\\r\\nb",             OK, OK,   OK, OK,   OK, OK,  OK, S7, S8),  # backslashes, not CRLF
    ("%s%d%r{}",             OK, OK,   OK, OK,   OK, OK,  OK, OK, OK),
    ("PING",                 OK, OK,   OK, OK,   OK, OK,  OK, OK, OK),
    ("5",                    OK, OK,   OK, OK,   OK, OK,  OK, OK, OK),
    ("-1",                   OK, OK,   OK, OK,   OK, OK,  OK, OK, OK),
    ("x" * 255,              OK, OK,   OK, OK,   OK, OK,  OK, OK, OK),
    ("x" * 5000,             OK, OK,   OK, OK,   OK, OK,  OK, S7, S8),
    (None,                   S4, NONE, S4, NONE, H9, H9,  S4, S7, S8),
    (b"a",                   S4, S4,   S4, S5,   H9, H9,  S4, S7, S8),
    (b"a\r\nPING\r\n",       S4, S4,   S4, S5,   H9, H9,  S4, S7, S8),
    (bytearray(b"a"),        S4, S4,   S4, S5,   H9, H9,  S4, S7, S8),
    (5,                      S4, S4,   S4, S5,   H9, H9,  S4, S7, S8),
    (1.5,                    S4, S4,   S4, S5,   H9, H9,  S4, S7, S8),
    (True,                   S4, S4,   S4, S5,   H9, H9,  S4, S7, S8),
    (("a\r\n", "b"),         S4, S4,   S4, S5,   H9, H10, S4, S7, S8),
    (["a\nb"],               S4, S4,   S4, S5,   H9, H10, S4, S7, S8),
    ({"a": "b"},             S4, S4,   S4, S5,   H9, H9,  S4, S7, S8),
    (range(3),               S4, S4,   S4, S5,   H9, H9,  S4, S7, S8),
]  # fmt: skip
TABLE = [
    pytest.param(build, get, value, outcome, id=f"{field}: {ascii(value)[:30]}")
    for value, *outcomes in VALUES
    for (field, build, get), outcome in zip(FIELDS, outcomes, strict=True)
]


def test_the_table_is_large_enough():
    assert len(TABLE) >= 150
    assert len({repr(row[0]) for row in VALUES}) == len(VALUES)


@pytest.mark.rule("ENC-5", "SUBJ-4", "SUBJ-5", "SUBJ-7", "SUBJ-8", "SUBJ-10", "HDR-9", "HDR-10")
@pytest.mark.parametrize(("build", "get", "value", "outcome"), TABLE)
def test_a_value_stays_in_its_field(build, get, value, outcome):
    if outcome in (OK, NONE):
        frames = read_all(build(value) + encode.ping(), peer="client")
        assert len(frames) == 2
        assert isinstance(frames[0], (Pub, Sub))
        assert get(frames[0]) == (value if outcome == OK else "")
        assert frames[1] == Ping()
        return
    with pytest.raises(LocalError) as error:
        build(value)
    assert error.value.rule == outcome
    assert str(error.value).endswith(f"({outcome})")
    assert names(str(error.value), value)


def names(message: str, value: object) -> bool:
    """Return whether the message shows the value, the part of it that is wrong, or its length."""
    if value == "":
        return " is empty" in message
    if isinstance(value, str) and len(value) > 255:
        return f"has {len(value)} bytes" in message
    parts = value if isinstance(value, (list, tuple)) else ()
    return any(repr(part) in message for part in (value, *parts))


PAYLOADS = [
    "text", "", "a\r\nPING\r\n", None, 0, 5, -1, 1.5, True, [], [1, 2], (1, 2), {}, {"a": 1}, {1},
    range(3), object, Ellipsis,
]  # fmt: skip


@pytest.mark.rule("D-ENC-6")
@pytest.mark.parametrize("payload", PAYLOADS, ids=repr)
def test_a_payload_is_bytes(payload):
    with pytest.raises(LocalError) as error:
        encode.pub("a", payload)
    kind = type(payload).__name__
    assert str(error.value) == f"payload {payload!r} is {kind}, not bytes (D-ENC-6)"


@pytest.mark.rule("ENC-1", "D-ENC-6")
@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\r\n",
        b"\r\nPING\r\n",
        b"x\r\nPUB b 0\r\n\r\n",
        b"NATS/1.0\r\n\r\n",
        bytes(range(256)),
    ],
)
@pytest.mark.parametrize("headers", [None, {}, {"K": "v"}])
def test_any_bytes_are_one_payload(payload, headers):
    for data in (payload, bytearray(payload), memoryview(payload)):
        frames = read_all(encode.pub("a", data, headers=headers) + encode.ping(), peer="client")
        assert [type(frame) for frame in frames] == [Pub, Ping]
        assert frames[0].data == payload


NUMBERS = [
    -1, 10**18, True, False, 1.0, 0.5, "1", "1\r\nPING\r\n", b"1", None, [1], float("nan"),
    float("inf"), 1j,
]  # fmt: skip


@pytest.mark.rule("D-ENC-7")
@pytest.mark.parametrize("number", NUMBERS, ids=repr)
@pytest.mark.parametrize(
    ("build", "what"),
    [
        (lambda n: encode.sub("a", n), "sid"),
        (lambda n: encode.sub("a", n, queue="q"), "sid"),
        (lambda n: encode.unsub(n), "sid"),
        (lambda n: encode.unsub(n, after=5), "sid"),
        (lambda n: encode.unsub(1, after=n), "after"),
    ],
    ids=["sub", "queue sub", "unsub", "unsub with max", "max"],
)
def test_ids_and_counts_are_whole_numbers(build, what, number):
    if what == "after" and not number:
        assert build(number) == b"UNSUB 1\r\n"  # without a maximum, it ends now
        return
    with pytest.raises(LocalError) as error:
        build(number)
    assert str(error.value).startswith(f"{what} {number!r} is not a whole number from ")
    assert error.value.rule == "D-ENC-7"


@pytest.mark.rule("ENC-2", "ENC-5")
@pytest.mark.parametrize("value", [row[0] for row in VALUES if isinstance(row[0], str)], ids=ascii)
def test_connect_carries_any_text(value):
    fields = {"user": value, value: "x"}
    connect, ping = read_all(encode.connect(fields) + encode.ping(), peer="client")
    assert connect.fields == fields
    assert ping == Ping()
