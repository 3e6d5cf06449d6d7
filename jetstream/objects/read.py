"""ObjectReader: the bytes of an object, as they arrive.

The chunks of an object are the messages of one subject: the initial values of a watch of that
subject with all of its history. The KeyWatcher knows when they are complete. The reader buffers a
limited number of bytes.
"""

from __future__ import annotations

from jetstream.errors import ObjectChanged, ObjectCorrupt, ObjectError
from jetstream.kv.options import WatchOptions
from jetstream.kv.snapshot import chunks_wanted
from jetstream.kv.watch import KeyWatcher, open_watch
from natsproto.errors import InvalidState
from natsproto.session import check_count
from natsproto.wire.text import cut_middle, shorten

from .info import same_digest

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing_extensions import Self

    from jetstream.api.client import ApiClient

    from .info import ObjectInfo
    from .meta import MetaStore

_AHEAD = 4 * 1024 * 1024
_AROUND = 128 * 1024  # headers and subject of a message


async def open_reader(
    metas: MetaStore, info: ObjectInfo, calls: ApiClient | None = None
) -> ObjectReader:
    """Create the consumer of an object's chunks, and return the reader.

    If given, `calls` creates it, within the timeout of another call.
    """
    if not info.size:
        return ObjectReader(metas, info, None)
    options = WatchOptions(info.nuid, include_history=True)
    server = metas.api.session.connection.info
    largest = 0 if server is None else server.max_payload
    ahead = max(_AHEAD, largest + _AROUND)  # OBJ-28
    watcher = await open_watch(  # D-OBJ-41
        KeyWatcher,
        metas.target(metas.chunks),
        options,
        max_bytes=ahead,
        snapshot=chunks_wanted(info.nuid, info.chunks),  # D-OBJ-39
        calls=calls,
    )
    return ObjectReader(metas, info, watcher)


class ObjectReader:
    """Read an object: iterate over its chunks, or call `read`. Returned by ObjectStore.get.

    Before it returns the last chunk, the reader compares size and digest with the info, and raises
    ObjectCorrupt if they differ. Use `async with` or `close`, unless you read to the end.
    """

    def __init__(self, metas: MetaStore, info: ObjectInfo, watcher: KeyWatcher | None) -> None:
        from hashlib import sha256

        #: The info of the object; if a link was followed, of the object that it points to.
        self.info = info
        self._metas = metas
        self._watcher = watcher
        self._hash = sha256()
        self._chunks = 0
        self._size = 0
        self._rest = b""  # the rest of a chunk that was read in part
        self._complete = False
        self._error: ObjectError | InvalidState | None = None

    async def read(self, size: int = -1) -> bytes:
        """Return `size` bytes, fewer only at the end; -1: all remaining bytes.

        TimeoutExpired: no chunk arrived within the timeout of this JetStream. After that, or after
        a cancellation, the next read begins with the bytes that have arrived.
        """
        check_count("size", size, -1)
        parts: list[bytes] = []
        missing = size
        while missing:
            try:
                chunk = await self._next()
            except BaseException:
                self._rest = b"".join(parts)  # D-OBJ-40
                raise
            if chunk is None:
                break
            if size >= 0:
                self._rest = chunk[missing:]
                chunk = chunk[:missing]
                missing -= len(chunk)
            parts.append(chunk)
        return b"".join(parts)

    async def close(self) -> None:
        """Stop reading, and delete the consumer."""
        if not self._complete and self._error is None:
            self._error = InvalidState(
                "the reader of object %s was closed" % shorten(self.info.name)
            )
        await self._stop()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        chunk = await self._next()
        if chunk is None:
            raise StopAsyncIteration
        return chunk

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        shown = (cut_middle(self.info.name), self._size, self.info.size)
        return "<ObjectReader of %s: %d of %d bytes>" % shown

    # How it works

    async def _next(self) -> bytes | None:
        """Return the next chunk, or the rest of the last one; None at the end."""
        if self._error is not None:
            raise self._error
        if self._rest:
            chunk, self._rest = self._rest, b""
            return chunk
        if self._complete:
            return None
        entry = None if self._watcher is None else await self._watcher.next_initial()
        if entry is not None:
            self._chunks += 1
            self._size += len(entry.value)
            self._hash.update(entry.value)
        if entry is None or self._size >= self.info.size:
            await self._compare()
        return None if entry is None else entry.value

    async def _compare(self) -> None:
        """Compare the bytes that were read with the info; raise ObjectError (OBJ-29)."""
        info = self.info
        await self._stop()
        received = "%d bytes in %d chunks" % (self._size, self._chunks)
        if (self._size, self._chunks) != (info.size, info.chunks or self._chunks):
            why = "there are %s, not %d in %d" % (received, info.size, info.chunks)
        elif not same_digest(info.digest, self._hash.digest()):
            why = "the digest of its %s is not %s" % (received, cut_middle(info.digest))
        else:
            self._complete = True
            return
        found = await self._metas.find(info.name, leader=True)
        changed = found is None or found.info.deleted or found.info.nuid != info.nuid
        self._error = (ObjectChanged if changed else ObjectCorrupt)(
            self._metas.bucket, info.name, why
        )
        raise self._error

    async def _stop(self) -> None:
        watcher = self._watcher
        self._watcher = None
        if watcher is not None:
            await watcher.stop()
