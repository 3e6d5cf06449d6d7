"""Settings that several programs share: python examples/kv_settings.py [nats://127.0.0.1:4222]

One task follows the settings of a service, two others change them at the same time.
"""

from __future__ import annotations

import asyncio
import sys

from jetstream import JetStream, KeyValue
from jetstream.errors import KeyExists, WrongLastRevision
from natsproto.adapters.asyncio import connect

CHANGES = 5


async def follow(kv: KeyValue, ready: asyncio.Event) -> None:
    """Print the current settings and each change, until a setting is deleted."""
    async with await kv.watch("web.>") as watcher:
        async for entry in watcher.initial():
            print(f"  {entry.key} is {entry.value.decode()}")
        ready.set()
        async for entry in watcher:
            if entry.deleted:
                print(f"  {entry.key} is gone, after revision {entry.revision}")
                break
            print(f"  {entry.key} becomes {entry.value.decode()}")


async def add_worker(kv: KeyValue, name: str) -> None:
    """Compare and set: whoever comes second reads again."""
    tries = 0
    while True:
        tries += 1
        entry = await kv.get("web.workers")
        try:
            await kv.update("web.workers", b"%d" % (int(entry.value) + 1), entry.revision)
        except WrongLastRevision:
            continue
        print(f"{name} has added a worker at try {tries}")
        return


async def change(kv: KeyValue, name: str) -> None:
    for _ in range(CHANGES):
        await add_worker(kv, name)


async def main(url: str) -> None:
    async with connect(url) as client:
        js = JetStream(client)
        kv = await js.create_key_value(bucket="example-settings", history=5, storage="memory")
        await kv.put("web.host", b"example.org")
        await kv.create("web.workers", b"0")
        try:
            await kv.create("web.workers", b"100")
        except KeyExists as error:
            print(error)

        ready = asyncio.Event()
        following = asyncio.create_task(follow(kv, ready))
        await ready.wait()
        await asyncio.gather(change(kv, "Ada"), change(kv, "Bob"))
        entry = await kv.get("web.workers")
        assert int(entry.value) == 2 * CHANGES
        past = [old.value.decode() for old in await kv.history("web.workers")]
        print("the last values were", ", ".join(past))
        await kv.delete("web.workers", last=entry.revision)
        await following

        print("what is left:", ", ".join(await kv.keys()))
        await js.delete_key_value("example-settings")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:] or ["nats://127.0.0.1:4222"]))
