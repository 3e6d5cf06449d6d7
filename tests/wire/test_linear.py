"""Linear time, counted instead of measured: twice the input is at most 2.2 times the work.

There are two counts, because either alone would miss half of the work:

- the bytecode instructions that run in natsproto/wire/parser.py: finds loops that run too often;
- the bytes that single C calls process: searches and slices of a read, and joining the pieces of an
  unfinished frame; this finds data that is copied repeatedly.

A control line is split, stripped and read a fixed number of times, by code that runs once a line:
the instructions show that it does.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from natsproto import Parser
from natsproto.wire import parser
from natsproto.wire.parser import _Pieces

if TYPE_CHECKING:
    from types import FrameType


class Touched(bytes):
    """A read that counts how many of its bytes are searched or copied."""

    count = 0

    def find(self, sub: bytes, start: int = 0) -> int:
        found = super().find(sub, start)
        Touched.count += (len(self) if found < 0 else found) - start
        return found

    def __contains__(self, sub: bytes) -> bool:
        Touched.count += len(self)
        return super().__contains__(sub)

    def __getitem__(self, key: slice | int) -> bytes | int:
        found = super().__getitem__(key)
        Touched.count += len(found) if isinstance(key, slice) else 1
        return found


class TouchedPieces(_Pieces):
    """Pieces that count how many bytes are put in and joined."""

    __slots__ = ()

    def add(self, data: bytes) -> None:
        Touched.count += len(data)
        super().add(data)

    def join(self, last: bytes) -> bytes:
        joined = super().join(last)
        Touched.count += len(joined)
        return joined


def instructions(runs) -> list[int]:
    """Return how many instructions of the parser's module each of these calls runs.

    Ignore the first result: Python 3.13 does not count a function's first call.
    """
    count = 0

    def local(frame: FrameType, event: str, arg: object):
        nonlocal count
        if event == "opcode":
            count += 1
        return local

    def enter(frame: FrameType, event: str, arg: object):
        if frame.f_code.co_filename != parser.__file__:
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return local

    counts: list[int] = []
    before = sys.gettrace()  # coverage has one of its own
    # Python 3.12 counts only if some frame asked for it before tracing starts.
    sys._getframe().f_trace_opcodes = True
    sys.settrace(enter)
    try:
        for run in runs:
            count = 0
            run()
            counts.append(count)
    finally:
        sys.settrace(before)
    return counts


def touched(run) -> int:
    Touched.count = 0
    run()
    return Touched.count


SHAPES = {  # k: how much of it
    "small messages": lambda k: b"MSG a 1 5\r\nhello\r\n" * (100 * k),
    "messages with headers": lambda k: b"HMSG a 1 r 12 13\r\nNATS/1.0\r\n\r\nx\r\n" * (50 * k),
    "lines for the grammar": lambda k: b"msg\ta  1\t5\nhello\r\nPING\r\n-ERR 'x'\r\n" * (50 * k),
    "a large payload": lambda k: b"MSG a 1 %d\r\n%s\r\n" % (4500 * k, b"\n" * (4500 * k)),
    "a payload of tabs": lambda k: b"MSG a 1 %d\r\n%s\r\n" % (4500 * k, b"\t" * (4500 * k)),
    "a long INFO": lambda k: b'INFO {"x":"%s"} \r\n' % (b"y" * (4500 * k)),
    "a line that does not end": lambda k: b"MSG " + b"x" * (4500 * k),
    "a line of fields": lambda k: b"PING" + b" x" * (2000 * k) + b"\r\n",
}
CHUNKS = {"one feed": 1 << 30, "byte by byte": 1, "7 bytes": 7, "4,097 bytes": 4097}


def reader(data: bytes, size: int, pieces: type[_Pieces] = _Pieces, kind: type[bytes] = bytes):
    """Return a call that reads the data in chunks of this size, on a new parser."""
    chunks = [kind(data[i : i + size]) for i in range(0, len(data), size)]
    reading = Parser()
    reading._kept = pieces()

    def run() -> None:
        for chunk in chunks:
            # Below feed(), which makes plain bytes of whatever it is given.
            reading._feed(chunk, [])

    return run


@pytest.mark.rule("D-WIRE-16")
@pytest.mark.parametrize("size", CHUNKS.values(), ids=CHUNKS)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_twice_the_input_is_twice_the_instructions(shape, size):
    _, once, twice = instructions([reader(shape(k), size) for k in (1, 1, 2)])
    assert 0 < twice <= 2.2 * once


@pytest.mark.rule("D-WIRE-16")
@pytest.mark.parametrize("size", CHUNKS.values(), ids=CHUNKS)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_twice_the_input_touches_twice_the_bytes(shape, size):
    once, twice = (touched(reader(shape(k), size, TouchedPieces, Touched)) for k in (4, 8))
    assert 0 < twice <= 2.2 * once
    assert twice <= 6 * len(shape(8))  # tab search, LF search, a slice, in and out of the pieces


def test_the_counts_detect_a_parser_that_restarts_with_every_read():
    def naive(k: int):
        def run() -> None:
            buffer = b""
            for byte in b"x" * (500 * k):
                buffer = Touched(buffer + bytes([byte]))
                buffer.find(b"\n")

        return run

    once, twice = (touched(naive(k)) for k in (1, 2))
    assert twice > 3.9 * once


@pytest.mark.rule("D-WIRE-16")
def test_a_long_payload_costs_no_more_instructions_a_read_than_a_short_one():
    """One read more is the same work, however much has come before."""
    data = SHAPES["a large payload"](4)
    reading = Parser()
    reading.feed(data[:100])
    reads = [lambda byte=data[at : at + 1]: reading.feed(byte) for at in range(100, 4000)]
    _, *counts = instructions(reads)
    assert len(set(counts)) == 1
    assert counts[0] > 0
