"""fetch and next: one pull, and its messages."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from jetstream.errors import (
    ConsumerDeleted,
    ConsumerIsPush,
    ConsumerUnavailable,
    HeartbeatMissed,
    PullRefused,
)
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.streams import (
    fill,
    js_server,
    name_of,
    new_consumer,
    new_stream,
    numbers,
    open_js,
    until,
)
from jetstream.testing.suite import check
from natsproto.errors import ConnectionLost, InvalidValue, LocalError, RemoteError
from natsproto.testing.context import SOON, WAIT, Context, raises

if TYPE_CHECKING:
    from jetstream import Consumer, JetStream
    from natsproto.testing.server import Server


def _data(batch: Any) -> list[bytes]:
    return [msg.data for msg in batch]


async def _frozen(ctx: Context) -> tuple[Server, Consumer]:
    """Create a consumer without messages, on a server that can be frozen."""
    server = ctx.own_server(jetstream="enabled")
    js = await open_js(ctx, server, timeout=0.5)
    stream = await new_stream(ctx, js)
    return server, await stream.create_consumer(durable_name="c")


async def _waiting(ctx: Context, js: JetStream, count: int = 1) -> None:
    """Wait until this many pulls wait at the consumer."""
    client = await ctx.connect(js_server(ctx))

    async def look() -> bool:
        return (await js.consumer(name_of(ctx), "c")).cached_info.num_waiting >= count

    await until(client, look)


@check()
async def check_fetch(ctx: Context) -> None:
    """Each fetch returns as many messages as requested, in order and without a delay."""
    _, consumer = await new_consumer(ctx, 100)
    begin = time.monotonic()
    for start in range(0, 100, 20):
        batch = await consumer.fetch(20, expires=WAIT)
        assert _data(batch) == numbers(100)[start : start + 20]
        assert batch.error is None
    assert time.monotonic() - begin < SOON


@check()
async def check_fetch_fewer(ctx: Context) -> None:
    """A fetch returns fewer messages if there are no more when the pull expires."""
    _, consumer = await new_consumer(ctx, 3)
    begin = time.monotonic()
    batch = await consumer.fetch(10, expires=0.3)
    took = time.monotonic() - begin
    assert _data(batch) == numbers(3)
    assert batch.error is None
    assert 0.25 < took < SOON, took
    assert len(await consumer.fetch(10, expires=0.05)) == 0


@check()
async def check_fetch_of_later_messages(ctx: Context) -> None:
    """Messages that are published during the fetch are part of it."""
    _, consumer = await new_consumer(ctx)
    other = await open_js(ctx)
    task = ctx.start(lambda: consumer.fetch(3, expires=WAIT))
    await _waiting(ctx, other)
    await fill(ctx, other, numbers(3))
    assert _data(await task.result()) == numbers(3)


@check()
async def check_fetch_by_bytes(ctx: Context) -> None:
    """A fetch returns as many messages as fit in max_bytes, and at least one."""
    js, consumer = await new_consumer(ctx)
    await fill(ctx, js, [b"x" * 1000] * 10)
    seen = 0
    while seen < 10:
        batch = await consumer.fetch(max_bytes=3500, expires=0.5)
        assert 1 <= len(batch) <= 3
        assert sum(msg.size for msg in batch) <= 3500
        seen += len(batch)
    assert (await consumer.info()).num_pending == 0


@check()
async def check_fetch_by_bytes_too_few(ctx: Context) -> None:
    """A message larger than max_bytes is an error; with a larger limit it is delivered."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    stream = await new_stream(ctx, js)
    await fill(ctx, js, [b"x" * 1000])
    consumer = await stream.create_consumer(durable_name="c")
    sent = client.stats.out_msgs
    with raises(PullRefused, within=SOON) as caught:
        await consumer.fetch(max_bytes=100, expires=WAIT)
    assert "MaxBytes" in str(caught.error)
    assert client.stats.out_msgs == sent + 1
    assert len(await consumer.fetch(max_bytes=2000, expires=0.2)) == 1


