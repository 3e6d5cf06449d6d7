"""Push subscriptions in a cluster whose leaders step down, crash or stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.clusters import (
    ATTEMPT,
    CANDIDATE_AFTER,
    ELECTION,
    LONGEST,
    answered,
    leader_of,
    other_than,
    publish_surely,
    replicated,
    share_replicated,
    step_down,
    take_all,
    take_in_order,
)
from jetstream.testing.suite import check
from natsproto.testing.context import WAIT, Context

if TYPE_CHECKING:
    from collections.abc import Callable

    from jetstream import JetStream
    from jetstream.push.api import PushMessages
    from natsproto.client import Client
    from natsproto.testing.server import Server

_SETTINGS: dict[str, Any] = {"ack_wait": 1.0, "max_ack_pending": 5, "idle_heartbeat": 0.5}


@check(longest=LONGEST)
async def check_push_over_step_downs(ctx: Context) -> None:
    """When the leader of the consumer steps down, three times, the subscription continues."""
    cluster, stream, _ = await share_replicated(ctx)
    client = await ctx.connect(cluster.members[1])
    js = jetstream_of(client, timeout=CANDIDATE_AFTER)
    seen: set[bytes] = set()
    async with await js.subscribe(stream=stream.name, durable="p", **_SETTINGS) as messages:
        for turn in (1, 2, 3):
            await take_all(messages, seen, 10 * turn, ELECTION)
            await step_down(client, f"CONSUMER.{stream.name}.p")
        await take_all(messages, seen, 40, ELECTION)


async def _survive(ctx: Context, strike: Callable[[Server], object]) -> None:
    """Subscribe through another member while the leader of the consumer fails."""
    cluster = ctx.own_cluster(jetstream=True)
    stream, _ = await replicated(ctx, cluster)
    home = cluster.members[0]
    js = jetstream_of(await ctx.connect(home), timeout=CANDIDATE_AFTER)
    seen: set[bytes] = set()
    async with await js.subscribe(
        stream=stream.name, durable="p", flow_control=True, **_SETTINGS
    ) as messages:
        await take_all(messages, seen, 10, WAIT)
        leader = leader_of(cluster, (await js.consumer(stream.name, "p")).cached_info)
        strike(leader)
        await take_all(messages, seen, 40, ELECTION)
        publisher = await ctx.connect(other_than(cluster, leader))
        await publish_surely(publisher, jetstream_of(publisher), ctx.subject + ".x", b"after")
        await take_all(messages, seen, 41, ELECTION)


@check(slow=True, longest=LONGEST)
async def check_push_over_a_crash_of_the_leader(ctx: Context) -> None:
    """When the leader of the consumer is killed, the subscription continues with the next one."""
    await _survive(ctx, lambda leader: leader.kill())


@check(slow=True, longest=LONGEST)
async def check_push_over_a_stop_of_the_leader(ctx: Context) -> None:
    """When the leader of the consumer is stopped in good order, the subscription continues."""
    await _survive(ctx, lambda leader: leader.terminate())


async def _ordered(client: Client, js: JetStream, stream: str) -> PushMessages:
    return await answered(
        client, lambda: js.subscribe(stream=stream, ordered=True, idle_heartbeat=0.5)
    )


@check(slow=True, longest=LONGEST)
async def check_ordered_push_over_a_crash(ctx: Context) -> None:
    """When the server with the consumer in its memory is killed, no message is missed."""
    cluster = ctx.own_cluster(jetstream=True)
    stream, _ = await replicated(ctx, cluster)
    victim = leader_of(cluster, await stream.info())
    client = await ctx.connect(other_than(cluster, victim))
    js = jetstream_of(client, timeout=ATTEMPT)
    seen: list[int] = []
    async with await _ordered(client, js, stream.name) as messages:
        await take_in_order(messages, seen, 40, WAIT)
        victim.kill()
        await publish_surely(client, js, ctx.subject + ".x", b"after")
        await take_in_order(messages, seen, 41, ELECTION)


@check(longest=LONGEST)
async def check_ordered_push_over_step_downs(ctx: Context) -> None:
    """When the leader of the stream steps down, twice, the messages continue in order."""
    cluster, stream, _ = await share_replicated(ctx)
    client = await ctx.connect(cluster.members[1])
    js = jetstream_of(client, timeout=ATTEMPT)
    seen: list[int] = []
    async with await _ordered(client, js, stream.name) as messages:
        for turn in (1, 2):
            await take_in_order(messages, seen, 39 + turn, ELECTION)
            await step_down(client, f"STREAM.{stream.name}")
            await publish_surely(client, js, ctx.subject + ".x", b"after %d" % turn)
        await take_in_order(messages, seen, 42, ELECTION)
