"""subscribe(): the effect of each setting of a push consumer."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from jetstream.errors import HeartbeatMissed
from jetstream.events import PushWarning
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.streams import (
    fill,
    filled_stream,
    js_server,
    name_of,
    new_stream,
    nothing_pushed,
    numbers,
    open_js,
    pause,
    take_pushed,
)
from jetstream.testing.suite import check
from natsproto.errors import TimeoutExpired
from natsproto.testing.context import SOON, WAIT, Context, raises

if TYPE_CHECKING:
    pass

_V2 = {"jetstream": "enabled", "feature_flags": {"js_ack_fc_v2": True}}


@check()
async def check_push_headers_only(ctx: Context) -> None:
    """headers_only delivers the headers and the size of the payload, without the payload."""
    js, subject = await filled_stream(ctx)
    await js.publish(subject, b"12345", headers={"Kind": "test"})
    async with await js.subscribe(subject, headers_only=True) as messages:
        msg = await messages.next(WAIT)
        assert msg.data == b""
        assert msg.headers is not None
        assert (msg.headers["Kind"], msg.headers["Nats-Msg-Size"]) == ("test", "5")


@check()
async def check_push_ack_none(ctx: Context) -> None:
    """With ack_policy none nothing is acknowledged, and nothing is redelivered."""
    js, subject = await filled_stream(ctx, 50)
    async with await js.subscribe(subject, durable="c", ack_policy="none") as messages:
        for payload in numbers(50):
            msg = await messages.next(WAIT)
            assert (msg.data, msg.settled) == (payload, True)
            await msg.nak()  # ignored
        await nothing_pushed(messages)
        info = (await js.consumer(name_of(ctx), "c")).cached_info
        assert (info.num_ack_pending, info.num_redelivered) == (0, 0)


@check()
async def check_push_ack_all(ctx: Context) -> None:
    """With ack_policy all, one ack covers all messages up to this one."""
    js, subject = await filled_stream(ctx, 10)
    asked: dict[str, Any] = {"ack_policy": "all", "ack_wait": 0.6}
    async with await js.subscribe(subject, durable="c", **asked) as messages:
        got = [await messages.next(WAIT) for _ in range(10)]
        await got[7].ack_sync()
        info = (await js.consumer(name_of(ctx), "c")).cached_info
        assert (info.ack_floor.stream_seq, info.num_ack_pending) == (8, 2)
        again = [await messages.next(WAIT) for _ in range(2)]
        assert [msg.data for msg in again] == [b"8", b"9"]
        assert [msg.metadata.delivered for msg in again] == [2, 2]
        await again[1].ack_sync()


@check()
async def check_push_ack_wait(ctx: Context) -> None:
    """A message that is not acknowledged in time is delivered again with a higher count."""
    js, subject = await filled_stream(ctx, 1)
    async with await js.subscribe(subject, ack_wait=0.3) as messages:
        for delivered in (1, 2):
            msg = await messages.next(WAIT)
            assert msg.metadata.delivered == delivered
        await msg.ack_sync()
        await nothing_pushed(messages, 0.4)


@check()
async def check_push_nak(ctx: Context) -> None:
    """A nak'd message is redelivered at once, or after the given delay."""
    js, subject = await filled_stream(ctx, 1)
    async with await js.subscribe(subject) as messages:
        await (await messages.next(WAIT)).nak()
        msg = await messages.next(SOON)
        begin = time.monotonic()
        await msg.nak(delay=0.15)
        msg = await messages.next(WAIT)
        assert time.monotonic() - begin > 0.1
        assert msg.metadata.delivered == 3
        await msg.term("enough")
        await nothing_pushed(messages)


@check()
async def check_push_max_deliver(ctx: Context) -> None:
    """After max_deliver deliveries a message is not redelivered."""
    js, subject = await filled_stream(ctx, 1)
    async with await js.subscribe(subject, ack_wait=0.05, max_deliver=2) as messages:
        assert (await messages.next(WAIT)).metadata.delivered == 1
        assert (await messages.next(WAIT)).metadata.delivered == 2
        await nothing_pushed(messages, 0.25)


@check()
async def check_push_backoff(ctx: Context) -> None:
    """backoff sets the waits between deliveries."""
    js, subject = await filled_stream(ctx, 1)
    asked: dict[str, Any] = {"backoff": [0.1, 0.6], "max_deliver": 3}
    async with await js.subscribe(subject, **asked) as messages:
        times: list[float] = []
        for delivered in (1, 2, 3):
            assert (await messages.next(WAIT)).metadata.delivered == delivered
            times.append(time.monotonic())
    assert times[2] - times[0] > 0.4, times


@check()
async def check_push_max_ack_pending(ctx: Context) -> None:
    """At most max_ack_pending messages are unacknowledged."""
    js, subject = await filled_stream(ctx, 10)
    async with await js.subscribe(subject, max_ack_pending=3) as messages:
        got = [await messages.next(WAIT) for _ in range(3)]
        await nothing_pushed(messages)
        await got[1].ack()
        assert (await messages.next(WAIT)).data == b"3"
        await nothing_pushed(messages)


