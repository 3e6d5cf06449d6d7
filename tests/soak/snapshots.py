"""Snapshots of buckets while others write: python -m tests.soak.snapshots [--count 10000]

Some keys stay, others are changed, created and purged all the time. Every snapshot must have all
the keys that stay or are only changed, whatever the server counts as pending.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from typing import TYPE_CHECKING

from jetstream import JetStream
from natsproto.adapters.asyncio import connect
from natsproto.testing import Server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from jetstream.kv import KeyValue
    from jetstream.objects import ObjectStore
    from jetstream.schema.stream_config import Storage

    Call = Callable[[], Awaitable[bool]]

HISTORIES = (1, 5)
STEADY = ["s%d" % number for number in range(5)]
CHANGED = ["c%d" % number for number in range(5)]
ALL = sorted(STEADY + CHANGED)
PURGED = ["p%d" % number for number in range(3)]


class Snapshots:
    """Takes `count` snapshots of a bucket with this history, of each kind in turn."""

    def __init__(self, history: int, count: int, storage: Storage = "memory") -> None:
        self.history = history
        self.count = count
        self.storage = storage
        self.calls: dict[str, int] = {}
        self.short: dict[str, int] = {}
        self.puts = 0
        self.seconds = 0.0
        self.old = False

    async def run(self, url: str) -> None:
        async with connect(url) as mine, connect(url) as theirs:
            assert mine.info is not None
            self.old = mine.info.version.startswith("2.9.")
            js, others = JetStream(mine), JetStream(theirs)
            kv = await js.create_key_value(bucket="kv", history=self.history, storage=self.storage)
            store = await js.create_object_store(bucket="obj", storage=self.storage)
            for _ in range(self.history):
                for key in ALL:
                    await kv.put(key, b"first")
            for name in ALL:
                await store.put(name, b"first")
            stop = asyncio.Event()
            writers = [
                asyncio.create_task(self._change(others, stop)),
                asyncio.create_task(self._burst(others, stop)),
                asyncio.create_task(self._come_and_go(others, stop)),
                asyncio.create_task(self._put_objects(others, stop)),
            ]
            start = time.monotonic()
            try:
                await self._take(js, kv, store)
            finally:
                self.seconds = time.monotonic() - start
                stop.set()
                await asyncio.gather(*writers)
                await js.delete_key_value("kv")
                await js.delete_object_store("obj")

    def summary(self) -> str:
        rates = (sum(self.calls.values()), self.puts / self.seconds, self.seconds)
        text = "history %d: %d snapshots, %.0f writes/s, %.0f s; short:" % (self.history, *rates)
        parts = ["%s %d/%d" % (name, self.short[name], self.calls[name]) for name in self.calls]
        return "%s %s" % (text, ", ".join(parts))

    # Readers

    async def _take(self, js: JetStream, kv: KeyValue, store: ObjectStore) -> None:
        stream = await js.stream("KV_kv")

        async def keys() -> bool:
            return _has(await kv.keys(), ALL)

        async def some_keys() -> bool:
            return _has(await kv.keys("c0"), ["c0"])

        async def initial() -> bool:
            async with await kv.watch() as watcher:
                return _has([entry.key async for entry in watcher.initial()], ALL)

        async def list_keys() -> bool:
            async with await kv.list_keys() as lister:
                return _has([key async for key in lister], ALL)

        async def history() -> bool:
            found = [entry.revision for entry in await kv.history("c2")]
            return len(found) == self.history and found == sorted(set(found))

        async def with_history() -> bool:
            async with await kv.watch(include_history=True) as watcher:
                found = [entry.key async for entry in watcher.initial()]
            # A consumer of 2.9.10 skips entries when a key is purged: then the last one is read.
            wanted = 1 if self.old else self.history
            return all(found.count(key) >= wanted for key in ALL)

        async def objects() -> bool:
            return _has([info.name for info in await store.list()], ALL)

        async def purge_deletes() -> bool:
            for key in PURGED:
                await kv.put(key, b"v")
                await kv.delete(key)
            await kv.purge_deletes(0)
            left = (await stream.info(subjects_filter="$KV.kv.>")).state.subjects
            return not [key for key in PURGED if "$KV.kv." + key in left]

        calls: list[Call] = [keys, some_keys, initial, list_keys, history, with_history, objects]
        calls.append(purge_deletes)
        for number in range(self.count):
            call = calls[number % len(calls)]
            name = call.__name__
            self.calls[name] = self.calls.get(name, 0) + 1
            self.short[name] = self.short.get(name, 0) + (0 if await call() else 1)

    # Writers

    async def _change(self, js: JetStream, stop: asyncio.Event) -> None:
        """Make one change at a time."""
        kv = await js.key_value("kv")
        while not stop.is_set():
            for key in CHANGED:
                await kv.put(key, b"again")
                self.puts += 1

    async def _burst(self, js: JetStream, stop: asyncio.Event) -> None:
        """Make many changes at once, with pauses."""
        async with js.publisher() as window:
            while not stop.is_set():
                for key in CHANGED * 4:
                    await window.publish("$KV.kv." + key, b"burst")
                    self.puts += 1
                await window.flush()
                await asyncio.sleep(0.005)

    async def _come_and_go(self, js: JetStream, stop: asyncio.Event) -> None:
        """Create and purge keys repeatedly."""
        kv = await js.key_value("kv")
        stream = await js.stream("KV_kv")
        number = 0
        while not stop.is_set():
            number += 1
            key = "g%d" % (number % 7)
            await kv.put(key, b"new")
            await asyncio.sleep(0.002)
            if number % 2:
                await kv.purge(key)
            else:
                await stream.purge(subject="$KV.kv." + key)
            self.puts += 2

    async def _put_objects(self, js: JetStream, stop: asyncio.Event) -> None:
        store = await js.object_store("obj")
        while not stop.is_set():
            for name in CHANGED:
                await store.put(name, b"again")
                self.puts += 2


def _has(found: list[str], wanted: list[str]) -> bool:
    return not set(wanted).difference(found)


async def take_all(count: int, histories: tuple[int, ...] = HISTORIES) -> list[Snapshots]:
    """Take all snapshots on a separate server."""
    made = [Snapshots(history, count) for history in histories]
    with Server(jetstream=True) as server:
        for each in made:
            await each.run(server.url)
            print(each.summary(), flush=True)
    return made


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.snapshots")
    parser.add_argument("--count", type=int, default=10_000, help="for each history")
    parser.add_argument("--history", type=int, action="append")
    options = parser.parse_args(arguments)
    made = asyncio.run(take_all(options.count, tuple(options.history or HISTORIES)))
    return 1 if any(sum(each.short.values()) for each in made) else 0


if __name__ == "__main__":
    sys.exit(main())
