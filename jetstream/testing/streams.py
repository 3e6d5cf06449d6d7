"""What the checks of JetStream have in common: a server that has it, a stream of their own."""

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
    """A server with JetStream that others use, too."""
    return ctx.shared_server(**JETSTREAM)


async def open_js(ctx: Context, server: Server | None = None, **options: Any) -> JetStream:
    """JetStream on a client of its own."""
    return jetstream_of(await ctx.connect(server or js_server(ctx)), **options)


def name_of(ctx: Context) -> str:
    """A name of streams that nobody else uses."""
    return ctx.subject.replace(".", "-")


async def new_stream(ctx: Context, js: JetStream, **config: Any) -> Stream:
    """A stream in memory with all that is published below the subject of the check."""
    settings: dict[str, Any] = {
        "name": name_of(ctx),
        "subjects": [ctx.subject + ".>"],
        "storage": "memory",
    }
    settings.update(config)
    return await js.create_stream(**settings)


async def fill(ctx: Context, js: JetStream, payloads: list[bytes], token: str = "x") -> None:
    """Publish these, to the same subject."""
    async with js.publisher() as window:
        for payload in payloads:
            await window.publish(f"{ctx.subject}.{token}", payload)


async def new_consumer(ctx: Context, count: int = 0, **config: Any) -> tuple[JetStream, Consumer]:
    """A consumer of a stream with that many messages: b"0", b"1" and so on."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js)
    await fill(ctx, js, numbers(count))
    settings: dict[str, Any] = {"durable_name": "c", **config}
    return js, await stream.create_consumer(**settings)


async def filled_stream(ctx: Context, count: int = 0) -> tuple[JetStream, str]:
    """JetStream with a stream of that many messages, and the subject of all of them."""
    js = await open_js(ctx)
    await new_stream(ctx, js)
    await fill(ctx, js, numbers(count))
    return js, f"{ctx.subject}.x"


async def take_pushed(messages: PushMessages, count: int) -> list[bytes]:
    """The payloads of the next messages of a subscription, acknowledged."""
    taken: list[bytes] = []
    for _ in range(count):
        msg = await messages.next(WAIT)
        await msg.ack_sync()
        taken.append(msg.data)
    return taken


async def give_back(messages: PushMessages) -> None:
    """End the subscription; what came and was not taken is delivered again to the next one."""
    await messages.drain()
    async for msg in messages:
        await msg.nak()


async def nothing_pushed(messages: PushMessages, seconds: float = 0.05) -> None:
    """No message comes."""
    try:
        msg = await messages.next(seconds)
    except TimeoutExpired:
        return
    raise AssertionError(f"nobody expects {msg!r}")


async def unbound(ctx: Context, js: JetStream, name: str) -> None:
    """Until the server knows that nobody listens to this push consumer any more."""

    async def look() -> bool:
        return not (await js.consumer(name_of(ctx), name)).cached_info.push_bound

    await until(await ctx.connect(js_server(ctx)), look)


def numbers(count: int) -> list[bytes]:
    """The payloads b"0", b"1" and so on."""
    return [b"%d" % n for n in range(count)]


async def pause(client: Client, seconds: float) -> None:
    """On any runtime: wait for what does not come."""
    sub = await client.subscribe("nobody.publishes.here")
    with suppress(TimeoutExpired):
        await sub.next(seconds)
    await sub.unsubscribe()


async def until(client: Client, look: Callable[[], Awaitable[bool]], timeout: float = WAIT) -> None:
    """Until it is so, which nobody tells."""
    deadline = time.monotonic() + timeout
    while not await look():
        assert time.monotonic() < deadline, f"it did not happen within {timeout} s"
        await pause(client, 0.02)


async def left_alone(ctx: Context, js: JetStream, stream: str) -> None:
    """Until the stream has no consumers any more: whoever watched it has gone."""

    async def look() -> bool:
        return not await js.consumer_names(stream)

    await until(await ctx.connect(js_server(ctx)), look)


async def settled(ctx: Context, consumer: Consumer, floor: int) -> None:
    """Until the server has worked off the acknowledgements up to that message of the stream."""

    async def look() -> bool:
        info = await consumer.info()
        return info.ack_floor.stream_seq == floor and not info.num_ack_pending

    await until(await ctx.connect(js_server(ctx)), look)