@check()
async def check_push_rate_limit(ctx: Context) -> None:
    """rate_limit_bps limits the rate, except for the largest message of the stream."""
    js = await open_js(ctx)
    await new_stream(ctx, js, max_msg_size=2000)
    await fill(ctx, js, [b"x" * 1000 for _ in range(15)])
    asked: dict[str, Any] = {"rate_limit_bps": 30 * 1000 * 8, "ack_policy": "none"}
    async with await js.subscribe(f"{ctx.subject}.x", **asked) as messages:
        begin = time.monotonic()
        for _ in range(15):
            await messages.next(WAIT)
        took = time.monotonic() - begin
    assert took > 0.25, took


@check()
async def check_push_replay_original(ctx: Context) -> None:
    """replay_policy original delivers messages at the pace at which they were stored."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    await new_stream(ctx, js)
    subject = f"{ctx.subject}.x"
    for payload in numbers(3):
        await js.publish(subject, payload)
        await pause(client, 0.15)
    took: list[float] = []
    for policy in ("instant", "original"):
        asked: dict[str, Any] = {"replay_policy": policy}
        async with await js.subscribe(subject, **asked) as messages:
            await messages.next(WAIT)
            begin = time.monotonic()
            await take_pushed(messages, 2)
            took.append(time.monotonic() - begin)
    assert took[1] > max(0.2, took[0]), took


@check()
async def check_push_sample_freq(ctx: Context) -> None:
    """With sample_freq, acks are reported as metrics."""
    js, subject = await filled_stream(ctx, 2)
    client = await ctx.connect(js_server(ctx))
    metrics = await client.subscribe(f"$JS.EVENT.METRIC.CONSUMER.ACK.{name_of(ctx)}.c")
    await client.flush(WAIT)
    async with await js.subscribe(subject, durable="c", sample_freq="100%") as messages:
        assert await take_pushed(messages, 2) == numbers(2)
        for seq in (1, 2):
            report = json.loads((await metrics.next(WAIT)).data)
            assert report["type"] == "io.nats.jetstream.metric.v1.consumer_ack"
            assert (report["consumer"], report["stream_seq"], report["deliveries"]) == ("c", seq, 1)


@check()
async def check_push_settings(ctx: Context) -> None:
    """The consumer has the settings of the call."""
    js, subject = await filled_stream(ctx)
    asked: dict[str, Any] = {
        "description": "what for",
        "ack_wait": 2.5,
        "max_deliver": 7,
        "max_ack_pending": 11,
        "inactive_threshold": 33.0,
        "num_replicas": 1,
        "mem_storage": True,
        "idle_heartbeat": 1.5,
        "flow_control": True,
        "deliver_subject": f"{name_of(ctx)}.to",
    }
    async with await js.subscribe(subject, **asked):
        [info] = await js.consumers(name_of(ctx))
    for name, value in asked.items():
        assert getattr(info.config, name) == value, name
    assert (info.config.filter_subject, info.config.durable_name) == (subject, "")
    assert info.push_bound


@check(since=(2, 10))
async def check_push_defaults(ctx: Context) -> None:
    """The defaults: explicit acks, an inbox, no heartbeats, no flow control."""
    js, subject = await filled_stream(ctx)
    async with await js.subscribe(subject, metadata={"a": "b"}):
        [info] = await js.consumers(name_of(ctx))
    config = info.config
    assert config.deliver_subject.startswith("_INBOX.")
    assert (config.ack_policy, config.deliver_group, config.idle_heartbeat) == ("explicit", "", 0)
    assert not config.flow_control
    assert config.metadata["a"] == "b"


@check()
async def check_push_heartbeat(ctx: Context) -> None:
    """With heartbeats, silence is reported soon after the consumer is gone, and not before."""
    js, subject = await filled_stream(ctx, 2)
    asked: dict[str, Any] = {"idle_heartbeat": 0.15, "alarm_after": 4.0}
    async with await js.subscribe(subject, name="c", **asked) as messages:
        assert await take_pushed(messages, 2) == numbers(2)
        with raises(TimeoutExpired):
            await messages.events.next(0.7)
        await js.delete_consumer(name_of(ctx), "c")
        event = await messages.events.next(WAIT)
        assert isinstance(event, PushWarning)
        assert isinstance(event.error, HeartbeatMissed)


@check(since=(2, 14))
async def check_push_ack_v2(ctx: Context) -> None:
    """Ack subjects with eleven tokens work: messages are acknowledged, and no gap is reported."""
    js = await open_js(ctx, ctx.shared_server(**_V2))
    await new_stream(ctx, js)
    await fill(ctx, js, numbers(20))
    asked: dict[str, Any] = {"idle_heartbeat": 0.2, "flow_control": True, "ack_wait": 0.5}
    async with await js.subscribe(f"{ctx.subject}.x", durable="c", **asked) as messages:
        for n in range(1, 21):
            msg = await messages.next(WAIT)
            assert len(msg.reply.split(".")) == 11
            assert (msg.metadata.stream_seq, msg.metadata.consumer_seq) == (n, n)
            await msg.ack_sync()
        info = (await js.consumer(name_of(ctx), "c")).cached_info
        assert (info.ack_floor.stream_seq, info.num_ack_pending) == (20, 0)
        with raises(TimeoutExpired):
            await messages.events.next(0.3)
