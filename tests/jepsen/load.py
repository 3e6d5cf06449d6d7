"""Clients that write the same keys at once, while the cluster suffers; and the verdict.

Every operation is recorded with the times of its invocation and its return. Its payload is its
number, so when everything is over, the streams tell which of those in doubt took effect. Then the
history of each key is checked:

    keys of a bucket   put and compare-and-set                      Revisions
    atomic batches     three messages, compare-and-set              Revisions
    counters           increments, with the total that they return  Totals
    fast batches       five messages, in order                      Appends

An acknowledged message must be stored, once; one that was refused must not be. Direct gets of a
bucket may be answered by a replica that lags: those are counted, but what they return must exist.

A leader that was frozen, and replaced meanwhile, does not know that when it continues: it refuses
writes by its old state, while the new leader, which gets them too, may store them. So a refusal in
the moments after a thaw proves nothing, and such a write is in doubt. All others are exact.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter as Tally
from contextlib import AsyncExitStack, suppress
from random import Random
from typing import TYPE_CHECKING, Any

from jetstream import JetStream
from jetstream.errors import (
    BatchRefused,
    KeyNotFound,
    NoStreamResponse,
    PublishInDoubt,
    WrongLastRevision,
    WrongLastSequence,
)
from jetstream.errors.api import ApiError
from natsproto.adapters.asyncio import connect
from natsproto.errors import NatsError, RemoteError

from .checker import REFUSED, Appends, Operation, Revisions, Totals, check
from .faults import RECONNECT, Cast

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from jetstream import KeyValue, Stream
    from natsproto.client import Client

    from .checker import Model

CLIENTS = 4
WORKERS = 8  # of each client
ACTIVE = 12  # keys of each kind at a time
USES = 36  # of a key, below the history of a bucket
TIMEOUT = 3.0
PATIENCE = 60.0
REPLICAS = 3
STREAMS = ["KV_jepsen", "ATOMIC", "COUNTERS", "FAST"]
ATOMIC = 3
FAST = 5
# Stored by now, or never: a member that was frozen has sent what it had.
QUIET = 3.0
STALE = 2.0  # after a thaw, until the member has learned of the new leader
READ_BACK = 300.0
MODELS: dict[str, Model] = {
    "kv": Revisions(),
    "atomic": Revisions(),
    "counter": Totals(),
    "fast": Appends(),
}


class Record:
    """What is known of an operation before the streams are read."""

    __slots__ = ("argument", "invoked", "number", "outcome", "result", "returned")

    def __init__(self, number: int, argument: Any) -> None:
        self.number = number
        self.argument = argument
        self.invoked = time.monotonic()
        self.returned: float | None = None
        self.outcome = "doubt"
        self.result: Any = None

    def end(self, outcome: str, result: Any = None) -> None:
        """Note how it ended: stored, refused (by a comparison), rejected (otherwise), in doubt."""
        self.outcome = outcome
        self.result = result
        self.returned = None if outcome == "doubt" else time.monotonic()


class Keys:
    """The keys of one kind that are in use; each is replaced after a number of uses."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._count = 0
        self.active: list[str] = [self._new() for _ in range(ACTIVE)]
        self._uses: Tally[str] = Tally()
        #: The last revision of a key that any client has seen.
        self.known: dict[str, int] = {}
        self.records: dict[str, list[Record]] = {}

    def _new(self) -> str:
        self._count += 1
        return f"{self._kind}-{self._count}"

    def choose(self, rng: Random) -> str:
        place = rng.randrange(ACTIVE)
        key = self.active[place]
        self._uses[key] += 1
        if self._uses[key] >= USES:
            self.active[place] = self._new()
            del self._uses[key]
        return key

    def note(self, key: str, record: Record) -> None:
        self.records.setdefault(key, []).append(record)

    def learn(self, key: str, revision: int) -> None:
        self.known[key] = max(revision, self.known.get(key, 0))


