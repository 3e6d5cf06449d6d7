"""Snapshots of consume(), fetch and subscriptions: why does no message arrive?"""

from __future__ import annotations

from jetstream.events import PullWarning
from jetstream.testing.streams import fill, new_consumer, new_stream, open_js
from jetstream.testing.suite import check
from natsproto.testing.context import WAIT, Context


def _rounded(seconds: float | None) -> float:
    """Return a difference of times of the loop, without the error of rounding."""
    assert seconds is not None
    return round(seconds, 6)


@check()
async def check_snapshot_of_an_idle_consume(ctx: Context) -> None:
    """An idle consume() shows its open pull; a message that arrives shows as pending."""
    js, consumer = await new_consumer(ctx)
    async with consumer.consume(max_messages=10, expires=30) as messages:
        idle = messages.snapshot()
        assert (idle.online, idle.limit, idle.level, idle.pending) == (True, 10, 10, 0), idle
        assert [pull.messages for pull in idle.pulls] == [10], idle
        assert 0 < _rounded(idle.pulls[0].ends_in) <= 31, idle
        assert 0 < _rounded(idle.deadlines["silence"]) <= 30, idle
        assert "1 open pull, for 10 more" in idle.reason, idle.reason
        await fill(ctx, js, [b"1", b"2"])
        await messages.next(WAIT)
        busy = messages.snapshot()
        assert busy.received >= 1, busy
        assert busy.level == 9, busy  # at or above the threshold of 5
        assert repr(messages).startswith("<Messages of consumer "), repr(messages)
        await messages.stop()
    assert "ended" in messages.snapshot().reason


@check(since=(2, 9, 0))
async def check_snapshot_of_refused_pulls(ctx: Context) -> None:
    """A consume() whose pulls are refused shows the last status."""
    _, consumer = await new_consumer(ctx, max_batch=1)
    async with consumer.consume(max_messages=10) as messages:
        assert isinstance(await messages.events.next(WAIT), PullWarning)
        shown = messages.snapshot()
    assert shown.last_status.startswith("409 Exceeded MaxRequestBatch"), shown
    assert shown.last_status_ago is not None
    assert 0 <= shown.last_status_ago < WAIT, shown


@check()
async def check_snapshot_of_an_ordered_consume(ctx: Context) -> None:
    """An ordered consume() shows that its consumer is ready."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js)
    await fill(ctx, js, [b"1"])
    ordered = await stream.ordered_consumer()
    async with ordered.consume() as messages:
        await messages.next(WAIT)
        shown = messages.snapshot()
        assert (shown.consumer, shown.received, shown.online) == ("ready", 1, True), shown
        assert shown.name.startswith("ordered consumer of stream"), shown.name


@check()
async def check_snapshot_of_a_push_subscription(ctx: Context) -> None:
    """A push subscription shows the last sign of life, and when it counts as silent."""
    js = await open_js(ctx)
    await new_stream(ctx, js)
    await fill(ctx, js, [b"1"])
    async with await js.subscribe(ctx.subject + ".>", idle_heartbeat=5) as messages:
        await messages.next(WAIT)
        shown = messages.snapshot()
        assert (shown.received, shown.pending, shown.pulls) == (1, 0, []), shown
        assert shown.heard_ago is not None
        assert 0 <= shown.heard_ago < WAIT, shown
        assert 0 < _rounded(shown.deadlines["silence"]) <= 15, shown
        assert repr(messages).startswith("<PushMessages of consumer "), repr(messages)


@check()
async def check_snapshot_of_a_fetch(ctx: Context) -> None:
    """A fetch that is iterated shows what it has requested."""
    _, consumer = await new_consumer(ctx, 1)
    seen = 0
    fetch = consumer.fetch(3, expires=1).__aiter__()
    async for _ in fetch:
        seen += 1
        shown = fetch.snapshot()
        assert (shown.limit, shown.received) == (3, 1), shown
        assert [pull.messages for pull in shown.pulls] == [2], shown
    assert seen == 1
    assert fetch.snapshot().ended
