"""Consumers and publishers continue when leaders step down, crash, stop or freeze.

After a crash the other members elect a leader within about 4 s, after a freeze within about 8 s.
That makes most of these checks slow. They test the machines, which all adapters share, so the tests
of this repository do not run them on every adapter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jetstream.api.listing import Listing
from jetstream.errors import NoStreamResponse, PublishesFailed, PublishInDoubt
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.clusters import (
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
    take_all,
)
from jetstream.testing.streams import numbers, open_js, until
from jetstream.testing.suite import check
from natsproto.testing.context import WAIT, Context

if TYPE_CHECKING:
    from collections.abc import Callable

    from jetstream import StreamInfo
    from natsproto.testing.server import Server


async def _survive(ctx: Context, strike: Callable[[Server], object]) -> None:
    """Consume through another member while the leader of the consumer fails."""
    cluster = ctx.own_cluster(jetstream=True)
    stream, consumer = await replicated(ctx, cluster)
    leader = leader_of(cluster, await consumer.info())
    home = other_than(cluster, leader)
    js = await open_js(ctx, home, timeout=ELECTION)
    consumer = await js.consumer(stream.name, "c")
    seen: set[bytes] = set()
    async with consumer.consume(max_messages=5, expires=3.0, heartbeat=0.5) as messages:
        await take_all(messages, seen, 10, WAIT)
        strike(leader)
        await take_all(messages, seen, 40, ELECTION)
        await _publish(ctx, home, b"after")
        await take_all(messages, seen, 41, WAIT)


async def _publish(ctx: Context, home: Server, payload: bytes) -> None:
    client = await ctx.connect(home)
    await publish_surely(client, jetstream_of(client), ctx.subject + ".x", payload)


@check(longest=LONGEST)
async def check_consume_over_step_downs(ctx: Context) -> None:
    """When the leader of the consumer steps down, three times, consume continues."""
    # A pull sent during the step-down may be lost without notice; then only heartbeats reveal it.
    cluster, stream, consumer = await share_replicated(ctx)
    client = await ctx.connect(cluster.members[1])
    seen: set[bytes] = set()
    async with consumer.consume(max_messages=5, expires=3.0, heartbeat=0.5) as messages:
        for turn in (1, 2, 3):
            await take_all(messages, seen, 10 * turn, ELECTION)
            await step_down(client, f"CONSUMER.{stream.name}.c")
        await take_all(messages, seen, 40, ELECTION)
    assert len(seen) == 40


@check(slow=True, longest=LONGEST)
async def check_consume_over_a_crash_of_the_leader(ctx: Context) -> None:
    """When the leader of the consumer is killed, consume continues with the next one."""
    await _survive(ctx, lambda leader: leader.kill())


@check(slow=True, longest=LONGEST)
async def check_consume_over_a_stop_of_the_leader(ctx: Context) -> None:
    """When the leader of the consumer is stopped in good order, consume continues."""
    await _survive(ctx, lambda leader: leader.terminate())


@check(slow=True, longest=LONGEST)
async def check_consume_over_a_freeze_of_the_leader(ctx: Context) -> None:
    """When the leader of the consumer freezes, consume continues and ignores its late answers."""
    frozen: list[Server] = []

    def freeze(leader: Server) -> None:
        leader.freeze()
        frozen.append(leader)

    try:
        await _survive(ctx, freeze)
    finally:
        for leader in frozen:
            leader.thaw()  # a client may be connected to it, and has to close


@check(slow=True, longest=LONGEST)
async def check_consume_over_a_stop_of_its_own_server(ctx: Context) -> None:
    """When the server of the client is stopped, consume continues on another one."""
    cluster = ctx.own_cluster(jetstream=True)
    _, consumer = await replicated(ctx, cluster)
    home = cluster.members[0]  # the client of that consumer is connected to it
    seen: set[bytes] = set()
    async with consumer.consume(max_messages=5, expires=3.0, heartbeat=0.5) as messages:
        await take_all(messages, seen, 10, WAIT)
        home.terminate()
        await take_all(messages, seen, 40, ELECTION)


@check(slow=True, longest=LONGEST)
async def check_consume_over_a_rolling_restart(ctx: Context) -> None:
    """When all members are restarted, one after the other, no message is lost."""
    cluster = ctx.own_cluster(jetstream=True)
    _, consumer = await replicated(ctx, cluster)
    client = await ctx.connect(cluster.urls)
    seen: set[bytes] = set()
    async with consumer.consume(max_messages=5, expires=3.0, heartbeat=0.5) as messages:
        await take_all(messages, seen, 20, WAIT)
        for turn, member in enumerate(cluster.members, 1):
            await rejoin(client, cluster, member)
            await _publish(ctx, member, b"after %d" % turn)
            await take_all(messages, seen, 40 + turn, ELECTION)


@check(slow=True, longest=LONGEST)
async def check_publish_over_a_crash_of_the_leader(ctx: Context) -> None:
    """While a stream has no leader, publishes are retried; those in doubt by their ids."""
    cluster = ctx.own_cluster(jetstream=True)
    stream, _ = await replicated(ctx, cluster)
    leader = leader_of(cluster, await stream.info())
    client = await ctx.connect(other_than(cluster, leader))
    js = jetstream_of(client, timeout=ELECTION)
    leader.kill()

    # A message sent at the moment of the crash may go to the dead leader and get no answer.
    async def publish() -> bool:
        try:
            async with js.publisher(ack_timeout=5.0) as window:
                for payload in numbers(100)[40:]:
                    await window.publish(ctx.subject + ".x", payload, msg_id=payload.decode())
        except PublishesFailed as failure:
            errors = [publication.error for publication in failure.publications]
            # Not stored if the election lasts longer than ack_timeout; otherwise in doubt.
            assert all(isinstance(error, (NoStreamResponse, PublishInDoubt)) for error in errors)
            return False
        return True

    await until(client, publish, ELECTION)
    stream = await js.stream(stream.name)
    assert stream.cached_info.state.messages == 100


@check(slow=True, longest=LONGEST)
async def check_listing_names_missing_streams(ctx: Context) -> None:
    """A listing names the stream whose only server does not answer, and has all others."""
    cluster = ctx.own_cluster(jetstream=True)
    stream, _ = await replicated(ctx, cluster)
    meta_leader = cluster.meta_leader()
    assert meta_leader is not None
    home = other_than(cluster, meta_leader)  # the leader collects the list
    client = await ctx.connect(meta_leader)
    js = jetstream_of(client, timeout=6.0)  # the server waits for 4 s itself
    gone = stream.name + "-gone"
    config = {"name": gone, "subjects": [gone], "placement": {"tags": [home.name]}}
    await answered(client, lambda: js.create_stream(config))
    listing: Listing[StreamInfo] = Listing()

    async def is_missing() -> bool:
        nonlocal listing
        listing = await answered(client, js.streams)
        return gone in listing.missing

    home.kill()
    await until(client, is_missing, ELECTION)
    listed = [info.config.name for info in listing]
    assert gone not in listed
    assert stream.name in listed + listing.missing  # if that server led it