class Jepsen:
    """One run."""

    def __init__(self, operations: int, faults: int, seed: int) -> None:
        self._rng = Random(seed)
        self._total = operations
        self._faults = faults
        self._allowed = 0.0
        self._number = 0
        self._mark = 0.0
        self._reached = asyncio.Event()
        self.done = 0
        self.struck = 0
        self.tally: Tally[str] = Tally()
        self.keys = {kind: Keys(kind) for kind in MODELS}
        self.thaws: list[float] = []
        self.reads: list[tuple[str, int, int, float, float]] = []
        self.problems: list[str] = []
        self._work: dict[str, Callable[[Any, Random], Awaitable[None]]] = {
            "kv": self._write,
            "read": self._read,
            "atomic": self._batch,
            "counter": self._add,
            "fast": self._append,
        }
        self._clients: list[Client] = []

    async def run(self) -> list[str]:
        """Return what is wrong, or nothing."""
        cast = await asyncio.to_thread(Cast, self._rng, STREAMS)
        self.thaws = cast.thaws
        try:
            async with AsyncExitStack() as stack:
                for _ in range(CLIENTS + 1):
                    options: Any = {"reconnect_wait": 0.05, "max_reconnects": -1}
                    client = await stack.enter_async_context(connect(cast.urls, **options))
                    self._clients.append(client)
                await self._set_up()
                workers = [
                    asyncio.create_task(self._run_worker(Tools(client), Random(self._rng.random())))
                    for client in self._clients[:-1]
                    for _ in range(WORKERS)
                ]
                await asyncio.gather(self._strike(cast), *workers)
                await asyncio.sleep(QUIET)
                await self._judge()
        finally:
            await asyncio.to_thread(cast.stop)
        return self.problems

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

    async def _strike(self, cast: Cast) -> None:
        """Let the faults happen while a share of the operations runs."""
        share = self._total / (self._faults + 1)
        self._allowed = share
        for name in cast.plan(self._faults):
            await self._until(self._allowed - share / 2)
            self._allowed += share
            if name == RECONNECT:
                await self._rng.choice(self._clients[:-1]).force_reconnect()
            else:
                await asyncio.to_thread(cast.strike, name)
            self.struck += 1
            self.tally[f"fault: {name}"] += 1
        self._allowed = self._total

    async def _until(self, count: float) -> None:
        """Wait until so many operations have begun."""
        self._mark = count
        self._reached.clear()
        if self.done < count:
            await self._reached.wait()

    async def _run_worker(self, tools: Tools, rng: Random) -> None:
        kinds = list(self._work)
        weights = [40, 20, 10, 22, 8]
        while self.done < self._total:
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
        self.keys[kind].note(key, record)
        try:
            record.end("stored", await call(record.number))
        except (WrongLastRevision, WrongLastSequence):
            record.end("refused", REFUSED)
        except (NoStreamResponse, BatchRefused):
            record.end("rejected")
        except PublishInDoubt:
            pass
        except ApiError as error:
            if error.code < 500:
                self.problems.append(f"{kind} {key}: {error!r}")
        except RemoteError:
            pass
        except NatsError as error:
            self.problems.append(f"{kind} {key}: {error!r}")
        self.tally[f"{kind}: {record.outcome}"] += 1

    async def _write(self, tools: Tools, rng: Random) -> None:
        keys = self.keys["kv"]
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
        keys = self.keys["kv"]
        key = rng.choice(keys.active)
        kv = await tools.bucket()
        invoked = time.monotonic()
        try:
            entry = await kv.get(key)
        except KeyNotFound:
            found = (0, 0)
        except RemoteError:
            self.tally["read: failed"] += 1
            return
        else:
            found = (entry.revision, int(entry.value))
            keys.learn(key, entry.revision)
        self.reads.append((key, *found, invoked, time.monotonic()))

    async def _batch(self, tools: Tools, rng: Random) -> None:
        keys = self.keys["atomic"]
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
        key = self.keys["counter"].choose(rng)
        by = rng.randrange(1, 10)

        async def call(number: int) -> int:
            return await tools.js.add_to_counter("count." + key, by)

        await self._record("counter", key, by, call)

    async def _append(self, tools: Tools, rng: Random) -> None:
        key = self.keys["fast"].choose(rng)

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
        kv = await self._dump(js, "KV_jepsen")
        self._judge_kv(kv)
        self._judge_reads(kv)
        self._judge_atomic(await self._dump(js, "ATOMIC"))
        await self._judge_counters(js)
        self._judge_fast(await self._dump(js, "FAST"))

    async def _dump(self, js: JetStream, name: str) -> dict[bytes, list[int]]:
        """Return the sequences of each payload of a stream."""
        stream: Stream = await _again(lambda: js.stream(name))
        stored: dict[bytes, list[int]] = {}
        count = (await _again(stream.info)).state.messages
        if not count:
            return stored
        consumer = await _again(stream.ordered_consumer)

        async def read() -> None:
            async with consumer.consume(stop_after=count, max_messages=5000) as messages:
                async for msg in messages:
                    stored.setdefault(msg.data, []).append(msg.metadata.stream_seq)

        try:
            await asyncio.wait_for(read(), READ_BACK)
        except asyncio.TimeoutError:
            text = f"{name} was not read within {READ_BACK:g} s: {len(stored)} of {count} messages"
            raise RuntimeError(text) from None
        self.problems += [
            f"{name}: message {data.decode()} is stored {len(seqs)} times"
            for data, seqs in stored.items()
            if len(seqs) > 1
        ]
        return stored

    def _check(self, kind: str, key: str, operations: list[Operation]) -> None:
        stuck = check(operations, MODELS[kind])
        self.tally[f"{kind}: keys"] += 1
        if stuck is not None:
            self.problems.append(f"{key}: {stuck}")

    def _judge_kv(self, stored: dict[bytes, list[int]]) -> None:
        for key, records in self.keys["kv"].records.items():
            found = {each.number: stored.get(b"%d" % each.number, [0])[0] for each in records}
            self._judge_revisions("kv", key, records, found)

    def _judge_revisions(
        self, kind: str, key: str, records: list[Record], found: dict[int, int]
    ) -> None:
        """Check the writes of a key; `found` is the revision of those that are stored, else 0."""
        operations: list[Operation] = []
        for each in records:
            revision = found[each.number]
            if each.outcome == "refused" and self._may_be_stale(each):
                each.end("doubt")
                self.tally[f"{kind}: refused after a thaw"] += 1
            if not self._agrees(kind, key, each, revision):
                continue
            if revision or each.outcome == "refused":
                result = revision or REFUSED
                operation = Operation("write", each.argument, result, each.invoked, each.returned)
                operations.append(operation)
        self._check(kind, key, operations)

    def _may_be_stale(self, record: Record) -> bool:
        """Return whether a member that had just continued may have refused a write."""
        returned = record.returned
        assert returned is not None
        return any(thaw <= returned and record.invoked <= thaw + STALE for thaw in self.thaws)

    def _agrees(self, kind: str, key: str, record: Record, revision: int) -> bool:
        """Compare what the client was told with what is stored."""
        if record.outcome == "doubt" or (record.outcome == "stored" and revision == record.result):
            return True
        if record.outcome in ("refused", "rejected") and not revision:
            return True
        self.problems.append(
            f"{key}: operation {record.number} was {record.outcome} ({record.result}), but the"
            f" stream has it at {revision}"
        )
        return False

    def _judge_reads(self, stored: dict[bytes, list[int]]) -> None:
        written: dict[str, list[tuple[float, int]]] = {}
        numbers: dict[tuple[str, int], Record] = {}
        for key, records in self.keys["kv"].records.items():
            for each in records:
                revision = stored.get(b"%d" % each.number, [0])[0]
                numbers[key, revision] = each
                if each.returned is not None and revision:
                    written.setdefault(key, []).append((each.returned, revision))
        for key, revision, number, invoked, returned in self.reads:
            record = numbers.get((key, revision))
            if revision and (
                record is None or record.number != number or record.invoked > returned
            ):
                self.problems.append(f"{key}: a read returned {number} at {revision}")
            newest = max([each for at, each in written.get(key, []) if at < invoked], default=0)
            self.tally["read: stale" if newest > revision else "read: current"] += 1

    def _judge_atomic(self, stored: dict[bytes, list[int]]) -> None:
        for key, records in self.keys["atomic"].records.items():
            found: dict[int, int] = {}
            for each in records:
                parts = [stored.get(b"%d.%d" % (each.number, n), [0])[0] for n in range(ATOMIC)]
                found[each.number] = parts[-1]
                whole = list(range(parts[0], parts[0] + ATOMIC))
                if any(parts) and parts != whole:
                    self.problems.append(f"{key}: batch {each.number} is stored as {parts}")
            self._judge_revisions("atomic", key, records, found)

    async def _judge_counters(self, js: JetStream) -> None:
        stream: Stream = await _again(lambda: js.stream("COUNTERS"))
        for key, records in self.keys["counter"].records.items():
            operations = [
                Operation("add", each.argument, each.result, each.invoked, each.returned)
                for each in records
                if each.outcome in ("stored", "doubt")
            ]
            if operations:
                total = await self._total_of(stream, key)
                now = time.monotonic()
                operations.append(Operation("read", 0, total, now, now + 1.0))
            self._check("counter", key, operations)

    async def _total_of(self, stream: Stream, key: str) -> int:
        try:
            return (await _again(lambda: stream.get_counter("count." + key))).value
        except ApiError:
            return 0  # none of its increments took effect

    def _judge_fast(self, stored: dict[bytes, list[int]]) -> None:
        for key, records in self.keys["fast"].records.items():
            operations: list[Operation] = []
            for each in records:
                parts = [stored.get(b"%d.%d" % (each.number, n), [0])[0] for n in range(FAST)]
                there = [part for part in parts if part]
                if there != parts[: len(there)] or there != sorted(there):
                    self.problems.append(f"{key}: fast batch {each.number} is stored as {parts}")
                if each.outcome == "stored" and parts[-1] != each.result:
                    self.problems.append(f"{key}: fast batch {each.number} ends at {parts[-1]}")
                operations += [
                    Operation("append", each.number, (part, part), each.invoked, each.returned)
                    for part in there
                ]
            self._check("fast", key, operations)

    def summary(self) -> str:
        """Return the figures of the run."""
        counts = ", ".join(f"{name} {self.tally[name]:,}" for name in sorted(self.tally))
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
