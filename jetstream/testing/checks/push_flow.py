"""Push subscriptions: flow control, heartbeats and gaps."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from jetstream.errors import (
    HeartbeatMissed,
)
from jetstream.events import ConsumerSequenceReset, Gap, PushWarning
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.streams import (
    fill,
    filled_stream,
    js_server,
    name_of,
    new_stream,
    numbers,
    open_js,
    pause,
    until,
)
from jetstream.testing.suite import check
from natsproto.errors import TimeoutExpired
from natsproto.testing.context import WAIT, Context, raises

if TYPE_CHECKING:
    from jetstream import JetStream
    from jetstream.push.api import PushMessages
    from natsproto.client import Client
    from natsproto.testing.server import Server

# For an election, and the silence before it.
_V2: dict[str, Any] = {
    "jetstream": {"domain": "hub"},
    "feature_flags": {"js_ack_fc_v2": True},
}
_BLOCK = bytes(64 * 1024)
# The windows of the server in such blocks: the first of 2 MiB, the largest of 32 MiB.
_FIRST_WINDOW = 32
_LARGEST_WINDOW = 512


async def _stalled(client: Client, messages: PushMessages) -> None:
    """Wait until the first window is full and no more messages arrive."""

    async def full() -> bool:
        return messages.pending >= _FIRST_WINDOW

    await until(client, full)
    await pause(client, 0.15)
    assert messages.pending == _FIRST_WINDOW


async def _flow(
    ctx: Context, blocks: int, server: Server | None = None, **options: Any
) -> tuple[Client, JetStream, PushMessages]:
    client = await ctx.connect(server or js_server(ctx))
    js = jetstream_of(client, **options)
    await new_stream(ctx, js)
    await fill(ctx, js, [_BLOCK] * blocks)
    asked: dict[str, Any] = {"flow_control": True, "idle_heartbeat": 0.2, "ack_policy": "none"}
    return client, js, await js.subscribe(f"{ctx.subject}.x", name="c", **asked)


async def _take_all(messages: PushMessages, count: int) -> int:
    """Take that many messages in order; return the largest number that was waiting."""
    most = 0
    for number in range(1, count + 1):
        most = max(most, messages.pending)
        msg = await messages.next(WAIT)
        assert msg.metadata.stream_seq == number
    return most


async def _assert_no_event(messages: PushMessages, seconds: float = 0.05) -> None:
    try:
        event = await messages.events.next(seconds)
    except TimeoutExpired:
        return
    raise AssertionError(f"unexpected event: {event!r}")


@check()
async def check_push_flow_control(ctx: Context) -> None:
    """The server stops at its window while no message is taken, and then continues."""
    client, _, messages = await _flow(ctx, 128)
    async with messages:
        await _stalled(client, messages)
        await _take_all(messages, 128)
        assert messages.dropped == 0
        await _assert_no_event(messages)


@check(since=(2, 14))
async def check_push_flow_control_v2(ctx: Context) -> None:
    """Flow control works with subjects that have a domain and an account."""
    client, _, messages = await _flow(ctx, 96, ctx.shared_server(**_V2), domain="hub")
    async with messages:
        await _stalled(client, messages)
        await _take_all(messages, 96)
        await _assert_no_event(messages)


@check(since=(2, 14))
async def check_ordered_push_v2(ctx: Context) -> None:
    """An ordered subscription continues in order after a stall there, without a reset."""
    client = await ctx.connect(ctx.shared_server(**_V2))
    js = jetstream_of(client, domain="hub")
    await new_stream(ctx, js)
    await fill(ctx, js, [_BLOCK] * 96)
    async with await js.subscribe(f"{ctx.subject}.x", ordered=True, idle_heartbeat=0.2) as messages:
        await _stalled(client, messages)
        await _take_all(messages, 96)
        await _assert_no_event(messages, 0.3)


@check(slow=True)
async def check_push_flow_control_bounds_memory(ctx: Context) -> None:
    """A handler that pauses while it reads 64 MiB never buffers more than the server's window."""
    client, _, messages = await _flow(ctx, 1024)
    most = 0
    async with messages:
        for number in range(1, 1025):
            if number % 256 == 1:
                await pause(client, 0.3)
            most = max(most, messages.pending)
            assert (await messages.next(WAIT)).metadata.stream_seq == number
        await _assert_no_event(messages)
        assert messages.dropped == 0
    assert most <= _LARGEST_WINDOW, f"{most} blocks of 64 KiB waited"


