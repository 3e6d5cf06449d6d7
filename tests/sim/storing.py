"""Object stores: a writer and a reader, while faults happen.

B1   a get returns an object as a whole, and one that was put under that name: the last one that was
     acknowledged before the get began, or one of which the writer does not know, or a later one
B2   a get raises ObjectNotFound only if there may be none: nothing was acknowledged, or a deletion
     was made or tried
B3   calls raise what they say they do
B4   never stuck: when the faults are over, all calls succeed
B5   without a fault nothing is left of replaced and deleted objects
I13 as in scenarios.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jetstream.errors import (
    JetStreamNotAvailable,
    NoStreamResponse,
    ObjectChanged,
    ObjectNotFound,
    PublishesFailed,
    PublishInDoubt,
)
from natsproto.errors import ConnectionLost, NatsError, TimeoutExpired
from tests.sim.served import NETWORK, Served
from tests.sim.world import Task, require

if TYPE_CHECKING:
    from jetstream.objects.store import ObjectStore

FAULTS = [*NETWORK, "election", "kill", "vanished", "lost_message"]
LOST = (TimeoutExpired, ConnectionLost, JetStreamNotAvailable, NoStreamResponse)
DOUBTS = (*LOST, PublishInDoubt, PublishesFailed)
NAMES = ("x", "y")
CHUNK = 16


class Storing(Served):
    """put, delete and get_bytes."""

    def begin(self) -> None:
        rng = self.rng
        self.serve()
        self.service.create(
            {
                "name": "OBJ_o",
                "subjects": ["$O.o.C.>", "$O.o.M.>"],
                "allow_direct": True,
                "allow_rollup_hdrs": True,
                "discard": "new",
            }
        )
        self.rounds = rng.randrange(1, 7)
        # Of each name: what a get may return; None: that there is none.
        self.possible: dict[str, list[bytes | None]] = {name: [None] for name in NAMES}
        self.tried: dict[str, list[bytes | None]] = {name: [None] for name in NAMES}
        self.serial = 0
        self.failures = 0
        self.faults_planned = rng.randrange(4)
        self.plan(FAULTS, self.faults_planned, 3.0)
        self.store: ObjectStore | None = None
        self.writing = Task(self, self._write)
        self.reading = Task(self, self._read)

    async def _bind(self) -> ObjectStore:
        while True:
            try:
                return await self.js.object_store("o")
            except NatsError as error:  # noqa: PERF203
                require(isinstance(error, LOST), f"B3: {error!r}")
                await self.sleep(0.2)

    async def _write(self) -> None:
        store = await self._bind()
        while self.rounds:
            name = self.rng.choice(NAMES)
            if self.rng.random() < 0.2:
                await self._delete(store, name)
            else:
                await self._put(store, name)
            self.rounds -= 1
            await self.sleep(self.rng.choice((0.0, 0.01, 0.3)))
        while self.sick:
            await self.sleep(0.5)
        for name in NAMES:
            await self._put(store, name, sure=True)

    async def _put(self, store: ObjectStore, name: str, sure: bool = False) -> None:
        while True:
            self.serial += 1
            data = (b"%d " % self.serial) * self.rng.choice((0, 1, 10, 40))
            self._may_be(name, data)
            try:
                info = await store.put(name, data, chunk_size=CHUNK)
            except NatsError as error:
                self.failures += 1
                self.note(f"put: {error!r}")
                require(isinstance(error, DOUBTS), f"B3: {error!r}")
                if not sure:
                    return
                await self.sleep(0.5)
                continue
            require(info.size == len(data), "B1: another size")
            self.note(f"put {name}: {self.serial}")
            self.possible[name] = [data]
            return

    def _may_be(self, name: str, data: bytes | None) -> None:
        self.possible[name].append(data)
        self.tried[name].append(data)

    async def _delete(self, store: ObjectStore, name: str) -> None:
        self._may_be(name, None)
        try:
            await store.delete(name)
        except ObjectNotFound:
            require(None in self.possible[name][:-1], "B2: there is one")
        except NatsError as error:
            self.failures += 1
            require(isinstance(error, DOUBTS), f"B3: {error!r}")
            return
        self.note(f"deleted {name}")
        self.possible[name] = [None]

    async def _read(self) -> None:
        store = await self._bind()
        while True:
            over = self.writing.done
            for name in NAMES:
                await self._get(store, name, sure=over)
            if over:
                return
            await self.sleep(self.rng.choice((0.0, 0.05, 0.3)))

    async def _get(self, store: ObjectStore, name: str, sure: bool) -> None:
        while True:
            before = list(self.possible[name])
            mark = len(self.tried[name])
            data: bytes | None
            try:
                data = await store.get_bytes(name)
            except ObjectNotFound:
                data = None
            except NatsError as error:
                self.note(f"get: {error!r}")
                changed = isinstance(error, ObjectChanged) and not sure
                require(changed or isinstance(error, LOST), f"B3: {error!r}")
                if not sure or self.now > self.last_fault + 40.0:
                    require(not sure, "B4: a get fails in the end")
                    return
                await self.sleep(0.5)
                continue
            before += self.tried[name][mark:]
            require(data in before, lambda: f"B1: {name} is {data!r} of {before}")  # noqa: B023
            if sure:
                require(data in self.possible[name], lambda: f"B1: {data!r} in the end")  # noqa: B023
            return

    def check(self) -> None:
        limit = self.last_fault + 90.0 + self.serial * 10.0
        require(self.now < limit, "B4: it does not end")
        if self.reading.done and self.writing.done and not self.finished:
            for task in (self.reading, self.writing):
                require(task.error is None, lambda: f"B3: {task.error!r}")  # noqa: B023
            self.at(self.now + 0.5, lambda: None)
            self.ended_at = self.ended_at or self.now
            if self.now < self.ended_at + 0.4:
                return  # deletions of chunks and consumers are on their way
            self.connection.close(self.now)
            self.carry_out()
            self.finished = True

    ended_at = 0.0

    def finally_check(self) -> None:
        self.check_nothing_is_left()
        if self.faults_planned or self.failures:
            return
        stream = self.service.assets["OBJ_o"].stream
        chunks = 0
        for name in NAMES:
            data = self.possible[name][0]
            chunks += -(-len(data) // CHUNK) if data else 0
        metas = len(NAMES)
        found = len(stream.messages)
        require(found == chunks + metas, lambda: f"B5: {found} messages, {chunks} chunks")
