"""consume(): continuous delivery, and the ways in which it ends."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from jetstream.errors import ConsumerDeleted, ConsumerIsPush
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.streams import (
    counted,
    fill,
    js_server,
    name_of,
    new_consumer,
    new_stream,
    numbers,
    open_js,
    settled,
    until,
)
from jetstream.testing.suite import check
from natsproto.errors import InvalidState, InvalidValue, LocalError, TimeoutExpired
from natsproto.events import SlowConsumer
from natsproto.testing.context import SOON, WAIT, Context, next_event, raises

if TYPE_CHECKING:
    from jetstream import Consumer
    from jetstream.pull.messages import Messages


async def _take(messages: Messages, count: int) -> list[bytes]:
    """Acknowledge the next messages and return their payloads."""
    taken: list[bytes] = []
    for _ in range(count):
        msg = await messages.next(WAIT)
        await msg.ack()
        taken.append(msg.data)
    return taken


@check()
async def check_consume(ctx: Context) -> None:
    """Without options, all stored messages arrive in order, and new ones after them."""
    js, consumer = await new_consumer(ctx, 1200)
    async with consumer.consume() as messages:
        assert await _take(messages, 1200) == numbers(1200)
        await fill(ctx, js, [b"later"])
        assert await _take(messages, 1) == [b"later"]
        assert not messages.closed
    assert messages.closed
    await settled(ctx, consumer, 1201)


@check()
async def check_consume_by_iteration(ctx: Context) -> None:
    """`async for` delivers five thousand messages, each acknowledged."""
    _, consumer = await new_consumer(ctx, 5000)
    seen: list[bytes] = []
    async with consumer.consume() as messages:
        async for msg in messages:
            seen.append(msg.data)
            await msg.ack()
            if len(seen) == 5000:
                break
    assert seen == numbers(5000)
    await settled(ctx, consumer, 5000)
    assert (await consumer.info()).num_redelivered == 0


@check()
async def check_consume_one_by_one(ctx: Context) -> None:
    """With max_messages=1 there is never more than one message in flight."""
    _, consumer = await new_consumer(ctx, 20)
    async with consumer.consume(max_messages=1) as messages:
        for payload in numbers(20):
            msg = await messages.next(WAIT)
            assert msg.data == payload
            assert messages.pending <= 1
            await msg.ack()


@check()
async def check_consume_by_bytes(ctx: Context) -> None:
    """With max_bytes at most that many bytes are buffered, and all messages arrive."""
    js, consumer = await new_consumer(ctx)
    payloads = [b"%03d" % n + b"x" * (n * 10) for n in range(100)]
    await fill(ctx, js, payloads)
    async with consumer.consume(max_bytes=5000) as messages:
        for payload in payloads:
            msg = await messages.next(WAIT)
            assert msg.data == payload
            assert messages.pending * 60 <= 5000
            await msg.ack()


@check()
async def check_consume_never_requests_too_much(ctx: Context) -> None:
    """Requested and untaken messages never exceed max_messages, by the server's own count."""
    js, consumer = await new_consumer(ctx, 100)
    other = await (await open_js(ctx)).consumer(name_of(ctx), "c")
    async with consumer.consume(max_messages=10, threshold_messages=4) as messages:
        for n in range(100):
            msg = await messages.next(WAIT)
            assert (await other.info()).num_ack_pending <= 11  # plus the one that was taken
            await msg.ack_sync()
            assert int(msg.data) == n
    await fill(ctx, js, [b"left"])
    await counted(ctx, other, 1)
    [msg] = await other.fetch(1, expires=WAIT)  # no pull was left to take it
    assert msg.metadata.delivered == 1


