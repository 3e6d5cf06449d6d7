"""pull_subscribe(): the older workflow, one subscription to fetch from."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from jetstream.errors import (
    AmbiguousStream,
    BindRefused,
    ConfigMismatch,
    ConsumerDeleted,
    ConsumerNotFound,
    PullOfPushConsumer,
    StreamNotFound,
    SubjectMismatch,
)
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.streams import (
    fill,
    js_server,
    name_of,
    new_stream,
    numbers,
    open_js,
    until,
)
from jetstream.testing.suite import check
from natsproto.errors import InvalidState, LocalError, TimeoutExpired
from natsproto.testing.context import SOON, WAIT, Context, raises

if TYPE_CHECKING:
    from jetstream import JetStream
    from jetstream.pull.messages import Batch
    from jetstream.subscribe.pull import PullSubscription


async def _begin(ctx: Context, count: int = 0) -> JetStream:
    """Return JetStream with a stream of this many messages."""
    js = await open_js(ctx)
    await new_stream(ctx, js)
    await fill(ctx, js, numbers(count))
    return js


async def _acked(batch: Batch) -> list[bytes]:
    """Acknowledge the messages and return their payloads."""
    for msg in batch:
        await msg.ack_sync()
    return [msg.data for msg in batch]


@check()
async def check_pull_subscribe(ctx: Context) -> None:
    """The stream is found by its subject, a consumer is created, and each fetch continues."""
    js = await _begin(ctx, 25)
    async with await js.pull_subscribe(ctx.subject + ".x", durable="d") as sub:
        assert (sub.stream, sub.name) == (name_of(ctx), "d")
        assert sub.cached_info is not None
        assert sub.cached_info.config.filter_subject == ctx.subject + ".x"
        assert await _acked(await sub.fetch(10)) == numbers(25)[:10]
        assert await _acked(await sub.fetch()) == [b"10"]
        assert await _acked(await sub.fetch(14, timeout=WAIT)) == numbers(25)[11:]
        info = await sub.info()
        assert (info.ack_floor.stream_seq, info.num_waiting, info.num_ack_pending) == (25, 0, 0)


@check()
async def check_pull_subscribe_resumes(ctx: Context) -> None:
    """A durable consumer is kept: the next subscription binds to it and continues."""
    js = await _begin(ctx, 4)
    for expected in (numbers(4)[:2], numbers(4)[2:]):
        sub = await js.pull_subscribe(ctx.subject + ".x", durable="d")
        assert await _acked(await sub.fetch(2)) == expected
        await sub.unsubscribe()
    assert await js.consumer_names(name_of(ctx)) == ["d"]


@check()
async def check_pull_subscribe_ephemeral(ctx: Context) -> None:
    """unsubscribe deletes a consumer without a name, but not an existing one."""
    js = await _begin(ctx, 3)
    own = await js.pull_subscribe(ctx.subject + ".x")
    named = await js.pull_subscribe(ctx.subject + ".x", name="e")
    found = await js.pull_subscribe(ctx.subject + ".x", name="e")
    for sub in (own, named):
        assert await _acked(await sub.fetch(3)) == numbers(3)
    assert len(await js.consumer_names(name_of(ctx))) == 2
    await found.unsubscribe()
    assert len(await js.consumer_names(name_of(ctx))) == 2
    await own.unsubscribe()
    await named.unsubscribe()
    await named.unsubscribe()
    assert await js.consumer_names(name_of(ctx)) == []
    with raises(InvalidState):
        await own.fetch()


@check()
async def check_pull_subscribe_returns_available_messages(ctx: Context) -> None:
    """A fetch returns the available messages at once, even if it requested more."""
    js = await _begin(ctx, 3)
    sub = await js.pull_subscribe(ctx.subject + ".x", durable="d")
    begin = time.monotonic()
    batch = await sub.fetch(10, timeout=2 * WAIT)
    assert (await _acked(batch), batch.error) == (numbers(3), None)
    assert time.monotonic() - begin < SOON


@check()
async def check_pull_subscribe_waits_for_the_first(ctx: Context) -> None:
    """If no messages are available, a fetch returns when the first arrives."""
    js = await _begin(ctx)
    other = await open_js(ctx)
    sub = await js.pull_subscribe(ctx.subject + ".x", durable="d")

    async def later() -> float:
        async def look() -> bool:
            return (await other.consumer(name_of(ctx), "d")).cached_info.num_waiting > 0

        await until(watcher, look)
        await fill(ctx, other, [b"0"])
        return time.monotonic()

    watcher = await ctx.connect(js_server(ctx))
    task = ctx.start(later)
    assert await _acked(await sub.fetch(10, timeout=2 * WAIT)) == [b"0"]
    assert time.monotonic() - await task.result() < SOON


@check()
async def check_pull_subscribe_at_max_ack_pending(ctx: Context) -> None:
    """The messages up to the limit are returned at once; the next fetch times out."""
    js = await _begin(ctx, 6)
    sub = await js.pull_subscribe(ctx.subject + ".x", durable="d", max_ack_pending=2)
    begin = time.monotonic()
    batch = await sub.fetch(5, timeout=2 * WAIT)
    assert [msg.data for msg in batch] == numbers(2)
    assert time.monotonic() - begin < SOON
    with raises(TimeoutExpired, within=SOON):
        await sub.fetch(5, timeout=0.2)
    assert await _acked(batch) == numbers(2)
    assert await _acked(await sub.fetch(2, timeout=WAIT)) == numbers(4)[2:]


@check()
async def check_pull_subscribe_time_is_over(ctx: Context) -> None:
    """A fetch without messages raises TimeoutExpired at its timeout, and not later."""
    js = await _begin(ctx)
    sub = await js.pull_subscribe(ctx.subject + ".x", durable="d")
    for count in (1, 5):
        begin = time.monotonic()
        with raises(TimeoutExpired, within=SOON):
            await sub.fetch(count, timeout=0.2)
        assert time.monotonic() - begin > 0.1
    await fill(ctx, js, [b"2"])
    assert await _acked(await sub.fetch(5, timeout=0.3)) == [b"2"]


@check()
async def check_pull_subscribe_leaves_no_pull(ctx: Context) -> None:
    """A fetch leaves no pull at the server; later messages go to the next fetch."""
    js = await _begin(ctx)
    sub = await js.pull_subscribe(ctx.subject + ".x", durable="d")
    watcher = await ctx.connect(js_server(ctx))

    async def nothing_waits() -> bool:
        return (await sub.info()).num_waiting == 0

    for count in (1, 3):
        with raises(TimeoutExpired):
            await sub.fetch(count, timeout=0.1)
        # The server may read its clock a little later than the client does.
        await until(watcher, nothing_waits, SOON)
    await fill(ctx, js, numbers(3))
    assert await _acked(await sub.fetch(3)) == numbers(3)
    assert {(await sub.info()).num_redelivered, (await sub.info()).num_ack_pending} == {0}


@check()
async def check_pull_subscribe_rejected(ctx: Context) -> None:
    """Each kind of mismatch with a consumer raises its own error; nothing is changed."""
    js = await _begin(ctx, 1)
    name = name_of(ctx)
    await js.create_consumer(name, name="push", deliver_subject=ctx.subject.replace("check", "p"))
    await js.create_consumer(name, durable_name="other", filter_subject=ctx.subject + ".y")
    await js.create_consumer(
        name, durable_name="d", filter_subject=ctx.subject + ".x", max_deliver=3, ack_wait=5.0
    )
    before = [info.config for info in await js.consumers(name)]
    cases: list[tuple[type[BindRefused], dict[str, Any]]] = [
        (PullOfPushConsumer, {"name": "push"}),
        (SubjectMismatch, {"durable": "other"}),
        (ConfigMismatch, {"durable": "d", "max_deliver": 4}),
        (ConfigMismatch, {"durable": "d", "ack_wait": 6.0}),
        (ConfigMismatch, {"durable": "d", "ack_policy": "all"}),
    ]
    for kind, options in cases:
        with raises(kind):
            await js.pull_subscribe(ctx.subject + ".x", **options)
    sub = await js.pull_subscribe(ctx.subject + ".x", durable="d", max_deliver=3, ack_wait=5.0)
    assert await _acked(await sub.fetch()) == [b"0"]
    assert [info.config for info in await js.consumers(name)] == before


@check()
async def check_pull_subscribe_rejected_locally(ctx: Context) -> None:
    """Invalid arguments are rejected before anything is sent."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    await new_stream(ctx, js)
    sub = await js.pull_subscribe(ctx.subject + ".x")
    sent = client.stats.out_msgs
    wrong: list[dict[str, Any]] = [
        {},
        {"subject": "a b"},
        {"subject": "a", "durable": "a.b"},
        {"subject": "a", "deliver_subject": "b"},
        {"subject": "a", "flow_control": True, "idle_heartbeat": 5.0},
        {"subject": "a", "filter_subject": "b"},
        {"subject": "a", "bind": True},
    ]
    for options in wrong:
        with raises(LocalError):
            await js.pull_subscribe(**options)
    numbers_: list[tuple[Any, Any]] = [(0, 1.0), (-1, 1.0), (1.5, 1.0), (1, 0), (1, -1.0)]
    for count, timeout in numbers_:
        with raises(LocalError):
            await sub.fetch(count, timeout)
    assert client.stats.out_msgs == sent


