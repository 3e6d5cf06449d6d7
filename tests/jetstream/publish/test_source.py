"""Sources: the data of objects from bytes, files and iterables."""

from __future__ import annotations

import io

import pytest

from jetstream.publish.source import source_of
from natsproto.errors import InvalidValue
from natsproto.port import run_sync


def generated(pieces):
    yield from pieces


async def generated_async(pieces):
    for piece in pieces:
        yield piece


class File:
    """A file that is read asynchronously, as with trio or anyio."""

    def __init__(self, data):
        self._inner = io.BytesIO(data)

    async def read(self, size):
        return self._inner.read(size)


def all_of(data, size=3):
    source = source_of(data, size)
    pieces = []
    while (piece := run_sync(source.next())) is not None:
        pieces.append(bytes(piece))
    return pieces


DATA = [
    # data, its pieces
    (b"12345", [b"12345"]),
    (b"", [b""]),
    (bytearray(b"12345"), [b"12345"]),
    (memoryview(b"12345"), [b"12345"]),
    (io.BytesIO(b"12345"), [b"123", b"45"]),
    (File(b"12345"), [b"123", b"45"]),
    ([b"1", b"", b"2345"], [b"1", b"", b"2345"]),
    (generated([b"1", b"", b"2"]), [b"1", b"", b"2"]),
    (generated_async([b"1", b"", b"2"]), [b"1", b"", b"2"]),
    ((), []),
]


@pytest.mark.rule("OBJ-27")
@pytest.mark.parametrize(("data", "pieces"), DATA)
def test_pieces(data, pieces):
    assert all_of(data) == pieces


@pytest.mark.rule("OBJ-27")
@pytest.mark.parametrize("data", ["text", 7, None, object()])
def test_invalid_data(data):
    with pytest.raises(InvalidValue, match="data is not bytes, a readable file, or an iterable: "):
        source_of(data, 3)


class Unready:
    def read(self, size):
        return None


@pytest.mark.rule("OBJ-27")
def test_a_nonblocking_file_without_data_is_an_error():
    with pytest.raises(InvalidValue, match="file is in non-blocking mode: "):
        all_of(Unready())


def test_an_error_of_the_source_is_raised():
    def failing():
        yield b"1"
        raise ValueError("mine")

    source = source_of(failing(), 3)
    assert run_sync(source.next()) == b"1"
    with pytest.raises(ValueError, match="mine"):
        run_sync(source.next())
