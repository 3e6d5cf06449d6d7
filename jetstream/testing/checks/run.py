"""Messages.run(): a callback for each message, one at a time or several."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from jetstream.errors import ConsumerDeleted
from jetstream.events import PullWarning
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.streams import (
    fill,
    js_server,
    name_of,
    new_consumer,
    new_stream,
    numbers,
    open_js,
    pause,
    settled,
    until,
)
from jetstream.testing.suite import check
from natsproto.errors import LocalError, TimeoutExpired
from natsproto.testing.context import SOON, WAIT, Context, raises

if TYPE_CHECKING:
    from jetstream import Consumer, JetStream, JsMsg
    from jetstream.pull.messages import Messages
    from natsproto.client import Client


class _Failed(Exception):
    """The error of a callback."""


class _Work:
    """A callback that acknowledges, and records its messages and how many run at once."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.at_once = 0
        self.most = 0

    async def note(self, msg: JsMsg) -> None:
        self.seen.append(msg.data)
        await msg.ack()


async def _new(ctx: Context, count: int, **config: Any) -> tuple[Client, JetStream, Consumer]:
    """Return a client, its JetStream, and a consumer with this many messages."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    stream = await new_stream(ctx, js)
    await fill(ctx, js, numbers(count))
    return client, js, await stream.create_consumer(durable_name="c", **config)


async def _all_here(messages: Messages, count: int) -> None:
    """Wait until this many messages are buffered: a stop does not nak those in transit."""
    deadline = time.monotonic() + WAIT
    while messages.pending < count and time.monotonic() < deadline:
        with suppress(TimeoutExpired):
            await messages.events.next(timeout=0.02)


@check()
async def check_run(ctx: Context) -> None:
    """The callback gets each message, once and in order; run ends with consume."""
    _, consumer = await new_consumer(ctx, 1000)
    work = _Work()
    messages = consumer.consume(max_messages=50, stop_after=900)
    await messages.run(work.note)
    assert work.seen == numbers(900)
    assert messages.closed
    await settled(ctx, consumer, 900)
    info = await consumer.info()
    assert (info.num_pending, info.num_waiting, info.num_redelivered) == (100, 0, 0)


@check(shares=True)
async def check_run_several_at_once(ctx: Context) -> None:
    """At most `concurrency` callbacks run at once, and every message gets one."""
    client, _, consumer = await _new(ctx, 20)
    work = _Work()

    async def meet(msg: JsMsg) -> None:
        work.at_once += 1
        work.most = max(work.most, work.at_once)
        deadline = time.monotonic() + WAIT
        while work.most < 4 and time.monotonic() < deadline:
            await pause(client, 0.01)
        await pause(client, 0.01)
        work.at_once -= 1
        await work.note(msg)

    await consumer.consume(stop_after=20).run(meet, concurrency=4)
    assert sorted(work.seen, key=int) == numbers(20)
    assert (work.most, work.at_once) == (4, 0)
    await settled(ctx, consumer, 20)


@check()
async def check_run_stop_in_a_callback(ctx: Context) -> None:
    """A callback may stop the consume; untaken messages are returned."""
    _, consumer = await new_consumer(ctx, 10)
    work = _Work()
    messages = consumer.consume(max_messages=10)

    async def callback(msg: JsMsg) -> None:
        await work.note(msg)
        if len(work.seen) == 3:
            await _all_here(messages, 7)
            await messages.stop(nak=True)

    await messages.run(callback)
    assert work.seen == numbers(3)
    rest = await consumer.fetch(7, expires=SOON)
    assert sorted([msg.data for msg in rest], key=int) == numbers(10)[3:]


@check()
async def check_run_drain_in_a_callback(ctx: Context) -> None:
    """A callback may drain the consume; received messages still get callbacks."""
    _, consumer = await new_consumer(ctx, 50)
    work = _Work()
    messages = consumer.consume(max_messages=20)

    async def callback(msg: JsMsg) -> None:
        await work.note(msg)
        if len(work.seen) == 1:
            await messages.drain()

    await messages.run(callback)
    assert work.seen == numbers(50)[: len(work.seen)]
    await settled(ctx, consumer, len(work.seen))
    info = await consumer.info()
    assert (info.num_waiting, info.num_pending) == (0, 50 - len(work.seen))


@check(shares=True)
async def check_run_stop_waits_for_callbacks(ctx: Context) -> None:
    """After a stop from elsewhere, run returns when the running callbacks have finished."""
    client, _, consumer = await _new(ctx, 10)
    work = _Work()
    messages = consumer.consume(max_messages=10)
    stopped: list[JsMsg] = []

    async def callback(msg: JsMsg) -> None:
        work.at_once += 1
        deadline = time.monotonic() + WAIT
        while not stopped and time.monotonic() < deadline:
            await pause(client, 0.01)
        await work.note(msg)

    running = ctx.start(lambda: messages.run(callback, concurrency=3))

    async def look() -> bool:
        return work.at_once == 3

    await until(client, look)
    assert work.seen == []
    stopped += await messages.stop()
    await running.result()
    assert sorted(work.seen) == numbers(3)
    assert {msg.data for msg in stopped} <= set(numbers(10)[3:])


@check()
async def check_run_a_callback_fails(ctx: Context) -> None:
    """run raises the error of a callback, and naks the rest of the buffer."""
    _, consumer = await new_consumer(ctx, 6, ack_wait=60.0)
    work = _Work()
    messages = consumer.consume(max_messages=6)

    async def callback(msg: JsMsg) -> None:
        if msg.data == b"2":
            await _all_here(messages, 3)
            raise _Failed
        await work.note(msg)

    try:
        await messages.run(callback, nak=True)
    except _Failed:
        work.seen.append(b"failed")
    assert work.seen == [b"0", b"1", b"failed"]
    assert messages.closed
    rest = await consumer.fetch(3, expires=SOON)
    assert sorted([msg.data for msg in rest]) == [b"3", b"4", b"5"]
    assert {msg.metadata.delivered for msg in rest} == {2}
    info = await consumer.info()
    assert (info.num_ack_pending, info.num_waiting) == (4, 0)  # the one that failed is not settled


@check(shares=True)
async def check_run_one_of_several_fails(ctx: Context) -> None:
    """When a callback fails, run waits for the running ones and starts no other."""
    client, _, consumer = await _new(ctx, 20)
    work = _Work()

    async def callback(msg: JsMsg) -> None:
        work.at_once += 1
        if msg.data == b"1":
            raise _Failed
        await pause(client, 0.1)
        await work.note(msg)

    failed = False
    try:
        await consumer.consume().run(callback, concurrency=3)
    except _Failed:
        failed = True
    assert failed
    assert len(work.seen) == work.at_once - 1
    assert len(work.seen) <= 3


@check()
async def check_run_until_the_client_closes(ctx: Context) -> None:
    """Closing the client ends run, even if a callback closes it."""
    client, _, consumer = await _new(ctx, 3)
    work = _Work()

    async def callback(msg: JsMsg) -> None:
        await work.note(msg)
        if len(work.seen) == 3:
            await client.close()

    await consumer.consume(max_messages=3).run(callback)
    assert work.seen == numbers(3)


@check()
async def check_run_consumer_deleted(ctx: Context) -> None:
    """When the consumer is deleted, run raises after all callbacks."""
    _, consumer = await new_consumer(ctx, 2)
    other = await open_js(ctx)
    work = _Work()

    async def callback(msg: JsMsg) -> None:
        await work.note(msg)
        if len(work.seen) == 2:
            await other.delete_consumer(name_of(ctx), "c")

    with raises(ConsumerDeleted):
        await consumer.consume().run(callback)
    assert work.seen == numbers(2)


@check()
async def check_run_a_slow_callback(ctx: Context) -> None:
    """A callback that blocks the thread is not mistaken for silence of the server."""
    js, consumer = await new_consumer(ctx, 1)
    work = _Work()
    messages = consumer.consume(max_messages=10, expires=1.0, heartbeat=0.5)

    async def callback(msg: JsMsg) -> None:
        if msg.data == b"0":
            _block(1.3)  # silence for 1 s would be an alarm
            await fill(ctx, js, [b"1"])
        else:
            await messages.stop()
        await work.note(msg)

    await messages.run(callback)
    assert work.seen == numbers(2)
    assert [event async for event in messages.events if isinstance(event, PullWarning)] == []


def _block(seconds: float) -> None:
    time.sleep(seconds)


@check()
async def check_run_uses_the_client(ctx: Context) -> None:
    """A callback may use the same client: here it publishes the next message."""
    client, js, consumer = await _new(ctx, 1)
    work = _Work()

    async def callback(msg: JsMsg) -> None:
        await msg.ack_sync()
        work.seen.append(msg.data)
        await js.publish(ctx.subject + ".x", b"%d" % len(work.seen))

    await consumer.consume(stop_after=20).run(callback)
    assert work.seen == numbers(20)
    assert client.stats.connects == 1


@check()
async def check_run_over_lost_connections(ctx: Context) -> None:
    """Across lost connections every message gets a callback."""
    client, _, consumer = await _new(ctx, 60, ack_wait=1.0)
    work = _Work()
    messages = consumer.consume(max_messages=10, expires=3.0, heartbeat=0.5)

    async def callback(msg: JsMsg) -> None:
        if len(work.seen) in (10, 30):
            await client.force_reconnect()
        await msg.ack_sync(WAIT)
        work.seen.append(msg.data)
        if len(set(work.seen)) == 60:
            await messages.stop()

    await messages.run(callback)
    assert set(work.seen) == set(numbers(60))
    assert client.stats.connects == 3


@check()
async def check_run_rejected_locally(ctx: Context) -> None:
    """Invalid arguments are rejected before a message is taken."""
    _, consumer = await new_consumer(ctx, 1)
    work = _Work()
    async with consumer.consume() as messages:
        wrong: list[Any] = [0, -1, True, 1.5]
        for concurrency in wrong:
            with raises(LocalError):
                await messages.run(work.note, concurrency=concurrency)
        nothing: Any = None
        with raises(LocalError):
            await messages.run(nothing)
        assert not messages.closed
    assert work.seen == []


@check()
async def check_run_on_error(ctx: Context) -> None:
    """With on_error a callback that raises does not end run: its message is redelivered."""
    _, consumer = await new_consumer(ctx, 20)
    seen: list[bytes] = []
    failed: list[bytes] = []

    async def callback(msg: JsMsg) -> None:
        if msg.metadata.delivered == 1 and int(msg.data) % 5 == 0:
            raise _Failed(msg.data)
        seen.append(msg.data)
        await msg.ack()

    async def on_error(msg: JsMsg, error: Exception) -> None:
        assert isinstance(error, _Failed)
        failed.append(msg.data)
        await msg.nak()

    await consumer.consume(stop_after=24).run(callback, on_error=on_error)
    assert failed == [b"0", b"5", b"10", b"15"]
    assert sorted(seen, key=int) == numbers(20)
    await settled(ctx, consumer, 20)
