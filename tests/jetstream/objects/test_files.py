from __future__ import annotations

import pytest

from jetstream.errors import ObjectCorrupt, ObjectNotFound
from jetstream.objects.files import get_file, put_file
from natsproto.port import run_sync
from natsproto.workers import NoLock


class File:
    """A file of the port, and the calls that it gets."""

    name = "report.txt"

    def __init__(self, calls, data=b""):
        self.calls = calls
        self.data = data

    async def read(self, size):
        piece, self.data = self.data[:size], self.data[size:]
        return piece

    async def write(self, data):
        self.calls.append(data)

    async def commit(self):
        self.calls.append("commit")

    def discard(self):
        self.calls.append("discard")

    def close(self):
        self.calls.append("close")


class Port:
    def __init__(self, data=b""):
        self.calls = []
        self.data = data

    async def open_file(self, path):
        self.calls.append(("open", path))
        return File(self.calls, self.data)

    async def create_file(self, path, token):
        self.calls.append(("create", path, token))
        return File(self.calls)


class Reader:
    info = "info"

    def __init__(self, calls, chunks):
        self.calls = calls
        self.chunks = list(chunks)

    async def __anext__(self):
        chunk = self.chunks.pop(0) if self.chunks else StopAsyncIteration()
        if isinstance(chunk, Exception):
            raise chunk
        return chunk

    async def close(self):
        self.calls.append("stop")


class Store:
    lock = NoLock()

    def __init__(self, port, chunks=()):
        self.port = port
        self.chunks = chunks

    async def get(self, name):
        if name != "report":
            raise ObjectNotFound("B", name)
        return Reader(self.port.calls, self.chunks)

    async def put(self, name, data, **options):
        pieces = []
        while piece := await data.read(2):
            pieces.append(piece)
        if options.get("fails"):
            raise ValueError
        return name, pieces, options


@pytest.mark.rule("D-OBJ-45")
@pytest.mark.parametrize(("meta", "name"), [(None, "report.txt"), ("other", "other")])
def test_a_file_is_stored_in_pieces(meta, name):
    port = Port(b"abcde")
    seen = []
    info = run_sync(put_file(Store(port), port, "/x/report.txt", meta, seen.append, {"k": 1}))
    assert info == (name, [b"ab", b"cd", b"e"], {"k": 1})
    assert (seen, port.calls) == ([2, 4, 5], [("open", "/x/report.txt"), "close"])


@pytest.mark.rule("D-OBJ-45")
def test_a_file_is_closed_after_a_failure():
    port = Port(b"abc")
    with pytest.raises(ValueError):  # noqa: PT011
        run_sync(put_file(Store(port), port, "p", None, None, {"fails": True}))
    assert port.calls == [("open", "p"), "close"]


@pytest.mark.rule("D-OBJ-45")
@pytest.mark.parametrize("progress", [True, False])
def test_an_object_becomes_a_file_when_it_is_complete(progress):
    port = Port()
    seen = []
    store = Store(port, [b"ab", b"c"])
    report = seen.append if progress else None
    assert run_sync(get_file(store, port, "report", "p", report, "t")) == "info"
    assert port.calls == [("create", "p", "t"), b"ab", b"c", "commit", "stop"]
    assert seen == ([2, 3] if progress else [])


@pytest.mark.rule("D-OBJ-45")
def test_nothing_is_left_of_an_object_that_is_corrupt():
    port = Port()
    store = Store(port, [b"ab", ObjectCorrupt("B", "report", "why")])
    with pytest.raises(ObjectCorrupt):
        run_sync(get_file(store, port, "report", "p", None, "t"))
    assert port.calls == [("create", "p", "t"), b"ab", "discard", "stop"]


@pytest.mark.rule("D-OBJ-45")
def test_no_file_is_created_without_an_object():
    port = Port()
    with pytest.raises(ObjectNotFound):
        run_sync(get_file(Store(port), port, "none", "p", None, "t"))
    assert port.calls == []
