"""The object store: buckets, objects of all sizes, metadata, links, watches."""

from __future__ import annotations

import io
import random
from typing import TYPE_CHECKING, Any

from jetstream.errors import (
    BucketExists,
    BucketNotFound,
    LinkUnreadable,
    ObjectAlreadyExists,
    ObjectNotFound,
    StreamSealed,
)
from jetstream.objects import ObjectInfo, ObjectMeta, ObjectMetaOptions
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.streams import js_server, left_alone, name_of, open_js
from jetstream.testing.suite import check
from natsproto.errors import InvalidState, LocalError, NotSupported
from natsproto.testing.context import SOON, WAIT, Context, raises

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from jetstream import JetStream
    from jetstream.objects import ObjectStore, ObjectWatcher


async def new_store(ctx: Context, **config: Any) -> tuple[JetStream, ObjectStore]:
    """Create a bucket in memory that no other check uses."""
    js = await open_js(ctx)
    settings: dict[str, Any] = {"bucket": name_of(ctx), "storage": "memory", **config}
    return js, await js.create_object_store(**settings)


async def stored(js: JetStream, store: ObjectStore) -> tuple[int, int]:
    """Return how many chunks and how many infos the stream holds."""
    stream = await js.stream("OBJ_" + store.bucket)
    subjects = (await stream.info(subjects_filter=f"$O.{store.bucket}.>")).state.subjects
    chunks = sum(count for name, count in subjects.items() if ".C." in name)
    return chunks, sum(subjects.values()) - chunks


