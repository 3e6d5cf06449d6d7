"""Ordered consumers: whatever happens, each message arrives once, in order and without gaps.

O1   the messages are those of the stream from the first consumer's start on, one after the other
O2   never stuck: there is a consumer and what Consume promises (I4), or one is on its way; in the
     end all messages arrive
O3   no storm: of consumers no more than 6 in 2 s, of pulls as I7
O4   asked and buffered are never above the limit; on the server's side neither, but for the pulls
     that were given up
O5   an iteration does not end, and raises nothing, but for what the scenario did
O6   at the end nothing is left behind: subscriptions, orders; of consumers those that could not be
     deleted
"""

from __future__ import annotations

from functools import partial
from typing import Any

from jetstream.api.client import ApiClient
from jetstream.config import ConsumerConfig
from jetstream.errors import StreamNotFound
from jetstream.message import JsMsg
from jetstream.ordered.api import OrderedConsumer, open_ordered
from jetstream.ordered.config import ordered_config
from jetstream.ordered.policy import InOrder
from jetstream.pull.consume import Consume
from jetstream.pull.messages import Messages
from natsproto.errors import ConnectionClosed, NatsError
from tests.effects import will_publish
from tests.sim.ephemeral import Server
from tests.sim.scenarios import require
from tests.sim.world import Task, World

FAULTS = ["cut", "silence", "hole", "stall", "crowd", "lost_pull"]
FAULTS += ["deleted", "vanished", "shutdown", "kill", "recount", "lost_message", "api", "election"]


