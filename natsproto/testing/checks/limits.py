"""The limits of subscriptions: excess messages are dropped, counted and reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from natsproto.errors import TimeoutExpired
from natsproto.events import SlowConsumer
from natsproto.testing.context import WAIT, Context, arrived, next_event, take
from natsproto.testing.suite import check

if TYPE_CHECKING:
    from natsproto.client import Client


async def _count_dropped(client: Client) -> int:
    """Return the number of drops that the events of a client have reported."""
    dropped = 0
    try:
        while True:
            dropped += (await next_event(client, SlowConsumer, timeout=0)).dropped
    except TimeoutExpired:
        return dropped


@check()
async def check_limit_of_messages(ctx: Context) -> None:
    """Beyond max_msgs new messages are dropped; `dropped` and the events count them."""
    alice, bob = await ctx.pair()
    sub = await bob.subscribe(ctx.subject, max_msgs=10)
    await bob.flush(WAIT)
    for n in range(50):
        await alice.publish(ctx.subject, b"%d" % n)
    await arrived(alice, bob)
    assert sub.dropped == 40
    event = await next_event(bob, SlowConsumer)
    assert (event.subject, event.sid) == (ctx.subject, sub.sid)
    assert event.dropped + await _count_dropped(bob) == 40
    assert await take(sub, 10) == [b"%d" % n for n in range(10)]


@check()
async def check_limit_of_bytes(ctx: Context) -> None:
    """Beyond max_bytes new messages are dropped; headers count."""
    alice, bob = await ctx.pair()
    plain = await bob.subscribe(ctx.subject, max_bytes=10_000)
    await bob.flush(WAIT)
    for n in range(50):
        headers = {"Key": "v" * 500} if n % 2 else None
        await alice.publish(ctx.subject, b"x" * (1000 - 500 * (n % 2)), headers=headers)
    await arrived(alice, bob)
    assert 7 <= plain.pending <= 10
    assert plain.pending + plain.dropped == 50
    assert await _count_dropped(bob) == plain.dropped


@check()
async def check_limits_of_the_client(ctx: Context) -> None:
    """Subscriptions without limits use those of the client."""
    alice = await ctx.client()
    bob = await ctx.client(max_msgs=3)
    small = await bob.subscribe(ctx.subject)
    large = await bob.subscribe(ctx.subject, max_msgs=5)
    await bob.flush(WAIT)
    for _ in range(10):
        await alice.publish(ctx.subject)
    await arrived(alice, bob)
    assert (small.pending, small.dropped) == (3, 7)
    assert (large.pending, large.dropped) == (5, 5)


@check()
async def check_room_after_drops(ctx: Context) -> None:
    """Taking messages makes room again, any number of times; the counters do not drift."""
    alice, bob = await ctx.pair()
    sub = await bob.subscribe(ctx.subject, max_msgs=5, max_bytes=1000)
    await bob.flush(WAIT)
    for turn in range(1, 6):
        for n in range(8):
            await alice.publish(ctx.subject, b"%d" % n, headers={"Key": "value"})
        await arrived(alice, bob)
        assert sub.dropped == 3 * turn
        assert await take(sub, 5) == [b"0", b"1", b"2", b"3", b"4"]
    assert await _count_dropped(bob) == 15


@check()
async def check_slow_subscription_does_not_affect_others(ctx: Context) -> None:
    """A slow subscription does not affect another one of the same client."""
    alice, bob = await ctx.pair()
    slow = await bob.subscribe(ctx.subject, max_msgs=1)
    quick = await bob.subscribe(ctx.subject)
    await bob.flush(WAIT)
    sent = [b"%d" % n for n in range(100)]
    for payload in sent:
        await alice.publish(ctx.subject, payload)
    assert await take(quick, 100) == sent
    assert slow.dropped == 99
    assert not quick.dropped