def sample(size: int) -> bytes:
    """Return bytes in which no two chunks are equal; a smaller sample is a prefix of it."""
    return random.Random(7).randbytes(size // 8 * 8 + 8)[:size]


@check()
async def check_objects(ctx: Context) -> None:
    """Objects of all sizes are read back unchanged, in every way of reading."""
    js, store = await new_store(ctx)
    for size in (0, 1, 999, 1000, 1001, 12_345):
        data = sample(size)
        name = f"object {size}"
        info = await store.put(name, data, chunk_size=1000)
        assert (info.name, info.bucket, info.size) == (name, store.bucket, size)
        assert info.chunks == -(-size // 1000)
        assert info == await store.get_info(name)
        assert await store.get_bytes(name) == data
        async with await store.get(name) as reader:
            assert reader.info == info
            chunks = [chunk async for chunk in reader]
            assert b"".join(chunks) == data
            assert [len(chunk) for chunk in chunks[:-1]] == [1000] * (len(chunks) - 1)
        async with await store.get(name) as reader:
            parts = [await reader.read(700) for _ in range(size // 700 + 2)]
            assert b"".join(parts) == data
            assert parts[-1] == b""
            assert await reader.read() == b""
    assert await stored(js, store) == (0 + 1 + 1 + 1 + 2 + 13, 6)


@check()
async def check_object_names_and_metas(ctx: Context) -> None:
    """Any name is valid and metadata is kept; the time is that of the server."""
    js, store = await new_store(ctx)
    names = ["a b/c.d", ">", "*", "é😀", "\r\n\0", "x" * 500]
    for name in names:
        await store.put(name, name.encode())
    assert [info.name for info in await store.list()] == sorted(names)
    for name in names:
        assert await store.get_bytes(name) == name.encode()
    fields: dict[str, Any] = {"description": "d", "metadata": {"k": "v"}}
    headers: dict[str, Any] = {"A": ["1", "2"], "B": "3"}
    info = await store.put("o", b"1", headers=headers, **fields)
    assert info.headers == {"A": ["1", "2"], "B": ["3"]}
    assert (info.description, info.metadata) == ("d", {"k": "v"})
    assert info.options is not None
    assert info.options.max_chunk_size == 128 * 1024
    again = await store.put(ObjectMeta(name="o", options={"max_chunk_size": 2}, **fields), b"123")
    assert (again.chunks, again.metadata, again.headers) == (2, {"k": "v"}, {})
    subject = f"$O.{store.bucket}.M.bw=="
    msg = await (await js.stream("OBJ_" + store.bucket)).get_msg(last_by_subject=subject)
    assert again.mtime == msg.time
    assert b"mtime" not in msg.data
    assert info.mtime is not None
    assert msg.time > info.mtime


def _generated(data: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


@check()
async def check_object_data(ctx: Context) -> None:
    """Data may be bytes, a file, an iterable, or another object, in pieces of any size."""
    _, store = await new_store(ctx)
    data = sample(50_000)
    given: list[Any] = [
        *(data, bytearray(data), memoryview(data), io.BytesIO(data)),
        *([data[:1], b"", data[1:40_000], data[40_000:]], _generated(data, 7)),
        _generated(data, 4096),
    ]
    for number, each in enumerate(given):
        info = await store.put(str(number), each, chunk_size=4096)
        assert (info.size, info.chunks) == (50_000, 13), number
        assert await store.get_bytes(str(number)) == data, number
    copy = await store.put("copy", await store.get("0"), chunk_size=10_000)
    assert (copy.chunks, copy.digest) == (5, (await store.get_info("0")).digest)
    assert await store.get_bytes("copy") == data


@check()
async def check_object_replaced(ctx: Context) -> None:
    """The chunks of a replaced object are purged, even if several clients put it at once."""
    js, store = await new_store(ctx)
    for size in (10, 3, 7):
        await store.put("o", sample(size), chunk_size=2)
    assert await store.get_bytes("o") == sample(7)
    assert await stored(js, store) == (4, 1)

    async def put(mine: ObjectStore, size: int) -> None:
        for _ in range(5):
            await mine.put("o", sample(size), chunk_size=10)

    handles = [await (await open_js(ctx)).object_store(store.bucket) for _ in range(3)]
    tasks = [ctx.start(put, handle, 100) for handle in handles]
    for task in tasks:
        await task.result()
    assert await store.get_bytes("o") == sample(100)
    assert await stored(js, store) == (10, 1)


@check()
async def check_object_deleted(ctx: Context) -> None:
    """A deleted object is marked, its chunks are purged, and it can be put again."""
    js, store = await new_store(ctx)
    await store.put("o", b"12345", chunk_size=2, description="d")
    await store.delete("o")
    for call in (store.get, store.get_info, store.get_bytes, store.update_meta):
        with raises(ObjectNotFound, within=SOON):
            await call("o")
    info = await store.get_info("o", show_deleted=True)
    assert (info.deleted, info.size, info.chunks, info.digest) == (True, 0, 0, "")
    assert info.description == "d"
    assert await store.list() == []
    assert [each.name for each in await store.list(show_deleted=True)] == ["o"]
    assert await stored(js, store) == (0, 1)
    await store.delete("o")
    assert (await store.get_info("o", show_deleted=True)).mtime == info.mtime
    with raises(ObjectNotFound):
        await store.delete("never")
    await store.put("o", b"again")
    assert not (await store.get_info("o")).deleted


@check()
async def check_object_update_meta(ctx: Context) -> None:
    """Name, description, headers and metadata can be changed; everything else is kept."""
    js, store = await new_store(ctx)
    first = await store.put("a", b"12345", chunk_size=2, headers={"H": "1"}, description="d")
    info = await store.update_meta("a", metadata={"k": "v"})
    assert (info.headers, info.description, info.metadata) == ({"H": ["1"]}, "d", {"k": "v"})
    assert (info.nuid, info.digest, info.options) == (first.nuid, first.digest, first.options)
    info = await store.update_meta("a", ObjectMeta(name="b", description="new"))
    assert (info.name, info.headers, info.description, info.metadata) == ("b", {}, "new", {})
    assert info == await store.get_info("b")
    assert await store.get_bytes("b") == b"12345"
    with raises(ObjectNotFound):
        await store.get_info("a", show_deleted=True)
    assert await stored(js, store) == (3, 1)
    await store.put("c", b"")
    with raises(ObjectAlreadyExists):
        await store.update_meta("b", new_name="c")
    await store.delete("c")
    await store.update_meta("b", new_name="c")
    assert [each.name for each in await store.list(show_deleted=True)] == ["c"]
    assert await store.get_bytes("c") == b"12345"


@check()
async def check_object_links(ctx: Context) -> None:
    """A link returns the object it points to; links to buckets and in circles are errors."""
    js, store = await new_store(ctx)
    other = await js.create_object_store(bucket=name_of(ctx) + "-2", storage="memory")
    info = await store.put("o", b"here")
    there = await other.put("o", b"there")
    link = await store.add_link("l", info)
    assert link.link is not None
    assert (link.link.bucket, link.link.name) == (store.bucket, "o")
    assert link == await store.get_info("l")
    assert await store.get_bytes("l") == b"here"
    await store.add_link("l", there)
    async with await store.get("l") as reader:
        assert await reader.read() == b"there"
        assert reader.info == there
    await store.add_bucket_link("l", other)
    with raises(LinkUnreadable) as caught:
        await store.get("l")
    assert repr(other.bucket) in str(caught.error)
    with raises(ObjectAlreadyExists):
        await store.add_link("o", there)
    with raises(ObjectAlreadyExists):
        await store.add_bucket_link("o", other)
    await store.delete("o")
    gone = await store.get_info("o", show_deleted=True)
    for wrong in (gone, link):
        with raises(LocalError):
            await store.add_link("x", wrong)
    await store.add_link("l", info)
    circle = ObjectInfo(name="l")
    circle.bucket = store.bucket
    with raises(ObjectNotFound):
        await store.get("l")
    await store.add_link("o", circle)
    with raises(LinkUnreadable):
        await store.get("l")
    await store.put("o", b"anew")
    assert await store.get_bytes("l") == b"anew"


@check()
async def check_object_store_sealed(ctx: Context) -> None:
    """A sealed bucket can only be read."""
    js, store = await new_store(ctx)
    await store.put("o", b"data")
    await store.seal()
    assert (await store.status()).sealed
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: store.put("p", b"data"),
        lambda: store.put("o"),
        lambda: store.delete("o"),
        lambda: store.update_meta("o", description="d"),
    ]
    for call in calls:
        with raises(StreamSealed, within=SOON):
            await call()
    await js.update_object_store(bucket=store.bucket, storage="memory", description="archive")
    status = await store.status()
    assert (status.sealed, status.description) == (True, "archive")
    assert await store.get_bytes("o") == b"data"
    assert await stored(js, store) == (1, 1)


async def _names(watcher: ObjectWatcher) -> list[tuple[str, bool]]:
    return [(info.name, info.deleted) async for info in watcher.initial()]


@check()
async def check_object_watch(ctx: Context) -> None:
    """A watch starts with the existing objects, then reports changes; other data is skipped."""
    js, store = await new_store(ctx)
    await store.put("a", b"1")
    await store.put("b", b"2")
    await js.publish(f"$O.{store.bucket}.M.garbage", b"{")
    await store.delete("b")
    table: list[tuple[dict[str, Any], list[tuple[str, bool]]]] = [
        ({}, [("a", False), ("b", True)]),
        ({"include_history": True}, [("a", False), ("b", True)]),
        ({"ignore_deletes": True}, [("a", False)]),
        ({"updates_only": True}, []),
    ]
    watchers = [await store.watch(**options) for options, _ in table]
    for watcher, (options, names) in zip(watchers, table):
        assert await _names(watcher) == names, options
        assert watcher.initialized
    await store.delete("a")
    info = await store.put("c", b"3")
    for watcher, (options, _) in zip(watchers, table):
        if "ignore_deletes" not in options:
            assert (await watcher.next(WAIT)).deleted
        async for each in watcher:
            assert each == info
            break
        await watcher.stop()
        assert watcher.closed
        with raises(InvalidState):
            await watcher.next(WAIT)
    assert [each.name for each in await store.list()] == ["c"]
    await left_alone(ctx, js, "OBJ_" + store.bucket)


@check()
async def check_object_stores(ctx: Context) -> None:
    """Object stores can be created, created again, looked up, updated, listed and deleted."""
    js = await open_js(ctx)
    bucket = name_of(ctx)
    with raises(BucketNotFound, within=SOON):
        await js.object_store(bucket)
    with raises(BucketNotFound):
        await js.update_object_store(bucket=bucket)
    await js.create_object_store(bucket=bucket, storage="memory", ttl=60.0)
    store = await js.create_object_store(bucket=bucket, storage="memory", ttl=60.0)
    await store.put("o", b"data")
    with raises(BucketExists) as caught:
        await js.create_object_store(bucket=bucket, storage="memory", ttl=61.0)
    assert caught.error.bucket == bucket
    await js.update_object_store(bucket=bucket, storage="memory", description="d")
    for ttl in (60.0, 30.0, 300.0):  # shorter than the duplicate window, and longer
        await js.update_object_store(bucket=bucket, storage="memory", ttl=ttl)
        assert (await store.status()).ttl == ttl
    await js.create_or_update_object_store(bucket=bucket, storage="memory", max_bytes=5000)
    store = await js.object_store(bucket)
    assert (store.bucket, await store.get_bytes("o")) == (bucket, b"data")
    config = (await js.stream("OBJ_" + bucket)).cached_info.config
    assert config.subjects == [f"$O.{bucket}.C.>", f"$O.{bucket}.M.>"]
    assert (config.discard, config.allow_rollup_hdrs, config.allow_direct) == ("new", True, True)
    assert bucket in await js.object_store_names()
    [status] = [each for each in await js.object_stores() if each.bucket == bucket]
    assert (status.storage, status.config.max_bytes, status.backing_store) == (
        *("memory", 5000, "JetStream"),
    )
    assert status.size == (await store.status()).size > 0
    await js.update_object_store(status.config, description="again")
    assert (await store.status()).description == "again"
    await js.delete_object_store(bucket)
    calls: list[Callable[[], Awaitable[object]]] = [
        *(store.status, store.list, store.watch, lambda: js.delete_object_store(bucket)),
    ]
    if js_server(ctx).version >= (2, 11):
        calls.append(lambda: store.get("o"))  # older servers do not answer
    for call in calls:
        with raises(BucketNotFound):
            await call()


@check()
async def check_object_store_configuration(ctx: Context) -> None:
    """Compression and metadata work, and servers before 2.10 reject them by name."""
    js = await open_js(ctx)
    config: dict[str, Any] = {"compression": True, "metadata": {"k": "v"}}
    if js_server(ctx).version < (2, 10):
        with raises(NotSupported):
            await js.create_object_store(bucket=name_of(ctx), **config)
        return
    store = await js.create_object_store(bucket=name_of(ctx), **config)
    status = await store.status()
    assert status.is_compressed
    assert status.metadata["k"] == "v"
    assert (await js.object_store(store.bucket)).bucket == store.bucket


@check()
async def check_objects_rejected_locally(ctx: Context) -> None:
    """Invalid input is rejected before anything is sent."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    store = await js.create_object_store(bucket=name_of(ctx), storage="memory")
    sent = client.stats.out_msgs
    data: Any = "text"
    number: Any = 7
    link = ObjectMetaOptions(link={"bucket": "b", "name": "o"})
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: store.put("", b""),
        lambda: store.put(number, b""),
        lambda: store.put("o", data),
        lambda: store.put("o", number),
        lambda: store.put("o", b"", chunk_size=-1),
        lambda: store.put("o", b"", chunk_size=2**20),
        lambda: store.put("o", b"", headers={"a b": "c"}),
        lambda: store.put(ObjectMeta(name="o", options=link), b""),
        lambda: store.get(""),
        lambda: store.get_info("\ud800"),
        lambda: store.delete(number),
        lambda: store.add_link("o", number),
        lambda: store.add_bucket_link("o", number),
        lambda: store.watch(include_history=True, updates_only=True),
        lambda: js.create_object_store(bucket="a.b"),
        lambda: js.object_store(""),
    ]
    for call in calls:
        with raises(LocalError):
            await call()
    assert client.stats.out_msgs == sent
