"""Ordered consumers: their start, their messages, and their use."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from jetstream.errors import ConsumerNotFound
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
    from jetstream import JetStream, OrderedConsumer, Stream
    from jetstream.pull.messages import Messages


async def new_ordered(
    ctx: Context, count: int = 0, **options: Any
) -> tuple[JetStream, Stream, OrderedConsumer]:
    """Return an ordered consumer of a stream with that many messages: b"0", b"1" and so on."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js)
    await fill(ctx, js, numbers(count))
    return js, stream, await stream.ordered_consumer(**options)


async def take(messages: Messages, count: int, timeout: float = WAIT) -> list[bytes]:
    """Return the payloads of the next messages."""
    deadline = time.monotonic() + timeout
    return [(await messages.next(max(0.0, deadline - time.monotonic()))).data for _ in range(count)]


async def _all(ordered: OrderedConsumer) -> list[int]:
    """Return the sequences of all messages that are available now."""
    return [msg.metadata.stream_seq for msg in await ordered.fetch(100, no_wait=True)]


@check()
async def check_ordered_consume(ctx: Context) -> None:
    """All stored messages arrive in order, then new ones; acks are not needed."""
    js, _, ordered = await new_ordered(ctx, 1200)
    async with ordered.consume() as messages:
        assert await take(messages, 1200) == numbers(1200)
        await fill(ctx, js, [b"later"])
        msg = await messages.next(WAIT)
        assert (msg.data, msg.settled, msg.metadata.stream_seq) == (b"later", True, 1201)
        assert not messages.closed
    assert messages.closed


@check()
async def check_ordered_consume_by_iteration(ctx: Context) -> None:
    """`async for` delivers two thousand messages in order, with a buffer of 40."""
    _, _, ordered = await new_ordered(ctx, 2000)
    seen: list[bytes] = []
    async with ordered.consume(max_messages=40) as messages:
        async for msg in messages:
            seen.append(msg.data)
            if len(seen) == 2000:
                break
    assert seen == numbers(2000)


@check()
async def check_ordered_consume_by_bytes(ctx: Context) -> None:
    """With max_bytes no more than that is buffered."""
    _, _, ordered = await new_ordered(ctx, 300)
    async with ordered.consume(max_bytes=2000) as messages:
        assert await take(messages, 300) == numbers(300)


@check()
async def check_ordered_deletes_its_consumers(ctx: Context) -> None:
    """When a consume() has ended, by stop, drain or stop_after, its consumer is deleted."""
    _, stream, ordered = await new_ordered(ctx, 5)

    async def look() -> bool:
        return not await stream.consumer_names()

    for end in ("stop", "drain", "stop_after"):
        messages = ordered.consume(stop_after=1 if end == "stop_after" else None)
        await messages.next(WAIT)
        if end == "stop":
            await messages.stop()
        elif end == "drain":
            await messages.drain()
        await until(await ctx.connect(js_server(ctx)), look)
    with raises(ConsumerNotFound):
        await ordered.info()


@check()
async def check_ordered_info(ctx: Context) -> None:
    """The handle has the name, the configuration and the info of the current consumer."""
    _, stream, ordered = await new_ordered(ctx, 3, name_prefix="mine")
    assert (ordered.name, ordered.stream) == ("mine_1", name_of(ctx))
    assert ordered.cached_info.num_pending == 3
    config = (await ordered.info()).config
    assert (config.ack_policy, config.mem_storage, config.num_replicas) == ("none", True, 1)
    assert config.inactive_threshold == 300.0
    assert await stream.consumer_names() == ["mine_1"]
    await ordered.delete()
    assert await stream.consumer_names() == []
    assert await _all(ordered) == [1, 2, 3]
    assert ordered.name == "mine_2"


@check(since=(2, 10))
async def check_ordered_metadata(ctx: Context) -> None:
    """The consumer has the given metadata."""
    _, _, ordered = await new_ordered(ctx, metadata={"owner": "me"})
    assert (await ordered.info()).config.metadata["owner"] == "me"


