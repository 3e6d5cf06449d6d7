"""consume() under adverse conditions: limits, odd messages, silence, crashes; no pull storms."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from jetstream import Timestamp
from jetstream.errors import HeartbeatMissed, PullRefused
from jetstream.events import PullWarning
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
from natsproto.testing.context import SOON, WAIT, Context, next_event, raises
from natsproto.testing.peers import RawPeer

if TYPE_CHECKING:
    from jetstream import Consumer, JetStream
    from jetstream.pull.messages import Messages
    from natsproto.client import Client


async def _open(ctx: Context, count: int, **config: Any) -> tuple[Client, JetStream, Consumer]:
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    stream = await new_stream(ctx, js)
    await fill(ctx, js, numbers(count))
    return client, js, await stream.create_consumer(durable_name="c", **config)


async def _warning(messages: Messages, kind: type[Exception], within: float = WAIT) -> Any:
    """Return the next warning with such an error."""
    deadline = time.monotonic() + within
    while True:
        event = await messages.events.next(max(0.0, deadline - time.monotonic()))
        if isinstance(event, PullWarning) and isinstance(event.error, kind):
            return event.error


async def _pulls(client: Client, messages: Messages, seconds: float) -> int:
    """Return how many messages the client sends in this time, during which it receives none."""
    sent = client.stats.out_msgs
    with raises(TimeoutExpired):
        await messages.next(timeout=seconds)
    return client.stats.out_msgs - sent


async def _refused(ctx: Context, wanted: str, options: dict[str, Any], **config: Any) -> None:
    client, _, consumer = await _open(ctx, 3, **config)
    async with consumer.consume(**options) as messages:
        error = await _warning(messages, PullRefused)
        assert error.code == 409
        assert wanted in error.description
        assert await _pulls(client, messages, 0.5) <= 10
        assert not messages.closed


@check()
async def check_consume_beyond_max_batch(ctx: Context) -> None:
    """Pulls beyond max_batch are reported, and repeated at growing intervals."""
    await _refused(ctx, "MaxRequestBatch", {"max_messages": 20}, max_batch=5)


@check()
async def check_consume_beyond_max_expires(ctx: Context) -> None:
    """Pulls beyond max_expires are reported, and repeated at growing intervals."""
    await _refused(ctx, "MaxRequestExpires", {"expires": 30.0}, max_expires=2.0)


@check()
async def check_consume_beyond_max_bytes(ctx: Context) -> None:
    """Pulls beyond max_bytes are reported, and repeated at growing intervals."""
    await _refused(ctx, "MaxRequestMaxBytes", {"max_bytes": 5000}, max_bytes=1000)


@check()
async def check_consume_by_bytes_too_few(ctx: Context) -> None:
    """A message larger than max_bytes is reported without a storm of pulls; others follow."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    stream = await new_stream(ctx, js)
    await fill(ctx, js, [b"x" * 5000, b"small"])
    consumer = await stream.create_consumer(durable_name="c")
    async with consumer.consume(max_bytes=1000) as messages:
        error = await _warning(messages, PullRefused)
        assert "MaxBytes" in error.description
        assert await _pulls(client, messages, 0.5) <= 10
        await stream.delete_msg(1)
        assert (await messages.next(WAIT)).data == b"small"


@check()
async def check_consume_by_bytes_large_and_small(ctx: Context) -> None:
    """Messages that nearly fill max_bytes alternate with small ones: no stall, no storm."""
    client, js, consumer = await _open(ctx, 0)
    payloads = [b"x" * 900 if n % 2 else b"y" for n in range(40)]
    await fill(ctx, js, payloads)
    sent = client.stats.out_msgs
    async with consumer.consume(max_bytes=1100) as messages:
        begin = time.monotonic()
        assert [(await messages.next(WAIT)).data for _ in payloads] == payloads
        assert time.monotonic() - begin < 2 * WAIT
    assert client.stats.out_msgs - sent < 5 * len(payloads)


