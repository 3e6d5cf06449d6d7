"""Clients that write the same keys at once, while the cluster suffers; and the verdict.

Every operation is recorded with the times of its invocation and its return. Its payload is its
number, so when everything is over, the streams tell which of those in doubt took effect. Then the
history of each key is checked:

    keys of a bucket   put and compare-and-set                      Revisions
    atomic batches     three messages, compare-and-set              Revisions
    counters           increments, with the total that they return  Totals
    fast batches       five messages, in order                      Appends

An acknowledged message must be stored, once; one that was refused must not be. A fast batch that
failed has stored its first messages: as many as it says, or at least as many if it is in doubt
(FAST-5). Direct gets of a
bucket may be answered by a replica that lags: those are counted, but what they return must exist.
Refusals are exact, too, with two exceptions (verdict.py).

A long run consists of rounds: after each, the cluster is left alone for a moment, the streams are
read and purged, and the next round uses other keys. So neither the time of the verdict nor the
memory grows faster than the number of operations, and every round has a verdict.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import AsyncExitStack, suppress
from random import Random
from typing import TYPE_CHECKING, Any

from jetstream import JetStream
from jetstream.errors import (
    BatchRefused,
    FastBatchFailed,
    KeyNotFound,
    NoStreamResponse,
    WrongLastRevision,
    WrongLastSequence,
)
from jetstream.errors.api import ApiError
from natsproto.adapters.asyncio import connect
from natsproto.errors import NatsError, RemoteError

from .checker import REFUSED
from .faults import RECONNECT, Cast
from .verdict import ATOMIC, FAST, STREAMS, History, Record

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from jetstream import KeyValue, Stream
    from natsproto.client import Client

CLIENTS = 4
WORKERS = 8  # of each client
TIMEOUT = 3.0
PATIENCE = 60.0
REPLICAS = 3
ROUND = 10_000  # operations
# Stored by now, or never: a member that was frozen has sent what it had.
QUIET = 3.0
READ_BACK = 300.0
NUMBER = "Jepsen"  # the header with the number of an increment


class Jepsen:
    """One run."""

    def __init__(self, operations: int, faults: int, seed: int) -> None:
        self._rng = Random(seed)
        self._total = operations
        self._faults = faults
        self._goal = 0
        self._allowed = 0.0
        self._number = 0
        self._mark = 0.0
        self._reached = asyncio.Event()
        self.done = 0
        self.struck = 0
        self.history = History()
        self._work: dict[str, Callable[[Any, Random], Awaitable[None]]] = {
            "kv": self._write,
            "read": self._read,
            "atomic": self._batch,
            "counter": self._add,
            "fast": self._append,
        }
        self._clients: list[Client] = []
        self._stopped = False

    def stop(self) -> None:
        """End the run after the current round."""
        self._stopped = True

    async def run(self, show: Callable[[str], object] = lambda _: None) -> list[str]:
        """Return what is wrong, or nothing; `show` is called after each round but the last."""
        cast = await asyncio.to_thread(Cast, self._rng, list(STREAMS.values()))
        try:
            async with AsyncExitStack() as stack:
                for _ in range(CLIENTS + 1):
                    options: Any = {"reconnect_wait": 0.05, "max_reconnects": -1}
                    client = await stack.enter_async_context(connect(cast.urls, **options))
                    self._clients.append(client)
                await self._set_up()
                tools = [Tools(client) for client in self._clients[:-1]]
                while self.done < self._total and not self.history.problems:
                    if self.done:
                        show(self.summary())
                    await self._round(cast, tools)
                    if self._stopped:
                        break
        finally:
            await asyncio.to_thread(cast.stop)
        return self.history.problems

    async def _round(self, cast: Cast, tools: list[Tools]) -> None:
        """Let a share of the operations and faults happen, and judge them."""
        self._goal = min(self._total, self.done + ROUND)
        faults = self._faults * self._goal // self._total - self.struck
        workers = [
            self._run_worker(each, Random(self._rng.random()))
            for each in tools
            for _ in range(WORKERS)
        ]
        await asyncio.gather(self._strike(cast, faults), *workers)
        await asyncio.sleep(QUIET)
        self.history.doubts += cast.doubts
        cast.doubts.clear()
        await self._judge()
        self.history.forget()

    async def _set_up(self) -> None:
        js = JetStream(self._clients[-1])
        await _again(lambda: js.create_key_value(bucket="jepsen", history=64, replicas=REPLICAS))
        shared: Any = {"num_replicas": REPLICAS}
        configs: list[Any] = [
            {"name": "ATOMIC", "subjects": ["atomic.*"], "allow_atomic": True, **shared},
            {"name": "COUNTERS", "subjects": ["count.*"], "allow_msg_counter": True, **shared},
            {"name": "FAST", "subjects": ["fast.*"], "allow_batched": True, **shared},
        ]
        for config in configs:
            config["allow_direct"] = True
            await _again(lambda config=config: js.create_stream(config))

    async def _strike(self, cast: Cast, faults: int) -> None:
        """Let the faults happen while a share of the operations runs."""
        share = (self._goal - self.done) / (faults + 1)
        self._allowed = self.done + share
        for name in cast.plan(faults):
            await self._until(self._allowed - share / 2)
            self._allowed += share
            if name == RECONNECT:
                await self._rng.choice(self._clients[:-1]).force_reconnect()
            else:
                await asyncio.to_thread(cast.strike, name)
            self.struck += 1
            self.history.tally[f"fault: {name}"] += 1
        self._allowed = self._goal

    async def _until(self, count: float) -> None:
        """Wait until so many operations have begun."""
        self._mark = count
        self._reached.clear()
        if self.done < count:
            await self._reached.wait()

    async def _run_worker(self, tools: Tools, rng: Random) -> None:
        kinds = list(self._work)
        weights = [40, 20, 10, 22, 8]
        while self.done < self._goal:
            if self.done >= self._allowed:
                await asyncio.sleep(0.01)
                continue
            self.done += 1
            if self.done >= self._mark:
                self._reached.set()
            await self._work[rng.choices(kinds, weights)[0]](tools, rng)

    # The operations

    async def _record(self, kind: str, key: str, argument: Any, call: Any) -> None:
        self._number += 1
        record = Record(self._number, argument)
        self.history.keys[kind].note(key, record)
        try:
            record.end("stored", await call(record.number))
        except (WrongLastRevision, WrongLastSequence):
            record.end("refused", REFUSED)
        except (NoStreamResponse, BatchRefused):
            record.end("rejected")
        except FastBatchFailed as error:
            record.end("doubt" if error.in_doubt else "partial", error.stored)
        except RemoteError as error:
            record.end("doubt")
            if isinstance(error, ApiError) and error.code < 500:
                self.history.problems.append(f"{kind} {key}: {error!r}")
        except NatsError as error:
            self.history.problems.append(f"{kind} {key}: {error!r}")
        self.history.tally[f"{kind}: {record.outcome}"] += 1

    async def _write(self, tools: Tools, rng: Random) -> None:
        keys = self.history.keys["kv"]
        key = keys.choose(rng)
        last = None if rng.random() < 0.25 else keys.known.get(key, 0)
        kv = await tools.bucket()

        async def call(number: int) -> int:
            data = b"%d" % number
            revision = await (kv.put(key, data) if last is None else kv.update(key, data, last))
            keys.learn(key, revision)
            return revision

        await self._record("kv", key, last, call)

    async def _read(self, tools: Tools, rng: Random) -> None:
        keys = self.history.keys["kv"]
        key = rng.choice(keys.active)
        kv = await tools.bucket()
        invoked = time.monotonic()
        try:
            entry = await kv.get(key)
        except KeyNotFound:
            found = (0, 0)
        except RemoteError:
            self.history.tally["read: failed"] += 1
            return
        else:
            found = (entry.revision, int(entry.value))
            keys.learn(key, entry.revision)
        self.history.reads.append((key, *found, invoked, time.monotonic()))

    async def _batch(self, tools: Tools, rng: Random) -> None:
        keys = self.history.keys["atomic"]
        key = keys.choose(rng)
        last = keys.known.get(key, 0)

        async def call(number: int) -> int:
            batch = tools.js.atomic_batch(timeout=TIMEOUT)
            subject = "atomic." + key
            await batch.add(subject, b"%d.0" % number, expect_last_subject_seq=last)
            for place in range(1, ATOMIC - 1):
                await batch.add(subject, b"%d.%d" % (number, place))
            ack = await batch.commit(subject, b"%d.%d" % (number, ATOMIC - 1))
            keys.learn(key, ack.seq)
            return ack.seq

        await self._record("atomic", key, last, call)

    async def _add(self, tools: Tools, rng: Random) -> None:
        key = self.history.keys["counter"].choose(rng)
        by = rng.randrange(1, 10)

        async def call(number: int) -> int:
            headers = {NUMBER: str(number)}
            return await tools.js.add_to_counter("count." + key, by, headers=headers)

        await self._record("counter", key, by, call)

    async def _append(self, tools: Tools, rng: Random) -> None:
        key = self.history.keys["fast"].choose(rng)

        async def call(number: int) -> int:
            async with tools.js.fast_batch(ack_timeout=TIMEOUT) as batch:
                for place in range(FAST):
                    await batch.add("fast." + key, b"%d.%d" % (number, place))
                ack = await batch.close()
            assert ack is not None
            return ack.seq

        await self._record("fast", key, None, call)

    # The verdict

    async def _judge(self) -> None:
        js = JetStream(self._clients[-1])
        history = self.history
        kv = await self._dump(js, "KV_jepsen")
        history.judge_kv(kv)
        history.judge_reads(kv)
        history.judge_atomic(await self._dump(js, "ATOMIC"))
        history.judge_counters(await self._dump(js, "COUNTERS", totals=True))
        history.judge_fast(await self._dump(js, "FAST"))

    async def _dump(self, js: JetStream, name: str, totals: bool = False) -> dict[bytes, list[int]]:
        """Return the sequences of each payload, or the totals of each increment; then purge."""
        stream: Stream = await _again(lambda: js.stream(name))
        stored: dict[bytes, list[int]] = {}
        count = (await _again(stream.info)).state.messages
        if not count:
            return stored
        consumer = await _again(stream.ordered_consumer)

        async def read() -> None:
            async with consumer.consume(stop_after=count, max_messages=5000) as messages:
                async for msg in messages:
                    if totals:
                        number = (msg.headers or {})[NUMBER].encode()
                        stored.setdefault(number, []).append(int(json.loads(msg.data)["val"]))
                    else:
                        stored.setdefault(msg.data, []).append(msg.metadata.stream_seq)

        try:
            await asyncio.wait_for(read(), READ_BACK)
        except asyncio.TimeoutError:
            text = f"{name} was not read within {READ_BACK:g} s: {len(stored)} of {count} messages"
            raise RuntimeError(text) from None
        self.history.check_duplicates(name, stored)
        await _again(stream.purge)
        return stored

    def summary(self) -> str:
        """Return the figures of the run."""
        tally = self.history.tally
        counts = ", ".join(f"{name} {tally[name]:,}" for name in sorted(tally))
        return f"{self.done:,} operations, {self.struck:,} faults: {counts}"


class Tools:
    """The JetStream of a client, and its bucket."""

    def __init__(self, client: Client) -> None:
        self.js = JetStream(client, timeout=TIMEOUT)
        self._kv: KeyValue | None = None

    async def bucket(self) -> KeyValue:
        """Return the bucket, looked up once."""
        if self._kv is None:
            self._kv = await _again(lambda: self.js.key_value("jepsen"))
        return self._kv


async def _again(call: Callable[[], Awaitable[Any]]) -> Any:
    """Call until there is a leader that answers."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with suppress(RemoteError):
            return await call()
        await asyncio.sleep(0.2)
    return await call()
