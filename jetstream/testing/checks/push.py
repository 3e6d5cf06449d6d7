"""subscribe(): the messages of a push consumer, their start, and their subscribers."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from jetstream import Timestamp
from jetstream.errors import ConsumerDeleted, ConsumerMoved, HeartbeatMissed
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
    take_pushed,
    until,
)
from jetstream.testing.suite import check
from natsproto.errors import TimeoutExpired
from natsproto.testing.context import WAIT, Context, raises


@check()
async def check_push(ctx: Context) -> None:
    """All stored messages arrive in order, then new ones; all are acknowledged."""
    js, subject = await filled_stream(ctx, 200)
    async with await js.subscribe(subject, durable="c") as messages:
        assert await take_pushed(messages, 200) == numbers(200)
        await fill(ctx, js, [b"later"])
        assert await take_pushed(messages, 1) == [b"later"]

        async def acked() -> bool:
            info = (await js.consumer(name_of(ctx), "c")).cached_info
            return info.ack_floor.stream_seq == 201 and not info.num_ack_pending

        await until(await ctx.connect(js_server(ctx)), acked)
        assert not messages.closed
    assert messages.closed


@check()
async def check_push_iteration(ctx: Context) -> None:
    """`async for` delivers the same messages, each with its metadata."""
    js, subject = await filled_stream(ctx, 100)
    seen = 0
    async with await js.subscribe(subject) as messages:
        async for msg in messages:
            seen += 1
            metadata = msg.metadata
            assert (metadata.stream, metadata.stream_seq, metadata.consumer_seq) == (
                name_of(ctx),
                seen,
                seen,
            )
            assert (msg.subject, msg.data) == (subject, b"%d" % (seen - 1))
            await msg.ack()
            if seen == 100:
                break


@check()
async def check_push_wildcard(ctx: Context) -> None:
    """The subject may have wildcards; only matching messages are delivered."""
    js, _ = await filled_stream(ctx)
    async with await js.subscribe(f"{ctx.subject}.a.*") as messages:
        for token in ("a.x", "b.x", "a.y", "a.y.z"):
            await js.publish(f"{ctx.subject}.{token}", token.encode())
        assert await take_pushed(messages, 2) == [b"a.x", b"a.y"]
        await nothing_pushed(messages)


@check(since=(2, 10))
async def check_push_filter_subjects(ctx: Context) -> None:
    """A subscription can have several filters."""
    js, _ = await filled_stream(ctx)
    filters = [f"{ctx.subject}.a", f"{ctx.subject}.c.>"]
    async with await js.subscribe(stream=name_of(ctx), filter_subjects=filters) as messages:
        for token in ("a", "b", "c", "c.d"):
            await js.publish(f"{ctx.subject}.{token}", token.encode())
        assert await take_pushed(messages, 2) == [b"a", b"c.d"]
        await nothing_pushed(messages)


@check()
async def check_push_whole_stream(ctx: Context) -> None:
    """Without a subject, a subscription delivers the whole stream."""
    js, _ = await filled_stream(ctx)
    async with await js.subscribe(stream=name_of(ctx)) as messages:
        for token in "abc":
            await js.publish(f"{ctx.subject}.{token}", token.encode())
        assert await take_pushed(messages, 3) == [b"a", b"b", b"c"]


@check()
async def check_push_deliver_all(ctx: Context) -> None:
    """deliver_policy all starts with the first stored message."""
    js, subject = await filled_stream(ctx, 3)
    async with await js.subscribe(subject, deliver_policy="all") as messages:
        assert await take_pushed(messages, 3) == numbers(3)


@check()
async def check_push_deliver_last(ctx: Context) -> None:
    """deliver_policy last starts with the last message."""
    js, subject = await filled_stream(ctx, 3)
    async with await js.subscribe(subject, deliver_policy="last") as messages:
        await fill(ctx, js, [b"later"])
        assert await take_pushed(messages, 2) == [b"2", b"later"]


@check()
async def check_push_deliver_new(ctx: Context) -> None:
    """With deliver_policy new, only messages after the start of the subscription arrive."""
    js, subject = await filled_stream(ctx, 3)
    async with await js.subscribe(subject, deliver_policy="new") as messages:
        await fill(ctx, js, [b"later"])
        assert await take_pushed(messages, 1) == [b"later"]


@check()
async def check_push_deliver_by_start_sequence(ctx: Context) -> None:
    """deliver_policy by_start_sequence starts with that message."""
    js, subject = await filled_stream(ctx, 5)
    asked: dict[str, Any] = {"deliver_policy": "by_start_sequence", "opt_start_seq": 4}
    async with await js.subscribe(subject, **asked) as messages:
        assert await take_pushed(messages, 2) == [b"3", b"4"]


@check()
async def check_push_deliver_by_start_time(ctx: Context) -> None:
    """deliver_policy by_start_time starts with the first message that is not older."""
    js, subject = await filled_stream(ctx, 5)
    stream = await js.stream(name_of(ctx))
    third = (await stream.get_msg(3)).time
    asked: dict[str, Any] = {"deliver_policy": "by_start_time", "opt_start_time": third}
    async with await js.subscribe(subject, **asked) as messages:
        assert await take_pushed(messages, 3) == [b"2", b"3", b"4"]
    future = Timestamp.of(time.time_ns() + 3600 * 10**9)
    asked["opt_start_time"] = future
    async with await js.subscribe(subject, **asked) as messages:
        await nothing_pushed(messages)


@check()
async def check_push_deliver_last_per_subject(ctx: Context) -> None:
    """deliver_policy last_per_subject starts with the last message of each subject."""
    js, _ = await filled_stream(ctx)
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
async def check_push_queue_name_is_durable(ctx: Context) -> None:
    """Without a durable name, the queue is the name: all members share one consumer."""
    js, subject = await filled_stream(ctx)
    other = await open_js(ctx)
    async with await js.subscribe(subject, queue="q"), await other.subscribe(subject, queue="q"):
        [info] = await js.consumers(name_of(ctx))
    config = info.config
    assert (config.durable_name, config.deliver_group) == ("q", "q")


@check()
async def check_push_queue_shares_the_work(ctx: Context) -> None:
    """Each message goes to one member of the group, and every member has some."""
    js, subject = await filled_stream(ctx)
    clients = [await ctx.connect(js_server(ctx)) for _ in range(3)]
    members = [await jetstream_of(each).subscribe(subject, queue="q") for each in clients]
    for client in clients:
        await client.flush(WAIT)  # otherwise the server may not know of the last one yet
    await fill(ctx, js, numbers(300))
    taken: list[list[bytes]] = [[], [], []]

    async def all_taken() -> bool:
        for member, mine in zip(members, taken, strict=True):
            with suppress(TimeoutExpired):
                while True:
                    msg = await member.next(0.01)
                    await msg.ack()
                    mine.append(msg.data)
        return sum(map(len, taken)) == 300

    await until(clients[0], all_taken)
    assert sorted(taken[0] + taken[1] + taken[2]) == sorted(numbers(300))
    assert all(taken)
    for member in members:
        await member.unsubscribe()


@check()
async def check_push_queue_member_leaves(ctx: Context) -> None:
    """A member that leaves does not stop the others, even if it was the first one."""
    js, subject = await filled_stream(ctx)
    first = await js.subscribe(subject, queue="q")
    second = await (await open_js(ctx)).subscribe(subject, queue="q")
    await first.drain()
    await fill(ctx, js, numbers(20))
    assert await take_pushed(second, 20) == numbers(20)
    await second.unsubscribe()


@check()
async def check_push_named_queue(ctx: Context) -> None:
    """The durable name and the queue may differ, so two groups have two consumers."""
    js, subject = await filled_stream(ctx, 2)
    asked: list[tuple[str, str]] = [("one", "q1"), ("two", "q2")]
    for durable, queue in asked:
        async with await js.subscribe(subject, durable=durable, queue=queue) as messages:
            assert await take_pushed(messages, 2) == numbers(2)
    assert sorted(await js.consumer_names(name_of(ctx))) == ["one", "two"]


@check()
async def check_push_over_a_reconnect(ctx: Context) -> None:
    """After a reconnect the subscription continues with all messages in between."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    await new_stream(ctx, js)
    other = await open_js(ctx)
    async with await js.subscribe(f"{ctx.subject}.x", ack_wait=0.5) as messages:
        await fill(ctx, other, [b"before"])
        assert await take_pushed(messages, 1) == [b"before"]
        await client.flush(WAIT)
        await client.force_reconnect()
        await fill(ctx, other, [b"after"])
        assert await take_pushed(messages, 1) == [b"after"]


