"""A cluster whose leaders step down, crash, stop or freeze: nothing is lost, nothing gets stuck.

After a crash the others elect a leader in some 4 s, after a freeze in some 8 s. So most of these
are slow: they are the same machines on every adapter, and are not run on all of them in our tests.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from jetstream.api.listing import Listing
from jetstream.errors import (
    ApiError,
    JetStreamNotAvailable,
    PublishesFailed,
    PublishInDoubt,
)
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.streams import (
    ELECTION,
    fill,
    name_of,
    new_stream,
    numbers,
    open_js,
    publish_surely,
    until,
)
from jetstream.testing.suite import check
from natsproto.errors import TimeoutExpired
from natsproto.testing.context import WAIT, Context

if TYPE_CHECKING:
    from collections.abc import Callable

    from jetstream import Consumer, ConsumerInfo, Stream, StreamInfo
    from jetstream.pull.messages import Messages
    from natsproto.testing.cluster import Cluster
    from natsproto.testing.server import Server

# For an election, and the silence before it.


async def replicated(ctx: Context, cluster: Cluster) -> tuple[Stream, Consumer]:
    """A stream and a consumer on all members, with leaders."""
    client = await ctx.connect(cluster.members[0])
    js = jetstream_of(client)

    async def create() -> bool:
        try:
            await new_stream(ctx, js, num_replicas=3)
        except (ApiError, TimeoutExpired, JetStreamNotAvailable):
            return False  # a member that came back a moment ago may not be ready for replicas
        return True

    await until(client, create, ELECTION)
    stream = await js.stream(name_of(ctx))
    consumer = await stream.create_consumer(durable_name="c", ack_wait=2.0)
    await fill(ctx, js, numbers(40))
    return stream, consumer


def _leader(cluster: Cluster, info: StreamInfo | ConsumerInfo) -> Server:
    assert info.cluster is not None
    name = info.cluster.leader
    return next(member for member in cluster.members if member.name == name)


async def _take(messages: Messages, seen: set[bytes], count: int, timeout: float) -> None:
    """Until so many different messages were seen."""
    deadline = time.monotonic() + timeout
    while len(seen) < count:
        msg = await messages.next(max(0.0, deadline - time.monotonic()))
        await msg.ack()
        seen.add(msg.data)


async def _survive(
    ctx: Context, strike: Callable[[Server], object], heal: Callable[[Server], object]
) -> None:
    """Consume, by way of another member, while the leader of the consumer is struck."""
    cluster = ctx.shared_cluster()
    stream, consumer = await replicated(ctx, cluster)
    leader = _leader(cluster, await consumer.info())
    home = next(member for member in cluster.members if member is not leader)
    js = await open_js(ctx, home)
    consumer = await js.consumer(stream.name, "c")
    seen: set[bytes] = set()
    try:
        async with consumer.consume(max_messages=5, expires=3.0, heartbeat=0.5) as messages:
            await _take(messages, seen, 10, WAIT)
            strike(leader)
            await _take(messages, seen, 40, ELECTION)
            await _publish(ctx, home, b"after")
            await _take(messages, seen, 41, WAIT)
    finally:
        heal(leader)
        cluster.wait_formed()


async def _publish(ctx: Context, home: Server, payload: bytes) -> None:
    client = await ctx.connect(home)
    await publish_surely(client, jetstream_of(client), ctx.subject + ".x", payload)


@check()
async def check_consume_over_step_downs(ctx: Context) -> None:
    """When the leader of the consumer steps down, three times, consume goes on."""
    # A pull that meets the step-down may be lost without a word: then heartbeats have to tell.
    cluster = ctx.shared_cluster()
    _, consumer = await replicated(ctx, cluster)
    client = await ctx.connect(cluster.members[1])
    seen: set[bytes] = set()
    async with consumer.consume(max_messages=5, expires=3.0, heartbeat=0.5) as messages:
        for turn in (1, 2, 3):
            await _take(messages, seen, 10 * turn, WAIT)
            subject = f"$JS.API.CONSUMER.LEADER.STEPDOWN.{consumer.stream}.c"
            reply = await client.request(subject, timeout=WAIT)
            assert b'"success":true' in reply.data
        await _take(messages, seen, 40, 2 * WAIT)
    assert len(seen) == 40


@check(slow=True)
async def check_consume_over_a_crash_of_the_leader(ctx: Context) -> None:
    """When the leader of the consumer is killed, consume goes on with the next one."""
    await _survive(ctx, lambda leader: leader.kill(), lambda leader: leader.restart())


@check(slow=True)
async def check_consume_over_a_stop_of_the_leader(ctx: Context) -> None:
    """When the leader of the consumer is stopped in good order, likewise."""
    await _survive(ctx, lambda leader: leader.terminate(), lambda leader: leader.restart())


@check(slow=True)
async def check_consume_over_a_freeze_of_the_leader(ctx: Context) -> None:
    """When the leader of the consumer freezes, likewise, and its late words mean nothing."""
    await _survive(ctx, lambda leader: leader.freeze(), lambda leader: leader.thaw())


@check(slow=True)
async def check_consume_over_a_stop_of_its_own_server(ctx: Context) -> None:
    """When the client's own server is stopped, it goes on with another one."""
    cluster = ctx.shared_cluster()
    _, consumer = await replicated(ctx, cluster)
    home = cluster.members[0]  # where that consumer's client is
    seen: set[bytes] = set()
    try:
        async with consumer.consume(max_messages=5, expires=3.0, heartbeat=0.5) as messages:
            await _take(messages, seen, 10, WAIT)
            home.terminate()
            await _take(messages, seen, 40, ELECTION)
    finally:
        home.restart()
        cluster.wait_formed()