@check()
async def check_pull_subscribe_without_a_stream(ctx: Context) -> None:
    """No stream, several streams, and a missing consumer raise different errors."""
    js = await _begin(ctx)
    await js.create_stream(name=name_of(ctx) + "-b", subjects=[ctx.subject.replace("check", "b")])
    with raises(StreamNotFound):
        await js.pull_subscribe("nobody." + ctx.subject)
    with raises(AmbiguousStream):
        await js.pull_subscribe(">")
    with raises(ConsumerNotFound):
        await js.pull_subscribe(ctx.subject + ".x", durable="d", bind=True)
    assert await js.consumer_names(name_of(ctx)) == []
    await js.delete_stream(name_of(ctx) + "-b")


@check()
async def check_pull_subscribe_the_consumer_goes(ctx: Context) -> None:
    """A fetch raises an error if its consumer is deleted while it waits."""
    js = await _begin(ctx)
    other = await open_js(ctx)
    looker = await ctx.connect(js_server(ctx))
    for count in (1, 2):
        sub: PullSubscription = await js.pull_subscribe(ctx.subject + ".x", name="e")

        async def delete() -> None:
            async def look() -> bool:
                return (await other.consumer(name_of(ctx), "e")).cached_info.num_waiting > 0

            await until(looker, look)
            await other.delete_consumer(name_of(ctx), "e")

        task = ctx.start(delete)
        with raises(ConsumerDeleted):
            await sub.fetch(count)
        await task.result()
        await sub.unsubscribe()


@check()
async def check_pull_subscribe_over_lost_connections(ctx: Context) -> None:
    """A subscription survives lost connections: the next fetch works."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    await new_stream(ctx, js)
    await fill(ctx, js, numbers(6))
    sub = await js.pull_subscribe(ctx.subject + ".x", durable="d")
    for start in (0, 2, 4):
        assert await _acked(await sub.fetch(2)) == numbers(6)[start : start + 2]
        await client.force_reconnect()
    assert client.stats.connects >= 3
