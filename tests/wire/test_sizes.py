"""Numbers that a hostile or broken peer may send: only plain digits are numbers."""

from __future__ import annotations

import pytest

from natsproto import Parser
from natsproto.wire.text import shorten
from tests.wire.support import byte_by_byte, read

HOSTILE = [  # what Python's int(), C's strtol() or Go's ParseInt() would take, or trip over
    b"-1", b"+1", b"-0", b"+0", b"--1", b"1-", b"1+", b"1_0", b"_1", b"1_", b"1__0", b"0x1", b"0X1",
    b"0b1", b"0o1", b"1e1", b"1.0", b"1.", b".1", b"1,0", b"1L", b"1h", b"\xd9\xa1", b"\xc2\xb2",
    b"\xef\xbc\x91", b"\xff", b"\x00", b"1\x00", b"\x001", b"\x0b1", b"1\x0b", b"1\x0c", b"1\xa0",
    b"\r1", b"1\r1", b"x", b"NaN", b"inf", b"None", b"true", b"'1'", b'"1"', b"(1)", b"[1]",
    b"%d", b"1;", b"-9223372036854775808", b"9223372036854775808", b"18446744073709551617",
    b"99999999999999999999", b"1" * 19, b"0" * 19, b"1" * 5000, b"0" * 5000 + b"1",
]  # fmt: skip
HUGE = [  # implausibly large numbers, which the limit rejects before memory is allocated
    b"67108866", b"2147483647", b"2147483648", b"4294967295", b"4294967297", b"99999999999",
    b"9" * 18,
]  # fmt: skip

FIELDS = [  # the position of a number
    ("server", b"MSG a 1 %s\r\nx\r\n", "size"),
    ("server", b"MSG a 1 r %s\r\nx\r\n", "size"),
    ("server", b"HMSG a 1 1 %s\r\nx\r\n", "size"),
    ("server", b"HMSG a 1 %s 1\r\nx\r\n", "header size"),
    ("server", b"HMSG a 1 r %s 1\r\nx\r\n", "header size"),
    ("server", b"MSG a %s 1\r\nx\r\n", "sid"),
    ("server", b"MSG a %s r 1\r\nx\r\n", "sid"),
    ("server", b"HMSG a %s 1 1\r\nx\r\n", "sid"),
    ("client", b"PUB a %s\r\nx\r\n", "size"),
    ("client", b"HPUB a 1 %s\r\nx\r\n", "size"),
    ("client", b"HPUB a %s 1\r\nx\r\n", "header size"),
    ("client", b"SUB a %s\r\n", "sid"),
    ("client", b"SUB a q %s\r\n", "sid"),
    ("client", b"UNSUB %s\r\n", "sid"),
    ("client", b"UNSUB 1 %s\r\n", "max"),
]
WARM = {  # so that the hot loop is used
    "server": b"MSG a 1 1\r\nx\r\nHMSG a 1 1 1\r\nx\r\n",
    "client": b"SUB a 1\r\nPUB a 1\r\nx\r\n",
}


def outcomes(peer: str, wire: bytes):
    """Yield how the stream ends on a new parser, byte by byte, and on a warm parser."""
    yield 0, read([wire], Parser(peer=peer))
    yield 0, read(byte_by_byte(wire), Parser(peer=peer))
    yield len(WARM[peer]), read([WARM[peer], wire], Parser(peer=peer))


@pytest.mark.rule("WIRE-7")
@pytest.mark.parametrize(("peer", "form", "what"), FIELDS)
def test_only_digits_are_a_number(peer, form, what):
    for number in HOSTILE:
        wire = form % number
        for start, result in outcomes(peer, wire):
            assert result.error is not None, number
            reason, offset, _ = result.error
            assert offset == start
            assert reason == f"{shorten(number)} is not a number", number


@pytest.mark.rule("WIRE-7", "WIRE-13")
@pytest.mark.parametrize(("peer", "form", "what"), [row for row in FIELDS if "size" in row[2]])
def test_a_size_that_is_too_large_is_refused_at_once(peer, form, what):
    for number in HUGE:
        wire = form % number
        for start, result in outcomes(peer, wire[: wire.index(b"\n") + 1]):
            assert result.error is not None, number
            reason, offset, _ = result.error
            assert offset == start
            assert reason.startswith(f"{what} {int(number)} is above ")


@pytest.mark.rule("WIRE-7")
@pytest.mark.parametrize(("peer", "form", "what"), [row for row in FIELDS if row[2] != "max"])
def test_a_number_that_is_missing_is_garbage(peer, form, what):
    for start, result in outcomes(peer, form % b""):
        assert result.error is not None
        assert result.error[1] == start


@pytest.mark.rule("WIRE-7")
@pytest.mark.parametrize("digits", [b"0", b"1", b"0" * 17 + b"1", b"9" * 18])
def test_18_digits_are_a_number(digits):
    wire = b"MSG a %s 1\r\nx\r\n" % digits
    for _, result in outcomes("server", wire):
        assert result.error is None
        assert result.frames[-1].sid == int(digits)
