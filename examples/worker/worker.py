"""A worker as it runs in production: retries with pauses, dead letters, a graceful stop.

    python examples/worker/worker.py [URL]

It handles orders until SIGTERM or Ctrl-C, finishes those that it has begun, and ends.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys

from jetstream import JetStream, JsMsg
from natsproto.adapters.asyncio import connect


async def ship(order: dict) -> None:
    """Do the work; an exception means that it should be tried again."""
    if order["item"] == "tea":
        raise RuntimeError("out of tea")
    print("shipped", order["item"], flush=True)


async def work(msg: JsMsg) -> None:
    try:
        order = json.loads(msg.data)
    except ValueError:
        await msg.term("not valid JSON")  # trying again would not help: a dead letter at once
        return
    await ship(order)
    await msg.ack()


async def on_error(msg: JsMsg, error: Exception) -> None:
    delivered = msg.metadata.delivered
    print(f"order {msg.metadata.stream_seq} failed, attempt {delivered}: {error}", flush=True)
    await msg.nak(delay=0.1 * 2**delivered)  # after max_deliver attempts: a dead letter


async def main(url: str) -> None:
    async with connect(url, name="shipping") as client:
        js = JetStream(client)
        stream = await js.create_or_update_stream(name="ORDERS", subjects=["orders.>"])
        consumer = await stream.create_or_update_consumer(durable_name="shipping", max_deliver=3)
        # From now on the stream ORDERS-DEAD keeps the dead letters; another program reads them.
        async with await consumer.dead_letters(durable="ORDERS-DEAD"):
            pass
        async with consumer.consume(max_messages=20) as messages:
            stop = asyncio.Event()
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
            draining = asyncio.create_task(drain_after(stop, messages))
            await messages.run(work, concurrency=5, on_error=on_error)
            draining.cancel()
    print("closed", flush=True)


async def drain_after(stop: asyncio.Event, messages) -> None:
    await stop.wait()
    await messages.drain()  # requests no more messages; those on their way are still handled


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "nats://127.0.0.1:4222"))
