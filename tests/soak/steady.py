"""python -m tests.soak.steady [--messages 50000000]: one process, whose memory must not grow.

Messages are published in a window, consumed and acknowledged, by the same process; the stream keeps
only what is not acknowledged. Every twentieth of the run is a sample, taken after a collection. The
first quarter is for warming up: caches, the allocator, and the first reconnects. After that the
resident memory may vary by LIMIT, and its slope, fitted to all samples, may be no more than SLOPE
for the whole run. The connection is cut at each sample, so that reconnects are part of it. --leak
keeps so many bytes of every message, which has to be noticed.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import time

from jetstream import JetStream
from natsproto.adapters.asyncio import connect
from natsproto.testing import Server
from tests.soak.ledger import PAGE
from tests.soak.load import contents, open_files

SAMPLES = 20
WARM_UP = SAMPLES // 4
LIMIT = 4 * 2**20  # bytes
SLOPE = 2 * 2**20  # bytes, from the first sample after the warm-up to the last
WINDOW = 1000
PATIENCE = 60.0


def resident() -> int:
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * PAGE


def slope(samples: list[int]) -> float:
    """Return the growth over all samples by the method of least squares."""
    count = len(samples)
    middle, mean = (count - 1) / 2, sum(samples) / count
    rise = sum((index - middle) * (each - mean) for index, each in enumerate(samples))
    return (count - 1) * rise / sum((index - middle) ** 2 for index in range(count))


def complaints(samples: list[int]) -> list[str]:
    """Return what is wrong with the samples of a run."""
    rest = samples[WARM_UP:]
    found = []
    if max(rest) - min(rest) > LIMIT:
        found.append(f"memory varies from {min(rest) >> 10} to {max(rest) >> 10} KiB")
    if slope(rest) > SLOPE:
        found.append(f"memory grows by {slope(rest) / 1024:.0f} KiB after the warm-up")
    return found


class Steady:
    def __init__(self, messages: int, leak: int = 0) -> None:
        self.messages = messages
        self.leak = leak
        self.kept: list[bytes] = []
        self.samples: list[int] = []
        self.taken = 0
        self.odd: list[str] = []

    async def run(self) -> None:
        with Server(jetstream=True) as server:
            async with connect(server.url, reconnect_wait=0.01) as client:
                js = JetStream(client)
                stream = await js.create_stream(
                    name="S", subjects=["s.*"], storage="memory", retention="workqueue"
                )
                consumer = await stream.create_consumer(
                    durable_name="c", ack_wait=30.0, max_ack_pending=10 * WINDOW
                )
                # Enough of all kinds of traffic before the counts that are compared.
                await asyncio.gather(self._publish(js, WINDOW), self._take(consumer, WINDOW))
                before = contents(client), open_files()
                for _ in range(SAMPLES):
                    count = self.messages // SAMPLES
                    await asyncio.gather(self._publish(js, count), self._take(consumer, count))
                    await client.force_reconnect()
                    await client.flush(PATIENCE)
                    self.samples.append(resident())
                after = contents(client), open_files()
                if after != before:
                    self.odd.append(f"subscriptions, requests, timers, files: {before}, {after}")

    async def _publish(self, js: JetStream, count: int) -> None:
        async with js.publisher(max_pending=WINDOW) as window:
            for number in range(count):
                await window.publish("s.%d" % (number % 100), b"%012d" % number, headers={"A": "b"})

    async def _take(self, consumer: object, count: int) -> None:
        async with consumer.consume(max_messages=WINDOW, stop_after=count) as messages:  # type: ignore[attr-defined]
            async for msg in messages:
                self.taken += 1
                if self.leak:
                    self.kept.append(bytes(self.leak) + msg.data)
                await msg.ack()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.steady")
    parser.add_argument("--messages", type=int, default=50_000_000)
    parser.add_argument("--leak", type=int, default=0, help="bytes to keep of each message")
    options = parser.parse_args(arguments)
    steady = Steady(options.messages, options.leak)
    began = time.monotonic()
    asyncio.run(steady.run())
    shown = ", ".join(f"{each / 2**20:.1f}" for each in steady.samples)
    print(f"{steady.taken} messages in {time.monotonic() - began:.0f} s; RSS in MiB: {shown}")
    found = steady.odd + complaints(steady.samples)
    for complaint in found:
        print("  " + complaint)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
