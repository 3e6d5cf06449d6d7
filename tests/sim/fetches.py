"""fetch and next, awaited and iterated: the behavior of the client, and its invariants.

The invariants are those of scenarios.py.
"""

from __future__ import annotations

from typing import Any

from jetstream.pull.batch import Fetch
from jetstream.pull.fetch import Fetcher
from natsproto.errors import NatsError
from tests.sim.scenarios import Pulls, require
from tests.sim.world import Task


class Fetching(Pulls):
    """fetch() in a loop, by a caller that is cancelled now and then."""

    most = 0

    def set_up(self) -> None:
        rng = self.rng
        self.batch = self.most or rng.choice((1, 3, 10))
        self.size = rng.choice((None, None, 150, 300)) if not self.most else None
        self.no_wait = rng.random() < 0.2 and not self.most
        self.heartbeat = rng.choice((None, 0.5))
        self.began: float | None = None
        self.got = 0
        self.cancelled = 0
        self.looping = Task(self, self._loop)
        for _ in range(rng.choice((0, 0, 1, 2))):
            self.at_best(rng.uniform(0.0, 3.0), self._cancel)

    def _cancel(self) -> None:
        if self.began is not None and not self.looping.done:
            self.note("cancelled")
            self.began = None
            self.looping.cancel()
            self.looping = Task(self, self._loop)

    async def _loop(self) -> None:
        while True:
            self.began = self.now
            got = self.got
            try:
                await self._fetch_once(
                    self.puller.fetch(
                        None if self.size else self.batch,
                        self.size,
                        self.expires,
                        None if self.no_wait else self.heartbeat,
                        self.no_wait,
                        {},
                    )
                )
            except NatsError:
                pass
            self.began = None
            got = self.got - got
            require(self.size is not None or got <= self.batch, "I1: more than asked for")
            if not got:
                await self.sleep(0.1)

    async def _fetch_once(self, fetch: Fetch) -> None:
        batch = await fetch
        self.began = None
        self.got += len(batch)
        for msg in batch:
            await self.handle(msg)

    def _fetchers(self) -> list[Fetcher]:
        connection: Any = self.connection
        receivers = connection.subscriptions.receivers()
        subs = [each for each in receivers if isinstance(each, Fetcher)]
        return subs + [each for each in self.puller._idle if each not in subs]

    def check(self) -> None:
        super().check()
        if self.began is not None:
            patience = (self.timeout if self.no_wait else self.expires) + 1.0
            last = max(self.began + patience, self.stall_until) + 0.001
            require(self.now <= last, "FETCH-5: a fetch without an end")
        fetchers = self._fetchers()
        require(len(fetchers) <= 1 + self.cancelled, lambda: f"I13: {len(fetchers)} subscriptions")
        for fetcher in fetchers:
            require(fetcher.done or fetcher.deadline is not None, "I4: a fetch without deadline")
            kept = len(fetcher.messages)
            require(fetcher.pending() <= kept, "I8: promised more than came")
        if self.complete and self.began is not None:
            self._finish()

    def _finish(self) -> None:
        kept = sum(len(each.messages) for each in self._fetchers()) + self._in_hand()
        require(self.got + kept == self.arrived, lambda: f"I8: {self.got} got, {kept} kept")
        self.connection.close(self.now)
        self.carry_out()
        self.finished = True

    def _in_hand(self) -> int:
        """Return messages that were taken from a fetcher and not yet returned."""
        return 0


class Iterating(Fetching):
    """`async for` over fetch(), which is left early now and then."""

    iterated: Fetch | None = None

    async def _fetch_once(self, fetch: Fetch) -> None:
        last = self.rng.choice((0, 0, 1, 2))
        self.iterated = fetch
        count = 0
        try:
            async for msg in fetch:
                count += 1
                self.got += 1
                self.began = None
                await self.handle(msg)
                self.began = self.now
                if count == last:
                    self.note("left early")
                    break
        finally:
            self.iterated = None

    def _in_hand(self) -> int:
        left = sum(len(rest) for _, rest in self.puller._abandoned)
        return left + (0 if self.iterated is None else len(self.iterated._rest))


class Next(Fetching):
    most = 1
