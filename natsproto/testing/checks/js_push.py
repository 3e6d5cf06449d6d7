"""subscribe(): what a push consumer delivers, with every setting that it has."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from jetstream import Timestamp
from jetstream.errors import HeartbeatMissed
from jetstream.push import PushWarning
from natsproto.errors import TimeoutExpired
from natsproto.testing.context import SOON, WAIT, Context, raises
from natsproto.testing.streams import (
    fill,
    js_server,
    name_of,
    new_stream,
    numbers,
    open_js,
    pause,
    until,
)
from natsproto.testing.suite import check

if TYPE_CHECKING:
    from jetstream import JetStream
    from jetstream.pushing import PushMessages

_V2 = {"jetstream": "enabled", "feature_flags": {"js_ack_fc_v2": True}}


async def _begin(ctx: Context, count: int = 0) -> tuple[JetStream, str]:
    """A stream with that many messages, and the subject of all of them."""
    js = await open_js(ctx)
    await new_stream(ctx, js)
    await fill(ctx, js, numbers(count))
    return js, f"{ctx.subject}.x"


async def _take(messages: PushMessages, count: int) -> list[bytes]:
    """The payloads of the next messages, acknowledged."""
    taken: list[bytes] = []
    for _ in range(count):
        msg = await messages.next(WAIT)
        await msg.ack()
        taken.append(msg.data)
    return taken


async def _nothing(messages: PushMessages, seconds: float = 0.05) -> None:
    """No message comes."""
    with raises(TimeoutExpired):
        await messages.next(seconds)


@check()
async def check_push(ctx: Context) -> None:
    """All that is there, in order, and what comes later; acknowledged, to the last one."""
    js, subject = await _begin(ctx, 1000)
    async with await js.subscribe(subject, durable="c") as messages:
        assert await _take(messages, 1000) == numbers(1000)
        await fill(ctx, js, [b"later"])
        assert await _take(messages, 1) == [b"later"]

        async def acked() -> bool:
            info = (await js.consumer(name_of(ctx), "c")).cached_info
            return info.ack_floor.stream_seq == 1001 and not info.num_ack_pending

        await until(await ctx.connect(js_server(ctx)), acked)
        assert not messages.closed
    assert messages.closed


@check()
async def check_push_iteration(ctx: Context) -> None:
    """The same by `async for`; each message knows its place."""
    js, subject = await _begin(ctx, 100)
    seen = 0
    async with await js.subscribe(subject) as messages:
        async for msg in messages:
            seen += 1
            told = msg.metadata
            assert (told.stream, told.stream_seq, told.consumer_seq) == (name_of(ctx), seen, seen)
            assert (msg.subject, msg.data) == (subject, b"%d" % (seen - 1))
            await msg.ack()
            if seen == 100:
                break


@check()
async def check_push_wildcard(ctx: Context) -> None:
    """The subject may have wildcards; only what matches is delivered."""
    js, _ = await _begin(ctx)
    async with await js.subscribe(f"{ctx.subject}.a.*") as messages:
        for token in ("a.x", "b.x", "a.y", "a.y.z"):
            await js.publish(f"{ctx.subject}.{token}", token.encode())
        assert await _take(messages, 2) == [b"a.x", b"a.y"]
        await _nothing(messages)


@check(since=(2, 10))
async def check_push_filter_subjects(ctx: Context) -> None:
    """Several filters at once."""
    js, _ = await _begin(ctx)
    filters = [f"{ctx.subject}.a", f"{ctx.subject}.c.>"]
    async with await js.subscribe(stream=name_of(ctx), filter_subjects=filters) as messages:
        for token in ("a", "b", "c", "c.d"):
            await js.publish(f"{ctx.subject}.{token}", token.encode())
        assert await _take(messages, 2) == [b"a", b"c.d"]
        await _nothing(messages)


@check()
async def check_push_whole_stream(ctx: Context) -> None:
    """With a stream and no subject it is all of the stream."""
    js, _ = await _begin(ctx)
    async with await js.subscribe(stream=name_of(ctx)) as messages:
        for token in "abc":
            await js.publish(f"{ctx.subject}.{token}", token.encode())
        assert await _take(messages, 3) == [b"a", b"b", b"c"]


@check()
async def check_push_deliver_all(ctx: Context) -> None:
    """deliver_policy all: from the first message that there is."""
    js, subject = await _begin(ctx, 3)
    async with await js.subscribe(subject, deliver_policy="all") as messages:
        assert await _take(messages, 3) == numbers(3)


@check()
async def check_push_deliver_last(ctx: Context) -> None:
    """deliver_policy last: the last message, and all after it."""
    js, subject = await _begin(ctx, 3)
    async with await js.subscribe(subject, deliver_policy="last") as messages:
        await fill(ctx, js, [b"later"])
        assert await _take(messages, 2) == [b"2", b"later"]


@check()
async def check_push_deliver_new(ctx: Context) -> None:
    """deliver_policy new: only what comes after the subscription began."""
    js, subject = await _begin(ctx, 3)
    async with await js.subscribe(subject, deliver_policy="new") as messages:
        await fill(ctx, js, [b"later"])
        assert await _take(messages, 1) == [b"later"]


@check()
async def check_push_deliver_by_start_sequence(ctx: Context) -> None:
    """deliver_policy by_start_sequence: from that message on."""
    js, subject = await _begin(ctx, 5)
    asked: dict[str, Any] = {"deliver_policy": "by_start_sequence", "opt_start_seq": 4}
    async with await js.subscribe(subject, **asked) as messages:
        assert await _take(messages, 2) == [b"3", b"4"]


@check()
async def check_push_deliver_by_start_time(ctx: Context) -> None:
    """deliver_policy by_start_time: from the first message that is not older."""
    js, subject = await _begin(ctx, 5)
    stream = await js.stream(name_of(ctx))
    third = (await stream.get_msg(3)).time
    asked: dict[str, Any] = {"deliver_policy": "by_start_time", "opt_start_time": third}
    async with await js.subscribe(subject, **asked) as messages:
        assert await _take(messages, 3) == [b"2", b"3", b"4"]
    future = Timestamp.of(time.time_ns() + 3600 * 10**9)
    asked["opt_start_time"] = future
    async with await js.subscribe(subject, **asked) as messages:
        await _nothing(messages)


@check()
async def check_push_deliver_last_per_subject(ctx: Context) -> None:
    """deliver_policy last_per_subject: the last of each subject, and all after them."""
    js, _ = await _begin(ctx)
    for token in "abacab":
        await js.publish(f"{ctx.subject}.{token}", token.encode())
    asked: dict[str, Any] = {"deliver_policy": "last_per_subject"}
    async with await js.subscribe(f"{ctx.subject}.*", **asked) as messages:
        await js.publish(f"{ctx.subject}.c", b"later")
        got = [await messages.next(WAIT) for _ in range(4)]
    assert [(msg.data, msg.metadata.stream_seq) for msg in got] == [
        *((b"c", 4), (b"a", 5), (b"b", 6), (b"later", 7))
    ]


@check()
async def check_push_headers_only(ctx: Context) -> None:
    """headers_only: the headers and the size of the payload, without the payload."""
    js, subject = await _begin(ctx)
    await js.publish(subject, b"12345", headers={"Kind": "test"})
    async with await js.subscribe(subject, headers_only=True) as messages:
        msg = await messages.next(WAIT)
        assert msg.data == b""
        assert msg.headers is not None
        assert (msg.headers["Kind"], msg.headers["Nats-Msg-Size"]) == ("test", "5")


@check()
async def check_push_ack_none(ctx: Context) -> None:
    """ack_policy none: nothing is to be acknowledged, and nothing comes twice."""
    js, subject = await _begin(ctx, 50)
    async with await js.subscribe(subject, durable="c", ack_policy="none") as messages:
        for payload in numbers(50):
            msg = await messages.next(WAIT)
            assert (msg.data, msg.settled) == (payload, True)
            await msg.nak()  # ignored
        await _nothing(messages)
        info = (await js.consumer(name_of(ctx), "c")).cached_info
        assert (info.num_ack_pending, info.num_redelivered) == (0, 0)


@check()
async def check_push_ack_all(ctx: Context) -> None:
    """ack_policy all: one acknowledgement is for all messages up to this one."""
    js, subject = await _begin(ctx, 10)
    asked: dict[str, Any] = {"ack_policy": "all", "ack_wait": 0.4}
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
    """What is not acknowledged in time comes again, and says so."""
    js, subject = await _begin(ctx, 1)
    async with await js.subscribe(subject, ack_wait=0.1) as messages:
        for delivered in (1, 2, 3):
            msg = await messages.next(WAIT)
            assert msg.metadata.delivered == delivered
        await msg.ack_sync()
        await _nothing(messages, 0.2)


@check()
async def check_push_nak(ctx: Context) -> None:
    """A message that is given back comes again: at once, or when it was said."""
    js, subject = await _begin(ctx, 1)
    async with await js.subscribe(subject) as messages:
        await (await messages.next(WAIT)).nak()
        msg = await messages.next(SOON)
        begin = time.monotonic()
        await msg.nak(delay=0.15)
        msg = await messages.next(WAIT)
        assert time.monotonic() - begin > 0.1
        assert msg.metadata.delivered == 3
        await msg.term("enough")
        await _nothing(messages)


@check()
async def check_push_max_deliver(ctx: Context) -> None:
    """max_deliver: then it is not delivered any more."""
    js, subject = await _begin(ctx, 1)
    async with await js.subscribe(subject, ack_wait=0.05, max_deliver=2) as messages:
        assert (await messages.next(WAIT)).metadata.delivered == 1
        assert (await messages.next(WAIT)).metadata.delivered == 2
        await _nothing(messages, 0.25)


@check()
async def check_push_backoff(ctx: Context) -> None:
    """backoff: the waits between deliveries grow as it says."""
    js, subject = await _begin(ctx, 1)
    asked: dict[str, Any] = {"backoff": [0.1, 0.4], "max_deliver": 3}
    async with await js.subscribe(subject, **asked) as messages:
        times: list[float] = []
        for delivered in (1, 2, 3):
            assert (await messages.next(WAIT)).metadata.delivered == delivered
            times.append(time.monotonic())
    assert 0.05 < times[1] - times[0] < 0.4
    assert times[2] - times[1] > 0.3


@check()
async def check_push_max_ack_pending(ctx: Context) -> None:
    """max_ack_pending: no more than that is on its way and not acknowledged."""
    js, subject = await _begin(ctx, 10)
    async with await js.subscribe(subject, max_ack_pending=3) as messages:
        got = [await messages.next(WAIT) for _ in range(3)]
        await _nothing(messages)
        await got[1].ack()
        assert (await messages.next(WAIT)).data == b"3"
        await _nothing(messages)


@check()
async def check_push_rate_limit(ctx: Context) -> None:
    """rate_limit_bps: so many bits a second, but for the largest message of the stream."""
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
    """replay_policy original: in the rhythm in which they were stored."""
    client = await ctx.connect(js_server(ctx))
    js = ctx.jetstream(client)
    await new_stream(ctx, js)
    subject = f"{ctx.subject}.x"
    for payload in numbers(3):
        await js.publish(subject, payload)
        await pause(client, 0.15)
    for policy, least, most in (("instant", 0.0, 0.15), ("original", 0.2, WAIT)):
        asked: dict[str, Any] = {"replay_policy": policy}
        async with await js.subscribe(subject, **asked) as messages:
            await messages.next(WAIT)
            begin = time.monotonic()
            await _take(messages, 2)
            took = time.monotonic() - begin
        assert least <= took < most, (policy, took)


@check()
async def check_push_sample_freq(ctx: Context) -> None:
    """sample_freq: acknowledgements are told as metrics."""
    js, subject = await _begin(ctx, 2)
    client = await ctx.connect(js_server(ctx))
    metrics = await client.subscribe(f"$JS.EVENT.METRIC.CONSUMER.ACK.{name_of(ctx)}.c")
    await client.flush(WAIT)
    async with await js.subscribe(subject, durable="c", sample_freq="100%") as messages:
        assert await _take(messages, 2) == numbers(2)
        for seq in (1, 2):
            told = json.loads((await metrics.next(WAIT)).data)
            assert told["type"] == "io.nats.jetstream.metric.v1.consumer_ack"
            assert (told["consumer"], told["stream_seq"], told["deliveries"]) == ("c", seq, 1)


@check()
async def check_push_settings(ctx: Context) -> None:
    """What was asked for is what the consumer has."""
    js, subject = await _begin(ctx)
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
    """Without settings: explicit acknowledgements, an inbox, no heartbeats, no flow control."""
    js, subject = await _begin(ctx)
    async with await js.subscribe(subject, metadata={"a": "b"}):
        [info] = await js.consumers(name_of(ctx))
    config = info.config
    assert config.deliver_subject.startswith("_INBOX.")
    assert (config.ack_policy, config.deliver_group, config.idle_heartbeat) == ("explicit", "", 0)
    assert not config.flow_control
    assert config.metadata["a"] == "b"


@check()
async def check_push_heartbeat(ctx: Context) -> None:
    """With heartbeats silence is told: not while the consumer is there, but soon after."""
    js, subject = await _begin(ctx, 2)
    asked: dict[str, Any] = {"idle_heartbeat": 0.1, "alarm_after": 4.0}
    async with await js.subscribe(subject, name="c", **asked) as messages:
        assert await _take(messages, 2) == numbers(2)
        with raises(TimeoutExpired):
            await messages.events.next(0.6)
        await js.delete_consumer(name_of(ctx), "c")
        event = await messages.events.next(WAIT)
        assert isinstance(event, PushWarning)
        assert isinstance(event.error, HeartbeatMissed)


@check(since=(2, 14))
async def check_push_ack_v2(ctx: Context) -> None:
    """A server whose ack subjects have eleven tokens: acknowledged, and no gap is seen."""
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


@check()
async def check_push_queue_name_is_durable(ctx: Context) -> None:
    """A queue without a durable name has its own: all members share one consumer."""
    js, subject = await _begin(ctx)
    other = await open_js(ctx)
    async with await js.subscribe(subject, queue="q"), await other.subscribe(subject, queue="q"):
        [info] = await js.consumers(name_of(ctx))
    config = info.config
    assert (config.durable_name, config.deliver_group) == ("q", "q")


@check()
async def check_push_queue_shares_the_work(ctx: Context) -> None:
    """Each message goes to one member of the group, and every member has some."""
    js, subject = await _begin(ctx)
    members = [await (await open_js(ctx)).subscribe(subject, queue="q") for _ in range(3)]
    await fill(ctx, js, numbers(300))
    client = await ctx.connect(js_server(ctx))
    taken: list[list[bytes]] = [[], [], []]

    async def all_taken() -> bool:
        for member, mine in zip(members, taken, strict=True):
            with suppress(TimeoutExpired):
                while True:
                    msg = await member.next(0.01)
                    await msg.ack()
                    mine.append(msg.data)
        return sum(map(len, taken)) == 300

    await until(client, all_taken)
    assert sorted(taken[0] + taken[1] + taken[2]) == sorted(numbers(300))
    assert all(taken)
    for member in members:
        await member.unsubscribe()


@check()
async def check_push_queue_member_leaves(ctx: Context) -> None:
    """A member that leaves does not stop the others, not even the one that came first."""
    js, subject = await _begin(ctx)
    first = await js.subscribe(subject, queue="q")
    second = await (await open_js(ctx)).subscribe(subject, queue="q")
    await first.drain()
    await fill(ctx, js, numbers(20))
    assert await _take(second, 20) == numbers(20)
    await second.unsubscribe()


@check()
async def check_push_named_queue(ctx: Context) -> None:
    """The durable name and the queue may differ: two groups, two consumers."""
    js, subject = await _begin(ctx, 2)
    asked: list[tuple[str, str]] = [("one", "q1"), ("two", "q2")]
    for durable, queue in asked:
        async with await js.subscribe(subject, durable=durable, queue=queue) as messages:
            assert await _take(messages, 2) == numbers(2)
    assert sorted(await js.consumer_names(name_of(ctx))) == ["one", "two"]


@check()
async def check_push_over_a_reconnect(ctx: Context) -> None:
    """After a lost connection the subscription goes on, with all that came meanwhile."""
    client = await ctx.connect(js_server(ctx))
    js = ctx.jetstream(client)
    await new_stream(ctx, js)
    other = await open_js(ctx)
    async with await js.subscribe(f"{ctx.subject}.x", ack_wait=0.5) as messages:
        await fill(ctx, other, [b"before"])
        assert await _take(messages, 1) == [b"before"]
        await client.flush(WAIT)
        await client.force_reconnect()
        await fill(ctx, other, [b"after"])
        assert await _take(messages, 1) == [b"after"]


@check()
async def check_push_pending_limit(ctx: Context) -> None:
    """What nobody takes does not fill the memory: it is dropped, counted, and comes again."""
    js, subject = await _begin(ctx, 10)
    asked: dict[str, Any] = {"max_pending_messages": 4, "ack_wait": 0.3}
    client = await ctx.connect(js_server(ctx))
    async with await js.subscribe(subject, durable="c", **asked) as messages:

        async def all_sent() -> bool:
            return (await js.consumer(name_of(ctx), "c")).cached_info.delivered.stream_seq == 10

        await until(client, all_sent)
        assert (messages.pending, messages.dropped) == (4, 6)
        seen: list[bytes] = []
        while len(seen) < 10:
            msg = await messages.next(WAIT)
            await msg.ack_sync()
            if msg.data not in seen:
                seen.append(msg.data)
        assert sorted(seen) == numbers(10)


@check()
async def check_push_in_a_domain(ctx: Context) -> None:
    """By the prefix of a domain, and acknowledged there."""
    server = ctx.shared_server(jetstream={"domain": "hub"})
    js = await open_js(ctx, server, domain="hub")
    await new_stream(ctx, js)
    await fill(ctx, js, numbers(3))
    async with await js.subscribe(f"{ctx.subject}.x", durable="c") as messages:
        for payload in numbers(3):
            msg = await messages.next(WAIT)
            assert msg.data == payload
            await msg.ack_sync()