class Ordering(World):
    """The part that both modes share: a stream that grows and must be read to its end."""

    model: Any
    most_consumers = 6  # in two seconds

    def begin(self) -> None:
        rng = self.rng
        self.server = self.model = Server(self, self.release)
        for _ in range(rng.randrange(4)):
            self.server.add(b"early")
        self.count = rng.randrange(1, 13)
        for number in range(self.count):
            time = rng.choice((0.0, rng.uniform(0.0, 3.0)))
            self.at(time, lambda number=number: self._add(number))  # type: ignore[misc]
        self.left_to_add = self.count
        self.handling = rng.choice((0.0, 0.0, 0.01, 0.2))
        self.expires = rng.choice((1.0, 2.0, 4.0))
        self.policy = rng.choice(("all", "new", "last"))
        self.ordered: OrderedConsumer | None = None
        self.seen: list[int] = []
        self.first = 0
        self.gone = rng.random() < 0.05
        if self.gone:
            self.at(rng.uniform(1.0, 4.0), self._drop_stream)
        self.plan(FAULTS, rng.randrange(5), 4.0)
        self.reading = Task(self, self._read)

    def _add(self, number: int) -> None:
        self.left_to_add -= 1
        self.server.add(b"%d" % number + b"x" * self.rng.choice((0, 30)))

    def _drop_stream(self) -> None:
        self.note("the stream is deleted")
        self.server.stream_there = False
        for consumer in self.server.each():
            self.server.delete(consumer.name)

    async def _open(self) -> OrderedConsumer:
        config = ordered_config(
            None,
            self.policy,
            None,
            None,
            "instant",
            False,
            300.0,
            None,  # type: ignore[arg-type]
        )
        api = ApiClient(self.session, "", "$JS.API", 2.0)
        while True:
            ordered = await self._try_to_open(api, config)
            if ordered is not None:
                self.first = self.server.starts[ordered.name]
                return ordered
            await self.sleep(0.5)

    async def _try_to_open(self, api: ApiClient, config: ConsumerConfig) -> OrderedConsumer | None:
        try:
            return await open_ordered(api, "S", "o", config, None)
        except StreamNotFound:
            raise
        except NatsError:
            return None

    async def _read(self) -> None:
        raise NotImplementedError

    async def handle(self, msg: JsMsg) -> None:
        seq = msg.metadata.stream_seq
        require(seq == self.first + len(self.seen), lambda: f"O1: {seq} behind {self.seen}")
        self.seen.append(seq)
        if self.handling:
            await self.sleep(self.handling)

    @property
    def complete(self) -> bool:
        if self.ordered is None or self.left_to_add:
            return False
        return len(self.seen) == len(self.server.log) - self.first + 1

    def check(self) -> None:
        # Enough for the last fault, backoff, time-outs, and the handling of all of them.
        limit = self.last_fault + 45.0 + self.count * self.handling
        require(self.now < limit, lambda: f"O2: {self.seen} after {limit:.1f} s")

    def finally_check(self) -> None:
        connection: Any = self.connection
        require(
            not connection.subscriptions.by_sid,
            lambda: f"O6: {len(connection.subscriptions.by_sid)} subscriptions",
        )
        require(
            not any(will_publish(each) for each in connection.subscriptions.busy),
            "O6: orders are left",
        )
        useless = [request.at for request in self.server.pulls if not request.brought]
        for index in range(20, len(useless)):
            require(useless[index] - useless[index - 20] > 0.99, "I7: a storm of pulls")

    # Faults: those of the network are the World's

    def fault_deleted(self, seconds: float) -> None:
        for consumer in self.server.each():
            self.server.delete(consumer.name)

    def fault_vanished(self, seconds: float) -> None:
        """Gone without a word, as after a crash; its pulls are, too."""
        for consumer in self.server.each():
            self.server.delete(consumer.name, "")

    def fault_shutdown(self, seconds: float) -> None:
        for consumer in self.server.each():
            self.server.delete(consumer.name, "409 Server Shutdown")
        self._api_is("absent", seconds)

    def fault_kill(self, seconds: float) -> None:
        """Neither the consumer nor the API says anything; then the consumer is gone."""
        frozen = self.server.each()
        for consumer in frozen:
            consumer.freeze()
        self._api_is("silent", seconds)

        def gone() -> None:
            for consumer in frozen:
                if consumer.name in self.server.consumers:
                    self.server.delete(consumer.name, "")

        self.at(self.now + seconds, gone)

    def fault_recount(self, seconds: float) -> None:
        for consumer in self.server.each():
            consumer.count_anew()

    def fault_lost_message(self, seconds: float) -> None:
        self.server.loses_next = True
        self._sick(seconds, lambda: setattr(self.server, "loses_next", False))

    def fault_api(self, seconds: float) -> None:
        """Calls are not answered, or late, or with an error; and the consumer is gone."""
        self._api_is(self.rng.choice(("absent", "silent", "busy", "slow")), seconds)
        self.fault_deleted(seconds)

    def fault_election(self, seconds: float) -> None:
        for consumer in self.server.each():
            consumer.step_down(["409 Leadership Change"])
            consumer.leader = True
        self._api_is("absent", seconds)

    def fault_crowd(self, seconds: float) -> None:
        """Refuse pulls: without a word and for good, or aloud and for a while."""
        self.silent = True
        for consumer in self.server.each():
            before, consumer.max_waiting = consumer.max_waiting, 0
            if self.release.refuses_aloud:
                self._sick(seconds, partial(setattr, consumer, "max_waiting", before))

    def fault_lost_pull(self, seconds: float) -> None:
        for consumer in self.server.each():
            if consumer.waiting:
                consumer.waiting.pop(0)

    def _api_is(self, how: str, seconds: float) -> None:
        self.server.api = how
        self._sick(seconds, lambda: setattr(self.server, "api", "there"))


