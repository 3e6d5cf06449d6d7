"""Ordered push subscriptions: the behavior of the client, and its invariants.

O1   each message is taken once, in order, without a gap, whatever happens
O2   no more than one consumer is made in half a second, but for one at once after a loss
O3   silence for three heartbeats, or a gap, is followed by another consumer or a pause
O4   in the end everything arrives
O5   the queue holds no more than the window of the server, for each consumer
O6   at the end the consumer is deleted, and all before it, unless a fault lost the deletion
I10 and I13 as in scenarios.py
"""

from __future__ import annotations

from typing import Any

from jetstream.events import ConsumerReset
from jetstream.ordered.push import PushInOrder
from jetstream.ordered.recreate import BACKOFF, CREATING, READY
from jetstream.ordered.subscribe import subscribe_ordered
from jetstream.push.api import PushMessages
from jetstream.push.machine import Push
from jetstream.testing.sim.push_model import PushModel
from natsproto.errors import ConnectionClosed, NatsError
from tests.sim.pushing import HEARTBEAT, LARGEST
from tests.sim.scenarios import require
from tests.sim.world import Task, World

FAULTS = ["cut", "stall", "silence", "hole", "kill", "delete", "delete", "restart"]
LOSSES = ["lost_message", "lost_message", "lost_request", "lost_answer", "refuse"]
LOSE_DELETIONS = ("cut", "restart", "silence", "hole", "kill")
PER_SECOND = 6


class OrderedPushing(World):
    """A reader of a stream that is being filled."""

    model: PushModel  # type: ignore[assignment]

    def begin(self) -> None:
        rng = self.rng
        self.count = rng.randrange(1, 13)
        self.handling = rng.choice((0.0, 0.0, 0.01, 0.2))
        self.model = PushModel(
            self, window=rng.choice((100, 200)), most_window=400, release=self.release
        )
        self.model.late_answers = rng.random() < 0.5
        self.left_to_add = self.count
        for _ in range(self.count):
            self.at(rng.choice((0.0, rng.uniform(0.0, 3.0))), self._add)
        self.messages: PushMessages | None = None
        self.limit = rng.choice((None, None, None, 2))
        self.taken = 0
        self.ending = False
        self.how = rng.choice(("stop", "drain", "unsubscribe", "close"))
        self.iterating = Task(self, self._iterate)
        faults = FAULTS + LOSSES if rng.random() < 0.7 else FAULTS[:2]
        self.plan(faults, rng.randrange(5), 4.0)

    def _add(self) -> None:
        self.left_to_add -= 1
        self.model.add(b"x" * self.rng.choice((0, 1, 30)), self.rng.choice(self.blocks))
        self.model.pump()

    async def _iterate(self) -> None:
        while self.messages is None:
            await self._open()
        async for msg in self.messages:
            self.taken += 1
            seq = msg.metadata.stream_seq
            require(seq == self.taken, f"O1: {seq} instead of {self.taken}")
            if self.handling:
                await self.sleep(self.handling)

    async def _open(self) -> None:
        api: Any = self
        options: Any = {"heartbeat": HEARTBEAT, "max_messages": self.limit}
        try:
            self.messages = await subscribe_ordered(api, "S", {"deliver_policy": "all"}, **options)
        except NatsError as error:
            self.note(f"not opened: {error!r}")
            await self.sleep(0.1)

    async def _end(self) -> None:
        assert self.messages is not None
        if self.how == "drain":
            await self.messages.drain()
        elif self.how == "close":
            self.connection.close(self.now)
        else:
            await self.messages.unsubscribe()

    # Faults

    def fault_delete(self, seconds: float) -> None:
        """Delete the consumer without a notice."""
        for name in list(self.model.consumers):
            self.model.delete(name)
        self._sick(0.0, lambda: None)

    def fault_restart(self, seconds: float) -> None:
        """Restart the server: everything in memory is lost, and so is the connection."""
        self.fault_delete(seconds)
        self.fault_cut(seconds)

    def fault_lost_message(self, seconds: float) -> None:
        self.model.lose_messages += self.rng.choice((1, 1, 2))
        self._sick(0.0, lambda: None)

    def fault_lost_request(self, seconds: float) -> None:
        self.model.lose_requests += 1
        self._sick(0.0, lambda: None)

    def fault_lost_answer(self, seconds: float) -> None:
        self.model.lose_answers += 1
        self._sick(0.0, lambda: None)

    def fault_refuse(self, seconds: float) -> None:
        self.model.refuse = self.rng.choice(("503", "error", "silence"))

        def accept() -> None:
            self.model.refuse = ""

        self._sick(seconds, accept)

    # What must hold

    @property
    def complete(self) -> bool:
        return not self.left_to_add and self.taken == len(self.model.stored)

    def check(self) -> None:
        most = self.last_fault + 60.0 + self.count * (self.handling + (8.0 if self.limit else 0.0))
        require(self.now < most, lambda: f"O4: {self.taken} of {self.count} after {most:.1f} s")
        recent = [at for at in self.model.creations if at > self.now - 1.0]
        require(len(recent) <= PER_SECOND, lambda: f"O2: {len(recent)} consumers in a second")
        if self.iterating.done:
            self._check_end()
        if self.messages is None:
            return
        machine = self.messages._push
        assert isinstance(machine.policy, PushInOrder)
        self._check_machine(machine, machine.policy)
        if self.complete and not self.ending and not self.iterating.done:
            self.ending = True
            Task(self, self._end)

    def _check_machine(self, machine: Push, policy: PushInOrder) -> None:
        for event in machine.events.items:
            require(isinstance(event, ConsumerReset), lambda: f"O3: {event!r}")  # noqa: B023
            self.note(f"told: {event!r}")
        machine.events.items.clear()
        if machine.ended or machine.stopped or not machine._online:
            return
        state = policy.recreator.state
        require(state in (CREATING, BACKOFF, READY), lambda: f"O3: connected, and {state}")
        require(machine.deadline is not None, "O3: no deadline")
        most = (400 + 2 * LARGEST) * max(1, len(self.model.creations))
        require(machine._bytes + policy.early_bytes <= most, "O5: too many bytes")

    def _check_end(self) -> None:
        error = self.iterating.error
        closed = self.how == "close" and isinstance(error, ConnectionClosed)
        require(error is None or closed, lambda: f"I10: {error!r}")
        require(self.ending, "I10: the iteration ended by itself")
        if not self.ended_at:
            self.ended_at = self.now
            self.at(self.now + 0.5, lambda: None)
        if self.connection.closed or self.now > self.ended_at + 0.4:  # deletions have arrived
            self.connection.close(self.now)
            self.carry_out()
            self.finished = True

    ended_at = 0.0

    def finally_check(self) -> None:
        require(self.taken == len(self.model.stored), "O1: some were not taken")
        losses = [line for line in self.trace if line.split()[-1] in LOSE_DELETIONS]
        if self.how != "close" and not losses:
            left = list(self.model.consumers)
            require(not left, lambda: f"O6: {left} are left")
        connection: Any = self.connection
        require(not connection.subscriptions.by_sid, "I13: subscriptions are left")
