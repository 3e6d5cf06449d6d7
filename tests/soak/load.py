"""A soak: publishers with message ids and consumers with acknowledgments, while faults happen.

Whatever happens to servers and connections, in the end every message must have been stored once,
delivered and acknowledged, and nothing may be left open. Faults occur by progress, not by the
clock, so a seed produces the same faults in the same order.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from jetstream import JetStream
from jetstream.errors import JetStreamError, PublishesFailed
from natsproto.adapters.asyncio import connect
from natsproto.errors import NatsError, RemoteError
from tests.soak.faults import PLACES, RECONNECT, Single, ThreeNodes, plan
from tests.soak.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from jetstream import Consumer, JsMsg
    from jetstream.pull.messages import Messages
    from natsproto.client import Client

Answer = TypeVar("Answer")

PUBLISHERS = 2
CONSUMERS = 2
WINDOW = 200
PADDING = b"." * 100
# An election after a freeze takes some 10 s, and two may follow each other.
PATIENCE = 60.0


class Soak:
    def __init__(self, where: str, count: int, faults: int, seed: int) -> None:
        self.where = where
        self.seed = seed
        self.rng = random.Random(seed)
        self.ledger = Ledger(count)
        self.todo = list(range(count))[::-1]
        self.fault_count = faults
        self.names: list[str] = []
        self.warnings = 0
        self.clients: list[Client] = []
        self.took = 0.0
        self._progress = asyncio.Event()

    async def run(self) -> list[str]:
        """Run the soak and return the complaints."""
        place = await asyncio.to_thread(PLACES[self.where], self.rng)
        begin = time.monotonic()
        try:
            self.names = plan(place, self.fault_count, self.rng)
            before = open_files()
            tasks = asyncio.all_tasks()
            await self._run(place)
            self._compare("files open", before, open_files())
            self._compare("tasks", len(tasks), len(asyncio.all_tasks()))
        finally:
            await asyncio.to_thread(place.stop)
        self.took = time.monotonic() - begin
        return self.ledger.complaints()

    async def _run(self, place: Single | ThreeNodes) -> None:
        async with AsyncExitStack() as stack:
            for _ in range(PUBLISHERS + CONSUMERS + 1):
                client = await stack.enter_async_context(
                    connect(place.urls, reconnect_wait=0.05, max_reconnects=-1)
                )
                self.clients.append(client)
            js = JetStream(self.clients[-1])
            consumer = await self._set_up(js, place.replicas)
            empty = [contents(client) for client in self.clients[:-1]]
            consumes = [await self._consume(each) for each in self.clients[PUBLISHERS:-1]]
            takers = [asyncio.create_task(self._take(each, i)) for i, each in enumerate(consumes)]
            work = [asyncio.create_task(self._publish(each)) for each in self.clients[:PUBLISHERS]]
            work.append(asyncio.create_task(self._strike(place)))
            await asyncio.gather(*work)
            await self._until_acked(consumer)
            for messages in consumes:
                await messages.stop()
            await asyncio.gather(*takers)
            for client, were in zip(self.clients, empty):
                await client.flush(PATIENCE)
                self._compare("subscriptions, requests, timers", were, contents(client))
            await self._read_back(js)

    def _compare(self, what: str, before: object, after: object) -> None:
        if before != after:
            self.ledger.odd.append(f"{what}: {before} before, {after} after")

    async def _set_up(self, js: JetStream, replicas: int) -> Consumer:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            # A cluster may not be ready for replicas when it has a leader.
            with suppress(RemoteError):
                stream = await js.create_stream(
                    name="SOAK", subjects=["soak.>"], num_replicas=replicas, duplicate_window=600.0
                )
                return await stream.create_consumer(
                    durable_name="c", ack_wait=3.0, max_ack_pending=5000
                )
        raise AssertionError(f"there is no stream after {PATIENCE} s")

    # Publishing

    async def _publish(self, client: Client) -> None:
        js = JetStream(client)
        while self.todo:
            numbers = [self.todo.pop() for _ in range(min(WINDOW, len(self.todo)))]
            while numbers:
                numbers = await self._publish_some(js, numbers)

    async def _publish_some(self, js: JetStream, numbers: list[int]) -> list[int]:
        """Publish; return the messages that failed or are in doubt, to be published again."""
        sent = {}
        try:
            async with js.publisher(max_pending=WINDOW, ack_timeout=2.0) as window:
                for number in numbers:
                    data = b"%d %s" % (number, PADDING)
                    subject = "soak.%d" % (number % 7)
                    sent[number] = await window.publish(subject, data, msg_id=str(number))
        except (PublishesFailed, NatsError):
            self.warnings += 1
        rest = []
        for number in numbers:
            publication = sent.get(number)
            if publication is not None and publication.ack is not None:
                self.ledger.note_published(number)
            else:
                rest.append(number)
        self._progress.set()
        return rest

    # Faults

    async def _strike(self, place: Single | ThreeNodes) -> None:
        step = self.ledger.count // (len(self.names) + 1)
        for turn, name in enumerate(self.names, 1):
            while self.ledger.published < turn * step:
                self._progress.clear()
                await self._progress.wait()
            begin = time.monotonic()
            if name == RECONNECT:
                for client in self.rng.sample(self.clients, 2):
                    await client.force_reconnect()
            else:
                await asyncio.to_thread(place.faults[name])
            # The effects of a fault may appear later: an election, or a dead connection.
            self.ledger.faults.append((name, begin, time.monotonic() + 15.0))

    # Consuming

    async def _consume(self, client: Client) -> Messages:
        consumer = await JetStream(client).consumer("SOAK", "c")
        return consumer.consume(max_messages=300, expires=5.0, heartbeat=1.0)

    async def _take(self, messages: Messages, index: int) -> None:
        if index % 2:
            await messages.run(self._handle, concurrency=8)
            return
        async for msg in messages:
            await self._handle(msg)

    async def _handle(self, msg: JsMsg) -> None:
        number = int(msg.data.split()[0])
        self.ledger.note_delivered(number, msg.metadata.delivered, time.monotonic())
        if number % 50:
            await msg.ack()
        else:
            try:
                await msg.ack_sync(timeout=2.0)
            except NatsError:
                # Either the acknowledgment was lost and the message is redelivered, or only the
                # answer was.
                self.warnings += 1
                self.ledger.note_in_doubt(number)
                return
        self.ledger.note_acked(number)

    async def _until_acked(self, consumer: Consumer) -> None:
        deadline = time.monotonic() + PATIENCE
        left = (-1, -1, -1)  # nothing is known
        while time.monotonic() < deadline:
            try:
                info = await consumer.info()
            except (JetStreamError, RemoteError):
                self.warnings += 1
                continue
            left = (info.num_pending, info.num_ack_pending, info.ack_floor.stream_seq)
            if left[:2] == (0, 0) and left[2] >= self.ledger.count:
                self.ledger.all_acked = True
                return
            await asyncio.sleep(0.1)
        self.ledger.odd.append(f"not acknowledged within {PATIENCE} s: {left}")

    async def _read_back(self, js: JetStream) -> None:
        """Count the stored messages with a separate consumer.

        A leader may still have to be found; and a consumer that was created a moment ago may not
        be known yet to the member that this client is connected to, which then answers 503.
        """
        stream = await self._answer_to(lambda: js.stream("SOAK"))
        total = stream.cached_info.state.messages
        reader = await self._answer_to(
            lambda: stream.create_consumer(ack_policy="none", num_replicas=1, mem_storage=True)
        )
        read = 0
        while read < total:
            count = min(1000, total - read)
            batch = await self._answer_to(partial(reader.fetch, count, expires=5.0))
            if not len(batch):
                self.ledger.odd.append(f"{read} of {total} could be read back")
                return
            for msg in batch:
                assert msg.headers is not None
                self.ledger.note_stored(int(msg.headers["Nats-Msg-Id"]))
            read += len(batch)

    async def _answer_to(self, question: Callable[[], Awaitable[Answer]]) -> Answer:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with suppress(RemoteError):
                return await question()
            self.warnings += 1
            await asyncio.sleep(0.1)
        return await question()

    def summary(self) -> str:
        ledger = self.ledger
        grown = [size >> 20 for _, size in ledger.rss]
        memory = f"RSS {grown[0]} to {grown[-1]} MB" if grown else "RSS not measured"
        return (
            f"{self.where}, seed {self.seed}: {ledger.count} messages in {self.took:.1f} s over"
            f" {', '.join(self.names) or 'no fault'}: {ledger.again} delivered again"
            f" ({len(ledger.forgotten)} of them as new), {self.warnings} failures on the way,"
            f" {memory}"
        )


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def contents(client: Client) -> tuple[int, int, int]:
    """Count subscriptions (except the one for replies), open requests and armed timers."""
    connection = client.session.connection
    replies = connection.requests.inbox
    subs = [sub for sub in connection.subscriptions.by_sid.values() if sub is not replies]
    requests = 0 if replies is None else len(replies.open)
    timers = [
        entry
        for entry in connection.bus.timers.heap
        if entry[2].armed == entry[0] and entry[2].deadline is not None
    ]
    return len(subs), requests, len(timers)
