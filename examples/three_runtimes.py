"""Three runtimes in one ring: asyncio starts each message, trio doubles it, blocking adds one.

    asyncio --ring.double--> trio --ring.add--> blocking --ring.done--> asyncio

Three clients, each with an adapter of its own, in three threads, over one real nats-server, which
is started here (extra `server`). Every message is checked when it is back: value, order, number.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

import trio

from natsproto.adapters.asyncio import connect as connect_asyncio
from natsproto.adapters.blocking import connect as connect_blocking
from natsproto.adapters.trio import connect as connect_trio
from natsproto.testing import Server

ROUNDS = 20_000
WINDOW = 1_000  # messages on their way round at once
PATIENCE = 10.0  # seconds to wait for any one message


class Leg:
    """What one runtime did."""

    def __init__(self, name: str, task: str) -> None:
        self.name = name
        self.task = task
        self.count = 0
        self.began = 0.0
        self.ended = 0.0

    def took(self) -> None:
        """A message was taken and passed on."""
        self.ended = time.perf_counter()
        self.began = self.began or self.ended
        self.count += 1

    def __str__(self) -> str:
        seconds = self.ended - self.began
        rate = self.count / seconds
        return f"{self.name:9}{self.task:28}{self.count:7,} in {seconds:5.2f} s {rate:9,.0f} /s"


async def double(url: str, leg: Leg, ready: threading.Semaphore) -> None:
    """The trio leg."""
    async with connect_trio(url, name="trio") as client:
        sub = await client.subscribe("ring.double")
        await client.flush()
        ready.release()
        for _ in range(ROUNDS):
            msg = await sub.next(PATIENCE)
            await client.publish("ring.add", b"%d" % (2 * int(msg.data)))
            leg.took()


def add(url: str, leg: Leg, ready: threading.Semaphore) -> None:
    """The blocking leg."""
    with connect_blocking(url, name="blocking") as client:
        sub = client.subscribe("ring.add")
        client.flush()
        ready.release()
        with client.corked():  # sent whenever `next` has to wait
            for _ in range(ROUNDS):
                msg = sub.next(PATIENCE)
                client.publish("ring.done", b"%d" % (int(msg.data) + 1))
                leg.took()


async def start(url: str, leg: Leg) -> list[float]:
    """Return the asyncio leg: start and check; returns how long each message took."""
    async with connect_asyncio(url, name="asyncio") as client:
        sub = await client.subscribe("ring.done")
        await client.flush()
        times = [0.0] * ROUNDS
        window = asyncio.Semaphore(WINDOW)

        async def send() -> None:
            for n in range(ROUNDS):
                await window.acquire()
                times[n] = time.perf_counter()
                await client.publish("ring.double", b"%d" % n)

        sender = asyncio.create_task(send())
        for n in range(ROUNDS):
            msg = await sub.next(PATIENCE)
            times[n] = time.perf_counter() - times[n]
            leg.took()
            window.release()
            if msg.data != b"%d" % (2 * n + 1):
                sys.exit(f"wrong: {n} came back as {msg.data!r}, not as {2 * n + 1}")
        await sender
        if sub.pending or sub.dropped:
            sys.exit(f"wrong: {sub.pending} messages too many, {sub.dropped} dropped")
        return times


def main() -> None:
    legs = [
        Leg("asyncio", "starts n, gets 2n + 1"),
        Leg("trio", "gets n, passes on 2n"),
        Leg("blocking", "gets 2n, passes on 2n + 1"),
    ]
    ready = threading.Semaphore(0)
    with Server() as server, ThreadPoolExecutor(2) as pool:
        print(f"{ROUNDS:,} messages round a ring of three runtimes, {WINDOW:,} at a time")
        others: list[Future[None]] = [
            pool.submit(trio.run, double, server.url, legs[1], ready),
            pool.submit(add, server.url, legs[2], ready),
        ]
        for _ in others:
            if not ready.acquire(timeout=PATIENCE):
                sys.exit("a runtime did not get ready")
        times = asyncio.run(start(server.url, legs[0]))
        for other in others:
            other.result()
        seen = server.monitor("/varz")
    for leg in legs:
        print(f"  {leg}")
    print(f"  once round takes {1000 * statistics.median(times):.1f} ms in the middle of a crowd")
    print(f"  the server counts {seen['in_msgs']:,} messages in, {seen['out_msgs']:,} out")
    counts = [leg.count for leg in legs] + [seen["in_msgs"] // 3, seen["out_msgs"] // 3]
    if counts != [ROUNDS] * 5:
        sys.exit(f"wrong: {counts} are not all {ROUNDS}")
    print("  every message came back once, in order, with the right value")


if __name__ == "__main__":
    main()
