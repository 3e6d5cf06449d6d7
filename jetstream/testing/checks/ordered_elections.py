"""Ordered consumers in a cluster whose leaders step down, crash or restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.clusters import (
    ATTEMPT,
    ELECTION,
    LONGEST,
    answered,
    leader_of,
    other_than,
    publish_surely,
    rejoin,
    replicated,
    share_replicated,
    step_down,
    take_in_order,
)
from jetstream.testing.suite import check
from natsproto.testing.context import WAIT, Context

if TYPE_CHECKING:
    from jetstream import OrderedConsumer
    from natsproto.testing.server import Server


async def _ordered(ctx: Context, home: Server, stream: str) -> OrderedConsumer:
    client = await ctx.connect(home)
    js = jetstream_of(client, timeout=ATTEMPT)
    return await (await answered(client, lambda: js.stream(stream))).ordered_consumer()


@check(longest=LONGEST)
async def check_ordered_over_step_downs(ctx: Context) -> None:
    """When the leader of the stream steps down, three times, the messages continue in order."""
    cluster, stream, _ = await share_replicated(ctx)
    client = await ctx.connect(cluster.members[1])
    ordered = await _ordered(ctx, cluster.members[0], stream.name)
    seen: list[int] = []
    async with ordered.consume(max_messages=5, expires=3.0, heartbeat=0.5) as messages:
        for turn in (1, 2, 3):
            await take_in_order(messages, seen, 10 * turn, ELECTION)
            await step_down(client, f"STREAM.{stream.name}")
        await take_in_order(messages, seen, 40, ELECTION)


@check(slow=True, longest=LONGEST)
async def check_ordered_over_a_crash_of_the_leader(ctx: Context) -> None:
    """When the server with the consumer in its memory is killed, another one takes over."""
    cluster = ctx.own_cluster(jetstream=True)
    stream, _ = await replicated(ctx, cluster)
    victim = leader_of(cluster, await stream.info())
    home = other_than(cluster, victim)
    ordered = await _ordered(ctx, home, stream.name)
    seen: list[int] = []
    async with ordered.consume(max_messages=5, expires=3.0, heartbeat=0.5) as messages:
        await take_in_order(messages, seen, 10, WAIT)
        victim.kill()
        await take_in_order(messages, seen, 40, ELECTION)
        other = await ctx.connect(home)
        await publish_surely(other, jetstream_of(other), ctx.subject + ".x", b"after")
        await take_in_order(messages, seen, 41, ELECTION)


@check(slow=True, longest=LONGEST)
async def check_ordered_over_a_rolling_restart(ctx: Context) -> None:
    """When all members are restarted, one after the other, each message arrives once, in order."""
    cluster = ctx.own_cluster(jetstream=True)
    stream, _ = await replicated(ctx, cluster)
    ordered = await _ordered(ctx, cluster.members[0], stream.name)
    publisher = await ctx.connect(cluster.urls)
    js = jetstream_of(publisher)
    seen: list[int] = []
    async with ordered.consume(max_messages=5, expires=3.0, heartbeat=0.5) as messages:
        await take_in_order(messages, seen, 20, WAIT)
        for turn, member in enumerate(cluster.members, 1):
            await rejoin(publisher, cluster, member)
            await publish_surely(publisher, js, ctx.subject + ".x", b"after %d" % turn)
            await take_in_order(messages, seen, 40 + turn, ELECTION)