@check()
async def check_fetch_no_wait(ctx: Context) -> None:
    """With no_wait a fetch returns the messages available now: all, some or none."""
    js, consumer = await new_consumer(ctx, 5)
    begin = time.monotonic()
    assert _data(await consumer.fetch(3, no_wait=True)) == numbers(5)[:3]
    assert _data(await consumer.fetch(3, no_wait=True)) == numbers(5)[3:]
    assert _data(await consumer.fetch(3, no_wait=True)) == []
    await fill(ctx, js, [b"x" * 100] * 3)
    found = 0
    while found < 3:  # a busy server may acknowledge a message before its consumer has it
        assert time.monotonic() - begin < WAIT
        found += len(await consumer.fetch(max_bytes=10_000, no_wait=True))
    assert found == 3


@check()
async def check_next(ctx: Context) -> None:
    """next returns one message, or None if none arrives in time."""
    _, consumer = await new_consumer(ctx, 2)
    for payload in numbers(2):
        msg = await consumer.next(expires=WAIT)
        assert msg is not None
        assert msg.data == payload
        await msg.ack()
    begin = time.monotonic()
    assert await consumer.next(expires=0.2) is None
    took = time.monotonic() - begin
    assert 0.15 < took < SOON, took


@check()
async def check_next_leaves_no_pulls(ctx: Context) -> None:
    """Repeated calls do not accumulate subscriptions or waiting pulls."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    stream = await new_stream(ctx, js)
    await fill(ctx, js, numbers(100))
    consumer = await stream.create_consumer(durable_name="c")
    for payload in numbers(100):
        msg = await consumer.next(expires=WAIT, heartbeat=1.0)
        assert msg is not None
        assert msg.data == payload
    assert await consumer.next(expires=0.01) is None
    assert (await consumer.info()).num_waiting == 0
    assert client.info is not None
    connz = js_server(ctx).monitor(f"/connz?cid={client.info.client_id}&subs=1")
    assert len(connz["connections"][0]["subscriptions_list"]) <= 3


@check()
async def check_fetch_of_one_megabyte(ctx: Context) -> None:
    """Messages of max_payload arrive complete, even with added headers."""
    js, consumer = await new_consumer(ctx)
    payload = b"x" * (1024 * 1024 - 100)
    for _ in range(3):
        await js.publish(ctx.subject + ".x", payload, headers={"Key": "value"})
    batch = await consumer.fetch(3, expires=WAIT)
    assert [len(msg.data) for msg in batch] == [len(payload)] * 3


@check()
async def check_fetch_rejected_locally(ctx: Context) -> None:
    """Invalid numbers and combinations are rejected before anything is sent."""
    client = await ctx.connect(js_server(ctx))
    stream = await new_stream(ctx, jetstream_of(client))
    consumer = await stream.create_consumer(durable_name="c")
    wrong: list[dict[str, Any]] = [
        {},
        {"max_messages": 0},
        {"max_messages": -5},
        {"max_messages": 1, "max_bytes": 1},
        {"max_messages": 1, "expires": 0},
        {"max_messages": 1, "expires": -1},
        {"max_messages": 1, "expires": 1.0, "heartbeat": 0.6},
        {"max_messages": 1, "priority": 10, "group": "g"},
        {"max_messages": 1, "min_pending": 1},
    ]
    sent = client.stats.out_msgs
    for options in wrong:
        with raises(LocalError):
            await consumer.fetch(**options)
    with raises(InvalidValue):
        await consumer.next(expires=0)
    assert client.stats.out_msgs == sent


@check()
async def check_fetch_of_a_silent_server(ctx: Context) -> None:
    """With a heartbeat, a silent server is noticed after two intervals."""
    server, consumer = await _frozen(ctx)
    server.freeze()
    begin = time.monotonic()
    with raises(HeartbeatMissed, within=2 * SOON):
        await consumer.fetch(1, expires=10.0, heartbeat=0.3)
    assert time.monotonic() - begin > 0.55
    server.thaw()


@check()
async def check_fetch_of_a_silent_server_ends(ctx: Context) -> None:
    """Without a heartbeat, the fetch ends shortly after the server should have ended it."""
    server, consumer = await _frozen(ctx)
    other = await (await open_js(ctx, server, timeout=0.5)).consumer(name_of(ctx), "c")
    server.freeze()
    task = ctx.start(lambda: other.fetch(1, no_wait=True))
    with raises(RemoteError, within=2 * SOON):
        await consumer.fetch(1, expires=0.2)
    with raises(RemoteError, within=2 * SOON):
        await task.result()
    server.thaw()


@check()
async def check_fetch_over_a_crash(ctx: Context) -> None:
    """A fetch whose connection is lost raises an error; the next one works."""
    server = ctx.own_server(jetstream="enabled")
    js, other = await open_js(ctx, server), await open_js(ctx, server)
    stream = await new_stream(ctx, js, storage="file")
    consumer = await stream.create_consumer(durable_name="c")
    watcher = await ctx.connect(server)
    task = ctx.start(lambda: consumer.fetch(3, expires=10.0))

    async def waiting() -> bool:
        return (await other.consumer(stream.name, "c")).cached_info.num_waiting == 1

    await until(watcher, waiting)
    server.kill()
    with raises(ConnectionLost, within=SOON):
        await task.result()
    server.restart()
    await fill(ctx, js, numbers(3))
    assert _data(await consumer.fetch(3, expires=WAIT)) == numbers(3)


async def _deleted(ctx: Context, what: str) -> None:
    _, consumer = await new_consumer(ctx)
    other = await open_js(ctx)
    task = ctx.start(lambda: consumer.fetch(1, expires=WAIT))
    await _waiting(ctx, other)
    if what == "consumer":
        await other.delete_consumer(name_of(ctx), "c")
    else:
        await other.delete_stream(name_of(ctx))
    with raises(ConsumerDeleted, within=SOON):
        await task.result()
    with raises(ConsumerUnavailable, within=SOON):
        await consumer.fetch(1, expires=WAIT)


@check(since=(2, 11))
async def check_fetch_of_a_deleted_consumer(ctx: Context) -> None:
    """Deleting the consumer ends a fetch; the next one gets no responders."""
    await _deleted(ctx, "consumer")


@check(since=(2, 11))
async def check_fetch_of_a_deleted_stream(ctx: Context) -> None:
    """Deleting the stream ends a fetch."""
    await _deleted(ctx, "stream")


@check()
async def check_fetch_of_a_push_consumer(ctx: Context) -> None:
    """A fetch from a push consumer raises an error at once."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js)
    consumer = await stream.create_consumer(deliver_subject=ctx.subject.replace("check", "push"))
    with raises(ConsumerIsPush, within=SOON):
        await consumer.fetch(1, expires=WAIT)
    with raises(ConsumerIsPush, within=SOON):
        await consumer.next(expires=WAIT)


