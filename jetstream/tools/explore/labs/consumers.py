"""The third pane: a real consumer against a simulated server, with faults, on simulated time.

A publisher stores messages in a stream, and a program reads them in one of the ways of READERS. The
result is a timeline: every step of the reader's connection with its explanation and its rule, and
the level of the machine (messages buffered or requested) over time.
"""

from __future__ import annotations

import json

from jetstream import JetStream
from jetstream.testing.sim import Simulation
from jetstream.tools.explain import Explainer, wire_text
from jetstream.tools.explain.rules import rule_of
from natsproto.errors import NatsError

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any

    from jetstream import Consumer, JsMsg, Stream
    from natsproto.testing.sim.steps import Step

#: The steps that a reader's client sends; all other frames are received.
SENT = ("pull", "ack", "publish", "call", "subscribe", "unsubscribe", "connect")
FAULTS = ("silence", "cut", "lose_leader", "freeze", "drop_next_pull", "drop_next_ack", "stall")
_SAMPLE = 0.1
_HEARTBEAT = 2.0
_EXPIRES = 6.0
_QUIET = ("info", "connect", "ping", "pong")


class Experiment:
    """One run: the choices of the visitor, and the result."""

    def __init__(self, choice: dict[str, Any]) -> None:
        self.limit: int = choice["limit"]
        self.pause: float = choice["pause"]
        self.seconds: float = choice["seconds"]
        self.messages: int = choice["messages"]
        self.sim: Simulation = Simulation(seed=1, delay=0.02)
        self.source: Any = None  # has `snapshot`, once the reader has begun
        self.taken: list[tuple[float, int, int]] = []  # time, sequence, delivery
        self.levels: list[list[float]] = []
        self.threshold: int = 0
        self.error: str = ""

    # The program

    async def publish(self, js: JetStream) -> None:
        """Store the messages: the first half at once, the others one by one."""
        at_once = self.messages // 2
        gap = 0.7 * self.seconds / max(1, self.messages - at_once)
        for number in range(self.messages):
            if number >= at_once:
                await self.sim.sleep(gap)
            try:
                await js.publish("orders.new", b"order %d" % number)
            except NatsError as error:
                self.sim.note("publish failed: %s" % error)

    async def handle(self, msg: JsMsg, acks: bool = True) -> None:
        """Process a message as slowly as the visitor chose, and acknowledge it."""
        data = msg.metadata
        self.taken.append((self.sim.now, data.stream_seq, data.delivered))
        if self.pause:
            await self.sim.sleep(self.pause)
        if acks:
            await msg.ack()

    async def consume(self, stream: Stream, js: JetStream) -> None:
        """Read with consume()."""
        consumer = await _worker(stream)
        async with consumer.consume(
            max_messages=self.limit, expires=_EXPIRES, heartbeat=_HEARTBEAT
        ) as messages:
            self.source = messages
            async for msg in messages:
                await self.handle(msg)

    async def fetch(self, stream: Stream, js: JetStream) -> None:
        """Read with fetch(), again and again."""
        consumer = await _worker(stream)
        while True:
            self.source = consumer.fetch(self.limit, expires=_EXPIRES, heartbeat=_HEARTBEAT)
            try:
                async for msg in self.source:
                    await self.handle(msg)
            except NatsError as error:
                self.sim.note("fetch failed: %s" % error)
                await self.sim.sleep(1.0)

    async def ordered(self, stream: Stream, js: JetStream) -> None:
        """Read with an ordered consumer."""
        consumer = await stream.ordered_consumer()
        async with consumer.consume(
            max_messages=self.limit, expires=_EXPIRES, heartbeat=_HEARTBEAT
        ) as messages:
            self.source = messages
            async for msg in messages:
                await self.handle(msg, acks=False)

    async def push(self, stream: Stream, js: JetStream) -> None:
        """Read with a push subscription."""
        sub = await js.subscribe(
            "orders.>", durable="worker", idle_heartbeat=_HEARTBEAT, ack_wait=5.0
        )
        async with sub:
            self.source = sub
            async for msg in sub:
                await self.handle(msg)

    # The run

    def run(self, reader: str, faults: list[dict[str, Any]]) -> dict[str, Any]:
        """Run all of it, and return the timeline."""
        sim = self.sim
        with sim:
            js = JetStream(sim.client(), timeout=2.0)
            stream = sim.run(js.create_stream(name="ORDERS", subjects=["orders.>"]))
            publisher = JetStream(sim.client(), timeout=2.0)
            begin = sim.now
            for fault in faults:
                sim.at(begin + fault["at"], self._strike(fault))
            sim.start(self._guard(getattr(self, reader)(stream, js)))
            sim.start(self.publish(publisher))
            while sim.now - begin < self.seconds:
                sim.advance(_SAMPLE)
                self._sample(begin)
            steps = self._explain(begin)
        return {
            "limit": self.limit,
            "threshold": self.threshold,
            "seconds": self.seconds,
            "steps": steps,
            "levels": self.levels,
            "taken": [[time - begin, seq, count] for time, seq, count in self.taken],
            "stored": sim.jetstream.assets["ORDERS"].stream.last_seq,
            "error": self.error,
        }

    async def _guard(self, program: Any) -> None:
        try:
            await program
        except NatsError as error:
            self.error = "%s: %s" % (type(error).__name__, error)
            self.sim.note(self.error)

    def _strike(self, fault: dict[str, Any]) -> Any:
        sim, name = self.sim, fault["name"]
        if name not in FAULTS:
            raise ValueError("fault %s is not one of %s" % (name, ", ".join(FAULTS)))
        strike = getattr(sim, name)
        if name.startswith("drop"):
            return strike
        return lambda: strike(fault["seconds"])

    def _sample(self, begin: float) -> None:
        if self.source is None:
            return
        snapshot = self.source.snapshot()
        self.threshold = snapshot.threshold
        found = [snapshot.level if snapshot.limit else snapshot.pending, snapshot.pending]
        if not self.levels or self.levels[-1][1:] != found:
            self.levels.append([self.sim.now - begin] + found)

    def _explain(self, begin: float) -> list[dict[str, Any]]:
        """Return the steps of the reader's client, and the faults."""
        explainer = Explainer()
        rows: list[dict[str, Any]] = []
        for step in self.sim.trace:
            if step.client not in ("", "A"):
                continue
            row: dict[str, Any] = {"kind": step.kind, "text": step.text, "t": step.time - begin}
            if step.frame is not None:
                _add_note(row, step, explainer)
            if step.time >= begin and step.kind not in _QUIET:
                rows.append(row)
        return rows


def _add_note(row: dict[str, Any], step: Step, explainer: Explainer) -> None:
    frame = step.frame
    assert frame is not None
    note = explainer.sent(frame) if step.kind in SENT else explainer.received(frame)
    row["note"] = note.text
    row["rule"] = rule_of(note)
    row["wire"] = wire_text(frame)


async def _worker(stream: Stream) -> Consumer:
    return await stream.create_consumer(durable_name="worker", ack_wait=5.0)


def run(choice: str) -> str:
    """Run an experiment: JSON with reader, limit, pause, seconds, messages and faults."""
    wanted = json.loads(choice)
    result = Experiment(wanted).run(wanted["reader"], wanted["faults"])
    return json.dumps(result)


#: The ways to read, which are the names of methods of Experiment.
READERS = ("consume", "fetch", "ordered", "push")
