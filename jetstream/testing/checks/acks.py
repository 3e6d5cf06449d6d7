"""Acknowledging the messages that a consumer has delivered, and their metadata."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.streams import (
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
from natsproto.errors import ConnectionClosed, InvalidValue, NoResponders, TimeoutExpired
from natsproto.events import Disconnected
from natsproto.testing.context import SOON, Context, next_event, raises

if TYPE_CHECKING:
    from jetstream import Consumer, JsMsg
    from natsproto.client import Client

_V2 = {"jetstream": "enabled", "feature_flags": {"js_ack_fc_v2": True}}


async def _one(consumer: Consumer, expires: float = SOON) -> JsMsg:
    msg = await consumer.next(expires=expires)
    assert msg is not None
    return msg


@check()
async def check_metadata(ctx: Context) -> None:
    """A message has its stream, its sequences, its delivery count and its timestamp."""
    before = time.time_ns()
    _, consumer = await new_consumer(ctx, 3)
    batch = await consumer.fetch(2, no_wait=True)
    for n, msg in enumerate(batch, 1):
        place = msg.metadata
        assert (place.stream, place.consumer, place.domain) == (name_of(ctx), "c", "")
        assert (place.stream_seq, place.consumer_seq, place.delivered) == (n, n, 1)
        assert place.pending == 3 - n
        assert before - 10**9 < place.timestamp_ns < time.time_ns() + 10**9


@check()
async def check_ack(ctx: Context) -> None:
    """An acknowledged message is not delivered again."""
    _, consumer = await new_consumer(ctx, 3, ack_wait=0.3)
    for msg in await consumer.fetch(3, no_wait=True):
        assert not msg.settled
        await msg.ack()
        assert msg.settled
    await settled(ctx, consumer, 3)
    assert len(await consumer.fetch(3, expires=0.4)) == 0


@check()
async def check_no_ack(ctx: Context) -> None:
    """A message that is not acknowledged in time is delivered again with a higher count."""
    _, consumer = await new_consumer(ctx, 1, ack_wait=0.2)
    first = await _one(consumer)
    again = await _one(consumer)
    assert (first.data, again.data) == (b"0", b"0")
    assert (first.metadata.delivered, again.metadata.delivered) == (1, 2)


@check()
async def check_ack_sync(ctx: Context) -> None:
    """ack_sync returns when the server has received the acknowledgment."""
    _, consumer = await new_consumer(ctx, 2)
    for n, msg in enumerate(await consumer.fetch(2, no_wait=True), 1):
        await msg.ack_sync()
        assert (await consumer.info()).ack_floor.stream_seq == n


@check()
async def check_ack_sync_without_a_consumer(ctx: Context) -> None:
    """ack_sync raises NoResponders if the consumer is gone, and times out without a response."""
    server = ctx.own_server(jetstream="enabled")
    js = await open_js(ctx, server)
    stream = await new_stream(ctx, js)
    await fill(ctx, js, numbers(2))
    consumer = await stream.create_consumer(durable_name="c")
    one, two = await consumer.fetch(2, no_wait=True)
    server.freeze()
    with raises(TimeoutExpired, within=SOON):
        await one.ack_sync(timeout=0.1)
    assert not one.settled
    server.thaw()
    await one.ack_sync()
    assert one.settled
    await consumer.delete()
    with raises(NoResponders, within=SOON):
        await two.ack_sync()


@check()
async def check_ack_all(ctx: Context) -> None:
    """With ack policy all, one ack covers all messages before it."""
    _, consumer = await new_consumer(ctx, 5, ack_policy="all")
    batch = await consumer.fetch(5, no_wait=True)
    await batch[3].ack_sync()
    info = await consumer.info()
    assert (info.ack_floor.stream_seq, info.num_ack_pending) == (4, 1)


@check()
async def check_ack_none(ctx: Context) -> None:
    """With ack policy none there is nothing to acknowledge, and nothing is sent."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    stream = await new_stream(ctx, js)
    await fill(ctx, js, numbers(2))
    consumer = await stream.create_consumer(ack_policy="none")
    one, two = await consumer.fetch(2, no_wait=True)
    sent = client.stats.out_msgs
    for msg in (one, two):
        assert msg.settled
        await msg.in_progress()
        await msg.nak()
        await msg.ack_sync()
        await msg.ack()
        await msg.term()
    assert client.stats.out_msgs == sent


@check()
async def check_nak(ctx: Context) -> None:
    """A nak'd message is redelivered at once."""
    _, consumer = await new_consumer(ctx, 1)
    await (await _one(consumer)).nak()
    again = await _one(consumer)
    assert (again.data, again.metadata.delivered) == (b"0", 2)


@check()
async def check_nak_with_delay(ctx: Context) -> None:
    """A message that is nak'd with a delay is redelivered after it, and not before."""
    _, consumer = await new_consumer(ctx, 1)
    begin = time.monotonic()
    await (await _one(consumer)).nak(delay=0.3)
    assert (await _one(consumer)).metadata.delivered == 2
    took = time.monotonic() - begin
    assert 0.29 < took < SOON, took
    with raises(InvalidValue):
        await (await new_message(ctx, consumer)).nak(delay=-1)


