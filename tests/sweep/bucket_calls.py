"""Calls of key-value buckets and object stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jetstream import ObjectMeta
from jetstream.kv import Base64Codec

from .coroutines import call, plain
from .stage import CHUNK

if TYPE_CHECKING:
    from .stage import Stage

BUCKET: Any = {"bucket": "t", "storage": "memory"}

plain(
    {
        "JetStream.key_value": lambda on: on.js.key_value("k"),
        "JetStream.key_value_names": lambda on: on.js.key_value_names(),
        "JetStream.key_values": lambda on: on.js.key_values(),
        "JetStream.update_key_value": lambda on: on.js.update_key_value(
            bucket="k", storage="memory", description="d"
        ),
        "JetStream.object_store": lambda on: on.js.object_store("o"),
        "JetStream.object_store_names": lambda on: on.js.object_store_names(),
        "JetStream.object_stores": lambda on: on.js.object_stores(),
        "JetStream.update_object_store": lambda on: on.js.update_object_store(
            bucket="o", storage="memory", description="d"
        ),
        "KeyValue.get": lambda on: on.kv.get("a"),
        "KeyValue.history": lambda on: on.kv.history("a"),
        "KeyValue.keys": lambda on: on.kv.keys(),
        "KeyValue.put": lambda on: on.kv.put("c", b"1"),
        "KeyValue.delete": lambda on: on.kv.delete("c"),
        "KeyValue.purge": lambda on: on.kv.purge("c"),
        "KeyValue.purge_deletes": lambda on: on.kv.purge_deletes(),
        "KeyValue.status": lambda on: on.kv.status(),
        "KeyValue.info": lambda on: on.kv.info(),
        "ObjectStore.get_bytes": lambda on: on.store.get_bytes("a"),
        "ObjectStore.get_info": lambda on: on.store.get_info("a"),
        "ObjectStore.list": lambda on: on.store.list(),
        "ObjectStore.status": lambda on: on.store.status(),
        "ObjectStore.purge_orphans": lambda on: on.store.purge_orphans(),
    }
)


@call("JetStream.create_key_value", "JetStream.delete_key_value")
async def create_bucket(on: Stage) -> None:
    async def use() -> None:
        await on.js.create_key_value(**BUCKET)
        await on.js.delete_key_value("t")

    on.clean(lambda: on.other.delete_key_value("t"))
    await on(use())


@call("JetStream.create_or_update_key_value")
async def create_or_update_bucket(on: Stage) -> None:
    on.clean(lambda: on.other.delete_key_value("t"))
    await on(on.js.create_or_update_key_value(**BUCKET))


@call("JetStream.create_object_store", "JetStream.delete_object_store")
async def create_store(on: Stage) -> None:
    async def use() -> None:
        await on.js.create_object_store(**BUCKET)
        await on.js.delete_object_store("t")

    on.clean(lambda: on.other.delete_object_store("t"))
    await on(use())


@call("JetStream.create_or_update_object_store", "ObjectStore.seal")
async def create_or_update_store(on: Stage) -> None:
    async def use() -> None:
        store = await on.js.create_or_update_object_store(**BUCKET)
        await store.seal()

    on.clean(lambda: on.other.delete_object_store("t"))
    await on(use())


@call("KeyValue.create", "KeyValue.update")
async def create_and_update(on: Stage) -> None:
    async def use() -> None:
        revision = await on.kv.create("new", b"1")
        await on.kv.update("new", b"2", revision)

    await on(use())
    await (await on.other.key_value("k")).purge("new")


async def _follow(on: Stage, watch: Any, put: Any, name: str) -> None:
    """Take the initial values of a watch, and two changes."""
    async with await watch() as watcher:
        await watcher.next_initial()
        async for _ in watcher.initial():
            pass
        await put(name, b"1")
        await watcher.next(on.timeout)
        await put(name, b"2")
        await watcher.__anext__()
    await watcher.stop()


@call(
    "KeyValue.watch",
    "KeyWatcher.__aenter__",
    "KeyWatcher.__aexit__",
    "KeyWatcher.__anext__",
    "KeyWatcher.next",
    "KeyWatcher.next_initial",
    "KeyWatcher.stop",
    "InitialEntries.__anext__",
)
async def watch(on: Stage) -> None:
    await on(_follow(on, on.kv.watch, on.kv.put, "d"))


@call("KeyValue.get", "KeyValue.put", "KeyValue.history", "KeyValue.keys", "KeyValue.watch")
async def coded(on: Stage) -> None:
    """Keys and values that codecs encode."""

    async def use() -> None:
        kv = on.kv.with_codecs(keys=Base64Codec(), values=Base64Codec())
        await kv.put("e", b"1")
        assert (await kv.get("e")).value == b"1"
        await kv.history("e")
        assert "e" in await kv.keys("e")
        async with await kv.watch("e") as watcher:
            await watcher.next(on.timeout)

    await on(use())


@call("KeyValue.watch_all")
async def watch_all(on: Stage) -> None:
    async def use() -> None:
        async with await on.kv.watch_all():
            pass

    await on(use())


@call(
    "KeyValue.list_keys",
    "KeyLister.__aenter__",
    "KeyLister.__aexit__",
    "KeyLister.__anext__",
    "KeyLister.stop",
)
async def list_keys(on: Stage) -> None:
    async def use() -> None:
        async with await on.kv.list_keys() as keys:
            assert {"a", "b"} <= {key async for key in keys}
        await keys.stop()

    await on(use())


@call("ObjectStore.put", "ObjectStore.delete")
async def put_object(on: Stage) -> None:
    """Whatever is canceled, the object is complete or absent. A failed put purges its chunks.

    A put whose last two requests are not answered succeeds; then `delete` asks twice.
    """
    store = await on.other.object_store("o")
    await store.put("b", bytes(2 * CHUNK), chunk_size=CHUNK)

    async def use() -> None:
        await on.store.put("b", b"x" * 3 * CHUNK, chunk_size=CHUNK)
        await on.store.delete("b")

    await on(use())
    await on.settled()
    if (await store.get_info("b", show_deleted=True)).deleted:
        return
    assert await store.get_bytes("b") in (bytes(2 * CHUNK), b"x" * 3 * CHUNK)
    await store.delete("b")


@call("ObjectStore.put_file", "ObjectStore.get_file")
async def files(on: Stage) -> None:
    """A canceled `get_file` leaves no file, or a complete one."""
    source, target = on.folder / "source", on.folder / "target"
    source.write_bytes(b"f" * 3 * CHUNK)

    async def use() -> None:
        await on.store.put_file(source, "f", chunk_size=CHUNK)
        await on.store.get_file("f", target)

    await on(use())
    await on.settled()
    left = sorted(path.name for path in on.folder.iterdir())
    assert left in (["source"], ["source", "target"]), left
    if target.exists():
        assert target.read_bytes() == source.read_bytes()
        target.unlink()
    if await _exists(on, "f"):
        await (await on.other.object_store("o")).delete("f")


async def _exists(on: Stage, name: str) -> bool:
    return name in [info.name for info in await (await on.other.object_store("o")).list()]


@call(
    "ObjectStore.get",
    "ObjectReader.__aenter__",
    "ObjectReader.__aexit__",
    "ObjectReader.__anext__",
    "ObjectReader.read",
    "ObjectReader.close",
)
async def read_object(on: Stage) -> None:
    async def use() -> None:
        async with await on.store.get("a") as reader:
            assert len(await reader.read(10)) == 10
            async for _ in reader:
                pass
        await reader.close()

    await on(use())


@call("ObjectStore.update_meta", "ObjectStore.add_link", "ObjectStore.add_bucket_link")
async def links(on: Stage) -> None:
    store = await on.other.object_store("o")
    await store.put("m", b"1")
    info = await on.store.get_info("a")

    async def use() -> None:
        await on.store.update_meta("m", ObjectMeta(name="m", description="d"))
        await on.store.add_link("link", info)
        await on.store.add_bucket_link("bucket", on.store)

    await on(use())
    await on.settled()
    for name in ("m", "link", "bucket"):
        if await _exists(on, name):
            await store.delete(name)


@call(
    "ObjectStore.watch",
    "ObjectWatcher.__aenter__",
    "ObjectWatcher.__aexit__",
    "ObjectWatcher.__anext__",
    "ObjectWatcher.next",
    "ObjectWatcher.next_initial",
    "ObjectWatcher.stop",
    "InitialObjects.__anext__",
)
async def watch_objects(on: Stage) -> None:
    store = await on.other.object_store("o")

    await on(_follow(on, on.store.watch, on.store.put, "w"))
    await on.settled()
    if await _exists(on, "w"):
        await store.delete("w")