@check()
async def check_ordered_rejected_locally(ctx: Context) -> None:
    """Settings that contradict an ordered consumer are rejected before anything is sent."""
    client = await ctx.connect(js_server(ctx))
    stream = await new_stream(ctx, jetstream_of(client))
    ordered = await stream.ordered_consumer()
    sent = client.stats.out_msgs
    wrong: list[dict[str, Any]] = [
        {"deliver_policy": "by_start_sequence"},
        {"opt_start_seq": 5},
        {"deliver_policy": "by_start_time"},
        {"deliver_policy": "new", "opt_start_time": "2026-01-01T00:00:00Z"},
        {"filter_subjects": []},
        {"filter_subjects": "a..b"},
        {"inactive_threshold": -1},
        {"name_prefix": "a.b"},
        {"max_reset_attempts": 0},
    ]
    for options in wrong:
        with raises(LocalError):
            await stream.ordered_consumer(**options)
    wrong = [{"max_messages": 0}, {"expires": 0.1}, {"max_messages": 1, "max_bytes": 1}]
    for options in wrong:
        with raises(LocalError):
            ordered.consume(**options)
    with raises(LocalError):
        await ordered.fetch()
    assert client.stats.out_msgs == sent


@check()
async def check_ordered_one_use_at_a_time(ctx: Context) -> None:
    """A handle is for one consume() or fetch at a time."""
    _, _, ordered = await new_ordered(ctx, 3)
    async with ordered.consume(max_messages=1) as messages:
        assert await take(messages, 1) == [b"0"]
        with raises(InvalidState):
            ordered.consume()
        with raises(InvalidState):
            await ordered.fetch(1)
    assert await _all(ordered) == [2, 3]


@check()
async def check_ordered_consume_again(ctx: Context) -> None:
    """Each consume() continues after the last message taken from the previous one."""
    _, _, ordered = await new_ordered(ctx, 30)
    for start in (0, 10):
        async with ordered.consume(max_messages=20) as messages:
            assert await take(messages, 10) == numbers(30)[start : start + 10]
    assert [msg.data for msg in await ordered.fetch(5, expires=WAIT)] == numbers(25)[20:]
    async with ordered.consume() as messages:
        assert await take(messages, 5) == numbers(30)[25:]


@check()
async def check_ordered_stop_after(ctx: Context) -> None:
    """stop_after delivers exactly that many messages."""
    _, _, ordered = await new_ordered(ctx, 100)
    messages = ordered.consume(max_messages=40, stop_after=50)
    assert [msg.data async for msg in messages] == numbers(50)
    assert messages.closed
    assert (await _all(ordered))[:1] == [51]


@check()
async def check_ordered_drain(ctx: Context) -> None:
    """drain delivers all messages in transit, in order; the next use continues after them."""
    _, _, ordered = await new_ordered(ctx, 50)
    async with ordered.consume(max_messages=20) as messages:
        seen = await take(messages, 1)
        await messages.drain()
        seen += [msg.data async for msg in messages]
    assert seen == numbers(50)[: len(seen)]
    assert (await _all(ordered))[:1] == [len(seen) + 1]


