"""Files for the API, which does no I/O. They are read in pieces, and appear when complete.

A new file is written under another name in the same directory, and renamed at the end. So readers
never see a partial file under the final name, and a failure leaves any previous file unchanged.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import IO, Any

    from natsproto.port import PathLike

    Run = Callable[[Callable[[], Any]], Awaitable[Any]]


async def open_file(run: Run, path: PathLike) -> FileReader:
    """Open a file for reading; `run` calls blocking functions. Raises OSError."""

    def work() -> IO[bytes]:
        return open(path, "rb", buffering=0)

    return FileReader(run, os.fspath(path), await _open(run, work, lambda: None))


async def create_file(run: Run, path: PathLike, token: str) -> FileWriter:
    """Create a file that appears when it is complete; `token` is part of its name until then."""
    target = os.fspath(path)
    part = "%s.%s.part" % (target, token)

    def work() -> IO[bytes]:
        return open(part, "xb", buffering=0)

    def remove() -> None:
        with suppress(FileNotFoundError):
            os.unlink(part)

    return FileWriter(run, target, part, await _open(run, work, remove))


async def _open(run: Run, work: Callable[[], IO[bytes]], remove: Callable[[], None]) -> IO[bytes]:
    """Call `work`, which opens a file; if the caller is canceled, close it, and `remove` it.

    The thread opens the file even then, before or after the caller is gone. Each of them leaves a
    note for the other before it looks for the other's, so at least one of them closes the file.
    """
    opened: list[IO[bytes]] = []
    abandoned: list[bool] = []

    def work_in_thread() -> IO[bytes]:
        file = work()
        opened.append(file)
        if abandoned:
            file.close()
            remove()
        return file

    try:
        file: IO[bytes] = await run(work_in_thread)
    except OSError:
        raise
    except BaseException:
        abandoned.append(True)
        for each in opened:
            each.close()
            remove()
        raise
    return file


class FileReader:
    """A file that is read in pieces."""

    def __init__(self, run: Run, path: str, file: IO[bytes]) -> None:
        self._run = run
        self._file = file
        #: The last part of the path.
        self.name: str = os.path.basename(path)

    async def read(self, size: int) -> bytes:
        """Return at most `size` bytes; b"" at the end."""
        data: bytes = await self._run(lambda: self._file.read(size))
        return data

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class FileWriter:
    """A file that appears under its name with `commit`."""

    def __init__(self, run: Run, path: str, part: str, file: IO[bytes]) -> None:
        self._run = run
        self._path = path
        self._part = part
        self._file = file

    async def write(self, data: bytes) -> None:
        """Append data."""

        def work() -> None:
            rest = memoryview(data)
            while rest:
                rest = rest[self._file.write(rest) :]

        await self._run(work)

    async def commit(self) -> None:
        """Close the file, and give it its name; a file of this name is replaced."""

        def work() -> None:
            os.fsync(self._file.fileno())
            self._file.close()
            os.replace(self._part, self._path)

        await self._run(work)

    def discard(self) -> None:
        """Close and remove the file; ignore a file that already has its final name."""
        self._file.close()
        with suppress(FileNotFoundError):
            os.unlink(self._part)
