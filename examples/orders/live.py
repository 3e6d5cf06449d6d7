"""Publishing, and consuming live: the same stream on asyncio, trio and blocking, side by side.

Each part is a process of its own. The consumers survive a crash of the server: messages whose
acknowledgments were lost with it are delivered again, and each consumer counts them once.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import multiprocessing
import multiprocessing.connection
import time
from collections import Counter
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import trio

from examples.orders.generator import Windows, orders
from jetstream import JetStream
from jetstream.blocking import JetStream as BlockingJetStream
from natsproto.adapters.asyncio import connect as connect_asyncio
from natsproto.adapters.blocking import connect as connect_blocking
from natsproto.adapters.trio import connect as connect_trio

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.synchronize import Event

    from jetstream import JsMsg
    from jetstream.blocking import JsMsg as BlockingJsMsg

# The view shows that the server is down; lines of a log would disturb it.
logging.getLogger("natsproto").addHandler(logging.NullHandler())

STREAM = "ORDERS"
PATIENCE = 30.0  # seconds to wait for any one message
ACK_WAIT = 2.0  # seconds until a message without an acknowledgment is delivered again
# Also the most orders that a reconnect can put out of order: 25 s of them, within the watermark.
MAX_PENDING = 1_000


class Work:
    """One part of the job, in a process of its own: its progress, and what it found."""

    def __init__(self, name: str, total: int) -> None:
        self.name = name
        self.total = total
        self._numbers = multiprocessing.RawArray("q", 3)  # seen by both processes
        self._times = multiprocessing.RawArray("d", 2)

    @property
    def count(self) -> int:
        return self._numbers[0]

    @property
    def cents(self) -> int:
        return self._numbers[1]

    @property
    def repeated(self) -> int:
        """Number of messages that were delivered more than once."""
        return self._numbers[2]

    @property
    def seconds(self) -> float:
        return (self._times[1] or time.monotonic()) - self._times[0]

    def did(self, cents: int) -> None:
        self._numbers[0] += 1
        self._numbers[1] += cents

    def repeat(self) -> None:
        self._numbers[2] += 1

    def __enter__(self) -> Work:
        self._times[0] = time.monotonic()
        return self

    def __exit__(self, *exc: object) -> None:
        self._times[1] = time.monotonic()


class Book:
    """What a consumer adds up: revenue by minute and region, each message once."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._seen = bytearray(work.total + 1)
        self._cents: Counter[tuple[str, str]] = Counter()

    def add(self, msg: JsMsg | BlockingJsMsg) -> None:
        sequence = msg.metadata.stream_seq
        if self._seen[sequence]:
            self._work.repeat()
            return
        self._seen[sequence] = 1
        order = json.loads(msg.data)
        self._cents[order["ordered_at"][:16], order["region"]] += order["cents"]
        self._work.did(order["cents"])

    def windows(self) -> Windows:
        return {
            (datetime.fromisoformat(minute).replace(tzinfo=timezone.utc), region): cents
            for (minute, region), cents in self._cents.items()
        }


def publish(
    url: str, seed: int, work: Work, skip: int = 0, pause: int = 0, go: Event | None = None
) -> None:
    """Publish every order once, also if it is sent twice: the stream recognizes it by its id.

    The first `skip` orders are already in the stream. After `pause` orders, wait for `go`.
    """
    with connect_blocking(url, name="shop") as client, work:
        js = BlockingJetStream(client)
        with client.corked(), js.publisher(max_pending=MAX_PENDING) as publisher:
            ordered = orders(skip + work.total, seed)
            for number, order in enumerate(itertools.islice(ordered, skip, None)):
                if go is not None and number == pause:
                    publisher.flush()
                    go.wait()
                publisher.publish(order.subject, order.encode(), msg_id=order.id)
                work.did(order.cents)
            publisher.flush()


async def consume_asyncio(url: str, work: Work) -> Windows:
    async with connect_asyncio(url, name=work.name) as client:
        config = {"durable_name": "asyncio", "ack_wait": ACK_WAIT}
        consumer = await JetStream(client).create_consumer(STREAM, **config)
        book = Book(work)
        with work:
            async with consumer.consume() as messages:
                while work.count < work.total:
                    msg = await messages.next(PATIENCE)
                    book.add(msg)
                    await msg.ack()
        return book.windows()


async def consume_trio(url: str, work: Work) -> Windows:
    async with connect_trio(url, name=work.name) as client:
        config = {"durable_name": "trio", "ack_wait": ACK_WAIT}
        consumer = await JetStream(client).create_consumer(STREAM, **config)
        book = Book(work)
        with work:
            async with consumer.consume() as messages:
                while work.count < work.total:
                    msg = await messages.next(PATIENCE)
                    book.add(msg)
                    await msg.ack()
        return book.windows()


def consume_blocking(url: str, work: Work) -> Windows:
    with connect_blocking(url, name=work.name) as client:
        config = {"durable_name": "blocking", "ack_wait": ACK_WAIT}
        consumer = BlockingJetStream(client).create_consumer(STREAM, **config)
        book = Book(work)
        with work, client.corked(), consumer.consume() as messages:
            while work.count < work.total:
                msg = messages.next(PATIENCE)
                book.add(msg)
                msg.ack()
        return book.windows()


def on_asyncio(url: str, work: Work) -> Windows:
    return asyncio.run(consume_asyncio(url, work))


def on_trio(url: str, work: Work) -> Windows:
    return trio.run(consume_trio, url, work)


def report_windows(
    consume: Callable[[str, Work], Windows],
    url: str,
    work: Work,
    result: multiprocessing.connection.Connection,
) -> None:
    result.send(consume(url, work))


class Live:
    """All four at once, a process each."""

    def __init__(self, url: str, count: int, seed: int) -> None:
        self._url = url
        names = ["publish, blocking", "consume, asyncio", "consume, trio", "consume, blocking"]
        self.parts = [Work(name, count) for name in names]
        shop, *readers = self.parts
        spawn = multiprocessing.get_context("spawn")
        self._processes = [spawn.Process(target=publish, args=(url, seed, shop))]
        self._results: dict[multiprocessing.connection.Connection, str] = {}
        #: The revenue that each consumer found, once it has ended.
        self.windows: dict[str, Windows] = {}
        for consume, work in zip([on_asyncio, on_trio, consume_blocking], readers):
            result, sender = spawn.Pipe(duplex=False)
            arguments = (consume, url, work, sender)
            self._processes.append(spawn.Process(target=report_windows, args=arguments))
            self._results[result] = work.name

    def start(self) -> None:
        with connect_blocking(self._url) as client:
            BlockingJetStream(client).create_stream(name=STREAM, subjects=["orders.>"])
        for process in self._processes:
            process.start()

    def over(self, patience: float) -> bool:
        """Return whether all parts have ended; wait at most this long."""
        waiting = [each.sentinel for each in self._processes if each.is_alive()]
        if waiting:
            multiprocessing.connection.wait([*waiting, *self._results], patience)
        for result in [each for each in self._results if each.poll()]:
            self.windows[self._results.pop(result)] = result.recv()
        return not any(each.is_alive() for each in self._processes)

    def failed(self) -> list[str]:
        """Return the parts whose process ended with an error, which it has shown."""
        return [part.name for part, each in zip(self.parts, self._processes) if each.exitcode]

    def unacked(self) -> int:
        """Return the number of messages without an acknowledgment: 0, if every ack arrived."""
        with connect_blocking(self._url) as client:
            infos = BlockingJetStream(client).consumers(STREAM)
            return sum(info.num_ack_pending + info.num_pending for info in infos)
