"""Files and objects: store a file, and write an object to one, piece by piece.

The client's port reads and writes, because the API does no I/O; with an event loop it uses threads,
so that the loop is not blocked. A file appears under its name when the object is complete and its
digest is verified; before that, and after a failure, no such file exists (D-OBJ-45).
"""

from __future__ import annotations

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from natsproto.port import NewFile, OpenFile, PathLike, Port

    from .info import ObjectInfo
    from .read import ObjectReader
    from .store import ObjectStore

    Progress: TypeAlias = Callable[[int], object]


class CountedFile:
    """A file whose progress is reported: an object with a `read` method, as a put takes it."""

    def __init__(self, file: OpenFile, progress: Progress | None) -> None:
        self._file = file
        self._progress = progress
        self._done = 0

    async def read(self, size: int) -> bytes:
        """Return at most `size` bytes; b"" at the end."""
        data = await self._file.read(size)
        self._done += len(data)
        if data and self._progress is not None:
            self._progress(self._done)
        return data


async def put_file(
    store: ObjectStore,
    port: Port,
    path: PathLike,
    meta: Any,
    progress: Progress | None,
    options: dict[str, Any],
) -> ObjectInfo:
    """Store a file under this name, or under its own."""
    file = await port.open_file(path)
    try:
        name = file.name if meta is None else meta
        return await store.put(name, CountedFile(file, progress), **options)
    finally:
        file.close()


async def get_file(
    store: ObjectStore, port: Port, name: str, path: PathLike, progress: Progress | None, token: str
) -> ObjectInfo:
    """Write an object to a file, which appears when it is complete."""
    with store.lock:
        reader = await store.get(name)
    try:
        file = await port.create_file(path, token)  # only after the object was found
        try:
            await _copy(store, reader, file, progress)
            await file.commit()
        except BaseException:
            file.discard()
            raise
    finally:
        with store.lock:
            await reader.close()
    return reader.info


async def _copy(
    store: ObjectStore, reader: ObjectReader, file: NewFile, progress: Progress | None
) -> None:
    done = 0
    while True:
        try:
            with store.lock:
                chunk = await reader.__anext__()
        except StopAsyncIteration:
            return
        await file.write(chunk)
        done += len(chunk)
        if progress is not None:
            progress(done)