@check()
async def check_consume_refills_at_the_threshold(ctx: Context) -> None:
    """Only below the threshold does a pull request the missing messages."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    stream = await new_stream(ctx, js)
    await fill(ctx, js, numbers(30))
    consumer = await stream.create_consumer(durable_name="c")
    begin = client.stats.out_msgs
    async with consumer.consume(max_messages=10, threshold_messages=3) as messages:
        pulls: list[int] = []
        for _ in range(24):
            await messages.next(WAIT)
            pulls.append(client.stats.out_msgs - begin)
    assert pulls[:7] == [1] * 7
    assert pulls[7] == 2
    assert pulls[15] == 3
    assert pulls[23] == 4


@check()
async def check_consume_rejected_locally(ctx: Context) -> None:
    """Invalid numbers and combinations are rejected before anything is sent."""
    client = await ctx.connect(js_server(ctx))
    stream = await new_stream(ctx, jetstream_of(client))
    consumer = await stream.create_consumer(durable_name="c")
    wrong: list[dict[str, Any]] = [
        {"max_messages": 0},
        {"max_messages": 1, "max_bytes": 1},
        {"max_messages": 5, "threshold_messages": 6},
        {"max_bytes": 5, "threshold_bytes": 6},
        {"expires": 0.5},
        {"heartbeat": 0.1},
        {"expires": 2.0, "heartbeat": 1.5},
        {"heartbeat": 31.0, "expires": 90.0},
        {"stop_after": 0},
    ]
    sent = client.stats.out_msgs
    for options in wrong:
        with raises(LocalError):
            consumer.consume(**options)
    assert client.stats.out_msgs == sent


@check()
async def check_consume_next_times_out(ctx: Context) -> None:
    """next(timeout) raises if no message arrives, and can be called again."""
    js, consumer = await new_consumer(ctx)
    async with consumer.consume(max_messages=5) as messages:
        for _ in range(2):
            with raises(TimeoutExpired, within=SOON):
                await messages.next(timeout=0.1)
        await fill(ctx, js, numbers(1))
        assert await _take(messages, 1) == numbers(1)


@check()
async def check_consume_stop(ctx: Context) -> None:
    """stop ends the iteration at once, may be called again, and returns untaken messages."""
    _, consumer = await new_consumer(ctx, 20)
    messages = consumer.consume(max_messages=10)
    await (await messages.next(WAIT)).ack()
    await _until_pending(ctx, messages, 9)
    rest = await messages.stop()
    assert [msg.data for msg in rest][:9] == numbers(10)[1:]
    assert await messages.stop() == []
    assert messages.closed
    assert [msg async for msg in messages] == []
    with raises(InvalidState):
        await messages.next(WAIT)
    for msg in rest:
        await msg.ack_sync()
    info = await consumer.info()
    assert (info.num_waiting, info.num_ack_pending) == (0, 0)


async def _until_pending(ctx: Context, messages: Messages, count: int) -> None:
    """Wait until this many messages are buffered; a blocking client reads when it is called."""
    deadline = time.monotonic() + WAIT
    while messages.pending < count:
        assert time.monotonic() < deadline
        try:
            await messages.events.next(timeout=0.02)
        except TimeoutExpired:
            pass


@check()
async def check_consume_stop_with_nak(ctx: Context) -> None:
    """stop(nak=True) returns untaken messages to the server for other clients."""
    _, consumer = await new_consumer(ctx, 5)
    messages = consumer.consume(max_messages=5)
    await (await messages.next(WAIT)).ack()
    await _until_pending(ctx, messages, 4)
    assert await messages.stop(nak=True) == []
    batch = await consumer.fetch(4, expires=SOON)
    assert [msg.data for msg in batch] == numbers(5)[1:]
    assert {msg.metadata.delivered for msg in batch} == {2}


@check()
async def check_consume_nak_on_exit(ctx: Context) -> None:
    """With nak_on_exit, untaken messages are available to others when the block is left."""
    _, consumer = await new_consumer(ctx, 5)
    for nak_on_exit in (True, False):
        async with consumer.consume(max_messages=5, nak_on_exit=nak_on_exit) as messages:
            await _until_pending(ctx, messages, 5)
        batch = await consumer.fetch(5, expires=0.3)
        assert [msg.data for msg in batch] == (numbers(5) if nak_on_exit else [])
        for msg in batch:
            await msg.nak()


@check()
async def check_consume_more_than_was_asked_for(ctx: Context) -> None:
    """Messages that were not requested are kept within limits; more are dropped and counted."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    stream = await new_stream(ctx, js)
    consumer = await stream.create_consumer(durable_name="c")
    other = await ctx.connect(js_server(ctx))
    pulls = await other.subscribe(f"$JS.API.CONSUMER.MSG.NEXT.{name_of(ctx)}.c")
    await other.flush(WAIT)
    async with consumer.consume(max_messages=10) as messages:
        reply = (await pulls.next(WAIT)).reply
        for _ in range(2000):
            await other.publish(reply, b"x", reply="nowhere")
        await other.flush(WAIT)
        while messages.pending + messages.dropped < 2000:
            with raises(TimeoutExpired):
                await messages.events.next(timeout=0.02)
        assert messages.pending < 100
        assert isinstance(await next_event(client, SlowConsumer), SlowConsumer)


@check()
async def check_consume_drain(ctx: Context) -> None:
    """drain ends the iteration after all received messages and those in transit."""
    _, consumer = await new_consumer(ctx, 50)
    seen: list[bytes] = []
    async with consumer.consume(max_messages=20) as messages:
        seen += await _take(messages, 1)
        await messages.drain()
        async for msg in messages:
            await msg.ack()
            seen.append(msg.data)
        assert messages.closed
    assert seen == numbers(50)[: len(seen)]
    await settled(ctx, consumer, len(seen))
    info = await consumer.info()
    assert (info.num_waiting, info.num_pending) == (0, 50 - len(seen))


