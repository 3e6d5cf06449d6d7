"""The object store: files that are stored, and objects that are written to files."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from jetstream.errors import ObjectError, ObjectNotFound
from jetstream.testing.checks.objects import new_store, sample
from jetstream.testing.suite import check
from natsproto.testing.context import Context, raises

if TYPE_CHECKING:
    from collections.abc import Generator

_SIZE = 300_000


@contextmanager
def _fails(kind: type[Exception]) -> Generator[None]:
    """Require an error that is not one of ours."""
    try:
        yield
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was not raised")


def _names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@check()
async def check_object_files(ctx: Context) -> None:
    """A file is stored and read back unchanged, with progress; an existing file is replaced."""
    _, store = await new_store(ctx)
    data = sample(_SIZE)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "in.bin"
        path.write_bytes(data)
        done: list[int] = []
        info = await store.put_file(path, progress=done.append, metadata={"a": "b"})
        assert (info.name, info.size, info.metadata) == ("in.bin", _SIZE, {"a": "b"})
        assert (done[-1], done) == (_SIZE, sorted(done))
        assert (await store.put_file(str(path), "other", chunk_size=1000)).chunks == _SIZE // 1000
        target = folder / "out.bin"
        target.write_bytes(b"old")
        done = []
        found = await store.get_file("in.bin", target, progress=done.append)
        assert (found.nuid, done[-1]) == (info.nuid, _SIZE)
        assert (target.read_bytes(), _names(folder)) == (data, ["in.bin", "out.bin"])
        await store.put("empty", b"")
        await store.get_file("empty", str(folder / "empty"))
        assert (folder / "empty").read_bytes() == b""


@check()
async def check_object_files_that_fail(ctx: Context) -> None:
    """A failed call leaves neither an object nor a file, and keeps any previous one."""
    js, store = await new_store(ctx)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with _fails(FileNotFoundError):
            await store.put_file(folder / "none")
        assert await store.list() == []
        target = folder / "out.bin"
        with raises(ObjectNotFound):
            await store.get_file("none", target)
        assert _names(folder) == []
        target.write_bytes(b"old")
        info = await store.put("broken", sample(5000), chunk_size=1000)
        stream = await js.stream("OBJ_" + store.bucket)
        await stream.purge(subject=f"$O.{store.bucket}.C.{info.nuid}", keep=3)
        with raises(ObjectError):
            await store.get_file("broken", target)
        assert (target.read_bytes(), _names(folder)) == (b"old", ["out.bin"])
        with _fails(OSError):
            await store.get_file("broken", folder / "no" / "such")


@check()
async def check_object_files_stopped_by_the_program(ctx: Context) -> None:
    """An exception of `progress` ends the call, and nothing is left."""
    _, store = await new_store(ctx)
    await store.put("object", sample(5000), chunk_size=1000)

    def stop(done: int) -> None:
        if done >= 3000:
            raise KeyError(done)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with _fails(KeyError):
            await store.get_file("object", folder / "out.bin", progress=stop)
        assert _names(folder) == []
    assert await store.get_bytes("object") == sample(5000)
