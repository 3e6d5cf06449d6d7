"""Ordered consumers that are deleted, expired, disconnected or restarted miss no message."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from jetstream.errors import (
    ApiError,
    ConsumerDeleted,
    ConsumerLimitReached,
    ConsumerNotFound,
    ResetFailed,
    StreamNotFound,
)
from jetstream.events import ConsumerReset
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.checks.ordered import new_ordered, take
from jetstream.testing.streams import (
    JETSTREAM,
    fill,
    js_server,
    left_alone,
    name_of,
    new_stream,
    numbers,
    open_js,
    until,
)
from jetstream.testing.suite import check
from natsproto.errors import NatsError, TimeoutExpired
from natsproto.testing.context import SOON, WAIT, Context, raises

if TYPE_CHECKING:
    from jetstream import OrderedConsumer
    from jetstream.pull.messages import Messages
    from natsproto.testing.server import Server

# Older servers do not answer if the consumer does not exist, so a reset takes two heartbeats.
_TELLS = (2, 11)
# For an election, and the silence before it.


async def _reset_of(messages: Messages) -> NatsError:
    """Return the reason of the next reset."""
    event = await messages.events.next(WAIT)
    assert isinstance(event, ConsumerReset)
    return event.error


async def _pulls(ctx: Context, ordered: OrderedConsumer, server: Server | None = None) -> None:
    """Wait until the server reports a waiting pull."""
    server = server or js_server(ctx)
    other = await open_js(ctx, server)

    async def look() -> bool:
        try:
            info = (await other.consumer(name_of(ctx), ordered.name)).cached_info
        except ApiError:
            return False
        return info.num_waiting > 0

    await until(await ctx.connect(server), look)


@check()
async def check_ordered_consumer_deleted(ctx: Context) -> None:
    """After the consumer is deleted, twice, only the messages published later arrive."""
    _, _, ordered = await new_ordered(ctx, 5)
    other = await open_js(ctx)
    async with ordered.consume(max_messages=5) as messages:
        assert await take(messages, 5) == numbers(5)
        for turn in (1, 2):
            await _pulls(ctx, ordered)
            await other.delete_consumer(name_of(ctx), ordered.name)
            await fill(ctx, other, numbers(3))
            assert await take(messages, 3) == numbers(3)
            assert isinstance(await _reset_of(messages), ConsumerDeleted)
            assert ordered.name.endswith("_%d" % (turn + 1))


@check(since=_TELLS)
async def check_ordered_consumer_deleted_during_delivery(ctx: Context) -> None:
    """If the consumer is deleted repeatedly, each message still arrives once and in order."""
    _, _, ordered = await new_ordered(ctx, 400)
    other = await open_js(ctx)
    seen: list[bytes] = []
    async with ordered.consume(max_messages=20) as messages:
        while len(seen) < 400:
            seen.append((await messages.next(WAIT)).data)
            if len(seen) in (1, 50, 53, 200):
                await _delete_all(ctx, other)
    assert seen == numbers(400)


async def _delete_all(ctx: Context, other: Any) -> None:
    for name in await other.consumer_names(name_of(ctx)):
        with suppress(ConsumerNotFound):  # another one has taken its place
            await other.delete_consumer(name_of(ctx), name)


@check(since=_TELLS)
async def check_ordered_deleted_before_anything_came(ctx: Context) -> None:
    """With deliver_policy new, a reset before the first message skips nothing."""
    _, _, ordered = await new_ordered(ctx, 5, deliver_policy="new")
    other = await open_js(ctx)
    await fill(ctx, other, [b"a", b"b"])
    await other.delete_consumer(name_of(ctx), ordered.name)
    await fill(ctx, other, [b"c"])
    async with ordered.consume() as messages:
        assert await take(messages, 3) == [b"a", b"b", b"c"]


@check(since=_TELLS)
async def check_ordered_start_sequence_and_reset(ctx: Context) -> None:
    """A start sequence is used once: the next consumer continues where the first one was."""
    options: dict[str, Any] = {"deliver_policy": "by_start_sequence", "opt_start_seq": 3}
    _, _, ordered = await new_ordered(ctx, 5, **options)
    other = await open_js(ctx)
    async with ordered.consume() as messages:
        assert await take(messages, 3) == numbers(5)[2:]
        await other.delete_consumer(name_of(ctx), ordered.name)
        await fill(ctx, other, numbers(5))
        assert await take(messages, 5) == numbers(5)


@check(since=_TELLS)
async def check_ordered_stop_after_with_reset(ctx: Context) -> None:
    """stop_after delivers exactly that many messages, even across a reset."""
    js, _, ordered = await new_ordered(ctx, 100)
    other = await open_js(ctx)
    messages = ordered.consume(max_messages=40, stop_after=150)
    seen = await take(messages, 100)
    await other.delete_consumer(name_of(ctx), ordered.name)
    await fill(ctx, js, numbers(100))
    seen += [msg.data async for msg in messages]
    assert seen == numbers(100) + numbers(50)


@check()
async def check_ordered_stop_during_reset(ctx: Context) -> None:
    """A stop in the middle of a reset ends it at once and leaves no consumer."""
    _, stream, first = await new_ordered(ctx, 3)
    await first.delete()
    other = await open_js(ctx)
    for _ in range(5):
        handles = [await stream.ordered_consumer() for _ in range(8)]
        consumes = [ordered.consume() for ordered in handles]
        for messages in consumes:
            assert await take(messages, 1) == [b"0"]
        await _delete_all(ctx, other)
        begin = time.monotonic()
        for messages in consumes:
            await messages.stop()
            assert messages.closed
        assert time.monotonic() - begin < SOON
    await left_alone(ctx, other, stream.name)


@check()
async def check_ordered_stop_while_disconnected(ctx: Context) -> None:
    """A stop without a connection leaves no consumer after the reconnect."""
    server = ctx.own_server(**JETSTREAM)
    client = await ctx.connect(server)
    stream = await new_stream(ctx, jetstream_of(client))
    ordered = await stream.ordered_consumer()
    fetched = await stream.ordered_consumer()
    messages = ordered.consume()
    await _pulls(ctx, ordered, server)
    assert len(await fetched.fetch(1, no_wait=True)) == 0
    server.freeze()
    await client.force_reconnect()
    await messages.stop()
    with raises(NatsError):
        await fetched.fetch(1, expires=0.01)
    server.thaw()
    # Called by that client, because a blocking one does nothing unless it is called.
    await left_alone(ctx, jetstream_of(client), stream.name)


@check()
async def check_ordered_purged(ctx: Context) -> None:
    """After a purge the messages published later arrive, without a reset."""
    js, stream, ordered = await new_ordered(ctx, 5)
    async with ordered.consume(max_messages=2) as messages:
        assert await take(messages, 1) == [b"0"]
        await stream.purge()
        await fill(ctx, js, [b"after"])
        seen = await take(messages, 1)
        while seen[-1] != b"after":
            seen += await take(messages, 1)
        assert len(seen) <= 3
        with raises(TimeoutExpired):
            await messages.events.next(0.05)
    await stream.purge()
    await fill(ctx, js, [b"again"])
    msg = await ordered.next(expires=WAIT)
    assert msg is not None
    assert msg.data == b"again"


@check()
async def check_ordered_stream_deleted(ctx: Context) -> None:
    """When the stream is deleted, an error is raised after the received messages."""
    _, stream, ordered = await new_ordered(ctx, 3)
    idle = await stream.ordered_consumer()
    async with ordered.consume() as messages:
        assert await take(messages, 3) == numbers(3)
        await stream.delete()
        with raises(StreamNotFound, within=SOON):
            await messages.next(WAIT)
        with raises(StreamNotFound):
            _ = [msg async for msg in messages]
    with raises(StreamNotFound, within=SOON):
        await ordered.fetch(1, expires=1.0)
    # Older servers do not respond to its pull.
    with raises(StreamNotFound, within=2.0 + SOON):
        await idle.fetch(1, expires=4.0)


@check(since=_TELLS)
async def check_ordered_max_reset_attempts(ctx: Context) -> None:
    """After max_reset_attempts failures ResetFailed is raised; the handle stays usable."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js, max_consumers=1)
    ordered = await stream.ordered_consumer(max_reset_attempts=1)
    await stream.delete_consumer(ordered.name)
    await stream.create_consumer(durable_name="intruder")  # there is no room for another one
    async with ordered.consume() as messages:
        with raises(ResetFailed, within=SOON) as caught:
            await messages.next(WAIT)
    assert caught.error.attempts == 1
    assert isinstance(caught.error.error, ConsumerLimitReached)
    await stream.delete_consumer("intruder")
    await fill(ctx, js, [b"more"])
    assert [msg.data for msg in await ordered.fetch(1, expires=WAIT)] == [b"more"]


