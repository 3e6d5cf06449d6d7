"""Clusters: members that are discovered, lost, restarted, or in lame duck mode."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from natsproto.errors import ConnectionLost, TimeoutExpired
from natsproto.events import Connected, Disconnected, Discovered, LameDuck
from natsproto.testing.context import WAIT, Context, next_event, take
from natsproto.testing.suite import check

if TYPE_CHECKING:
    from natsproto.client import Client
    from natsproto.subscription import Subscription
    from natsproto.testing.cluster import Cluster
    from natsproto.testing.server import Server


def _member(cluster: Cluster, client: Client) -> Server:
    """Return the member that the client is connected to."""
    [member] = [each for each in cluster.members if each.url == client.connected_url]
    return member


async def _back(client: Client) -> None:
    while not (await next_event(client, Connected)).again:
        pass


async def _discover(client: Client, cluster: Cluster) -> None:
    """Wait until the client knows all members, which a server may announce late."""
    while set(cluster.urls) - set(client.servers):
        await next_event(client, Discovered)


async def _reach(sender: Client, sub: Subscription) -> None:
    """Publish until a message reaches the subscription: interest takes time to spread."""
    deadline = time.monotonic() + WAIT
    while time.monotonic() < deadline:
        await sender.publish(sub.subject, b"probe")
        try:
            await sub.next(timeout=0.02)
        except TimeoutExpired:
            continue
        return
    raise AssertionError("no message came through")


@check()
async def check_cluster_is_discovered(ctx: Context) -> None:
    """From one member a client discovers all of them."""
    cluster = ctx.own_cluster()
    client = await ctx.connect(cluster.urls[0])
    found: list[str] = []
    while len(found) < 2:
        found += (await next_event(client, Discovered)).urls
    assert sorted(found) == sorted(cluster.urls[1:])
    assert sorted(client.servers) == sorted(cluster.urls)


@check()
async def check_cluster_member_lost(ctx: Context) -> None:
    """When a member crashes, its clients connect to another one that they have discovered."""
    cluster = ctx.own_cluster()
    client = await ctx.connect(cluster.urls[0])
    sub = await client.subscribe(ctx.subject)
    await client.flush(WAIT)
    await _discover(client, cluster)
    lost = cluster.members[0]
    lost.kill()
    await _back(client)
    now = _member(cluster, client)
    assert now is not lost
    [other] = [each for each in cluster.members if each not in (lost, now)]
    await _reach(await ctx.connect(other), sub)


@check()
async def check_cluster_rolling_restart(ctx: Context) -> None:
    """A client survives the restart of every member, one after the other."""
    cluster = ctx.own_cluster()
    client = await ctx.connect(cluster.urls)
    sub = await client.subscribe(ctx.subject)
    await client.flush(WAIT)
    for _ in range(3):
        member = _member(cluster, client)
        member.terminate()
        await _back(client)
        assert client.connected_url != member.url
        member.restart()
        await client.publish(ctx.subject, b"1")
        assert await take(sub, 1) == [b"1"]


@check()
async def check_cluster_ignored(ctx: Context) -> None:
    """With ignore_discovered only the servers that were given are used."""
    cluster = ctx.own_cluster(2)
    client = await ctx.connect(cluster.urls[0], ignore_discovered=True)
    cluster.members[0].kill()
    await next_event(client, Disconnected)
    assert client.servers == [cluster.urls[0]]
    cluster.members[0].restart()
    await _back(client)
    assert client.connected_url == cluster.urls[0]


@check(needs=("trustme",))
async def check_cluster_over_tls(ctx: Context) -> None:
    """Discovered members must also use TLS, and are verified against the user's host name."""
    cluster = ctx.own_cluster(2, tls=ctx.certificates.server("server.example"))
    client = await ctx.connect(
        cluster.urls[0], tls=ctx.certificates.client(), tls_hostname="server.example"
    )
    sub = await client.subscribe(ctx.subject)
    await _discover(client, cluster)
    cluster.members[0].kill()
    await _back(client)
    assert client.connected_url == cluster.urls[1]
    assert client.connected_url.startswith("tls://")
    await client.publish(ctx.subject, b"1")
    assert await take(sub, 1) == [b"1"]


@check()
async def check_lame_duck(ctx: Context) -> None:
    """A client leaves a member that is about to stop in time, and loses no message."""
    cluster = ctx.own_cluster(lame_duck_grace_period="20s", lame_duck_duration="40s")
    client = await ctx.connect(cluster.urls[0])
    sub = await client.subscribe(ctx.subject)
    await client.flush(WAIT)
    await _discover(client, cluster)
    duck = cluster.members[0]
    duck.lame_duck()
    assert (await next_event(client, LameDuck)).url == duck.url
    sent = 0
    while client.connected_url in ("", duck.url):
        await client.publish(ctx.subject, b"%d" % sent)
        sent += 1
        with suppress(TimeoutExpired, ConnectionLost):
            await client.flush(timeout=0.05)
    assert (await next_event(client, Disconnected)).error is None
    assert await take(sub, sent) == [b"%d" % n for n in range(sent)]
    await client.publish(ctx.subject, b"last")
    assert await take(sub, 1) == [b"last"]
    duck.kill()  # it now ignores SIGTERM


@check()
async def check_lame_duck_alone(ctx: Context) -> None:
    """Without another server, a lame duck is reported and the client stays connected to it."""
    server = ctx.own_server(lame_duck_grace_period="20s", lame_duck_duration="40s")
    client = await ctx.connect(server)
    server.lame_duck()
    await next_event(client, LameDuck)
    await client.flush(WAIT)
    assert client.stats.connects == 1
    server.kill()
    await next_event(client, Disconnected)
    server.restart()
    await _back(client)