@check()
async def check_consume_with_too_many_waiting(ctx: Context) -> None:
    """If no more pulls may wait, the silence of the server is reported and survived."""
    _, js, consumer = await _open(ctx, 0, max_waiting=1)
    other = await (await open_js(ctx)).consumer(name_of(ctx), "c")
    async with consumer.consume(expires=2.0, heartbeat=0.5) as first:
        with raises(TimeoutExpired):
            await first.next(timeout=0.05)  # its pull waits now
        async with other.consume(expires=2.0, heartbeat=0.5) as second:
            assert await _warning(second, Exception, 2 * SOON)
            await first.stop()
            await fill(ctx, js, numbers(1))
            assert (await second.next(WAIT)).data == b"0"


@check()
async def check_consume_an_idle_consumer(ctx: Context) -> None:
    """Without messages, pulls expire and are renewed, and no event is reported."""
    client, js, consumer = await _open(ctx, 0)
    async with consumer.consume(expires=1.0, heartbeat=0.5) as messages:
        assert 1 <= await _pulls(client, messages, 1.3) <= 2
        with raises(TimeoutExpired):
            await messages.events.next(timeout=0)
        await fill(ctx, js, numbers(1))
        assert (await messages.next(SOON)).data == b"0"


@check(since=(2, 11))
async def check_consume_a_paused_consumer(ctx: Context) -> None:
    """A paused consumer delivers nothing until it is resumed."""
    client, js, consumer = await _open(ctx, 3)
    later = Timestamp(time.time_ns() + 60 * 10**9)
    await js.pause_consumer(name_of(ctx), "c", later)
    async with consumer.consume(expires=1.0, heartbeat=0.5) as messages:
        assert await _pulls(client, messages, 0.5) <= 2
        await js.resume_consumer(name_of(ctx), "c")
        assert [(await messages.next(SOON)).data for _ in range(3)] == numbers(3)


@check()
async def check_consume_over_silence(ctx: Context) -> None:
    """A silent server is reported after two heartbeats; consume continues when it is back."""
    server = ctx.own_server(jetstream="enabled")
    js, other = await open_js(ctx, server), await open_js(ctx, server)
    stream = await new_stream(ctx, js)
    consumer = await stream.create_consumer(durable_name="c")
    async with consumer.consume(expires=2.0, heartbeat=0.5) as messages:
        await fill(ctx, other, numbers(1))
        assert (await messages.next(SOON)).data == b"0"
        server.freeze()
        begin = time.monotonic()
        await _warning(messages, HeartbeatMissed, 2.5)
        took = time.monotonic() - begin
        assert 0.4 < took < 2.0, took
        server.thaw()
        await fill(ctx, other, [b"1"])
        assert (await messages.next(WAIT)).data == b"1"


@check()
async def check_consume_messages_that_look_like_statuses(ctx: Context) -> None:
    """Headers of publishers are never mistaken for a status of the server."""
    _, js, consumer = await _open(ctx, 0)
    texts = ["100", "404", "408", "409", "503"]
    for text in texts:
        await js.publish(ctx.subject + ".x", b"", headers={"Status": text, "Description": "x"})
    with RawPeer(js_server(ctx)) as peer:
        for line in (b"409 Consumer Deleted", b"100 Idle Heartbeat", b"503"):
            peer.hpub(ctx.subject.encode() + b".x", b"NATS/1.0 %s\r\n\r\n" % line)
        peer.flush()
    await js.publish(ctx.subject + ".x", b"last")
    async with consumer.consume() as messages:
        seen = [await messages.next(WAIT) for _ in range(9)]
    assert seen[-1].data == b"last"
    statuses = [msg.headers["Status"] for msg in seen[:5] if msg.headers is not None]
    assert statuses == texts
    batch = await (await js.create_consumer(name_of(ctx))).fetch(9, no_wait=True)
    assert len(batch) == 9