@check()
async def check_fetch_beyond_the_limits(ctx: Context) -> None:
    """A pull beyond a limit of the consumer raises an error that names the limit."""
    js, consumer = await new_consumer(ctx, 9, max_batch=3, max_expires=2.0, max_bytes=1000)
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("MaxRequestBatch of 3", {"max_messages": 4}),
        ("MaxRequestExpires of 2s", {"max_messages": 1, "expires": 3.0}),
    ]
    for problem, options in wrong:
        with raises(PullRefused, within=SOON) as caught:
            await consumer.fetch(**options)
        assert caught.error.code == 409
        assert problem in str(caught.error)
    assert _data(await consumer.fetch(3, expires=1.0)) == numbers(3)
    stream = name_of(ctx)
    by_bytes = await js.create_consumer(stream, durable_name="d", max_bytes=1000)
    with raises(PullRefused, within=SOON) as caught:
        await by_bytes.fetch(max_bytes=2000, expires=1.0)
    assert "MaxRequestMaxBytes of 1024" in str(caught.error) or "1000" in str(caught.error)


@check()
async def check_fetch_with_too_many_waiting(ctx: Context) -> None:
    """Pulls beyond max_waiting are rejected."""
    _, consumer = await new_consumer(ctx, max_waiting=1)
    other = await (await open_js(ctx)).consumer(name_of(ctx), "c")
    task = ctx.start(lambda: consumer.fetch(1, expires=0.6))
    await _waiting(ctx, await open_js(ctx))
    with raises(PullRefused, within=SOON) as caught:
        await other.fetch(1, expires=WAIT)
    assert "MaxWaiting" in str(caught.error)
    assert len(await task.result()) == 0


@check(shares=True)
async def check_fetches_side_by_side(ctx: Context) -> None:
    """Several fetches on one handle share the messages: each gets its own, none is lost."""
    js, consumer = await new_consumer(ctx)
    tasks = [ctx.start(lambda: consumer.fetch(10, expires=WAIT)) for _ in range(5)]
    await fill(ctx, js, numbers(50))
    seen: list[bytes] = []
    for task in tasks:
        batch = await task.result()
        assert len(batch) == 10
        seen += _data(batch)
    assert sorted(seen, key=int) == numbers(50)
