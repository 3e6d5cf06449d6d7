"""One client that uses a bucket; kv.py starts it.

    python bench/_kv.py CLIENT SCENARIO URL COUNT SIZE

The arguments and the result are described in _client.py. The bucket exists, with KEYS keys of that
size.
"""

from __future__ import annotations

from typing import Any

from _client import Clock, latency, main, timed, timed_plainly
from _contenders import Contender, natsproto
from _peers import NatsCore, NatsPy, Natsrpy, nats_py

BUCKET = "bench"
KEYS = 10_000
KEY = "orders.7"
OTHER = "orders.8"


class Bucket(Contender):
    """A client's bucket: `kv` is the object of its library, with calls that are awaited."""

    kv: Any

    async def get(self, data: bytes, count: int) -> list[float]:
        return await timed(self.kv.get, KEY, count=count)

    async def put(self, data: bytes, count: int) -> list[float]:
        return await timed(self.kv.put, OTHER, data, count=count)

    async def watch(self) -> int:
        """Return the number of values."""
        raise NotImplementedError

    async def keys(self) -> int:
        return len(await self.kv.keys())


class Ours(Bucket):
    async def open(self, url: str) -> None:
        from jetstream import JetStream

        await super().open(url)
        self.kv = await JetStream(self.client).key_value(BUCKET)

    async def watch(self) -> int:
        count = 0
        async with await self.kv.watch(">") as watcher:
            async for _ in watcher.initial():
                count += 1
        return count


class OursBlocking(Contender):
    async def open(self, url: str) -> None:
        from jetstream.blocking import JetStream

        await super().open(url)
        self.kv = JetStream(self.client).key_value(BUCKET)

    async def get(self, data: bytes, count: int) -> list[float]:
        return timed_plainly(self.kv.get, KEY, count=count)

    async def put(self, data: bytes, count: int) -> list[float]:
        return timed_plainly(self.kv.put, OTHER, data, count=count)

    async def watch(self) -> int:
        count = 0
        with self.kv.watch(">") as watcher:
            for _ in watcher.initial():
                count += 1
        return count

    async def keys(self) -> int:
        return len(self.kv.keys())


class BucketNatsPy(Bucket, NatsPy):
    async def open(self, url: str) -> None:
        await super().open(url)
        self.kv = await self.client.jetstream().key_value(BUCKET)

    async def watch(self) -> int:
        count = 0
        watcher = await self.kv.watch(">")
        async for entry in watcher:
            if entry is None:
                break
            count += 1
        await watcher.stop()
        return count


class BucketNatsCore(Bucket, NatsCore):
    async def open(self, url: str) -> None:
        from nats.jetstream import new
        from nats.key_value import key_value

        await super().open(url)
        self.kv = await key_value(new(self.client), BUCKET)

    async def watch(self) -> int:
        count = 0
        async with await self.kv.watch(">") as watcher:
            async for _ in watcher.values():
                count += 1
        return count

    async def keys(self) -> int:
        return len([key async for key in await self.kv.keys()])


class BucketNatsrpy(Bucket, Natsrpy):
    """natsrpy's bucket. A watch that starts with the existing values is one "with history"."""

    async def open(self, url: str) -> None:
        await super().open(url)
        self.kv = await (await self.client.jetstream()).kv.get(BUCKET)

    async def watch(self) -> int:
        count = 0
        async for entry in await self.kv.watch_with_history(">"):
            count += 1
            if entry.seen_current:
                break
        return count

    async def keys(self) -> int:
        return len([key async for key in await self.kv.keys()])


# In the order of the tables.
CONTENDERS = {
    **natsproto(Ours, OursBlocking),
    **nats_py(BucketNatsPy),
    "nats-core": BucketNatsCore,
    "natsrpy uvloop": BucketNatsrpy,
}


async def measure(peer: Any, scenario: str, count_text: str, size: str) -> dict[str, float]:
    count = int(count_text)
    work = getattr(peer, scenario)
    if scenario in ("get", "put"):
        return await latency(work, bytes(int(size)), count)
    await work()
    clock = Clock()
    found = sum([await work() for _ in range(count)])
    result = clock.stop(count * KEYS)
    result["lost"] = count * KEYS - found
    return result


if __name__ == "__main__":
    main(CONTENDERS, measure)
