"""The grammar, invalid input, and their independence of how the stream is split.

Every row runs whole, byte by byte, and on a parser that has seen its numbers before: the first and
the last may use the hot loop, and the second never does.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from natsproto import (
    Connect,
    Err,
    Info,
    InvalidValue,
    Msg,
    Ok,
    Parser,
    Ping,
    Pong,
    ProtocolError,
    Pub,
    Sub,
    Unsub,
)
from natsproto.wire.parser import MAX_HEADERS, MAX_JSON_LINE, MAX_LINE, _Pieces
from tests.wire.support import Result, byte_by_byte, read

# Numbers that the rows below use, so that a parser which has read this knows them all.
WARM = {
    "server": b"".join(
        b"MSG w %s %s\r\n%s\r\n" % (n, n, b"." * int(n))
        + b"HMSG w %s %s %s\r\n%s\r\n" % (n, n, n, b"." * int(n))
        for n in [b"0", b"1", b"2", b"3", b"5", b"7", b"12", b"18", b"007", b"05"]
    ),
    "client": b"".join(b"SUB w %d\r\nPUB w %d\r\n%s\r\n" % (n, n, b"." * n) for n in range(20)),
}
H = b"NATS/1.0\r\n\r\n"  # 12 bytes

FROM_SERVER = [
    # WIRE-8
    (b"MSG a 1 5\r\nhello\r\n", [Msg(b"a", 1, b"", b"hello")]),
    (b"MSG a 1 r 5\r\nhello\r\n", [Msg(b"a", 1, b"r", b"hello")]),
    (b"MSG a 1 0\r\n\r\n", [Msg(b"a", 1)]),
    (b"MSG a 007 05\r\nhello\r\n", [Msg(b"a", 7, b"", b"hello")]),
    (b"MSG 1 1 1 1\r\n1\r\n", [Msg(b"1", 1, b"1", b"1")]),
    (b"MSG a 0 5\r\n\r\n\r\n\n\r\n", [Msg(b"a", 0, b"", b"\r\n\r\n\n")]),
    (b"MSG a 1 3\r\na\r\n\r\nPING\r\n", [Msg(b"a", 1, b"", b"a\r\n"), Ping()]),
    (b"MSG a 1 1\r\nx\r\n" * 3, [Msg(b"a", 1, b"", b"x")] * 3),
    # WIRE-9
    (b"HMSG a 1 12 12\r\n" + H + b"\r\n", [Msg(b"a", 1, b"", b"", H)]),
    (b"HMSG a 1 r 12 18\r\n" + H + b"hello!\r\n", [Msg(b"a", 1, b"r", b"hello!", H)]),
    (b"HMSG a 1 0 5\r\nhello\r\n", [Msg(b"a", 1, b"", b"hello")]),
    # WIRE-2, WIRE-3, WIRE-4, WIRE-5
    (b"msg a 1 5\r\nhello\r\n", [Msg(b"a", 1, b"", b"hello")]),
    (b"mSg\ta\t1\t5\r\nhello\r\n", [Msg(b"a", 1, b"", b"hello")]),
    (b"MSG a 1  5\r\nhello\r\n", [Msg(b"a", 1, b"", b"hello")]),
    (b"MSG  1 1 5\r\nhello\r\n", [Msg(b"1", 1, b"", b"hello")]),
    (b"MSG   a  1   r \t 5 \t \r\nhello\r\n", [Msg(b"a", 1, b"r", b"hello")]),
    (b"MSG \ta 1 5\r\nhello\r\n", [Msg(b"a", 1, b"", b"hello")]),
    (b"MSG a 1 5\nhello\r\n", [Msg(b"a", 1, b"", b"hello")]),
    (b"MSG a 1 5\r\r\nhello\r\n", [Msg(b"a", 1, b"", b"hello")]),
    (b"MSG a 1 5 \nhello\r\n", [Msg(b"a", 1, b"", b"hello")]),
    (b"hmsg  a\t1 12  18\n" + H + b"hello!\r\n", [Msg(b"a", 1, b"", b"hello!", H)]),
    (b"HMSG a 1  12 12\r\n" + H + b"\r\n", [Msg(b"a", 1, b"", b"", H)]),
    (b"MSG \r 1 5\r\nhello\r\n", [Msg(b"\r", 1, b"", b"hello")]),  # a CR inside a line is a byte
    (b"MSG \ra\r 1 \rr 5\r\nhello\r\n", [Msg(b"\ra\r", 1, b"\rr", b"hello")]),
    (b"MSG a\x0b\x0c 1 5\r\nhello\r\n", [Msg(b"a\x0b\x0c", 1, b"", b"hello")]),
    # WIRE-11
    (b"PING\r\nPONG\r\n+OK\r\n", [Ping(), Pong(), Ok()]),
    (b"ping\npOnG\n+ok\n", [Ping(), Pong(), Ok()]),
    (b"PING \t\r\nPONG x y\r\n+OK\tz\r\n", [Ping(), Pong(), Ok()]),
    # WIRE-12
    (b"-ERR 'Stale Connection'\r\n", [Err("Stale Connection")]),
    (b"-err  \t'a b' \r\n", [Err("a b")]),
    (b"-ERR no quotes\r\n", [Err("no quotes")]),
    (b"-ERR 'it's'\r\n-ERR 'a\r\n-ERR a'\r\n", [Err("it's"), Err("'a"), Err("a'")]),
    (b"-ERR ''\r\n-ERR\r\n-ERR \n-ERR '\r\n", [Err(""), Err(""), Err(""), Err("'")]),
    (b"-ERR '\xff\xc3\xa9'\r\n", [Err("\udcff\udcc3\udca9")]),
    # WIRE-10
    (b'INFO {"port":4222} \r\n', [Info({"port": 4222})]),
    (b"INFO {}\r\ninfo\t{ }\n", [Info({}), Info({})]),
    (b'INFO {"a":"\xc3\xa9","max_payload":"x"}\r\n', [Info({"a": "é", "max_payload": "x"})]),
]
FROM_CLIENT = [
    (b'CONNECT {"verbose":false}\r\n', [Connect({"verbose": False})]),
    (b"connect\t{}\n", [Connect({})]),
    (b"PUB a 5\r\nhello\r\n", [Pub(b"a", b"", b"hello")]),
    (b"pub\ta  r 5\nhello\r\n", [Pub(b"a", b"r", b"hello")]),
    (b"HPUB a 12 13\r\n" + H + b"p\r\n", [Pub(b"a", b"", b"p", H)]),
    (b"HPUB a r 12 12\r\n" + H + b"\r\n", [Pub(b"a", b"r", b"", H)]),
    (b"SUB a.> 1\r\n", [Sub("a.>", 1)]),
    (b"sub  a.b\t\t5\r\n", [Sub("a.b", 5)]),
    (b"SUB a q 1\r\nSUB \xff \xfe 1\r\n", [Sub("a", 1, "q"), Sub("\udcff", 1, "\udcfe")]),
    (b"UNSUB 1\r\nunsub 1  5 \r\n", [Unsub(1), Unsub(1, 5)]),
    (b"PING\r\nPONG\r\n", [Ping(), Pong()]),
]
VALID = [("server", *row) for row in FROM_SERVER] + [("client", *row) for row in FROM_CLIENT]


def warm(peer: str) -> Parser:
    parser = Parser(peer=peer)
    parser.feed(WARM[peer])
    return parser


def three_ways(peer: str, wire: bytes) -> list[Result]:
    """Read the stream whole, byte by byte, and on a warm parser with adjusted offsets."""
    result = read([wire], warm(peer))
    if result.error is not None:
        reason, offset, excerpt = result.error
        result = Result(result.frames, (reason, offset - len(WARM[peer]), excerpt))
    return [read([wire], Parser(peer=peer)), read(byte_by_byte(wire), Parser(peer=peer)), result]


@pytest.mark.rule("WIRE-1", "WIRE-2", "WIRE-3", "WIRE-4", "WIRE-5", "WIRE-8", "WIRE-9", "WIRE-10")
@pytest.mark.rule("WIRE-11", "WIRE-12", "WIRE-15", "D-WIRE-16", "WIRE-18")
@pytest.mark.parametrize("tail", [b"", b"PING\r\n"], ids=["alone", "with a tail"])
@pytest.mark.parametrize(("peer", "wire", "frames"), VALID)
def test_the_grammar(peer, wire, frames, tail):
    stream = wire + tail
    expected = Result(frames + [Ping()] * bool(tail), None)
    assert three_ways(peer, stream) == [expected] * 3
    for cut in range(1, len(stream)):
        assert read([stream[:cut], stream[cut:]], Parser(peer=peer)) == expected


GARBAGE = [  # peer, wire, reason
    ("server", b"\r\n", "unknown operation"),
    ("server", b"\n", "unknown operation"),
    ("server", b" PING\r\n", "unknown operation"),
    ("server", b"\rPING\r\n", "unknown operation"),
    ("server", b"\rMSG 1 5\r\nhello\r\n", "unknown operation"),
    ("server", b"PING\rPONG\r\n", "unknown operation"),
    ("server", b"FOO bar\r\n", "unknown operation"),
    ("server", b"MSGS a 1 5\r\nhello\r\n", "unknown operation"),
    ("server", b"INFO{}\r\n", "unknown operation"),
    ("server", b"\x00\xff\r\n", "unknown operation"),
    ("server", b"MSG\r\n", "0 fields, not 3 or 4"),
    ("server", b"MSG a 1\r\n", "2 fields, not 3 or 4"),
    ("server", b"MSG  1 5\r\nhello\r\n", "2 fields, not 3 or 4"),
    ("server", b"MSG a 1 r 5 5\r\nhello\r\n", "5 fields, not 3 or 4"),
    ("server", b"HMSG a 1 5\r\nhello\r\n", "3 fields, not 4 or 5"),
    ("server", b"HMSG a 1 2 r 0 0\r\n\r\n", "6 fields, not 4 or 5"),
    ("server", b"HMSG a 1 6 5\r\nhello\r\n", "header size 6 is above the total size 5"),
    ("server", b"HMSG a 1 12 5\r\nhello\r\n", "header size 12 is above the total size 5"),
    ("server", b"MSG a x 5\r\nhello\r\n", "b'x' is not a number"),
    ("server", b"MSG a 1 x\r\n", "b'x' is not a number"),
    ("server", b"MSG a 1\r 5\r\nhello\r\n", r"b'1\r' is not a number"),
    ("server", b"INFO\r\n", "bad JSON"),
    ("server", b"INFO {bad\r\n", "bad JSON"),
    ("server", b'INFO {"a":"\xff"}\r\n', "bad JSON"),
    ("server", b"INFO " + b'{"a":' * 100_000 + b"\r\n", "bad JSON"),
    ("server", b'INFO {"port":' + b"9" * 5000 + b"}\r\n", None),  # by the interpreter's limit
    ("server", b"INFO []\r\n", "JSON is not an object"),
    ("server", b"INFO null\r\n", "JSON is not an object"),
    ("server", b"INFO 5\r\n", "JSON is not an object"),
    ("client", b"CONNECT {bad\r\n", "bad JSON"),
    ("client", b'CONNECT "x"\r\n', "JSON is not an object"),
    ("client", b"PUB a\r\n", "1 fields, not 2 or 3"),
    ("client", b"PUB a r 5 5\r\n", "4 fields, not 2 or 3"),
    ("client", b"HPUB a 5\r\n", "2 fields, not 3 or 4"),
    ("client", b"HPUB a 20 10\r\n", "header size 20 is above the total size 10"),
    ("client", b"SUB onlyone\r\n", "1 fields, not 2 or 3"),
    ("client", b"SUB a q x\r\n", "b'x' is not a number"),
    ("client", b"UNSUB\r\n", "UNSUB with 0 fields"),
    ("client", b"UNSUB 1 2 3\r\n", "UNSUB with 3 fields"),
    ("client", b"UNSUB x\r\n", "b'x' is not a number"),
    ("client", b"UNSUB 1 -1\r\n", "b'-1' is not a number"),
    # WIRE-19: operations of the other side
    *[("client", wire, "unknown operation") for wire, _ in FROM_SERVER if wire[:1] in b"MmHh+-I"],
    *[("server", wire, "unknown operation") for wire, _ in FROM_CLIENT if wire[:2] != b"PI"],
]


@pytest.mark.rule("D-WIRE-17", "WIRE-19", "WIRE-7", "WIRE-9", "WIRE-10", "D-WIRE-16")
@pytest.mark.parametrize(("peer", "wire", "reason"), GARBAGE, ids=lambda value: repr(value)[:40])
def test_garbage(peer, wire, reason):
    line = wire[: wire.index(b"\n")]
    results = three_ways(peer, b"PING\r\n" + wire)
    if reason is None:  # Python 3.10.6 and older read integers of any length
        reason = "bad JSON" if results[0].error else ""
    expected = Result([Ping()], (reason, 6, line[:64])) if reason else results[0]
    assert results == [expected] * 3


@pytest.mark.rule("WIRE-6", "D-WIRE-16", "D-WIRE-17")
@pytest.mark.parametrize(
    ("wire", "offset", "crlf"),
    [
        (b"MSG a 1 5\r\nhello!\r\n", 16, b"!\r"),
        (b"MSG a 1 5\r\nhell\r\nPING\r\n", 16, b"\nP"),
        (b"MSG a 1 5\r\nhello\n\nPING\r\n", 16, b"\n\n"),
        (b"MSG a 1 5\r\nhello\rPING\r\n", 16, b"\rP"),
        (b"MSG a 1 0\r\nPING\r\n", 11, b"PI"),
        (b"HMSG a 1 12 12\r\n" + H + b"xx", 28, b"xx"),
    ],
)
def test_a_payload_ends_with_crlf(wire, offset, crlf):
    size = offset - wire.index(b"\n") - 1
    error = (f"no CRLF after a payload of {size} bytes", offset, crlf)
    assert three_ways("server", wire) == [Result([], error)] * 3


@pytest.mark.rule("D-WIRE-17")
def test_invalid_input_is_located_and_final():
    parser = Parser()
    assert parser.feed(b"PING\r\nMSG a 1 2\r") == [Ping()]
    with pytest.raises(ProtocolError) as first:
        parser.feed(b"\nhi\r\nPONG\r\n+O" + b"x" * 100 + b"\r\nPING\r\n")
    assert first.value.frames == [Msg(b"a", 1, b"", b"hi"), Pong()]
    assert (first.value.reason, first.value.offset) == ("unknown operation", 27)
    assert first.value.excerpt == b"+O" + b"x" * 62
    for data in (b"", b"PING\r\n"):
        with pytest.raises(ProtocolError) as again:
            parser.feed(data)
        assert str(again.value) == str(first.value)
        assert again.value.frames == []  # they arrived with the first read


@pytest.mark.rule("WIRE-14", "D-WIRE-16", "D-WIRE-17")
@pytest.mark.parametrize(
    ("peer", "start", "limit"),
    [
        ("server", b"+OK ", MAX_LINE),
        ("server", b"MSG ", MAX_LINE),
        ("server", b"x", MAX_LINE),
        ("server", b"info {}", MAX_JSON_LINE),
        ("client", b"CONNECT {}", MAX_JSON_LINE),
        ("client", b"PING ", MAX_LINE),
    ],
)
def test_a_line_that_is_too_long_fails_before_its_end_arrives(peer, start, limit):
    line = start + b" " * (limit - len(start))
    error = Result([Ping()], ("control line is too long", 6, (line + b" ")[:64]))
    halves = [b"PING\r\n" + line[:100], line[100:]]
    for chunks in ([b"PING\r\n" + line], [b"PING\r\n", line], halves):
        parser = Parser(peer=peer)
        assert read(chunks, parser) == Result([Ping()], None)
        assert read([b" "], parser).error == error.error
    for chunks in ([b"PING\r\n" + line + b" "], [b"PING\r\n" + line + b" \n"], [*halves, b" \n"]):
        assert read(chunks, Parser(peer=peer)) == error


@pytest.mark.rule("D-WIRE-16")
@pytest.mark.parametrize(("peer", "wire", "frames"), VALID)
def test_the_size_of_a_message_is_its_size_on_the_wire(peer, wire, frames):
    if len(frames) == 1 and isinstance(frames[0], Msg):
        assert [result.frames[0].size for result in three_ways(peer, wire)] == [len(wire)] * 3
        for cut in range(1, len(wire)):
            (message,) = read([wire[:cut], wire[cut:]], Parser()).frames
            assert message.size == len(wire)


@pytest.mark.rule("WIRE-14")
@pytest.mark.parametrize("first", [0, 100])
def test_the_line_of_a_message_is_at_most_64_kib(first):
    for length in (MAX_LINE, MAX_LINE + 1):
        line = b"MSG %s 1 2\r" % (b"s" * (length - 9))
        assert len(line) == length
        wire = line + b"\nhi\r\n"
        result = read([wire[:first], wire[first:]], Parser())
        error = ("control line is too long", 0, line[:64]) if length > MAX_LINE else None
        assert (len(result.frames), result.error) == (int(error is None), error)


def msg(size: int) -> bytes:
    return b"MSG a 1 %d\r\n%s\r\n" % (size, b"." * size)


def hmsg(header: int, size: int) -> bytes:
    return b"HMSG a 1 %d %d\r\n%s\r\n" % (header, header + size, b"." * (header + size))


def info(limit: bytes) -> bytes:
    return b'INFO {"max_payload":%s}\r\n' % limit


LIMITS = [  # the parser's own, then from the server; the limit that is broken, None: none is
    (10, b"", msg(10), None),
    (10, b"", msg(11), 10),
    (0, b"", msg(0), None),
    (0, b"", msg(1), 0),
    (10, b"", hmsg(12, 10), None),
    (10, b"", hmsg(12, 11), 10),
    (10, b"", hmsg(MAX_HEADERS, 10), None),
    (10, b"", hmsg(MAX_HEADERS, 11), 10),
    (10, b"", hmsg(MAX_HEADERS + 1, 10), 10),
    (10, info(b"5"), msg(5), None),
    (10, info(b"5"), msg(6), 5),
    (10, info(b"5"), msg(10), 5),
    (10, info(b"5"), hmsg(12, 5), None),
    (10, info(b"5"), hmsg(12, 6), 5),
    (10, info(b"99"), msg(10), None),
    (10, info(b"99"), msg(11), 10),
    (10, info(b"5") + info(b"99"), msg(10), None),
    (10, info(b"5") + info(b"99"), msg(11), 10),
    (10, info(b"5") + b"INFO {}\r\n", msg(6), 5),
    (10, info(b"0"), msg(10), None),
    (10, info(b"-1"), msg(10), None),
    (10, info(b"true"), msg(10), None),
    (10, info(b'"5"'), msg(10), None),
]


@pytest.mark.rule("WIRE-13")
@pytest.mark.parametrize(("own", "first", "wire", "limit"), LIMITS, ids=lambda x: repr(x)[:40])
def test_max_payload(own, first, wire, limit):
    line = wire[: wire.index(b"\n")]
    size = line.split()[-1].decode()
    # A size that was legal before INFO lowered the limit must not be taken from memory.
    for seen in (b"", msg(0), msg(own)):
        start = seen + first
        for chunks in ([start + wire], [start, *byte_by_byte(wire[:100]), wire[100:]]):
            error = read(chunks, Parser(max_payload=own)).error
            reason = f"size {size} is above max_payload {limit}"
            assert error == (None if limit is None else (reason, len(start), line))


@pytest.mark.rule("WIRE-8", "WIRE-9")
@pytest.mark.parametrize("seed", range(20))
def test_repeated_lines_are_read_like_the_first_one(seed):
    dice = random.Random(seed)
    lines = [b"MSG a 1 %d", b"MSG b 1 %d", b"MSG a 2 %d", b"MSG a 1 r %d", b"HMSG a 1 2 %d"]
    wire = []
    for _ in range(60):
        size = dice.choice((2, 3))
        wire.append(dice.choice(lines) % size + b"\r\n" + b"x" * size + b"\r\n")
    wire[dice.randrange(60)] = b"MSG a 1 2\r\nxxx\r\n"  # the payload does not end where it should
    alone = read(wire, Parser())
    together = read([b"".join(wire)], Parser())
    assert (together.frames, together.error) == (alone.frames, alone.error)
    assert together.error is not None


BLOCK = b"NATS/1.0\r\nA: %s\r\n\r\n"
PLAIN = [b"MSG a 1 r.%d 2\r\nxx\r\n" % number for number in range(4)]
WITH_HEADERS = [
    b"HMSG a 1 r.%d 18 20\r\n%sxx\r\n" % (number, BLOCK % b"%d" % number) for number in range(4)
]


@pytest.mark.rule("WIRE-3", "WIRE-4", "WIRE-6", "WIRE-8", "WIRE-9", "WIRE-14")
@pytest.mark.parametrize(
    ("case", "frames"),
    [
        ("replies that differ", PLAIN),
        ("header blocks that differ", WITH_HEADERS),
        ("another subject", [*PLAIN, b"MSG b 1 r 2\r\nxx\r\n"]),
        ("another size", [*PLAIN, b"MSG a 1 r 3\r\nxxx\r\n", *PLAIN]),
        ("no reply, and a payload like the end of a line", [*PLAIN, b"MSG a 1 2\r\nx 2\r\n"]),
        ("no reply, and nothing after it", [*PLAIN, b"MSG a 1 2\r\nxx\r\n"]),
        ("no reply, and a line like it", [*PLAIN, b"MSG a 1 12\r\nxxxxxxx 2\r\nxx\r\n"]),
        ("an empty reply", [*PLAIN, b"MSG a 1  2\r\nxx\r\n", *PLAIN]),
        (
            "no reply after an empty one, and a size like a payload",
            [*PLAIN, b"MSG a 1  2\r\nxx\r\n", b"MSG a 1 12\r\nxxxxxxxxxxxx\r\n"],
        ),
        ("a tab in the line", [*PLAIN, b"MSG a 1\tr 2\r\nxx\r\n", *PLAIN]),
        ("a tab in the reply", [*PLAIN, b"MSG a 1 r\tx 2\r\nxx\r\n"]),
        ("a tab in the payload", [*PLAIN, b"MSG a 1 r 2\r\n\tx\r\n", *PLAIN]),
        ("too many fields", [*PLAIN, b"MSG a 1 r x 2\r\nxx\r\n"]),
        ("a line that is too long", [*PLAIN, b"MSG a 1 %s 2\r\nxx\r\n" % (b"r" * 65536)]),
        ("the longest line", [*PLAIN, b"MSG a 1 %s 2\r\nxx\r\n" % (b"r" * 65525), *PLAIN]),
        ("one byte more", [*PLAIN, b"MSG a 1 %s 2\r\nxx\r\n" % (b"r" * 65526)]),
        ("no CR after the payload", [*PLAIN, b"MSG a 1 r 2\r\nxx\n\n"]),
        ("no LF after the payload", [*PLAIN, b"MSG a 1 r 2\r\nxx\r\r"]),
        ("an incomplete payload", [*PLAIN, b"MSG a 1 r 2\r\nxx\r"]),
        ("an incomplete line", [*PLAIN, b"MSG a 1 r"]),
    ],
)
def test_lines_that_differ_in_the_reply_are_read_like_the_first_one(case, frames):
    alone = read([bytes((byte,)) for byte in b"".join(frames)], Parser())
    together = read([b"".join(frames)], Parser())
    assert (together.frames, together.error) == (alone.frames, alone.error)
    assert len(together.frames) >= len(PLAIN)
    assert [frame.size for frame in together.frames] == [frame.size for frame in alone.frames]
    headers = [frame.headers.get("A") for frame in together.frames if frame.headers]
    assert headers == (["0", "1", "2", "3"] if frames is WITH_HEADERS else [])


@pytest.mark.rule("WIRE-13")
def test_a_client_takes_answers_above_the_max_payload_of_info():
    parser = Parser(max_payload=10, follow_info=False)
    start = info(b"5") + msg(10)
    assert read([start], parser).error is None
    reason = "size 11 is above max_payload 10"
    assert read([msg(11)], parser).error == (reason, len(start), b"MSG a 1 11\r")


@pytest.mark.rule("WIRE-13")
def test_an_absurd_size_is_rejected_before_the_payload_arrives():
    assert read([b"MSG a 1 67108864\r\n"], Parser()).error is None
    error = read([b"MSG a 1 67108865\r\n"], Parser()).error
    assert error == ("size 67108865 is above max_payload 67108864", 0, b"MSG a 1 67108865\r")


@pytest.mark.rule("WIRE-14", "D-WIRE-16")
def test_reads_above_64_kib_hold_long_lines_and_tabs_and_much_else():
    subject = b"s" * 65_000
    one = b"MSG %s 1 2\r\nhi\r\nMSG\ta 1 2\r\n\to\r\nMSG a 1 2\r\nhi\r\n" % subject
    three = [Msg(subject, 1, b"", b"hi"), Msg(b"a", 1, b"", b"\to"), Msg(b"a", 1, b"", b"hi")]
    wire = one + b'INFO {"x":"%s"}\r\n' % (b"y" * 100_000) + one
    expected = Result([*three, Info({"x": "y" * 100_000}), *three], None)
    assert read([wire], Parser()) == expected
    for size in (7, 4095, 4096, 65_536, 65_537, 100_000):
        chunks = [wire[i : i + size] for i in range(0, len(wire), size)]
        assert read(chunks, Parser()) == expected


@pytest.mark.rule("D-WIRE-16")
def test_the_caches_of_the_parser_are_bounded():
    parser = Parser()
    for i in range(40_000):
        size = i % 5000 if i < 10_000 else 1
        assert len(parser.feed(b"MSG a %d %d\r\n%s\r\n" % (i, size, b"." * size))) == 1
        assert len(parser._numbers) <= 32_768
        assert len(parser._sizes) <= 4096
    assert len(parser._numbers) == 40_000 - 32_768


def test_ten_thousand_subscriptions_fit_in_the_cache():
    parser = Parser()
    wire = b"".join([b"MSG a %d 0\r\n\r\n" % sid for sid in range(10_000)])
    parser.feed(wire)
    known = dict(parser._numbers)
    parser.feed(wire)
    assert len(known) == 10_000
    assert parser._numbers == known


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_can_be_fed(kind):
    data = bytearray(b"MSG a 1 2\r\nhi\r\nMSG a")
    parser = Parser()
    frames = parser.feed(kind(data))
    data[:] = b"\0" * len(data)  # a read buffer is used again
    frames += parser.feed(kind(b" 1 2\r\nho\r\n"))
    assert frames == [Msg(b"a", 1, b"", b"hi"), Msg(b"a", 1, b"", b"ho")]


@pytest.mark.parametrize("peer", ["Server", "", None, ("server",)])
def test_the_peer_is_a_server_or_a_client(peer):
    with pytest.raises(InvalidValue) as error:
        Parser(peer=peer)
    assert str(error.value) == f"peer {peer!r} is neither 'server' nor 'client'"


SEPARATOR = st.sampled_from([b" "] * 12 + [b"", b"  ", b"\t", b" \t ", b"\r", b" \r "])
FIELD = st.sampled_from(
    [b"a", b"a.b", b"\r", b"\ra", b"\xff", b"", b"0", b"1", b"5", b"12", b"18", b"007", b"05", b"x"]
)
NAME = st.sampled_from([b"MSG"] * 4 + [b"HMSG"] * 4 + [b"msg", b"hMSG", b"\rMSG", b"MSG\r", b"+OK"])
END = st.sampled_from([b"\r\n"] * 6 + [b"\n", b" \r\n", b"\r\r\n", b"\t\n", b" \r \r\n"])
BODY = st.sampled_from([b"\r\n", b"hello\r\n", H + b"\r\n", H + b"hello!\r\n", b"1\r\n", b""])


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """Return a control line that is right or nearly right, and a payload that may fit."""
    parts = [draw(NAME)]
    for field in draw(st.lists(FIELD, min_size=2, max_size=6)):
        parts += [draw(SEPARATOR), field]
    return b"".join([*parts, draw(END), draw(BODY)])


@pytest.mark.rule("D-WIRE-16")
@settings(max_examples=300)
@given(st.lists(lines(), min_size=1, max_size=4).map(b"".join))
@example(b"MSG \r 1 5\r\nhello\r\n")
@example(b"HMSG a 1 12  12\r\n" + H + b"\r\n")
@example(b"HMSG a 1 18 12\r\n" + H + b"hello!\r\n")
@example(b"\rMSG 1 5\r\nhello\r\n")
def test_the_hot_loop_agrees_with_the_grammar(wire):
    """Input fed byte by byte never uses the hot loop; a warm parser uses it whenever possible."""
    whole, slow, hot = three_ways("server", wire)
    assert whole == slow
    assert hot == slow


def test_pieces_are_gathered_and_joined_once():
    kept = _Pieces()
    assert kept.join(b"last") == b"last"
    parts = [b"a" * 10, b"b" * 4096, b"c", b"", b"d" * 4095, b"e" * 5000, b"f"]
    for part in parts:
        kept.add(part)
    assert kept.size == sum(map(len, parts))
    assert kept.join(b"last") == b"".join(parts) + b"last"
    assert (kept.size, kept.join(b"")) == (0, b"")


@pytest.mark.parametrize(
    ("data", "inside"),
    [
        (b"", ""),
        (b"PING\r\n", ""),
        (b"PI", "line"),
        (b"PING\r\nMSG a 1", "line"),
        (b"MSG a 1 5\r\n", "payload"),
        (b"MSG a 1 5\r\nhel", "payload"),
        (b"MSG a 1 5\r\nhello\r\n", ""),
    ],
)
def test_where_the_parser_stands(data, inside):
    parser = Parser()
    parser.feed(data)
    assert parser.inside == inside
