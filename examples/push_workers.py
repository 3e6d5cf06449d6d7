"""Three workers share the work of one push consumer: a queue group that begins where it ended.

Argument: the URL of a server with JetStream, if it is not the usual one.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter

from jetstream import JetStream, PushMessages
from natsproto.adapters.asyncio import connect

JOBS = 300


async def work(messages: PushMessages, name: str, done: Counter[int], enough: asyncio.Event) -> int:
    """Until the subscription is drained; returns how much it was."""
    mine = 0
    async for msg in messages:
        await msg.ack()
        mine += 1
        done[int(msg.data)] += 1
        if len(done) == JOBS:
            enough.set()
    print(f"{name} did {mine} of {JOBS} jobs")
    return mine


async def worker(
    url: str, name: str, ready: asyncio.Queue[str], done: Counter[int], enough: asyncio.Event
) -> int:
    async with connect(url, name=name) as client:
        js = JetStream(client)
        # The first one creates the consumer `painters`, the others find it.
        async with await js.subscribe("paint.*", queue="painters", ack_wait=5.0) as messages:
            await client.flush()  # now the server knows of this one
            ready.put_nowait(name)
            task = asyncio.create_task(work(messages, name, done, enough))
            await enough.wait()
            await messages.drain()  # what came is still worked off
            return await task


async def main(url: str) -> None:
    async with connect(url) as client:
        js = JetStream(client)
        stream = await js.create_stream(name="PAINT", subjects=["paint.*"], storage="memory")
        done: Counter[int] = Counter()
        enough = asyncio.Event()
        ready: asyncio.Queue[str] = asyncio.Queue()
        names = ["Ada", "Bob", "Cleo"]
        workers = [asyncio.create_task(worker(url, name, ready, done, enough)) for name in names]
        for _ in names:  # a consumer delivers as fast as it can: whoever is late finds nothing
            await ready.get()
        async with js.publisher() as publisher:
            for number in range(JOBS):
                await publisher.publish("paint.wall", b"%d" % number)
        shares = await asyncio.gather(*workers)
        await stream.delete()
    assert sum(shares) == JOBS
    assert done == Counter(range(JOBS))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:] or ["nats://127.0.0.1:4222"]))
