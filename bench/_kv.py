"""One client using a bucket, in a process of its own: kv.py starts it.

    python bench/_kv.py CLIENT SCENARIO URL COUNT SIZE

Its last line is the result in JSON, or `absent` if the library is not installed. Each client is
used in the form that its own users write; loops that are measured call the library directly. The
bucket is there, with KEYS keys of that size.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

import _contenders as core
from _measure import WARM_UP, Clock, say

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

BUCKET = "bench"
KEYS = 10_000
KEY = "orders.7"


class Ours(core.Contender):
    """natsproto's key-value store on an event loop."""

    async def open(self, url: str) -> None:
        from jetstream import JetStream

        await super().open(url)
        self.kv = await JetStream(self.client).key_value(BUCKET)

    async def get(self, data: bytes, count: int) -> list[float]:
        return await timed(self.kv.get, (KEY,), count)

    async def put(self, data: bytes, count: int) -> list[float]:
        return await timed(self.kv.put, ("orders.8", data), count)

    async def watch(self) -> int:
        count = 0
        async with await self.kv.watch(">") as watcher:
            async for _ in watcher.initial():
                count += 1
        return count

    async def keys(self) -> int:
        return len(await self.kv.keys())


class OnAsyncio(Ours, core.OnAsyncio):
    pass


class OnUvloop(Ours, core.OnUvloop):
    pass


class OnTrio(Ours, core.OnTrio):
    pass


class Blocking(core.Blocking):
    async def open(self, url: str) -> None:
        from jetstream.blocking import JetStream

        await super().open(url)
        self.kv = JetStream(self.client).key_value(BUCKET)

    async def get(self, data: bytes, count: int) -> list[float]:
        return timed_plainly(self.kv.get, (KEY,), count)

    async def put(self, data: bytes, count: int) -> list[float]:
        return timed_plainly(self.kv.put, ("orders.8", data), count)

    async def watch(self) -> int:
        count = 0
        with self.kv.watch(">") as watcher:
            for _ in watcher.initial():
                count += 1
        return count

    async def keys(self) -> int:
        return len(self.kv.keys())


class Threads(Blocking, core.Threads):
    pass


class NatsPy(core.NatsPy):
    async def open(self, url: str) -> None:
        await super().open(url)
        self.kv = await self.client.jetstream().key_value(BUCKET)

    async def get(self, data: bytes, count: int) -> list[float]:
        return await timed(self.kv.get, (KEY,), count)

    async def put(self, data: bytes, count: int) -> list[float]:
        return await timed(self.kv.put, ("orders.8", data), count)

    async def watch(self) -> int:
        count = 0
        watcher = await self.kv.watch(">")
        async for entry in watcher:
            if entry is None:
                break
            count += 1
        await watcher.stop()
        return count

    async def keys(self) -> int:
        return len(await self.kv.keys())


class NatsPyUvloop(NatsPy):
    run = staticmethod(core.on_uvloop)


async def timed(
    call: Callable[..., Awaitable[object]], args: tuple[Any, ...], count: int
) -> list[float]:
    times = []
    for _ in range(count):
        start = time.perf_counter()
        await call(*args)
        times.append(time.perf_counter() - start)
    return times


def timed_plainly(call: Callable[..., object], args: tuple[Any, ...], count: int) -> list[float]:
    times = []
    for _ in range(count):
        start = time.perf_counter()
        call(*args)
        times.append(time.perf_counter() - start)
    return times


# In the order of the tables.
CONTENDERS: dict[str, type[core.Contender]] = {
    "natsproto asyncio": OnAsyncio,
    "natsproto uvloop": OnUvloop,
    "natsproto trio": OnTrio,
    "natsproto blocking": Blocking,
    "natsproto threads": Threads,
    "nats-py": NatsPy,
    "nats-py uvloop": NatsPyUvloop,
}


async def main(peer: Any) -> None:
    _, _, scenario, url, count_text, size = sys.argv
    count = int(count_text)
    data = bytes(int(size))
    try:
        await peer.open(url)
    except ImportError:
        say("absent")
        return
    work = getattr(peer, scenario)
    if scenario in ("get", "put"):
        await work(data, max(20, count // WARM_UP))
        clock = Clock()
        times = sorted(await work(data, count))
        result = clock.stop(count)
        result["p50"] = times[count // 2] * 1e6
        result["p99"] = times[count * 99 // 100] * 1e6
        result["lost"] = 0
    else:
        await work()
        clock = Clock()
        found = sum([await work() for _ in range(count)])
        result = clock.stop(count * KEYS)
        result["lost"] = count * KEYS - found
    say(json.dumps(result))
    await peer.close()


if __name__ == "__main__":
    contender = CONTENDERS[sys.argv[1]]()
    try:
        contender.run(main(contender))
    except ImportError:  # of the event loop
        say("absent")