@check()
async def check_consume_stop_after(ctx: Context) -> None:
    """stop_after delivers exactly that many messages and leaves the rest to others."""
    _, consumer = await new_consumer(ctx, 50)
    messages = consumer.consume(max_messages=10, stop_after=25)
    seen: list[bytes] = []
    async for msg in messages:
        await msg.ack()
        seen.append(msg.data)
    assert seen == numbers(25)
    assert messages.closed
    await settled(ctx, consumer, 25)
    info = await consumer.info()
    assert (info.num_pending, info.num_waiting) == (25, 0)


@check()
async def check_consume_again(ctx: Context) -> None:
    """After one consume has ended, another continues where it was."""
    _, consumer = await new_consumer(ctx, 30)
    for start in (0, 10, 20):
        async with consumer.consume(max_messages=5, stop_after=10) as messages:
            assert await _take(messages, 10) == numbers(30)[start : start + 10]


@check()
async def check_consume_twice_at_once(ctx: Context) -> None:
    """Two consumes on one consumer share its messages: none is lost or duplicated."""
    _, consumer = await new_consumer(ctx, 200)
    seen: list[bytes] = []
    async with (
        consumer.consume(max_messages=10) as one,
        consumer.consume(max_messages=10) as two,
    ):
        deadline = time.monotonic() + WAIT
        while len(seen) < 200:
            assert time.monotonic() < deadline
            for messages in (one, two):
                try:
                    msg = await messages.next(timeout=0.05)
                except TimeoutExpired:
                    continue
                await msg.ack()
                seen.append(msg.data)
    assert sorted(seen, key=int) == numbers(200)


@check(shares=True)
async def check_consume_stop_wakes_up(ctx: Context) -> None:
    """stop and drain wake a task that waits for a message."""
    _, consumer = await new_consumer(ctx)
    for end in ("stop", "drain"):
        messages = consumer.consume()
        waiting = ctx.start(_all, messages)
        with raises(TimeoutExpired):
            await messages.events.next(timeout=0.1)
        await (messages.stop() if end == "stop" else messages.drain())
        assert await waiting.result() == []


async def _all(messages: Messages) -> list[bytes]:
    return [msg.data async for msg in messages]


@check()
async def check_consume_until_the_client_closes(ctx: Context) -> None:
    """Closing the client ends the iteration; received messages can be taken."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    stream = await new_stream(ctx, js)
    await fill(ctx, js, numbers(3))
    consumer = await stream.create_consumer(durable_name="c")
    messages = consumer.consume()
    await _until_pending(ctx, messages, 3)
    await client.close()
    assert await _all(messages) == numbers(3)
    assert messages.closed


async def _deleted(ctx: Context, what: str) -> None:
    _, consumer = await new_consumer(ctx, 2)
    other = await open_js(ctx)
    async with consumer.consume() as messages:
        assert await _take(messages, 2) == numbers(2)
        await _waiting(ctx, consumer)
        if what == "consumer":
            await other.delete_consumer(name_of(ctx), "c")
        else:
            await other.delete_stream(name_of(ctx))
        with raises(ConsumerDeleted, within=SOON) as caught:
            await messages.next(WAIT)
        assert caught.error.code == 409
        with raises(ConsumerDeleted):
            _ = [msg async for msg in messages]


async def _waiting(ctx: Context, consumer: Consumer) -> None:
    async def look() -> bool:
        return (await consumer.info()).num_waiting > 0

    await until(await ctx.connect(js_server(ctx)), look)


@check()
async def check_consume_consumer_deleted(ctx: Context) -> None:
    """When the consumer is deleted, the iteration raises an error."""
    await _deleted(ctx, "consumer")


@check()
async def check_consume_stream_deleted(ctx: Context) -> None:
    """When the stream is deleted, the iteration raises an error."""
    await _deleted(ctx, "stream")


@check()
async def check_consume_of_a_push_consumer(ctx: Context) -> None:
    """Pulling from a push consumer raises an error."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js)
    consumer = await stream.create_consumer(deliver_subject=ctx.subject.replace("check", "push"))
    async with consumer.consume() as messages:
        with raises(ConsumerIsPush, within=SOON):
            await messages.next(WAIT)


@check()
async def check_consume_ack_none(ctx: Context) -> None:
    """With ack policy none, messages are only read."""
    _, consumer = await new_consumer(ctx, 100, ack_policy="none")
    async with consumer.consume(max_messages=10) as messages:
        assert [(await messages.next(WAIT)).data for _ in range(100)] == numbers(100)
    with raises(InvalidValue):
        consumer.consume(max_messages=-1)