@check()
async def check_push_pending_limit(ctx: Context) -> None:
    """Messages beyond the limit are dropped, counted, and delivered again."""
    js, subject = await filled_stream(ctx, 10)
    asked: dict[str, Any] = {"max_pending_messages": 4, "ack_wait": 0.3}
    client = await ctx.connect(js_server(ctx))
    async with await js.subscribe(subject, durable="c", **asked) as messages:

        async def all_sent() -> bool:
            return (await js.consumer(name_of(ctx), "c")).cached_info.delivered.stream_seq == 10

        await until(client, all_sent)
        assert messages.pending == 4
        assert messages.dropped >= 6
        seen: list[bytes] = []
        while len(seen) < 10:
            msg = await messages.next(WAIT)
            await msg.ack_sync()
            if msg.data not in seen:
                seen.append(msg.data)
        assert sorted(seen) == numbers(10)


@check()
async def check_push_in_a_domain(ctx: Context) -> None:
    """A subscription works through the prefix of a domain, and so do acknowledgments."""
    server = ctx.shared_server(jetstream={"domain": "hub"})
    js = await open_js(ctx, server, domain="hub")
    await new_stream(ctx, js)
    await fill(ctx, js, numbers(3))
    async with await js.subscribe(f"{ctx.subject}.x", durable="c") as messages:
        for payload in numbers(3):
            msg = await messages.next(WAIT)
            assert msg.data == payload
            await msg.ack_sync()


