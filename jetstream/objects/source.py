"""Sources: the data of an object, piece by piece, whatever it is given as (OBJ-27)."""

from __future__ import annotations

from natsproto.errors import InvalidValue
from natsproto.wire.text import shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Iterable, Iterator
    from typing import Any, Protocol, TypeAlias

    from natsproto.wire.encode import BytesLike

    class Readable(Protocol):
        """A file, or what is read like one."""

        def read(self, __size: int) -> bytes | Awaitable[bytes]: ...

    ObjectData: TypeAlias = BytesLike | Readable | Iterable[BytesLike] | AsyncIterable[BytesLike]


class Source:
    """All of it at once."""

    __slots__ = ("_data",)

    def __init__(self, data: BytesLike) -> None:
        self._data: BytesLike | None = data

    async def next(self) -> BytesLike | None:
        """The next piece, of any size; None if there are no more."""
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
            # It means that there is nothing yet, not that there is no more.
            raise InvalidValue(
                "%s does not block: it cannot be read" % shorten(self._file), "OBJ-27"
            )
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
    """The pieces of the data; those that are read have this size. InvalidValue."""
    given: Any = data
    if isinstance(data, (bytes, bytearray, memoryview)):
        return Source(given)
    # First of all, for files are iterable, too: line by line.
    if hasattr(given, "read"):
        return _Read(given, size)
    if hasattr(given, "__aiter__"):
        return _AsyncIterated(given.__aiter__())
    try:
        if not isinstance(given, str):
            return _Iterated(iter(given))
    except TypeError:
        pass
    text = "data %s is neither bytes nor something to read from or to iterate"
    raise InvalidValue(text % shorten(given), "OBJ-27")