class OrderedConsuming(Ordering):
    """consume(), which is stopped and begun again now and then."""

    def begin(self) -> None:
        self.messages: Messages | None = None
        self.ending = False
        self.limit = self.rng.choice((1, 2, 5, 10))
        self.stops = [self.rng.randrange(12) for _ in range(self.rng.choice((0, 0, 1, 2)))]
        self.how = self.rng.choice(("stop", "drain", "close"))
        super().begin()

    async def _read(self) -> None:
        self.ordered = await self._open()
        while not self.ending:
            self.messages = self.ordered.consume(
                max_messages=self.limit, expires=self.expires, heartbeat=0.5
            )
            async for msg in self.messages:
                await self.handle(msg)
                if len(self.seen) in self.stops:
                    self.stops.remove(len(self.seen))
                    self.note("stopped, and begun again")
                    await self.messages.stop()
                    break

    async def _end(self) -> None:
        assert self.messages is not None
        if self.how == "drain":
            await self.messages.drain()
        elif self.how == "stop":
            await self.messages.stop()
        else:
            self.connection.close(self.now)

    def check(self) -> None:
        super().check()
        made = self.server.creations
        most = self.most_consumers
        if len(made) > most:
            require(made[-1] - made[-most - 1] > 2.0, "O3: a storm of consumers")
        if self.messages is not None:
            machine = self.messages._machine
            assert isinstance(machine, Consume)
            self._check_machine(machine)
        if self.complete and self.messages is not None and not self.ending:
            self.ending = True
            Task(self, self._end)
        if self.reading.done:
            self._check_end()

    def _check_machine(self, machine: Consume) -> None:
        asked = machine.ledger.messages
        require(
            asked + machine.pending() <= self.limit,
            lambda: f"O4: {asked} + {machine.pending()} of {self.limit}",
        )
        if machine._online and machine._active:
            assert isinstance(machine.policy, InOrder)
            recreator = machine.policy.recreator
            alive = bool(machine.ledger.open) or machine.refill.waiting or machine.pending() > 0
            require(
                alive or recreator.due is not None,
                lambda: f"O2: nothing is asked for, and consumers are {recreator.state}",
            )
            due = machine.ledger.open or recreator.due is not None or machine.refill.waiting
            require(not due or machine.deadline is not None, "O2: no deadline")

    def _check_end(self) -> None:
        error = self.reading.error
        if self.gone and error is not None:
            require(isinstance(error, StreamNotFound), lambda: f"O5: {error!r}")
        else:
            closed = self.how == "close" and isinstance(error, ConnectionClosed)
            require(error is None or closed, lambda: f"O5: {error!r}")
            require(self.ending, "O5: the iteration ended by itself")
        if not self.connection.closed:
            self.connection.close(self.now)
            self.carry_out()
        self.finished = self.connection.closed != ""


class OrderedFetching(Ordering):
    """fetch() in a loop, by a caller that is cancelled now and then."""

    def begin(self) -> None:
        self.batch = self.rng.choice((1, 3, 10))
        self.no_wait = self.rng.random() < 0.2
        self.heartbeat = self.rng.choice((None, 0.5))
        self.began: float | None = None
        super().begin()
        for _ in range(self.rng.choice((0, 0, 1, 2))):
            self.at_best(self.rng.uniform(0.0, 3.0), self._cancel)

    def _cancel(self) -> None:
        if self.began is not None and not self.reading.done:
            self.note("cancelled")
            self.began = None
            self.reading.cancel()
            self.reading = Task(self, self._read)

    async def _read(self) -> None:
        if self.ordered is None:
            self.ordered = await self._open()
        while True:
            batch: Any = []
            self.began = self.now
            try:
                batch = await self.ordered.fetch(
                    self.batch,
                    expires=self.expires,
                    heartbeat=None if self.no_wait else self.heartbeat,
                    no_wait=self.no_wait,
                )
            except StreamNotFound:
                raise
            except NatsError as error:
                self.note(f"{error!r}")
            self.began = None
            require(len(batch) <= self.batch, "I1: more than asked for")
            for msg in batch:
                await self.handle(msg)
            if not len(batch):
                await self.sleep(0.1)

    def check(self) -> None:
        super().check()
        if self.began is not None:
            patience = (2.0 if self.no_wait else self.expires) + 1.0
            last = max(self.began + patience, self.stall_until) + 0.001
            require(self.now <= last, "D-ORDERED-28: a fetch without an end")
        if self.reading.done:
            error = self.reading.error
            require(self.gone and isinstance(error, StreamNotFound), lambda: f"O5: {error!r}")
            self._finish()
        elif self.complete and self.began is not None:
            self._finish()

    def _finish(self) -> None:
        self.connection.close(self.now)
        self.carry_out()
        self.finished = True