@check()
async def check_consume_poison(ctx: Context) -> None:
    """Odd bytes in the subjects and headers of other publishers do not stop consume."""
    _, js, consumer = await _open(ctx, 0)
    subject = ctx.subject.encode()
    blocks = [
        b"NATS/1.0\r\nno colon\r\n\r\n",
        b"garbage\r\n\r\n",
        b"NATS/1.0\r\n\xff\xfe: \xff\r\n\r\n",
        b"NATS/1.0\r\nA: b\nC: d\r\n\r\n",
        b"NATS/1.0\r\n\r\n",
    ]
    with RawPeer(js_server(ctx)) as peer:
        peer.send(b"PUB %s.\xff\xfe 1\r\n1\r\n" % subject)
        peer.send(b"PUB %s.%s 1\r\n1\r\n" % (subject, b"l" * 3900))
        for block in blocks:
            peer.hpub(subject + b".x", block, b"1")
        peer.flush()
    await js.publish(ctx.subject + ".x", b"last")
    async with consumer.consume(max_messages=3) as messages:
        seen: list[bytes] = []
        while not seen or seen[-1] != b"last":
            msg = await messages.next(WAIT)
            seen.append(msg.data)
            assert msg.metadata.stream_seq == len(seen)
            await msg.ack()
    assert seen[:-1] == [b"1"] * 7


@check()
async def check_consume_over_crashes(ctx: Context) -> None:
    """By default consume continues over crashes of the server, and no message is lost."""
    server = ctx.own_server(jetstream="enabled")
    client = await ctx.connect(server)
    stream = await new_stream(ctx, jetstream_of(client), storage="file")
    consumer = await stream.create_consumer(durable_name="c", ack_wait=0.5)
    seen: set[bytes] = set()
    async with consumer.consume() as messages:
        for turn in range(3):
            batch = [b"%d-%d" % (turn, n) for n in range(20)]
            await fill(ctx, await open_js(ctx, server), batch)
            while not seen >= set(batch):
                msg = await messages.next(WAIT)
                await msg.ack()
                seen.add(msg.data)
            if turn == 0:
                server.kill()
            else:
                server.terminate()
            server.restart()
    assert len(seen) == 60
    # If the client were closed before it notices the end of the last connection, it would rightly
    # report acknowledgments as unconfirmed.
    for _ in range(3):
        await next_event(client, Disconnected)


@check()
async def check_consume_begins_without_a_connection(ctx: Context) -> None:
    """consume can start without a connection: the first pull is sent later."""
    server = ctx.own_server(jetstream="enabled")
    client = await ctx.connect(server)
    js = jetstream_of(client)
    stream = await new_stream(ctx, js, storage="file")
    await fill(ctx, js, numbers(3))
    consumer = await stream.create_consumer(durable_name="c")
    server.terminate()
    await pause(client, 0.05)
    async with consumer.consume() as messages:
        server.restart()
        assert [(await messages.next(WAIT)).data for _ in range(3)] == numbers(3)


@check()
async def check_consume_by_a_slow_reader(ctx: Context) -> None:
    """A reader that takes longer than two heartbeats gets no warning and all messages."""
    client, _, consumer = await _open(ctx, 6)
    async with consumer.consume(max_messages=2, expires=1.0, heartbeat=0.5) as messages:
        for payload in numbers(6)[:5]:
            assert (await messages.next(SOON)).data == payload
        await pause(client, 1.3)
        assert (await messages.next(SOON)).data == b"5"
        with raises(TimeoutExpired):
            await messages.events.next(timeout=0)


@check(since=(2, 11))
async def check_consume_by_a_pinned_client(ctx: Context) -> None:
    """In a pinned group one client gets all messages; when it is unpinned, another one does."""
    js, consumer = await new_consumer(
        ctx, 0, priority_policy="pinned_client", priority_groups=["g"], priority_timeout=60.0
    )
    rival = await (await open_js(ctx)).consumer(name_of(ctx), "c")
    async with (
        consumer.consume(max_messages=4, group="g") as one,
        rival.consume(max_messages=4, group="g") as two,
    ):
        for _ in range(2):
            await fill(ctx, js, numbers(8))
            seen = {id(one): 0, id(two): 0}
            deadline = time.monotonic() + WAIT
            while sum(seen.values()) < 8:
                assert time.monotonic() < deadline, seen
                for messages in (one, two):
                    try:
                        msg = await messages.next(timeout=0.05)
                    except TimeoutExpired:
                        continue
                    await msg.ack()
                    seen[id(messages)] += 1
            assert 0 in seen.values()
            await js.unpin_consumer(name_of(ctx), "c", "g")
