"""consume() of a consumer that is gone while no pull is open: it ends, and says why."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from jetstream.errors import ApiError, ConsumerNotFound, StreamNotFound
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
)
from jetstream.testing.suite import check
from natsproto.errors import TimeoutExpired
from natsproto.events import Disconnected
from natsproto.testing.context import WAIT, Context, next_event, raises

if TYPE_CHECKING:
    from jetstream import Consumer
    from jetstream.pull.messages import Messages

# Servers before 2.11 do not answer, so use short heartbeats.
_QUICK: dict[str, Any] = {"expires": 2.0, "heartbeat": 0.5}
# Two heartbeats, two lookups a second apart, and some time for a busy machine.
_LOOKED_UP = 4.0


async def _full(ctx: Context, consumer: Consumer, count: int = 5) -> Messages:
    """Return a consume() whose buffer is full, so that the server has no pull of it."""
    messages = consumer.consume(max_messages=count, **_QUICK)
    deadline = time.monotonic() + WAIT
    while messages.pending < count:
        assert time.monotonic() < deadline
        try:
            await messages.events.next(timeout=0.02)
        except TimeoutExpired:
            pass
    return messages


async def _ends(messages: Messages, count: int, error: type[ApiError]) -> None:
    """Take the received messages, then expect the error at each call."""
    taken = [(await messages.next(WAIT)).data for _ in range(count)]
    assert taken == numbers(count)
    with raises(error, within=_LOOKED_UP) as caught:
        await messages.next(2 * WAIT)
    assert "CONSUMER.INFO" in str(caught.error)
    with raises(error):
        _ = [msg async for msg in messages]
    assert messages.closed


@check()
async def check_consume_of_a_deleted_consumer(ctx: Context) -> None:
    """A consumer that was deleted before is noticed."""
    _, consumer = await new_consumer(ctx, 5)
    await consumer.delete()
    async with consumer.consume(**_QUICK) as messages:
        await _ends(messages, 0, ConsumerNotFound)


@check()
async def check_consumer_deleted_while_nothing_is_pulled(ctx: Context) -> None:
    """If the consumer is deleted while the buffer is full, the buffer is delivered first."""
    _, consumer = await new_consumer(ctx, 5)
    other = await open_js(ctx)
    async with await _full(ctx, consumer) as messages:
        await other.delete_consumer(name_of(ctx), "c")
        await _ends(messages, 5, ConsumerNotFound)


@check()
async def check_stream_deleted_while_nothing_is_pulled(ctx: Context) -> None:
    """The same happens when its stream is deleted."""
    _, consumer = await new_consumer(ctx, 5)
    other = await open_js(ctx)
    async with await _full(ctx, consumer) as messages:
        await other.delete_stream(name_of(ctx))
        await _ends(messages, 5, StreamNotFound)


@check()
async def check_consumer_inactive_while_nothing_is_pulled(ctx: Context) -> None:
    """The same happens when the server removes an inactive consumer."""
    _, consumer = await new_consumer(
        ctx, 5, durable_name="", ack_policy="none", inactive_threshold=0.3
    )
    other = await open_js(ctx)
    async with await _full(ctx, consumer) as messages:
        client = await ctx.connect(js_server(ctx))
        while await other.consumer_names(name_of(ctx)):
            await pause(client, 0.1)
        await _ends(messages, 5, ConsumerNotFound)


@check()
async def check_consumer_deleted_during_an_outage(ctx: Context) -> None:
    """A consumer that is deleted while the client has no connection is noticed."""
    server = ctx.own_server(jetstream="enabled")
    client = await ctx.connect(server, reconnect_wait=1.0, reconnect_wait_max=1.0)
    js = jetstream_of(client)
    stream = await new_stream(ctx, js, storage="file")
    await fill(ctx, js, numbers(5))
    consumer = await stream.create_consumer(durable_name="c")
    async with consumer.consume(max_messages=10, **_QUICK) as messages:
        taken = [(await messages.next(WAIT)).data for _ in range(5)]
        assert taken == numbers(5)
        server.kill()
        await next_event(client, Disconnected)
        with raises(TimeoutExpired):
            await messages.next(0.2)  # in the meantime it fails to connect, and begins to wait
        server.restart()
        other = jetstream_of(await ctx.connect(server))
        await other.delete_consumer(name_of(ctx), "c")
        with raises(ConsumerNotFound, within=1.0 + _LOOKED_UP):
            await messages.next(2 * WAIT)


@check()
async def check_stream_lost_by_a_restart(ctx: Context) -> None:
    """If a memory stream is lost with its server, consume() ends instead of waiting."""
    server = ctx.own_server(jetstream="enabled")
    client = await ctx.connect(server)
    js = jetstream_of(client)
    stream = await new_stream(ctx, js)
    await fill(ctx, js, numbers(5))
    consumer = await stream.create_consumer(durable_name="c")
    async with await _full(ctx, consumer) as messages:
        server.kill()
        await next_event(client, Disconnected)
        server.restart()
        await _ends(messages, 5, StreamNotFound)


@check()
async def check_consumer_that_is_created_again(ctx: Context) -> None:
    """A consumer that is recreated in time is used: it is gone only if not found twice."""
    _, consumer = await new_consumer(ctx, 5)
    other = await open_js(ctx)
    async with await _full(ctx, consumer) as messages:
        await other.delete_consumer(name_of(ctx), "c")
        for payload in numbers(5):
            assert (await messages.next(WAIT)).data == payload
        with raises(TimeoutExpired):
            await messages.next(0.1)
        await other.create_consumer(name_of(ctx), durable_name="c")
        for payload in numbers(5):
            assert (await messages.next(WAIT)).data == payload


@check()
async def check_consume_without_permission_to_look_up(ctx: Context) -> None:
    """Without permission to look up its consumer, consume() continues."""
    denied = {"publish": {"deny": ["$JS.API.CONSUMER.INFO.>"]}}
    users = [
        {"user": "some", "password": "p", "permissions": denied},
        {"user": "all", "password": "p"},
    ]
    server = ctx.shared_server(jetstream="enabled", authorization={"users": users})
    js = jetstream_of(await ctx.connect(server, user="some", password="p"))
    other = jetstream_of(await ctx.connect(server, user="all", password="p"))
    stream = await new_stream(ctx, js)
    consumer = await stream.create_consumer(durable_name="c")
    await other.delete_consumer(name_of(ctx), "c")
    async with consumer.consume(**_QUICK) as messages:
        with raises(TimeoutExpired):
            await messages.next(3.0)
        await other.create_consumer(name_of(ctx), durable_name="c")
        await fill(ctx, other, numbers(1))
        assert (await messages.next(WAIT)).data == b"0"