@check(since=_TELLS)
async def check_ordered_fetch_deleted(ctx: Context) -> None:
    """A fetch whose consumer is gone creates another one, and misses nothing."""
    js, _, ordered = await new_ordered(ctx, 10)
    other = await open_js(ctx)
    for start in (0, 3, 6):
        assert [msg.data for msg in await ordered.fetch(3, expires=WAIT)] == numbers(10)[start:][:3]
        await other.delete_consumer(name_of(ctx), ordered.name)
    msg = await ordered.next(expires=WAIT)
    assert msg is not None
    assert msg.data == b"9"
    await other.delete_consumer(name_of(ctx), ordered.name)
    assert len(await ordered.fetch(1, no_wait=True)) == 0
    await fill(ctx, js, [b"more"])
    assert [msg.data for msg in await ordered.fetch(1, expires=WAIT)] == [b"more"]


@check(since=_TELLS)
async def check_ordered_inactive(ctx: Context) -> None:
    """An expired consumer is recreated, and the messages continue where it was."""
    js, stream, ordered = await new_ordered(ctx, 3, inactive_threshold=0.1)
    assert [msg.data for msg in await ordered.fetch(2, expires=WAIT)] == numbers(2)

    async def look() -> bool:
        return not await stream.consumer_names()

    await until(await ctx.connect(js_server(ctx)), look)
    assert [msg.data for msg in await ordered.fetch(2, expires=0.2)] == [b"2"]
    await until(await ctx.connect(js_server(ctx)), look)
    await fill(ctx, js, [b"more"])
    async with ordered.consume() as messages:
        assert await take(messages, 1) == [b"more"]


