"""Sources: the data of an object in pieces, from bytes, a file, or an iterable (OBJ-27)."""

from __future__ import annotations

from natsproto.errors import InvalidValue
from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Iterable, Iterator
    from typing import Any, Protocol, TypeAlias

    from natsproto.wire.encode import BytesLike

    class Readable(Protocol):
        """A file, or an object with a `read` method like one."""

        def read(self, __size: int) -> bytes | Awaitable[bytes]: ...

    ObjectData: TypeAlias = BytesLike | Readable | Iterable[BytesLike] | AsyncIterable[BytesLike]


class Source:
    """All data in one piece; base class of the other sources."""

    __slots__ = ("_data",)

    def __init__(self, data: BytesLike) -> None:
        self._data: BytesLike | None = data

    async def next(self) -> BytesLike | None:
        """Return the next piece, of any size; None at the end."""
        data = self._data
        self._data = None
        return data


class _Read(Source):
    __slots__ = ("_file", "_size")

    def __init__(self, file: Readable, size: int) -> None:
        self._file = file
        self._size = size

    async def next(self) -> BytesLike | None:
        piece: Any = self._file.read(self._size)
        if hasattr(piece, "__await__"):
            piece = await piece
        if piece is None:
            # None means that no data is available yet, not that the file has ended.
            raise InvalidValue("file is in non-blocking mode: %s" % shorten(self._file), "OBJ-27")
        return piece or None


class _Iterated(Source):
    __slots__ = ("_pieces",)

    def __init__(self, pieces: Iterator[BytesLike]) -> None:
        self._pieces = pieces

    async def next(self) -> BytesLike | None:
        try:
            return next(self._pieces)
        except StopIteration:
            return None


class _AsyncIterated(Source):
    __slots__ = ("_pieces",)

    def __init__(self, pieces: AsyncIterator[BytesLike]) -> None:
        self._pieces = pieces

    async def next(self) -> BytesLike | None:
        try:
            return await self._pieces.__anext__()
        except StopAsyncIteration:
            return None


def source_of(data: ObjectData, size: int) -> Source:
    """Return a source for the data, which reads files in pieces of `size`; raise InvalidValue."""
    given: Any = data
    if isinstance(data, (bytes, bytearray, memoryview)):
        return Source(given)
    # Before the iterables, because files are iterable too, line by line.
    if hasattr(given, "read"):
        return _Read(given, size)
    if hasattr(given, "__aiter__"):
        return _AsyncIterated(given.__aiter__())
    try:
        if not isinstance(given, str):
            return _Iterated(iter(given))
    except TypeError:
        pass
    text = "data is not bytes, a readable file, or an iterable: %s"
    raise InvalidValue(text % shorten(given), "OBJ-27")
