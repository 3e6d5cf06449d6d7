"""A cache that follows a key-value store, and files in an object store."""

import asyncio
import io
import sys
import tempfile

import nats
from nats.js.api import KeyValueConfig, ObjectMeta, StorageType
from nats.js.errors import KeyNotFoundError, KeyWrongLastSequenceError, ObjectNotFoundError
from nats.js.kv import KeyValue


async def follow(
    kv: KeyValue, cache: dict[str, bytes], ready: asyncio.Event, last: asyncio.Event
) -> None:
    watcher = await kv.watchall()
    async for entry in watcher:
        if entry is None:
            ready.set()
        elif entry.operation in ("DEL", "PURGE"):
            cache.pop(entry.key, None)
        else:
            cache[entry.key] = entry.value
            if entry.key == "last":
                last.set()


async def main(url: str) -> None:
    nc = await nats.connect(url)
    js = nc.jetstream()
    kv = await js.create_key_value(
        KeyValueConfig(bucket="CONFIG", history=5, storage=StorageType.MEMORY)
    )
    await kv.put("color", b"red")
    cache: dict[str, bytes] = {}
    ready, last = asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(follow(kv, cache, ready, last))
    await asyncio.wait_for(ready.wait(), 5)
    print("at first:", cache)
    revision = await kv.update("color", b"blue", last=1)
    await kv.create("size", b"10")
    await kv.delete("size")
    await kv.put("last", b"1")
    await asyncio.wait_for(last.wait(), 5)
    print("then:", cache, revision)
    try:
        await kv.update("color", b"green", last=1)
    except KeyWrongLastSequenceError as error:
        print("too late:", error)
    try:
        await kv.get("size")
    except KeyNotFoundError as error:
        print("gone:", error, error.op)
    print("history:", [(entry.value, entry.revision) for entry in await kv.history("color")])
    print("keys:", sorted(await kv.keys()), (await kv.status()).values)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        print("canceled")

    files = await js.create_object_store("FILES")
    watcher = await files.watch()
    print("files:", await watcher.updates())
    data = bytes(range(256)) * 2000
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        info = await files.put("big.bin", file, meta=ObjectMeta(description="a large one"))
    print("put:", info.name, info.size, info.chunks, info.description, info.digest)
    await files.put("small.txt", b"small")
    print("watch:", [(await watcher.updates()).name for _ in range(2)])
    target = io.BytesIO()
    await files.get("big.bin", writeinto=target)
    print("got:", target.getvalue() == data, (await files.get("small.txt")).data)
    await files.delete("small.txt")
    try:
        await files.get("small.txt")
    except ObjectNotFoundError as error:
        print("gone:", type(error).__name__)
    print("list:", [each.name for each in await files.list(ignore_deletes=True)])
    await watcher.stop()
    await nc.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