@check(slow=True)
async def check_consume_over_a_rolling_restart(ctx: Context) -> None:
    """All members are restarted, one after the other, and nothing is lost."""
    cluster = ctx.shared_cluster()
    _, consumer = await replicated(ctx, cluster)
    seen: set[bytes] = set()
    async with consumer.consume(max_messages=5, expires=3.0, heartbeat=0.5) as messages:
        await _take(messages, seen, 20, WAIT)
        for turn, member in enumerate(cluster.members, 1):
            member.terminate()
            member.restart()
            cluster.wait_formed()
            await _publish(ctx, member, b"after %d" % turn)
            await _take(messages, seen, 40 + turn, ELECTION)


@check(slow=True)
async def check_publish_over_a_crash_of_the_leader(ctx: Context) -> None:
    """While a stream has no leader, publishes are tried again; those in doubt by their ids."""
    cluster = ctx.shared_cluster()
    stream, _ = await replicated(ctx, cluster)
    leader = _leader(cluster, await stream.info())
    home = next(member for member in cluster.members if member is not leader)
    js = await open_js(ctx, home, timeout=ELECTION)
    try:
        leader.kill()
        # What is sent in the moment of the crash may go to the dead leader: nobody answers.
        for _ in range(3):
            try:
                async with js.publisher(ack_timeout=5.0) as window:
                    for payload in numbers(100)[40:]:
                        await window.publish(ctx.subject + ".x", payload, msg_id=payload.decode())
                break
            except PublishesFailed as failure:
                errors = [publication.error for publication in failure.publications]
                assert all(isinstance(error, PublishInDoubt) for error in errors)
        stream = await js.stream(stream.name)
        assert stream.cached_info.state.messages == 100
    finally:
        leader.restart()
        cluster.wait_formed()


@check(slow=True)
async def check_listing_names_what_is_missing(ctx: Context) -> None:
    """A listing names the stream whose only server does not answer, and has all others."""
    cluster = ctx.shared_cluster()
    stream, _ = await replicated(ctx, cluster)
    js = await open_js(ctx, cluster.members[0])
    home, gone = None, ""
    for number in range(50):  # until one is placed elsewhere
        gone = f"{stream.name}-{number}"
        made = await js.create_stream(name=gone, subjects=[f"{ctx.subject}-{number}"])
        home = _leader(cluster, made.cached_info)
        if home is not cluster.meta_leader():
            break
    assert home is not None
    other = next(member for member in cluster.members if member is not home)
    client = await ctx.connect(other)
    js = jetstream_of(client, timeout=6.0)  # the server waits for 4 s itself
    listing: Listing[StreamInfo] = Listing()

    async def list_streams() -> bool:
        nonlocal listing
        try:
            listing = await js.streams()
        except (ApiError, TimeoutExpired, JetStreamNotAvailable):
            return False
        return gone in listing.missing

    home.kill()
    try:
        await until(client, list_streams, 2 * ELECTION)
    finally:
        home.restart()
        cluster.wait_formed()
    listed = [info.config.name for info in listing]
    assert gone not in listed
    assert stream.name in listed + listing.missing  # if that server led it
