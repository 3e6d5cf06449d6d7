"""What runs during the chaos: writers and readers of a stream, a bucket and an object store.

X1   an acknowledged publish is stored once, and so are the messages of a committed fast batch
X2   consume(), fetch() and a push subscription get every stored message at least once
X3   an ordered consumer gets every stored message once, in order, without gaps
X4   a key has the value of its last acknowledged put, or one that was in doubt later
X5   a watch sees revisions in order, and in the end the last one of each key
X6   an object is whole, and is the last acknowledged one, or one that was in doubt later
X7   what has arrived at the client for consume(), fetch() or the push subscription, its reader got
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from jetstream import JetStream
from jetstream.errors import FastBatchFailed, JetStreamError, PublishesFailed
from natsproto.errors import RemoteError
from tests.soak.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from natsproto.client import Client

REPLICAS = 3
KEYS = 5
BATCH = 50
PACE = 0.02  # seconds between writes: the cluster is to have time for elections, not for records
REDELIVERY = 20.0  # four times the ack_wait of the consumers
PATIENCE = 90.0
ORDINARY = (JetStreamError, RemoteError)


async def until_done(question: Callable[[], Awaitable[Any]]) -> Any:
    """Repeat a call until the cluster answers it."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with suppress(*ORDINARY):
            return await question()
        await asyncio.sleep(0.2)
    return await question()


class Reader:
    """The sequences that one reader got."""

    def __init__(self, name: str, ordered: bool = False) -> None:
        self.name = name
        self.ordered = ordered
        self.seen: set[int] = set()
        self.last = 0
        self.odd: list[str] = []

    def take(self, seq: int) -> None:
        if self.ordered and seq <= self.last:
            self.odd.append(f"X3: {self.name} got {seq} after {self.last}")
        self.last = max(seq, self.last)
        self.seen.add(seq)


