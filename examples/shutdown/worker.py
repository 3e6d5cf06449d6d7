"""A worker that ends gracefully: on SIGTERM it finishes what it has begun, and nothing is lost.

python examples/shutdown/worker.py nats://127.0.0.1:4222
"""

from __future__ import annotations

import asyncio
import signal
import sys

from jetstream import JetStream
from natsproto.adapters.asyncio import connect


async def handle(data: bytes) -> None:
    """Do the work of one message."""
    await asyncio.sleep(0.01)
    print("done", data.decode(), flush=True)


async def main(url: str) -> None:
    async with connect(url) as client:
        js = JetStream(client)
        consumer = await js.consumer("JOBS", "worker")
        async with consumer.consume(max_messages=10) as messages:
            # drain() requests no more messages; those on their way are still handled.
            stop = asyncio.Event()
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGTERM, stop.set)
            draining = asyncio.create_task(drain_after(stop, messages))
            async for msg in messages:
                await handle(msg.data)
                await msg.ack()
            draining.cancel()
        # Closing flushes: the server has all acknowledgments when the program ends.
    print("closed", flush=True)


async def drain_after(stop: asyncio.Event, messages) -> None:
    await stop.wait()
    await messages.drain()


asyncio.run(main(sys.argv[1]))
