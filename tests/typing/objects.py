"""The types of the object store, with and without await.

This file is checked, but never run: a wrong `assert_type` is an error, and so is a mistake that is
not found.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from typing_extensions import assert_type

import jetstream
from jetstream import blocking as js_blocking
from jetstream import objects as object_store
from jetstream.blocking import objects as blocking_objects
from jetstream.objects import ObjectInfo, ObjectMeta, ObjectReader, ObjectStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


async def asynchronous(js: jetstream.JetStream, pieces: AsyncIterator[bytes]) -> None:
    config = object_store.ObjectStoreConfig(bucket="b", ttl=60, placement={"cluster": "c"})
    store = await js.create_object_store(config, storage="memory", compression=True)
    assert_type(store, ObjectStore)
    assert_type(await js.update_object_store(bucket="b"), ObjectStore)
    assert_type(await js.create_or_update_object_store(config), ObjectStore)
    assert_type(await js.object_store("b"), ObjectStore)
    assert_type(await js.delete_object_store("b"), None)
    assert_type(await js.object_store_names(), list[str])
    assert_type(await js.object_stores(), jetstream.Listing[object_store.ObjectStoreStatus])
    info = await store.put("o", b"data", headers={"A": "1"}, metadata={}, chunk_size=5)
    assert_type(info, ObjectInfo)
    meta = ObjectMeta(name="o", description="d", options={"max_chunk_size": 5})
    for data in (bytearray(), memoryview(b"")):
        await store.put(meta, data)
    await store.put("o", io.BytesIO())
    await store.put("o", [b"1", bytearray(b"2")])
    await store.put("o", pieces)
    await store.put("o", await store.get("p"))
    assert_type((info.name, info.size, info.chunks, info.digest), tuple[str, int, int, str])
    assert_type(info.mtime, jetstream.Timestamp | None)
    assert_type(info.headers, dict[str, list[str]])
    assert_type(info.link, object_store.ObjectLink | None)
    async with await store.get("o") as reader:
        assert_type(reader, ObjectReader)
        assert_type(reader.info, ObjectInfo)
        assert_type(await reader.read(5), bytes)
        async for chunk in reader:
            assert_type(chunk, bytes)
    assert_type(await store.get_bytes("o"), bytes)
    assert_type(await store.get_info("o", show_deleted=True), ObjectInfo)
    assert_type(await store.list(), list[ObjectInfo])
    assert_type(await store.update_meta("o", meta, new_name="p"), ObjectInfo)
    assert_type(await store.delete("o"), None)
    assert_type(await store.purge_orphans(60), int)
    assert_type(await store.add_link("l", info), ObjectInfo)
    assert_type(await store.add_bucket_link("l", store), ObjectInfo)
    assert_type(await store.seal(), None)
    status = await store.status()
    assert_type((status.size, status.sealed, status.ttl), tuple[int, bool, float])
    async with await store.watch(ignore_deletes=True) as watcher:
        assert_type(watcher, object_store.ObjectWatcher)
        async for each in watcher.initial():
            assert_type(each, ObjectInfo)
        async for each in watcher:
            assert_type(each, ObjectInfo)
        assert_type(await watcher.next(timeout=1), ObjectInfo)


def synchronous(js: js_blocking.JetStream) -> None:
    store = js.create_object_store(bucket="b", replicas=3, max_bytes=10**9)
    assert_type(store, blocking_objects.ObjectStore)
    assert_type(js.object_store("b"), blocking_objects.ObjectStore)
    assert_type(store.bucket, str)
    with open("file", "rb") as file:
        assert_type(store.put("o", file, description="d"), ObjectInfo)
    assert_type(store.get_bytes("o"), bytes)
    assert_type(store.list(), list[ObjectInfo])
    assert_type(store.add_bucket_link("l", store), ObjectInfo)
    with store.get("o") as reader:
        assert_type(reader, blocking_objects.ObjectReader)
        assert_type(reader.read(), bytes)
        for chunk in reader:
            assert_type(chunk, bytes)
        store.put("copy", reader)
    with store.watch(updates_only=True) as watcher:
        assert_type(watcher, blocking_objects.ObjectWatcher)
        for info in watcher.initial():
            assert_type(info, ObjectInfo)
        assert_type(next(watcher), ObjectInfo)