class Work:
    """All writers and readers; `start`, then `settle` after each fault, then `complaints`."""

    def __init__(self, clients: list[Client]) -> None:
        self.writer, self.other, self.reader = (JetStream(each) for each in clients)
        self.stopping = False
        self.acked: set[str] = set()  # ids of publishes that were acknowledged
        self.stored: dict[str, int] = {}  # ids, and how often they are in the stream
        self.readers = [Reader("consume"), Reader("fetch"), Reader("push"), Reader("ordered", True)]
        self.last_seq = 0  # the highest that was acknowledged
        self.puts: dict[str, list[tuple[bytes, bool]]] = {}  # by key: value, whether acknowledged
        self.objects: list[tuple[bytes, bool]] = []
        self.watched: dict[str, int] = {}
        self.revision = 0
        self.odd: list[str] = []
        self.failures = 0
        self.trace = Trace("CHAOS")
        self._settled = 0
        self._late: dict[str, set[int]] = {each.name: set() for each in self.readers}
        self._tasks: list[asyncio.Task[None]] = []
        self._writers: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        js = self.writer
        await until_done(
            lambda: js.create_stream(
                name="CHAOS",
                subjects=["chaos.>"],
                allow_batched=True,
                duplicate_window=600.0,
                num_replicas=REPLICAS,
            )
        )
        self.bucket = await until_done(
            lambda: js.create_key_value(bucket="chaos", replicas=REPLICAS)
        )
        self.store = await until_done(
            lambda: js.create_object_store(bucket="chaos", replicas=REPLICAS)
        )
        self.stream = await until_done(lambda: self.reader.stream("CHAOS"))
        for name in ("consume", "fetch"):
            await until_done(
                lambda name=name: self.stream.create_consumer(durable_name=name, ack_wait=5.0)
            )
        writers = (self._publish, self._fast, self._put, self._put_objects)
        readers = (self._consume, self._fetch, self._push, self._ordered, self._watch)
        self._writers = [asyncio.create_task(each()) for each in writers]
        self._tasks = [asyncio.create_task(each()) for each in readers]

    # Writers

    async def _publish(self) -> None:
        number = 0
        while not self.stopping:
            ids = [f"p{number + index}" for index in range(20)]
            number += len(ids)
            while ids and not self.stopping:
                ids = await self._publish_some(ids)
            await asyncio.sleep(PACE)

    async def _publish_some(self, ids: list[str]) -> list[str]:
        sent = {}
        try:
            async with self.writer.publisher(max_pending=20, ack_timeout=3.0) as window:
                for each in ids:
                    sent[each] = await window.publish("chaos.p", each.encode(), msg_id=each)
        except (PublishesFailed, *ORDINARY):
            self.failures += 1
        done = {each for each, publication in sent.items() if publication.ack is not None}
        self.acked |= done
        self.last_seq = max([self.last_seq, *(sent[each].ack.seq for each in done)])
        return [each for each in ids if each not in done]

    async def _fast(self) -> None:
        number = 0
        while not self.stopping:
            number += 1
            ids = [f"f{number}.{index}" for index in range(BATCH)]
            try:
                async with self.other.fast_batch(ack_timeout=5.0) as batch:
                    for each in ids:
                        await batch.add("chaos.f", each.encode())
                self.acked.update(ids)  # without an error all of them are stored
            except FastBatchFailed as error:
                self.failures += 1
                self.acked.update(ids[: error.stored])
            except ORDINARY:
                self.failures += 1
            await asyncio.sleep(10 * PACE)

    async def _put(self) -> None:
        number = 0
        while not self.stopping:
            number += 1
            key, value = f"k{number % KEYS}", b"%d" % number
            history = self.puts.setdefault(key, [])
            history.append((value, False))
            with suppress(*ORDINARY):
                await self.bucket.put(key, value)
                history[-1] = (value, True)
            await asyncio.sleep(PACE)

    async def _put_objects(self) -> None:
        number = 0
        while not self.stopping:
            number += 1
            data = b"%d." % number * 3000
            self.objects.append((data, False))
            with suppress(*ORDINARY):
                await self.store.put("thing", data, chunk_size=4096)
                self.objects[-1] = (data, True)
            await asyncio.sleep(20 * PACE)

    # Readers

    async def _consume(self) -> None:
        consumer = await until_done(lambda: self.reader.consumer("CHAOS", "consume"))
        async with consumer.consume(max_messages=200, expires=5.0, heartbeat=1.0) as messages:
            async for msg in messages:
                self.readers[0].take(msg.metadata.stream_seq)
                await msg.ack()

    async def _fetch(self) -> None:
        consumer = await until_done(lambda: self.reader.consumer("CHAOS", "fetch"))
        while True:
            with suppress(*ORDINARY):
                for msg in await consumer.fetch(100, expires=2.0):
                    self.readers[1].take(msg.metadata.stream_seq)
                    await msg.ack()
                continue
            await asyncio.sleep(0.2)

    async def _push(self) -> None:
        options = {"stream": "CHAOS", "durable": "push", "ack_wait": 5.0, "idle_heartbeat": 1.0}
        messages = await until_done(lambda: self.reader.subscribe("chaos.>", **options))
        async for msg in messages:
            self.readers[2].take(msg.metadata.stream_seq)
            await msg.ack()

    async def _ordered(self) -> None:
        consumer = await until_done(self.stream.ordered_consumer)
        async with consumer.consume(max_messages=200, expires=5.0, heartbeat=1.0) as messages:
            async for msg in messages:
                self.readers[3].take(msg.metadata.stream_seq)

    async def _watch(self) -> None:
        watcher = await until_done(self.bucket.watch)
        async for entry in watcher:
            if entry.revision <= self.revision:
                self.odd.append(f"X5: revision {entry.revision} after {self.revision}")
            self.revision = entry.revision
            self.watched[entry.key] = entry.revision

    # Between faults, and at the end

    async def settle(self) -> float:
        """Wait until a write succeeds, and the readers have all before it; return how long."""
        begin = time.monotonic()
        known = self.last_seq
        while self.last_seq == known:
            self._check_tasks(self._tasks + self._writers)
            if time.monotonic() > begin + PATIENCE:
                raise AssertionError(f"stuck: no publish is acknowledged for {PATIENCE} s")
            await asyncio.sleep(0.05)
        await self._catch_up()
        return time.monotonic() - begin

    async def _catch_up(self) -> None:
        """Wait until all readers have what was acknowledged up to now."""
        begin = time.monotonic()
        target = self.last_seq
        while any(reader.last < target for reader in self.readers):
            self._check_tasks(self._tasks)
            if time.monotonic() > begin + PATIENCE:
                late = [(each.name, each.last) for each in self.readers if each.last < target]
                raise AssertionError(f"stuck: {late} of {target} after {PATIENCE} s")
            await asyncio.sleep(0.05)
        # The newest has arrived, but others before it may not have.
        for reader in self.readers:
            self._late[reader.name] |= set(range(self._settled + 1, target + 1)) - reader.seen
        self._settled = target

    def explanations(self) -> list[str]:
        """Return where messages were that had not arrived when later ones had."""
        found = [(each, late) for each, late in self._late.items() if late and each != "ordered"]
        return [f"{name}: {self.trace.explain(name, late)}" for name, late in found]

    def _check_tasks(self, tasks: list[asyncio.Task[None]]) -> None:
        for task in tasks:
            if task.done():
                raise AssertionError(f"{task.get_coro()} ended: {task.exception()!r}")

    async def finish(self) -> list[str]:
        """Stop the writers, read everything back, and return the complaints."""
        self.stopping = True
        await asyncio.gather(*self._writers)
        info = await until_done(self.stream.info)
        self.last_seq = info.state.last_seq
        await self._catch_up()
        sequences = await self._read_back(info.state.messages)
        await self._redelivered(sequences)
        complaints = self.odd + [odd for reader in self.readers for odd in reader.odd]
        gone = sorted(each for each in self.acked if each not in self.stored)
        twice = sorted(each for each, count in self.stored.items() if count > 1 and each[0] == "p")
        if gone or twice:
            complaints.append(f"X1: {len(gone)} lost, as {gone[:3]}; {len(twice)} stored twice")
        for reader in self.readers:
            missing = sorted(sequences - reader.seen)
            if missing:
                rule = "X3" if reader.ordered else "X2"
                complaints.append(f"{rule}: {reader.name} misses {len(missing)}: {missing[:3]}")
            lost = [] if reader.ordered else self.trace.lost_by_client(reader.name, reader.seen)
            if lost:
                complaints.append(f"X7: {reader.name} lost {len(lost)} that arrived: {lost[:3]}")
        complaints += await self._check_bucket()
        complaints += await self._check_object()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        return complaints

    async def _redelivered(self, sequences: set[int]) -> None:
        """Wait until the readers have everything: what a lost pull had comes after `ack_wait`."""
        deadline = time.monotonic() + REDELIVERY
        while any(sequences - reader.seen for reader in self.readers if not reader.ordered):
            if time.monotonic() > deadline:
                return
            await asyncio.sleep(0.05)

    async def _read_back(self, total: int) -> set[int]:
        found: set[int] = set()
        reader = await until_done(
            lambda: self.stream.create_consumer(ack_policy="none", num_replicas=1, mem_storage=True)
        )
        deadline = time.monotonic() + PATIENCE
        while len(found) < total and time.monotonic() < deadline:
            with suppress(*ORDINARY):
                for msg in await reader.fetch(1000, expires=2.0):
                    if msg.metadata.stream_seq not in found:
                        found.add(msg.metadata.stream_seq)
                        name = msg.data.decode()
                        self.stored[name] = self.stored.get(name, 0) + 1
        return found

    async def _check_bucket(self) -> list[str]:
        complaints = []
        for key, history in self.puts.items():
            if not any(acked for _, acked in history):
                continue  # it may not exist
            entry = await until_done(lambda key=key: self.bucket.get(key))
            if entry.value not in possible(history):
                complaints.append(f"X4: {key} is {entry.value!r}, after {history[-3:]}")
            for _ in range(int(PATIENCE / 0.05)):
                if self.watched.get(key) == entry.revision:
                    break
                await asyncio.sleep(0.05)
            if self.watched.get(key) != entry.revision:
                complaints.append(f"X5: the watch has {self.watched.get(key)} of {key}: {entry}")
        return complaints

    async def _check_object(self) -> list[str]:
        if not any(acked for _, acked in self.objects):
            return []
        data = await until_done(lambda: self.store.get_bytes("thing"))
        if data in possible(self.objects):
            return []
        return [f"X6: {data[:20]!r} of {len(data)} bytes is not the last object"]


def possible(history: list[tuple[bytes, bool]]) -> list[bytes]:
    """Return the values that may be there: the last acknowledged one, and those after it."""
    last = max([index for index, (_, acked) in enumerate(history) if acked], default=0)
    return [value for value, _ in history[last:]]
