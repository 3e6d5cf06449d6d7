"""Helpers for the checks of JetStream: a shared server, separate streams, and waiting."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from natsproto.errors import TimeoutExpired
from natsproto.testing.context import WAIT, Context

from .blocking_view import jetstream_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from jetstream import Consumer, JetStream, Stream
    from jetstream.push.api import PushMessages
    from natsproto.client import Client
    from natsproto.testing.server import Server

#: The configuration of the server that the checks of JetStream share.
JETSTREAM: dict[str, Any] = {"jetstream": "enabled"}


def js_server(ctx: Context) -> Server:
    """Return the server with JetStream that all checks share."""
    return ctx.shared_server(**JETSTREAM)


async def open_js(ctx: Context, server: Server | None = None, **options: Any) -> JetStream:
    """Return JetStream on a new client."""
    return jetstream_of(await ctx.connect(server or js_server(ctx)), **options)


def name_of(ctx: Context) -> str:
    """Return a name for a stream or bucket that no other check uses."""
    return ctx.subject.replace(".", "-")


async def new_stream(ctx: Context, js: JetStream, **config: Any) -> Stream:
    """Create a stream in memory that takes all subjects below that of the check."""
    settings: dict[str, Any] = {
        "name": name_of(ctx),
        "subjects": [ctx.subject + ".>"],
        "storage": "memory",
    }
    settings.update(config)
    return await js.create_stream(**settings)


async def fill(ctx: Context, js: JetStream, payloads: list[bytes], token: str = "x") -> None:
    """Publish these payloads to one subject."""
    async with js.publisher() as window:
        for payload in payloads:
            await window.publish(f"{ctx.subject}.{token}", payload)


async def new_consumer(ctx: Context, count: int = 0, **config: Any) -> tuple[JetStream, Consumer]:
    """Create a stream with this many messages (b"0", b"1" ...) and a consumer of it."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js)
    await fill(ctx, js, numbers(count))
    settings: dict[str, Any] = {"durable_name": "c", **config}
    return js, await stream.create_consumer(**settings)


async def filled_stream(ctx: Context, count: int = 0) -> tuple[JetStream, str]:
    """Create a stream with this many messages; return JetStream and their subject."""
    js = await open_js(ctx)
    await new_stream(ctx, js)
    await fill(ctx, js, numbers(count))
    return js, f"{ctx.subject}.x"


async def take_pushed(messages: PushMessages, count: int) -> list[bytes]:
    """Acknowledge the next messages of a subscription and return their payloads."""
    taken: list[bytes] = []
    for _ in range(count):
        msg = await messages.next(WAIT)
        await msg.ack_sync()
        taken.append(msg.data)
    return taken


async def give_back(messages: PushMessages) -> None:
    """End the subscription; messages that were not taken go to the next subscriber."""
    await messages.drain()
    async for msg in messages:
        await msg.nak()


async def nothing_pushed(messages: PushMessages, seconds: float = 0.05) -> None:
    """Assert that no message arrives."""
    try:
        msg = await messages.next(seconds)
    except TimeoutExpired:
        return
    raise AssertionError(f"unexpected message: {msg!r}")


async def unbound(ctx: Context, js: JetStream, name: str) -> None:
    """Wait until the server knows that this push consumer has no subscriber."""

    async def look() -> bool:
        return not (await js.consumer(name_of(ctx), name)).cached_info.push_bound

    await until(await ctx.connect(js_server(ctx)), look)


def numbers(count: int) -> list[bytes]:
    """Return the payloads b"0", b"1" and so on."""
    return [b"%d" % n for n in range(count)]


async def pause(client: Client, seconds: float) -> None:
    """Wait for some time, on any runtime."""
    sub = await client.subscribe("nobody.publishes.here")
    with suppress(TimeoutExpired):
        await sub.next(seconds)
    await sub.unsubscribe()


async def until(client: Client, look: Callable[[], Awaitable[bool]], timeout: float = WAIT) -> None:
    """Poll until `look` returns true: there is no event to wait for."""
    deadline = time.monotonic() + timeout
    while not await look():
        assert time.monotonic() < deadline, f"condition not met within {timeout} s"
        await pause(client, 0.02)


async def counted(ctx: Context, consumer: Consumer, pending: int) -> None:
    """Wait until the consumer has this many messages to deliver.

    A busy server acknowledges a message before its consumers have counted it.
    """

    async def look() -> bool:
        return (await consumer.info()).num_pending == pending

    await until(await ctx.client(), look)


async def left_alone(ctx: Context, js: JetStream, stream: str) -> None:
    """Wait until the stream has no consumers."""

    async def look() -> bool:
        return not await js.consumer_names(stream)

    await until(await ctx.connect(js_server(ctx)), look)


async def settled(ctx: Context, consumer: Consumer, floor: int) -> None:
    """Wait until the server has processed the acks up to this message of the stream."""

    async def look() -> bool:
        info = await consumer.info()
        return info.ack_floor.stream_seq == floor and not info.num_ack_pending

    await until(await ctx.connect(js_server(ctx)), look)
