"""Clusters for the checks of JetStream: replicated streams, leaders and elections.

A check that kills, stops or freezes a member has its own cluster. The others share a cluster
and delete their streams when they end.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol, TypeVar

from jetstream.errors import (
    ApiError,
    ConsumerUnavailable,
    JetStreamNotAvailable,
    NoStreamResponse,
    StreamNotFound,
)
from natsproto.errors import NoResponders, TimeoutExpired
from natsproto.testing.cluster import CATCH_UP

from .blocking_view import jetstream_of
from .streams import fill, name_of, new_stream, numbers, until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from jetstream import Consumer, ConsumerInfo, JetStream, JsMsg, Stream, StreamInfo
    from natsproto.client import Client
    from natsproto.testing.cluster import Cluster
    from natsproto.testing.context import Context
    from natsproto.testing.server import Server

    class Source(Protocol):
        """A subscription or an iteration: something that returns the next message."""

        async def next(self, timeout: float | None = None) -> JsMsg:
            """Return the next message."""
            ...


Answer = TypeVar("Answer")

#: The longest that a server waits without a leader before it stands for election, in seconds; it
#: draws a random time of at least 4 s.
CANDIDATE_AFTER = 9.0
#: How long a cluster may take to elect a leader: votes may be split twice before one wins.
ELECTION = 3 * CANDIDATE_AFTER
#: How long an ordered consumer waits for its creation in these checks. For as long as a member is
#: down, nats-server up to 2.12 places a third of the consumers without replicas on that member, and
#: no answer comes: then the ordered consumer has to try again in time.
ATTEMPT = 2.0
#: How long a consumption with the default settings waits before it replaces a pull that the server
#: has lost: two heartbeats. The first pull from a new consumer may be lost (question 37 in
#: spec_notes).
LOST_PULL = 30.0
#: How long a check may take in which leaders are elected.
LONGEST = 8 * ELECTION


_NO_ANSWER = (
    ApiError,
    ConsumerUnavailable,
    JetStreamNotAvailable,
    NoResponders,
    NoStreamResponse,
    TimeoutExpired,
)


async def answered(client: Client, call: Callable[[], Awaitable[Answer]]) -> Answer:
    """Call until the cluster answers: a leader, or storage for replicas, may still be missing."""
    answers: list[Answer] = []

    async def attempt() -> bool:
        try:
            answers.append(await call())
        except _NO_ANSWER:
            return False
        return True

    await until(client, attempt, ELECTION)
    return answers[0]


async def replicated(ctx: Context, cluster: Cluster) -> tuple[Stream, Consumer]:
    """Create a stream of 40 messages and a consumer "c", both on all members."""
    client = await ctx.connect(cluster.members[0])
    js = jetstream_of(client, timeout=CANDIDATE_AFTER)
    stream = await answered(client, lambda: new_stream(ctx, js, num_replicas=3))
    consumer = await answered(
        client, lambda: stream.create_consumer(durable_name="c", ack_wait=2.0)
    )
    await fill(ctx, js, numbers(40))
    return stream, consumer


async def share_replicated(ctx: Context) -> tuple[Cluster, Stream, Consumer]:
    """Do the same on the shared cluster, and delete the stream when the check ends."""
    cluster = ctx.shared_cluster()
    await delete_at_end(ctx, cluster, name_of(ctx))
    return cluster, *await replicated(ctx, cluster)


async def delete_at_end(ctx: Context, cluster: Cluster, name: str) -> None:
    """Delete this stream of a shared cluster when the check ends, whether it passes or not."""
    client = await ctx.connect(cluster.members[0])
    js = jetstream_of(client, timeout=CANDIDATE_AFTER)

    async def delete() -> None:
        try:
            await js.delete_stream(name)
        except StreamNotFound:
            return  # the check did not get that far, or the answer to an earlier request was lost

    ctx.defer(lambda: answered(client, delete))


async def reachable(client: Client, consumer: Consumer) -> None:
    """Wait until the member of this client can reach a consumer that was just created."""
    subject = f"$JS.API.CONSUMER.MSG.NEXT.{consumer.stream}.{consumer.name}"
    # An invalid request is answered with a status and takes no message.
    await answered(client, lambda: client.request(subject, b"{"))


def leader_of(cluster: Cluster, info: StreamInfo | ConsumerInfo) -> Server:
    """Return the member that leads the stream or consumer."""
    assert info.cluster is not None
    name = info.cluster.leader
    return next(member for member in cluster.members if member.name == name)


def other_than(cluster: Cluster, member: Server) -> Server:
    """Return the first member that is not this one."""
    return next(each for each in cluster.members if each is not member)


async def step_down(client: Client, asset: str) -> None:
    """Have the leader of an asset step down: "STREAM.<name>" or "CONSUMER.<stream>.<name>".

    Shortly after an election there may be no leader yet that could.
    """
    kind, _, name = asset.partition(".")
    subject = f"$JS.API.{kind}.LEADER.STEPDOWN.{name}"

    async def request() -> bool:
        try:
            return b'"success":true' in (await client.request(subject, timeout=0.5)).data
        except (TimeoutExpired, NoResponders):
            return False

    await until(client, request, ELECTION)


async def publish_surely(client: Client, js: JetStream, subject: str, payload: bytes) -> None:
    """Publish until the message is acknowledged: the stream may be without a leader."""
    await answered(
        client, lambda: js.publish(subject, payload, msg_id=payload.decode(), timeout=1.0)
    )


async def take_all(messages: Source, seen: set[bytes], count: int, timeout: float) -> None:
    """Acknowledge messages until this many different ones have been seen."""
    deadline = time.monotonic() + timeout
    while len(seen) < count:
        msg = await messages.next(max(0.0, deadline - time.monotonic()))
        await msg.ack()
        seen.add(msg.data)


async def take_in_order(messages: Source, seen: list[int], last: int, timeout: float) -> None:
    """Take messages up to this sequence, each of them once and in order."""
    deadline = time.monotonic() + timeout
    while not seen or seen[-1] < last:
        msg = await messages.next(max(0.0, deadline - time.monotonic()))
        seen.append(msg.metadata.stream_seq)
    assert seen == list(range(1, last + 1))


async def rejoin(client: Client, cluster: Cluster, member: Server) -> None:
    """Do the same as Cluster.rejoin, while the clients keep running."""
    began = 0.0

    async def formed() -> bool:
        nonlocal began
        if time.monotonic() - began > CATCH_UP:
            member.restart()
            began = time.monotonic()
        return cluster.formed()

    await until(client, formed, 4 * CATCH_UP)