async def new_message(ctx: Context, consumer: Consumer) -> JsMsg:
    await fill(ctx, await open_js(ctx), [b"new"])
    return await _one(consumer)


@check()
async def check_term_with_a_reason_on_any_server(ctx: Context) -> None:
    """A reason never keeps a message from being terminated, however old the server is."""
    _, consumer = await new_consumer(ctx, 1, ack_wait=0.2)
    await (await _one(consumer)).term("it is beyond hope")
    assert len(await consumer.fetch(1, expires=0.5)) == 0


@check(since=(2, 10, 4))
async def check_term(ctx: Context) -> None:
    """A terminated message is not delivered again; the advisory has the reason."""
    js, consumer = await new_consumer(ctx, 2, ack_wait=0.2)
    watcher = await ctx.connect(js_server(ctx))
    sub = await watcher.subscribe(f"$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.{name_of(ctx)}.c")
    await watcher.flush()
    one, two = await consumer.fetch(2, no_wait=True)
    await one.term()
    await two.term("it is beyond hope")
    await sub.next(SOON)
    assert b"it is beyond hope" in (await sub.next(SOON)).data
    assert len(await consumer.fetch(1, expires=0.3)) == 0
    await fill(ctx, js, [b"new"])
    with raises(InvalidValue):
        await (await _one(consumer)).term("two\r\nlines")


@check()
async def check_in_progress(ctx: Context) -> None:
    """Work in progress is not delivered again; it can still be acknowledged."""
    _, consumer = await new_consumer(ctx, 1, ack_wait=0.6)
    msg = await _one(consumer)
    for _ in range(3):
        assert len(await consumer.fetch(1, expires=0.3)) == 0
        await msg.in_progress()
        assert not msg.settled
    await msg.ack_sync()
    assert (await consumer.info()).ack_floor.stream_seq == 1


@check()
async def check_acks_settle_once(ctx: Context) -> None:
    """The first of ack, nak and term counts; later ones are not even sent."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    stream = await new_stream(ctx, js)
    await fill(ctx, js, numbers(4))
    consumer = await stream.create_consumer(durable_name="c")
    a, b, c, d = await consumer.fetch(4, no_wait=True)
    await a.ack_sync()
    await b.ack()
    await c.nak()
    await d.term()
    sent = client.stats.out_msgs
    for msg in (a, b, c, d):
        await msg.ack()
        await msg.nak()
        await msg.nak(delay=1)
        await msg.term("reason")
        await msg.in_progress()
        await msg.ack_sync()
    assert client.stats.out_msgs == sent
    assert (await _one(consumer)).data == b"2"


@check()
async def check_ack_without_a_connection(ctx: Context) -> None:
    """An ack without a connection is sent after the reconnect."""
    server = ctx.own_server(jetstream="enabled")
    client = await ctx.connect(server)
    js = jetstream_of(client)
    stream = await new_stream(ctx, js, storage="file")
    await fill(ctx, js, numbers(1))
    consumer = await stream.create_consumer(durable_name="c")
    msg = await _one(consumer)
    server.terminate()  # not killed, because it would forget what it has delivered
    await next_event(client, Disconnected)
    await msg.ack()
    server.restart()

    async def acked() -> bool:
        return (await consumer.info()).ack_floor.stream_seq == 1

    await until(client, acked)


@check()
async def check_ack_of_a_closed_client(ctx: Context) -> None:
    """An ack raises an error after the client is closed."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    stream = await new_stream(ctx, js)
    await fill(ctx, js, numbers(1))
    consumer = await stream.create_consumer(durable_name="c")
    msg = await _one(consumer)
    await client.close()
    for call in (msg.ack, msg.ack_sync, msg.nak):
        with raises(ConnectionClosed):
            await call()
    assert not msg.settled


async def _v2(ctx: Context) -> tuple[Client, Consumer]:
    client = await ctx.connect(ctx.shared_server(**_V2))
    js = jetstream_of(client)
    stream = await new_stream(ctx, js)
    await fill(ctx, js, numbers(3))
    return client, await stream.create_consumer(durable_name="c", ack_wait=1.0)


@check(since=(2, 14))
async def check_acks_of_the_second_form(ctx: Context) -> None:
    """Ack subjects with domain and account are read, and acknowledged, like the others."""
    _, consumer = await _v2(ctx)
    batch = await consumer.fetch(3, no_wait=True)
    assert len(batch[0].reply.split(".")) >= 11, batch[0].reply
    place = batch[1].metadata
    assert (place.stream, place.consumer, place.domain) == (name_of(ctx), "c", "")
    assert (place.stream_seq, place.consumer_seq, place.delivered, place.pending) == (2, 2, 1, 1)
    for msg in batch:
        await msg.ack_sync()
    info = await consumer.info()
    assert (info.ack_floor.stream_seq, info.num_ack_pending) == (3, 0)
    async with consumer.consume(expires=1.0) as messages:
        await batch[0].nak()
        with raises(TimeoutExpired):
            await messages.next(timeout=0.1)
