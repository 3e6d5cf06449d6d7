"""Several fetches of one consumer at the same time, whose callers are cancelled at any time.

C1   each delivery is returned to one caller, once
C2   a fetch returns no more than was asked for, and ends in its time
C3   what a cancelled fetch had received is returned by a later one, or delivered again
C4   subscriptions: one for each fetch that is under way, or was cancelled
C5   in the end everything is acknowledged
I9, I12 and I13 as in scenarios.py
"""

from __future__ import annotations

from functools import partial
from typing import Any

from natsproto.errors import NatsError
from tests.sim.fetches import Fetching
from tests.sim.world import Task, require


class Crowd(Fetching):
    """fetch() by several tasks, with one handle of the consumer."""

    def set_up(self) -> None:
        rng = self.rng
        self.batch = rng.choice((1, 3, 10))
        self.size = None
        self.no_wait = rng.random() < 0.2
        self.heartbeat = rng.choice((None, 0.5))
        self.got = 0
        self.cancelled = 0
        self.begun: dict[int, float] = {}
        self.deliveries: set[bytes] = set()
        self.iterates = rng.random() < 0.3
        self.width = rng.randrange(2, 5)
        self.tasks = [Task(self, partial(self._work, number)) for number in range(self.width)]
        for _ in range(rng.randrange(6)):
            self.at_best(rng.uniform(0.0, 3.0), self._cancel)

    def _cancel(self) -> None:
        number = self.rng.randrange(self.width)
        if number in self.begun:
            self.note(f"task {number} is cancelled")
            self.cancelled += 1
            del self.begun[number]
            self.tasks[number].cancel()
            self.tasks[number] = Task(self, partial(self._work, number))

    async def _work(self, number: int) -> None:
        while True:
            self.begun[number] = self.now
            got = 0
            try:
                got = await self._fetch(number)
            except NatsError:
                pass
            self.begun.pop(number, None)
            require(got <= self.batch, "C2: more than asked for")
            if not got:
                await self.sleep(0.1)

    async def _fetch(self, number: int) -> int:
        heartbeat = None if self.no_wait else self.heartbeat
        fetch = self.puller.fetch(self.batch, None, self.expires, heartbeat, self.no_wait, {})
        count = 0
        if self.iterates:
            async for msg in fetch:
                count += 1
                await self._take(number, msg)
        else:
            for msg in await fetch:
                count += 1
                await self._take(number, msg)
        return count

    async def _take(self, number: int, msg: Any) -> None:
        require(msg.raw_reply not in self.deliveries, lambda: f"C1: {msg.reply} twice")
        self.deliveries.add(msg.raw_reply)
        self.got += 1
        began = self.begun.pop(number, None)  # who handles a message is not cancelled
        await self.handle(msg)
        if began is not None:
            self.begun[number] = self.now

    def check(self) -> None:
        super(Fetching, self).check()
        patience = (self.timeout if self.no_wait else self.expires) + 1.0
        for began in self.begun.values():
            last = max(began + patience, self.stall_until) + 0.001
            require(self.now <= last, "C2: a fetch without an end")
        fetchers = self._fetchers()
        most = self.width + self.cancelled
        require(len(fetchers) <= most, lambda: f"C4: {len(fetchers)} subscriptions of {most}")
        for fetcher in fetchers:
            require(fetcher.done or fetcher.deadline is not None, "I4: a fetch without deadline")
        if self.complete:
            self.connection.close(self.now)
            self.carry_out()
            self.finished = True
