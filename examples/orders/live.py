"""Publishing, and consuming live: the same stream on asyncio, trio and blocking, side by side."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import multiprocessing.connection
import time

import trio

from examples.orders.generator import orders
from jetstream import JetStream
from jetstream.blocking import JetStream as BlockingJetStream
from natsproto.adapters.asyncio import connect as connect_asyncio
from natsproto.adapters.blocking import connect as connect_blocking
from natsproto.adapters.trio import connect as connect_trio

STREAM = "ORDERS"
PATIENCE = 30.0  # seconds to wait for any one message


class Work:
    """One part of the job, in a process of its own: how far it is, and what it found."""

    def __init__(self, name: str, total: int) -> None:
        self.name = name
        self.total = total
        self._numbers = multiprocessing.RawArray("q", 2)  # seen by both processes
        self._times = multiprocessing.RawArray("d", 2)

    @property
    def count(self) -> int:
        return self._numbers[0]

    @property
    def cents(self) -> int:
        return self._numbers[1]

    @property
    def seconds(self) -> float:
        return self._times[1] - self._times[0]

    def did(self, cents: int) -> None:
        self._numbers[0] += 1
        self._numbers[1] += cents

    def __enter__(self) -> Work:
        self._times[0] = time.monotonic()
        return self

    def __exit__(self, *exc: object) -> None:
        self._times[1] = time.monotonic()


def publish(url: str, seed: int, work: Work) -> None:
    """Every order once: by its id, the stream knows one that is sent twice."""
    with connect_blocking(url, name="shop") as client, work:
        js = BlockingJetStream(client)
        with client.corked(), js.publisher(max_pending=2_000) as publisher:
            for order in orders(work.total, seed):
                publisher.publish(order.subject, order.encode(), msg_id=order.id)
                work.did(order.cents)
            publisher.flush()


async def consume_asyncio(url: str, work: Work) -> None:
    async with connect_asyncio(url, name=work.name) as client:
        consumer = await JetStream(client).create_consumer(STREAM, durable_name="asyncio")
        with work:
            async with consumer.consume(stop_after=work.total) as messages:
                for _ in range(work.total):
                    msg = await messages.next(PATIENCE)
                    work.did(json.loads(msg.data)["cents"])
                    await msg.ack()


async def consume_trio(url: str, work: Work) -> None:
    async with connect_trio(url, name=work.name) as client:
        consumer = await JetStream(client).create_consumer(STREAM, durable_name="trio")
        with work:
            async with consumer.consume(stop_after=work.total) as messages:
                for _ in range(work.total):
                    msg = await messages.next(PATIENCE)
                    work.did(json.loads(msg.data)["cents"])
                    await msg.ack()


def consume_blocking(url: str, work: Work) -> None:
    with connect_blocking(url, name=work.name) as client:
        consumer = BlockingJetStream(client).create_consumer(STREAM, durable_name="blocking")
        with work, client.corked(), consumer.consume(stop_after=work.total) as messages:
            for _ in range(work.total):
                msg = messages.next(PATIENCE)
                work.did(json.loads(msg.data)["cents"])
                msg.ack()


def on_asyncio(url: str, work: Work) -> None:
    asyncio.run(consume_asyncio(url, work))


def on_trio(url: str, work: Work) -> None:
    trio.run(consume_trio, url, work)


class Live:
    """All four at once, a process each."""

    def __init__(self, url: str, count: int, seed: int) -> None:
        self._url = url
        names = ["publish, blocking", "consume, asyncio", "consume, trio", "consume, blocking"]
        self.parts = [Work(name, count) for name in names]
        shop, *readers = self.parts
        tasks = zip([on_asyncio, on_trio, consume_blocking], readers)
        new = multiprocessing.get_context("spawn").Process
        self._processes = [new(target=task, args=(url, work)) for task, work in tasks]
        self._processes.append(new(target=publish, args=(url, seed, shop)))

    def start(self) -> None:
        with connect_blocking(self._url) as client:
            BlockingJetStream(client).create_stream(name=STREAM, subjects=["orders.>"])
        for process in self._processes:
            process.start()

    def over(self, patience: float) -> bool:
        """Return whether all are through; waits so long at most."""
        waiting = [each.sentinel for each in self._processes if each.is_alive()]
        if waiting:
            multiprocessing.connection.wait(waiting, patience)
        return not any(each.is_alive() for each in self._processes)

    def failed(self) -> list[str]:
        """Return the parts whose process ended with an error, which it has shown."""
        names = [part.name for part in self.parts[1:] + self.parts[:1]]
        return [name for name, each in zip(names, self._processes) if each.exitcode]

    def unacked(self) -> int:
        """What the server still waits for: nothing, if every ack has come."""
        with connect_blocking(self._url) as client:
            infos = BlockingJetStream(client).consumers(STREAM)
            return sum(info.num_ack_pending + info.num_pending for info in infos)