@check()
async def check_ordered_lost_connection(ctx: Context) -> None:
    """Across lost connections each message arrives once and in order."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    stream = await new_stream(ctx, js)
    await fill(ctx, await open_js(ctx), numbers(300))
    ordered = await stream.ordered_consumer()
    seen: list[bytes] = []
    async with ordered.consume(max_messages=30) as messages:
        for _ in range(3):
            seen += await take(messages, 90)
            await client.force_reconnect()
        seen += await take(messages, 30)
    assert seen == numbers(300)


async def _over_a_restart(ctx: Context, how: str) -> None:
    server = ctx.own_server(**JETSTREAM)
    client = await ctx.connect(server)
    js = jetstream_of(client)
    stream = await new_stream(ctx, js, storage="file")
    await fill(ctx, js, numbers(20))
    ordered = await stream.ordered_consumer()
    async with ordered.consume(max_messages=4, expires=2.0) as messages:
        seen = await take(messages, 7)
        (server.kill if how == "kill" else server.terminate)()
        server.restart()
        seen += await take(messages, 13, 2 * WAIT)
        await fill(ctx, await open_js(ctx, server), [b"later"])
        seen += await take(messages, 1)
    assert seen == [*numbers(20), b"later"]


@check()
async def check_ordered_over_a_restart(ctx: Context) -> None:
    """When the server is restarted and loses the consumer, the messages continue in order."""
    await _over_a_restart(ctx, "terminate")


@check()
async def check_ordered_over_a_crash(ctx: Context) -> None:
    """When the server is killed and restarted, the messages continue in order."""
    await _over_a_restart(ctx, "kill")
