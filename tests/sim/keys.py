"""Key-value buckets: watches and lists of keys, while others write and faults happen.

K1   the entries of a watch come in the order of their revisions, each once
K2   the initial values have every key that existed when the call began and was not removed since,
     with the value of that moment or a later one
K3   a list of keys has no key that did not exist at any moment of the call
K4   in the end a watch has seen the last entry of each key; with include_history, and enough room
     in the bucket, every entry
K5   a watch does not end and raises nothing; a call raises what it says it does, in its time
K6   never stuck: when the faults are over, everything arrives
I13 as in scenarios.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jetstream.errors import JetStreamNotAvailable
from natsproto.errors import ConnectionLost, NatsError, TimeoutExpired
from tests.sim.served import NETWORK, SERVER, Served
from tests.sim.world import Task, require

if TYPE_CHECKING:
    from jetstream.kv.entry import KeyValueEntry
    from jetstream.kv.store import KeyValue
    from jetstream.kv.watch import KeyWatcher

DELETED = b"NATS/1.0\r\nKV-Operation: DEL\r\n\r\n"
PURGED = b"NATS/1.0\r\nKV-Operation: PURGE\r\nNats-Rollup: sub\r\n\r\n"
EXPECTED = (TimeoutExpired, ConnectionLost, JetStreamNotAvailable)


class Buckets(Served):
    """The part that both modes share: a bucket, and others that write to it."""

    def begin(self) -> None:
        rng = self.rng
        self.serve()
        self.service.miscounts = rng.random() < 0.4  # D-KV-40
        self.keys = [f"k{number}" for number in range(rng.randrange(1, 7))]
        self.history = rng.choice((1, 1, 3, 64))
        self.removes = rng.random() < 0.5
        self.service.create(
            {
                "name": "KV_b",
                "subjects": ["$KV.b.>"],
                "max_msgs_per_subject": self.history,
                "allow_direct": True,
                "allow_rollup_hdrs": True,
            }
        )
        self.stored: list[tuple[int, str, bool]] = []  # revision, key, whether it is a value
        for key in self.keys:
            if rng.random() < 0.8:
                self._write(key)
        count = rng.randrange(0, 25)
        span = rng.choice((0.05, 0.5, 3.0))
        self.left_to_write = count
        for _ in range(count):
            self.at(rng.uniform(0.0, span), self._write_any)
        self.handling = rng.choice((0.0, 0.0, 0.01, 0.1))
        if rng.random() < 0.3:
            self.service.lose_message = rng.randrange(2, 8)  # while the initial values come
        self.plan(NETWORK + SERVER, rng.randrange(4), 3.0)
        self.set_up()

    def set_up(self) -> None:
        raise NotImplementedError

    def _write_any(self) -> None:
        self.left_to_write -= 1
        self._write(self.rng.choice(self.keys))

    def _write(self, key: str) -> None:
        block = None
        if self.removes and self.rng.random() < 0.3:
            block = self.rng.choice((DELETED, PURGED))
        revision = self.publish("KV_b", f"$KV.b.{key}", b"%d" % len(self.stored), block)
        self.stored.append((revision, key, block is None))

    def last(self, key: str) -> tuple[int, str, bool] | None:
        found = [each for each in self.stored if each[1] == key]
        return found[-1] if found else None

    def values(self) -> set[str]:
        """Return the keys that have a value now."""
        last = [self.last(key) for key in self.keys]
        return {each[1] for each in last if each is not None and each[2]}

    async def bind(self) -> KeyValue:
        while True:
            try:
                return await self.js.key_value("b")
            except NatsError as error:  # noqa: PERF203
                require(isinstance(error, EXPECTED), f"K5: {error!r}")
                await self.sleep(0.2)


class Watching(Buckets):
    """watch(): its initial values, then the changes."""

    def set_up(self) -> None:
        rng = self.rng
        self.mode = rng.choice(("initial", "plain", "history"))
        self.ignore_deletes = rng.random() < 0.2
        self.watcher: KeyWatcher | None = None
        self.seen: list[tuple[int, str]] = []
        self.began_with: dict[str, int] = {}
        self.initialized = False
        self.ending = False
        self.watching = Task(self, self._watch)

    async def _open(self, kv: KeyValue) -> KeyWatcher:
        while True:
            # K2: the keys that have a value now, and their revisions.
            found = [self.last(key) for key in sorted(self.values())]
            self.began_with = {each[1]: each[0] for each in found if each is not None}
            try:
                return await kv.watch(
                    include_history=self.mode == "history", ignore_deletes=self.ignore_deletes
                )
            except NatsError as error:
                require(isinstance(error, EXPECTED), f"K5: {error!r}")
                await self.sleep(0.2)

    async def _watch(self) -> None:
        kv = await self.bind()
        self.watcher = watcher = await self._open(kv)
        if self.mode == "initial":
            complete = True
            try:
                async for entry in watcher.initial():
                    await self._handle(entry)
            except TimeoutExpired:
                complete = False
            if complete:
                self._check_initial()
        self.initialized = True
        async for entry in watcher:
            await self._handle(entry)

    def _check_initial(self) -> None:
        for key, revision in self.began_with.items():
            last = self.last(key)
            assert last is not None
            rest = [each for each in self.stored if each[1] == key and each[0] > revision]
            if any(not value for _, _, value in rest):
                continue  # it was removed since
            came = [each for each, name in self.seen if name == key]
            require(bool(came) and came[-1] >= revision, lambda: f"K2: {key} is missing")  # noqa: B023

    async def _handle(self, entry: KeyValueEntry) -> None:
        before = self.seen[-1][0] if self.seen else 0
        require(entry.revision > before, lambda: f"K1: {entry.revision} after {before}")
        self.seen.append((entry.revision, entry.key))
        if self.handling:
            await self.sleep(self.handling)

    @property
    def complete(self) -> bool:
        if not self.initialized or self.left_to_write:
            return False
        seen = {revision for revision, _ in self.seen}
        for key in self.keys:
            last = self.last(key)
            if last is not None and last[0] not in seen and (last[2] or not self.ignore_deletes):
                return False
        return True

    def check(self) -> None:
        limit = self.last_fault + 60.0 + len(self.stored) * (self.handling + 0.1)
        require(self.now < limit, lambda: f"K6: {self.seen} of {self.stored}")
        if self.complete and not self.ending:
            self.ending = True
            Task(self, self._end)
        if self.watching.done:
            require(self.watching.error is None, lambda: f"K5: {self.watching.error!r}")
            require(self.ending, "K5: the watch ended by itself")
            self.connection.close(self.now)
            self.carry_out()
            self.finished = True

    async def _end(self) -> None:
        assert self.watcher is not None
        await self.watcher.stop()

    def finally_check(self) -> None:
        self.check_nothing_is_left()
        whole = self.mode == "history" and self.history == 64 and not self.removes
        if whole:
            missing = {each[0] for each in self.stored} - {revision for revision, _ in self.seen}
            require(not missing, lambda: f"K4: {missing} are missing")


class Listing(Buckets):
    """keys(), again and again."""

    def set_up(self) -> None:
        self.rounds = self.rng.randrange(1, 4)
        self.began: float | None = None
        self.listing = Task(self, self._list)

    async def _list(self) -> None:
        kv = await self.bind()
        while self.rounds or self.left_to_write:
            before = self.values()
            mark = len(self.stored)
            self.began = self.now
            try:
                found = await kv.keys()
            except NatsError as error:
                self.note(f"{error!r}")
                require(isinstance(error, EXPECTED), f"K5: {error!r}")
                await self.sleep(0.2)
                continue
            finally:
                self.began = None
            meanwhile = self.stored[mark:]
            removed = {key for _, key, value in meanwhile if not value}
            missing = before - removed - set(found)
            require(not missing, lambda: f"K2: {missing} are missing in {found}")  # noqa: B023
            strange = set(found) - before - {key for _, key, value in meanwhile if value}
            require(not strange, lambda: f"K3: {strange} did not exist")  # noqa: B023
            require(len(set(found)) == len(found), "K1: a key twice")
            self.rounds = max(0, self.rounds - 1)
            await self.sleep(self.rng.choice((0.0, 0.1, 0.5)))

    def check(self) -> None:
        # The longest call: creation, and then each message within the timeout.
        limit = self.last_fault + 60.0 + 3.0 * self.timeout
        require(self.now < limit, "K6: the list does not end")
        if self.listing.done and not self.finished:
            require(self.listing.error is None, lambda: f"K5: {self.listing.error!r}")
            self.connection.close(self.now)
            self.carry_out()
            self.finished = True

    def finally_check(self) -> None:
        self.check_nothing_is_left()
