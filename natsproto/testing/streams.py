"""What the checks of JetStream have in common: a server that has it, a stream of their own."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from natsproto.errors import TimeoutExpired

from .context import WAIT, Context

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from jetstream import Consumer, JetStream, Stream
    from natsproto.client import Client

    from .server import Server

#: The configuration of the server that the checks of JetStream share.
JETSTREAM: dict[str, Any] = {"jetstream": "enabled"}


def js_server(ctx: Context) -> Server:
    """A server with JetStream that others use, too."""
    return ctx.shared_server(**JETSTREAM)


async def open_js(ctx: Context, server: Server | None = None, **options: Any) -> JetStream:
    """JetStream on a client of its own."""
    return ctx.jetstream(await ctx.connect(server or js_server(ctx)), **options)


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
