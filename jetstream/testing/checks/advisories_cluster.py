"""Advisories about clusters and servers. Those about servers exist in the system account only.

server_out_of_space is missing: a server sends it when a write fails because the disk is full.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jetstream.advisories import (
    ApiLimitReachedAdvisory,
    ConsumerLeaderElectedAdvisory,
    ConsumerQuorumLostAdvisory,
    DomainLeaderElectedAdvisory,
    MetaRescueAdvisory,
    ServerRemovedAdvisory,
    StreamActionAdvisory,
    StreamLeaderElectedAdvisory,
    StreamQuorumLostAdvisory,
)
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.checks.advisories import wait_for
from jetstream.testing.clusters import (
    ELECTION,
    LONGEST,
    leader_of,
    other_than,
    replicated,
    share_replicated,
    step_down,
)
from jetstream.testing.streams import until
from jetstream.testing.suite import check
from natsproto.errors import NoResponders, TimeoutExpired
from natsproto.testing.context import Context

if TYPE_CHECKING:
    from natsproto.client import Client

#: Accounts with a user of the system account; clients without credentials are in account A.
ACCOUNTS: dict[str, Any] = {
    "accounts": {
        "$SYS": {"users": [{"user": "sys", "password": "sys"}]},
        "A": {"jetstream": "enabled", "users": [{"user": "a", "password": "a"}]},
    },
    "no_auth_user": "a",
}


@check(longest=LONGEST)
async def check_advisories_of_leaders(ctx: Context) -> None:
    """New leaders of a stream and of a consumer are reported."""
    cluster, stream, consumer = await share_replicated(ctx)
    client = await ctx.connect(cluster.members[1])
    js = jetstream_of(client)
    streams = js.advisories("stream_leader_elected", stream=stream.name)
    consumers = js.advisories("consumer_leader_elected", stream=stream.name, consumer="c")
    await step_down(client, f"STREAM.{stream.name}")
    elected = await wait_for(streams, StreamLeaderElectedAdvisory, ELECTION)
    names = {member.name for member in cluster.members}
    assert elected.leader in names
    assert {elected.leader, *(peer.name for peer in elected.replicas)} == names
    await step_down(client, f"CONSUMER.{stream.name}.{consumer.name}")
    chosen = await wait_for(consumers, ConsumerLeaderElectedAdvisory, ELECTION)
    assert (chosen.stream, chosen.consumer) == (stream.name, "c")
    assert chosen.leader in names


@check(slow=True, longest=LONGEST)
async def check_advisories_of_lost_quorums(ctx: Context) -> None:
    """When two of three members are gone, the lost quorums are reported."""
    cluster = ctx.own_cluster(jetstream=True)
    stream, _ = await replicated(ctx, cluster)
    last = leader_of(cluster, await stream.info())
    js = jetstream_of(await ctx.connect(last))
    streams = js.advisories("stream_quorum_lost", stream=stream.name)
    consumers = js.advisories("consumer_quorum_lost", stream=stream.name)
    await js.account_info()  # so that the subscriptions are active
    for member in cluster.members:
        if member is not last:
            member.kill()
    lost = await wait_for(streams, StreamQuorumLostAdvisory, LONGEST)
    assert len(lost.replicas) >= 2
    assert (await wait_for(consumers, ConsumerQuorumLostAdvisory, LONGEST)).consumer == "c"


@check(since=(2, 11))
async def check_advisories_of_the_api_limit(ctx: Context) -> None:
    """A server that has too many queued requests drops them, and reports that."""
    server = ctx.own_server(jetstream={"request_queue_limit": 1}, **ACCOUNTS)
    system = await ctx.connect(server, user="sys", password="sys")
    async with jetstream_of(system).advisories("api_limit_reached") as events:
        await system.flush()
        client = await ctx.connect(server)
        for _ in range(100):  # the worker may process all requests before any is dropped
            await client.publish("$JS.API.STREAM.CREATE.S", reply="nowhere")
        reached = await wait_for(events, ApiLimitReachedAdvisory)
        assert reached.server == server.name
        while not reached.dropped:
            reached = await wait_for(events, ApiLimitReachedAdvisory)


async def _ask(client: Client, endpoint: str, body: dict[str, Any]) -> None:
    """Send a request until it succeeds: there may be no meta leader for a while."""
    subject = f"$JS.API.{endpoint}"

    async def request() -> bool:
        try:
            reply = await client.request(subject, json.dumps(body).encode(), timeout=2.0)
        except (TimeoutExpired, NoResponders):
            return False
        return "error" not in json.loads(reply.data)

    await until(client, request, ELECTION)


@check(since=(2, 10), slow=True, longest=LONGEST)
async def check_advisories_of_servers(ctx: Context) -> None:
    """A new meta leader and the removal of a server are reported."""
    cluster = ctx.own_cluster(jetstream=True, **ACCOUNTS)
    leader = cluster.meta_leader()
    assert leader is not None
    home = other_than(cluster, leader)
    client = await ctx.connect(home, user="sys", password="sys")
    js = jetstream_of(client)
    events = js.advisories("domain_leader_elected", "server_removed")
    await client.flush()
    await _ask(client, "META.LEADER.STEPDOWN", {})
    elected = await wait_for(events, DomainLeaderElectedAdvisory, ELECTION)
    assert elected.cluster == "test"
    assert len(elected.replicas) >= 2
    assert elected.leader in [peer.peer for peer in elected.replicas]
    removed = next(each for each in cluster.members if each not in (home, cluster.meta_leader()))
    await _ask(client, "SERVER.REMOVE", {"peer": removed.name})
    gone = await wait_for(events, ServerRemovedAdvisory, ELECTION)
    assert (gone.server, gone.cluster) == (removed.name, "test")


@check(since=(2, 15), slow=True, longest=LONGEST)
async def check_advisories_of_a_rescue(ctx: Context) -> None:
    """Lowering the quorum of the meta group after the loss of two members is reported."""
    cluster = ctx.own_cluster(jetstream=True, **ACCOUNTS)
    last = cluster.members[0]
    client = await ctx.connect(last, user="sys", password="sys")
    async with jetstream_of(client).advisories("meta_rescue") as events:
        for member in cluster.members[1:]:
            member.kill()
        await _ask(client, "META.RESCUE", {"quorum_needed": 1})
        rescued = await wait_for(events, MetaRescueAdvisory, ELECTION)
    assert (rescued.server, rescued.prev_quorum, rescued.new_quorum) == (last.name, 2, 1)


@check()
async def check_advisories_in_the_system_account(ctx: Context) -> None:
    """Events of other accounts do not reach the system account, except those about Raft groups."""
    server = ctx.own_server(jetstream="enabled", **ACCOUNTS)
    system = await ctx.connect(server, user="sys", password="sys")
    client = await ctx.connect(server)
    js = jetstream_of(client)
    async with js.advisories() as own, jetstream_of(system).advisories() as others:
        await system.flush()
        await js.create_stream(name="S", subjects=["s"])
        await wait_for(own, StreamActionAdvisory)
        await system.flush()
        assert others.pending == 0