@check()
async def check_push_consumer_deleted_during_an_outage(ctx: Context) -> None:
    """If the consumer is gone after a reconnect, waiting for messages raises an error."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    await new_stream(ctx, js)
    other = await open_js(ctx)
    await fill(ctx, other, numbers(2))
    async with await js.subscribe(f"{ctx.subject}.x", name="c") as messages:
        assert (await messages.next(WAIT)).data == b"0"

        async def here() -> bool:
            return messages.pending == 1

        await until(client, here)
        await other.delete_consumer(name_of(ctx), "c")
        await client.force_reconnect()
        assert (await messages.next(WAIT)).data == b"1"  # it was here before
        with raises(ConsumerDeleted):
            await messages.next(WAIT)
        assert messages.closed


@check()
async def check_push_consumer_deleted_reported_by_heartbeat(ctx: Context) -> None:
    """With heartbeats, a deleted consumer is noticed at any time, first as silence."""
    js, subject = await filled_stream(ctx)
    async with await js.subscribe(subject, name="c", idle_heartbeat=0.1) as messages:
        await js.delete_consumer(name_of(ctx), "c")
        with raises(ConsumerDeleted):
            await messages.next(WAIT)
        event = await messages.events.next(WAIT)
        assert isinstance(event, PushWarning)
        assert isinstance(event.error, HeartbeatMissed)


@check()
async def check_push_consumer_moved(ctx: Context) -> None:
    """The same happens if the consumer now delivers to another subject."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    await new_stream(ctx, js)
    other = await open_js(ctx)
    stream = name_of(ctx)
    async with await js.subscribe(f"{ctx.subject}.x", durable="c") as messages:
        config = (await other.consumer(stream, "c")).cached_info.config
        config.deliver_subject = f"{stream}.to.me"
        await other.delete_consumer(stream, "c")  # none with a subscriber can be moved
        await other.create_consumer(stream, config)
        await client.force_reconnect()
        with raises(ConsumerMoved) as caught:
            await messages.next(WAIT)
        assert caught.error.target == f"{stream}.to.me"


@check()
async def check_push_nothing_left(ctx: Context) -> None:
    """Subscriptions that have ended leave nothing in the client or on the server."""
    server = js_server(ctx)
    client = await ctx.connect(server, name=ctx.subject)
    js = jetstream_of(client)
    await new_stream(ctx, js)
    for asked in ("stop", "drain", "block"):
        messages = await js.subscribe(f"{ctx.subject}.x", durable=asked)
        if asked == "stop":
            await messages.stop()
        elif asked == "drain":
            await messages.drain()
        else:
            async with messages:
                pass
    await client.flush(WAIT)
    connections = server.monitor("/connz?limit=10000")["connections"]
    [ours] = [each for each in connections if each.get("name") == ctx.subject]
    assert ours["subscriptions"] == 1  # answers
