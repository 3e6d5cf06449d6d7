"""Subscription.run(): a callback for each message, one at a time or several."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from natsproto.errors import InvalidState, LocalError, TimeoutExpired
from natsproto.testing.context import WAIT, Context, raises
from natsproto.testing.suite import check

if TYPE_CHECKING:
    from natsproto.client import Client
    from natsproto.wire.frames import Msg


async def _publish(client: Client, subject: str, count: int) -> None:
    for number in range(count):
        await client.publish(subject, b"%d" % number)
    await client.flush(WAIT)


def _numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


@check()
async def check_run_each_message(ctx: Context) -> None:
    """The callback gets each message, once and in order; run ends with the subscription."""
    alice, bob = await ctx.pair()
    sub = await bob.subscribe(ctx.subject)
    await sub.unsubscribe(after=1000)
    await bob.flush(WAIT)
    await _publish(alice, ctx.subject, 1000)
    seen: list[bytes] = []

    async def note(msg: Msg) -> None:
        seen.append(msg.data)

    await sub.run(note)
    assert seen == _numbers(1000)


@check()
async def check_run_publish_and_unsubscribe_in_a_callback(ctx: Context) -> None:
    """A callback may use the client and end its own subscription."""
    client = await ctx.client()
    sub = await client.subscribe(ctx.subject)
    seen: list[bytes] = []

    async def callback(msg: Msg) -> None:
        seen.append(msg.data)
        if len(seen) == 5:
            await sub.unsubscribe()
        else:
            await client.publish(ctx.subject, b"%d" % len(seen))

    await client.publish(ctx.subject, b"0")
    await sub.run(callback)
    assert seen == _numbers(5)


@check(shares=True)
async def check_run_with_concurrency(ctx: Context) -> None:
    """At most `concurrency` callbacks run at once, and every message gets one."""
    client = await ctx.client()
    sub = await client.subscribe(ctx.subject)
    await sub.unsubscribe(after=20)
    silent = await client.subscribe(ctx.subject + ".silent")
    await _publish(client, ctx.subject, 20)
    seen: list[bytes] = []
    running: list[int] = [0, 0]  # now, and at most

    async def pause() -> None:
        with suppress(TimeoutExpired):
            await silent.next(0.01)

    async def meet(msg: Msg) -> None:
        running[0] += 1
        running[1] = max(running)
        deadline = time.monotonic() + WAIT
        while running[1] < 4 and time.monotonic() < deadline:
            await pause()
        await pause()
        running[0] -= 1
        seen.append(msg.data)

    await sub.run(meet, concurrency=4)
    assert sorted(seen, key=int) == _numbers(20)
    assert running == [0, 4]


@check()
async def check_run_ends_with_an_error(ctx: Context) -> None:
    """The error of a callback ends run and the subscription; other messages can be taken."""
    client = await ctx.client()
    sub = await client.subscribe(ctx.subject)
    await _publish(client, ctx.subject, 5)

    async def callback(msg: Msg) -> None:
        if msg.data == b"2":
            raise InvalidState("mine")

    with raises(InvalidState):
        await sub.run(callback)
    assert (await sub.next(WAIT)).data == b"3"
    assert (await sub.next(WAIT)).data == b"4"
    with raises(LocalError):
        await sub.next(0)


@check()
async def check_run_with_on_error(ctx: Context) -> None:
    """With `on_error` the next message is handled after an error."""
    client = await ctx.client()
    sub = await client.subscribe(ctx.subject)
    await sub.unsubscribe(after=5)
    await _publish(client, ctx.subject, 5)
    seen: list[bytes] = []
    handled: list[bytes] = []

    async def callback(msg: Msg) -> None:
        seen.append(msg.data)
        if msg.data in (b"1", b"3"):
            raise InvalidState("mine")

    async def on_error(msg: Msg, error: Exception) -> None:
        assert isinstance(error, InvalidState)
        handled.append(msg.data)

    await sub.run(callback, on_error=on_error)
    assert (seen, handled) == (_numbers(5), [b"1", b"3"])


@check(shares=True)
async def check_run_ends_with_the_client(ctx: Context) -> None:
    """Closing the client ends run, after the callbacks of messages that have arrived."""
    client = await ctx.client()
    sub = await client.subscribe(ctx.subject)
    seen: list[bytes] = []

    async def callback(msg: Msg) -> None:
        seen.append(msg.data)

    running = ctx.start(lambda: sub.run(callback, concurrency=2))
    await _publish(client, ctx.subject, 3)
    deadline = time.monotonic() + WAIT
    while len(seen) < 3 and time.monotonic() < deadline:
        await client.flush(WAIT)
    await client.close()
    await running.result()
    assert sorted(seen) == _numbers(3)