@check()
async def check_ordered_until_the_client_closes(ctx: Context) -> None:
    """Closing the client ends the iteration."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    stream = await new_stream(ctx, js)
    await fill(ctx, js, numbers(3))
    ordered = await stream.ordered_consumer()
    messages = ordered.consume()
    assert await take(messages, 3) == numbers(3)
    await client.close()
    assert [msg async for msg in messages] == []
    assert messages.closed


@check()
async def check_ordered_fetch(ctx: Context) -> None:
    """Successive calls of fetch and next return each message once."""
    js, _, ordered = await new_ordered(ctx, 10)
    assert [msg.data for msg in await ordered.fetch(4, expires=WAIT)] == numbers(4)
    msg = await ordered.next(expires=WAIT)
    assert msg is not None
    assert msg.data == b"4"
    batch = await ordered.fetch(max_bytes=100, expires=1.0)
    assert [msg.data for msg in batch] == numbers(10)[5 : 5 + len(batch)]
    assert await _all(ordered) == list(range(6 + len(batch), 11))
    assert await ordered.next(expires=0.1) is None
    assert len(await ordered.fetch(3, expires=0.1)) == 0
    await fill(ctx, js, numbers(2))
    # With no_wait these may be missed: a server may ack a message before its consumers know of it.
    batch = await ordered.fetch(2, expires=WAIT)
    assert [msg.metadata.stream_seq for msg in batch] == [11, 12]


@check()
async def check_ordered_next_in_order(ctx: Context) -> None:
    """A hundred calls of next return the messages in order."""
    _, _, ordered = await new_ordered(ctx, 100)
    seen: list[bytes] = []
    for _ in range(100):
        msg = await ordered.next(expires=2.0)
        assert msg is not None
        seen.append(msg.data)
    assert seen == numbers(100)


@check()
async def check_ordered_deliver_policies(ctx: Context) -> None:
    """Each deliver policy determines the first message."""
    js, stream, _ = await new_ordered(ctx, 4)
    await fill(ctx, js, numbers(2), "y")
    third = (await stream.get_msg(3)).time
    starts: list[tuple[dict[str, Any], list[int]]] = [
        ({}, [1, 2, 3, 4, 5, 6]),
        ({"deliver_policy": "last"}, [6]),
        ({"deliver_policy": "new"}, []),
        ({"deliver_policy": "by_start_sequence", "opt_start_seq": 5}, [5, 6]),
        ({"deliver_policy": "by_start_time", "opt_start_time": third}, [3, 4, 5, 6]),
        ({"deliver_policy": "last_per_subject"}, [4, 6]),
        ({"deliver_policy": "last_per_subject", "filter_subjects": ctx.subject + ".x"}, [4]),
        ({"replay_policy": "original"}, [1, 2, 3, 4, 5, 6]),
    ]
    handles = [await stream.ordered_consumer(**options) for options, _ in starts]
    await fill(ctx, js, [b"more"])
    for ordered, (options, seqs) in zip(handles, starts):
        wanted = [*seqs, 7]
        async with ordered.consume() as messages:
            found = [(await messages.next(WAIT)).metadata.stream_seq for _ in wanted]
        assert found == wanted, options


@check()
async def check_ordered_filters(ctx: Context) -> None:
    """An ordered consumer can have a filter, and can omit payloads."""
    js, stream, _ = await new_ordered(ctx, 3)
    await fill(ctx, js, numbers(2), "y")
    ordered = await stream.ordered_consumer(filter_subjects=ctx.subject + ".y", headers_only=True)
    async with ordered.consume() as messages:
        for payload in numbers(2):
            msg = await messages.next(WAIT)
            assert (msg.subject, msg.data) == (ctx.subject + ".y", b"")
            assert msg.headers is not None
            assert msg.headers["Nats-Msg-Size"] == str(len(payload))
        with raises(TimeoutExpired, within=SOON):
            await messages.next(0.05)


@check(since=(2, 10))
async def check_ordered_several_filters(ctx: Context) -> None:
    """An ordered consumer can have several filters."""
    js, stream, _ = await new_ordered(ctx, 3)
    for token in "abc":
        await fill(ctx, js, numbers(2), token)
    filters = [f"{ctx.subject}.{token}" for token in "ac"]
    ordered = await stream.ordered_consumer(filter_subjects=filters)
    async with ordered.consume(max_messages=3) as messages:
        found = [(await messages.next(WAIT)).metadata.stream_seq for _ in range(4)]
    assert found == [4, 5, 8, 9]