@check()
async def check_push_stalled_consumer_revives(ctx: Context) -> None:
    """A consumer that stalled for an earlier subscriber continues after a heartbeat."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    await new_stream(ctx, js)
    await fill(ctx, js, [_BLOCK] * 64)
    target = f"{ctx.subject}-deliver"
    rude = await client.subscribe(target)
    consumer = await js.create_consumer(
        name_of(ctx),
        durable_name="c",
        deliver_subject=target,
        flow_control=True,
        idle_heartbeat=0.2,
        ack_policy="none",
    )

    async def stalled() -> bool:
        while rude.pending:
            msg = await rude.next(WAIT)
            if msg.headers is not None and msg.headers.get("Nats-Consumer-Stalled"):
                return True
        return False

    await until(client, stalled)
    await rude.unsubscribe()
    assert (await consumer.info()).delivered.consumer_seq == _FIRST_WINDOW

    async def unbound() -> bool:
        return not (await consumer.info()).push_bound

    await until(client, unbound)
    async with await js.subscribe(
        stream=name_of(ctx), durable="c", bind=True, alarm_after=20
    ) as messages:
        for number in range(_FIRST_WINDOW + 1, 65):
            assert (await messages.next(WAIT)).metadata.stream_seq == number
        await _assert_no_event(messages)


@check()
async def check_push_heartbeat_of_a_frozen_server(ctx: Context) -> None:
    """A server that freezes is reported after three heartbeats, and not again with each one."""
    server = ctx.own_server(jetstream="enabled")
    js = await open_js(ctx, server)
    await new_stream(ctx, js)
    await fill(ctx, js, numbers(1))
    asked: dict[str, Any] = {"idle_heartbeat": 0.2, "durable": "c"}
    async with await js.subscribe(f"{ctx.subject}.x", **asked) as messages:
        assert (await messages.next(WAIT)).data == b"0"
        server.freeze()
        began = time.monotonic()
        try:
            event = await messages.events.next(WAIT)
            assert isinstance(event, PushWarning)
            assert isinstance(event.error, HeartbeatMissed)
            assert time.monotonic() - began >= 0.35
            with raises(TimeoutExpired):
                await messages.events.next(1.0)
        finally:
            server.thaw()
        await fill(ctx, js, [b"thawed"])
        assert (await messages.next(WAIT)).data == b"thawed"


@check()
async def check_push_gap(ctx: Context) -> None:
    """Dropped messages are reported as a gap by the next message or heartbeat."""
    js, subject = await filled_stream(ctx, 6)
    asked: dict[str, Any] = {"idle_heartbeat": 0.1, "ack_policy": "none"}
    async with await js.subscribe(
        subject, max_pending_messages=2, alarm_after=50, **asked
    ) as messages:
        assert await messages.events.next(WAIT) == Gap(3, 6)
        assert (messages.pending, messages.dropped) == (2, 4)
        for payload in (b"0", b"1"):
            assert (await messages.next(WAIT)).data == payload
        await fill(ctx, js, [b"6"])
        assert (await messages.next(WAIT)).metadata.consumer_seq == 7
        await _assert_no_event(messages, 0.2)


@check()
async def check_push_redelivery_is_not_a_gap(ctx: Context) -> None:
    """A redelivered message has the next number and is not reported as a gap."""
    js, subject = await filled_stream(ctx, 3)
    async with await js.subscribe(subject, idle_heartbeat=0.2, alarm_after=50) as messages:
        for number in range(1, 7):
            msg = await messages.next(WAIT)
            assert msg.metadata.consumer_seq == number
            await (msg.nak() if msg.metadata.delivered == 1 else msg.ack())
        await _assert_no_event(messages, 0.3)


@check(since=(2, 14))
async def check_push_reset_is_not_a_gap(ctx: Context) -> None:
    """A consumer that is reset counts from 1, and is not reported as a gap."""
    js, subject = await filled_stream(ctx, 3)
    async with await js.subscribe(
        subject, durable="c", idle_heartbeat=0.2, alarm_after=50
    ) as messages:
        for number in range(1, 4):
            msg = await messages.next(WAIT)
            assert msg.metadata.consumer_seq == number
        await js.reset_consumer(name_of(ctx), "c")
        for number in range(1, 4):
            msg = await messages.next(WAIT)
            assert (msg.metadata.stream_seq, msg.metadata.consumer_seq) == (number, number)
            await msg.ack()
        event = await messages.events.next(WAIT)
        assert isinstance(event, ConsumerSequenceReset)
        assert event.before == 3
        await _assert_no_event(messages, 0.3)
