"""Streams and buckets that are deleted and created again while a reader is away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jetstream.events import ConsumerReset, StreamRecreated
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.checks.ordered import take
from jetstream.testing.streams import JETSTREAM, fill, name_of, new_stream, numbers, open_js, until
from jetstream.testing.suite import check
from natsproto.errors import TimeoutExpired
from natsproto.testing.context import WAIT, Context, raises

if TYPE_CHECKING:
    from jetstream import JetStream
    from jetstream.machine.iteration import MachineEvents
    from natsproto.client import Client
    from natsproto.testing.server import Server

OLD = 20
NEW = [b"new %d" % number for number in range(OLD + 10)]
# Between two tries to connect: long enough for the server and the stream to be back first.
_AWAY: dict[str, Any] = {"reconnect_wait": 2.0, "reconnect_wait_max": 2.0}


async def _leave(ctx: Context, server: Server, client: Client) -> JetStream:
    """Restart the server, whose streams are in memory, and create the stream again."""
    server.kill()

    async def look() -> bool:
        return client.state == "WAITING"

    await until(client, look)
    server.restart()
    js = await open_js(ctx, server)
    await new_stream(ctx, js)
    await fill(ctx, js, NEW)
    return js


async def _opened(ctx: Context, **config: Any) -> tuple[Server, Client, JetStream]:
    server = ctx.own_server(**JETSTREAM)
    client = await ctx.connect(server, **_AWAY)
    js = jetstream_of(client)
    await new_stream(ctx, js, **config)
    await fill(ctx, js, numbers(OLD))
    return server, client, js


async def _recreations(events: MachineEvents, name: str) -> None:
    """Assert that the connection was lost and the stream recreated, and nothing else happened."""
    event = await events.next(WAIT)
    assert isinstance(event, ConsumerReset)
    event = await events.next(WAIT)
    while isinstance(event, ConsumerReset):  # of an attempt while JetStream was starting
        event = await events.next(WAIT)
    assert isinstance(event, StreamRecreated)
    assert (event.stream, event.before < event.created) == (name, True)


@check()
async def check_ordered_stream_recreated(ctx: Context) -> None:
    """A pull reader of a stream that was recreated gets all its messages, from the first one."""
    server, client, js = await _opened(ctx)
    stream = await js.stream(name_of(ctx))
    ordered = await stream.ordered_consumer()
    fetched = await stream.ordered_consumer(deliver_policy="new")
    assert len(await fetched.fetch(1, no_wait=True)) == 0
    async with ordered.consume() as messages:
        assert await take(messages, OLD) == numbers(OLD)
        await _leave(ctx, server, client)
        assert await take(messages, len(NEW), 2 * WAIT) == NEW
        await _recreations(messages.events, stream.name)
    seen: list[bytes] = []
    while len(seen) < len(NEW):
        seen += [msg.data for msg in await fetched.fetch(len(NEW), expires=1.0)]
    assert seen == NEW


@check()
async def check_push_ordered_stream_recreated(ctx: Context) -> None:
    """A push reader of a recreated stream gets all its messages, from the first one."""
    server, client, js = await _opened(ctx)
    async with await js.subscribe(ctx.subject + ".>", ordered=True) as messages:
        assert [(await messages.next(WAIT)).data for _ in range(OLD)] == numbers(OLD)
        await _leave(ctx, server, client)
        assert [(await messages.next(2 * WAIT)).data for _ in NEW] == NEW
        await _recreations(messages.events, name_of(ctx))


@check()
async def check_kv_watch_bucket_recreated(ctx: Context) -> None:
    """A watch of a recreated bucket delivers its entries."""
    server, client, js = await _opened(ctx)
    settings: dict[str, Any] = {"bucket": name_of(ctx), "storage": "memory", "history": 5}
    kv = await js.create_key_value(**settings)
    for number in range(OLD):
        await kv.put("old.%d" % number, b"v")
    async with await kv.watch() as watcher:
        assert len([entry async for entry in watcher.initial()]) == OLD
        other = await _leave(ctx, server, client)
        again = await other.create_key_value(**settings)
        for number in range(5):
            await again.put("new", b"%d" % number)
        entries = [await watcher.next(2 * WAIT) for _ in range(5)]
        assert [(entry.key, entry.revision) for entry in entries] == [
            ("new", revision) for revision in range(1, 6)
        ]
        await _recreations(watcher.events, "KV_" + kv.bucket)


@check()
async def check_ordered_stream_not_recreated(ctx: Context) -> None:
    """A file stream that a crash interrupts is the same one: nothing is delivered twice."""
    server, _, js = await _opened(ctx, storage="file")
    stream = await js.stream(name_of(ctx))
    ordered = await stream.ordered_consumer()
    async with ordered.consume() as messages:
        assert await take(messages, OLD) == numbers(OLD)
        for turn in (b"one", b"two"):
            server.kill()
            server.restart()
            await fill(ctx, await open_js(ctx, server), [turn])
            assert await take(messages, 1, 2 * WAIT) == [turn]
        with raises(TimeoutExpired):
            while True:
                assert isinstance(await messages.events.next(0.05), ConsumerReset)
