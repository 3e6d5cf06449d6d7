"""bench: measure this client against a server: messages per second, and CPU per message."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from natsproto.cli.options import size

from .context import jetstream_of
from .progress import Progress
from .show import amount

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from natsproto.cli.commands import Commands
    from natsproto.cli.run import Session

_STEP = 1000  # messages between two updates of the bar


def add(commands: Commands) -> None:
    """Add the group."""
    group = commands.group("bench", "Measure rates, and CPU time per message.")
    parser = group.command("pub", publish, "Publish messages.")
    _counted(parser).add_argument("subject", help="the subject")
    parser.add_argument("--size", type=size, default=128, metavar="SIZE", help="of each (128)")
    parser.add_argument("--jetstream", action="store_true", help="wait for acknowledgments")
    parser = group.command("sub", subscribe, "Receive messages, such as those of bench pub.")
    _counted(parser).add_argument("subject", help="the subject")
    for name, run, text in [
        ("fetch", fetch, "Fetch messages in batches, and acknowledge them."),
        ("consume", consume, "Consume messages, and acknowledge them."),
    ]:
        parser = group.command(name, run, text)
        _counted(parser).add_argument("stream", help="name of the stream")
        parser.add_argument("consumer", help="name of the consumer")
        parser.add_argument("--batch", type=int, default=500, metavar="N", help="of a pull (500)")


def _counted(parser: ArgumentParser) -> ArgumentParser:
    parser.add_argument("--count", type=int, default=100_000, metavar="N", help="(100,000)")
    return parser


class Meter:
    """Wall-clock and CPU time since the first message."""

    def __init__(self, session: Session, progress: Progress) -> None:
        self._session = session
        self._progress = progress
        self.count: int = 0
        self.bytes: int = 0
        self._began = 0.0
        self._cpu = 0.0

    def start(self) -> None:
        """Begin now."""
        self._began = time.perf_counter()
        self._cpu = time.process_time()

    def add(self, data: int) -> None:
        """Count a message of this size."""
        self.count += 1
        self.bytes += data
        if not self.count % _STEP:
            self._progress.reach(self.count)

    def report(self, what: str) -> None:
        """Print the result."""
        took = max(time.perf_counter() - self._began, 1e-9)
        cpu = time.process_time() - self._cpu
        count = max(self.count, 1)
        fields: dict[str, Any] = {
            "what": what,
            "messages": self.count,
            "bytes": self.bytes,
            "seconds": took,
            "messages_per_second": self.count / took,
            "bytes_per_second": self.bytes / took,
            "cpu_microseconds_per_message": cpu / count * 1e6,
        }
        rate = f"{self.count / took:,.0f} messages/s, {amount(self.bytes / took)}/s"
        text = f"{what}: {rate}, {cpu / count * 1e6:.1f} us of CPU per message"
        self._session.out.result(fields, text)


async def publish(session: Session) -> None:
    """Run bench pub."""
    args = session.args
    data = bytes(args.size)
    with Progress("publish", args.count, unit="messages") as progress:
        async with session.client() as client:
            meter = Meter(session, progress)
            meter.start()
            if args.jetstream:
                async with jetstream_of(session, client).publisher() as window:
                    for _ in range(args.count):
                        await window.publish(args.subject, data)
                        meter.add(len(data))
            else:
                for _ in range(args.count):
                    await client.publish(args.subject, data)
                    meter.add(len(data))
                await client.flush(session.timeout)
    meter.report("publish to JetStream" if args.jetstream else "publish")


async def subscribe(session: Session) -> None:
    """Run bench sub."""
    args = session.args
    with Progress("receive", args.count, unit="messages") as progress:
        async with session.client() as client:
            sub = await client.subscribe(args.subject, max_msgs=10_000_000, max_bytes=2**31)
            await client.flush(session.timeout)
            session.out.note(f"waiting for {args.count} messages on {args.subject}")
            meter = Meter(session, progress)
            async for msg in sub:
                if not meter.count:
                    meter.start()
                meter.add(len(msg.data))
                if meter.count >= args.count:
                    break
    meter.report("receive")


async def fetch(session: Session) -> None:
    """Run bench fetch."""
    args = session.args
    with Progress("fetch", args.count, unit="messages") as progress:
        async with session.client() as client:
            consumer = await jetstream_of(session, client).consumer(args.stream, args.consumer)
            meter = Meter(session, progress)
            meter.start()
            while meter.count < args.count:
                batch = min(args.batch, args.count - meter.count)
                found = await consumer.fetch(batch, expires=session.timeout)
                for msg in found:
                    await msg.ack()
                    meter.add(len(msg.data))
                if not len(found):
                    session.out.note("there are no more messages")
                    break
            await client.flush(session.timeout)
    meter.report("fetch and acknowledge")


async def consume(session: Session) -> None:
    """Run bench consume."""
    args = session.args
    with Progress("consume", args.count, unit="messages") as progress:
        async with session.client() as client:
            consumer = await jetstream_of(session, client).consumer(args.stream, args.consumer)
            waiting = (await consumer.info()).num_pending
            wanted = min(args.count, waiting)
            if wanted < args.count:
                session.out.note(f"there are only {waiting} messages")
            meter = Meter(session, progress)
            meter.start()
            if wanted:
                async with consumer.consume(max_messages=args.batch, stop_after=wanted) as messages:
                    async for msg in messages:
                        await msg.ack()
                        meter.add(len(msg.data))
            await client.flush(session.timeout)
    meter.report("consume and acknowledge")
