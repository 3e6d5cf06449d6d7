"""Consumer groups in a cluster: leaders step down, and servers crash.

What makes them slow is in elections.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jetstream import PartitioningFilter
from jetstream.errors import GroupNotFound, JetStreamNotAvailable
from jetstream.errors.api import TemporarilyUnavailable
from jetstream.testing.blocking_view import groups_of, jetstream_of
from jetstream.testing.clusters import (
    CANDIDATE_AFTER,
    ELECTION,
    LONGEST,
    answered,
    leader_of,
    other_than,
    publish_surely,
    step_down,
)
from jetstream.testing.groups import KEYS, PARTITIONS, SINCE, Log, processed, work
from jetstream.testing.streams import name_of, new_stream, pause, until
from jetstream.testing.suite import check
from natsproto.errors import TimeoutExpired
from natsproto.testing.context import Context

if TYPE_CHECKING:
    from jetstream import ElasticGroup, JetStream
    from natsproto.client import Client
    from natsproto.testing.runner import Task
    from natsproto.testing.server import Server

MEMBERS = ("a", "b")
ACK_WAIT = 2.0
READ_INTERVAL = ACK_WAIT + 0.5  # D-GROUP-13


class Stage:
    """An elastic group on all servers of a cluster, and its two members at work."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.log: Log = Log()
        self.count: int = 0
        self.tasks: list[Task[None]] = []

    async def begin(self, home: Server, homes: list[Server]) -> None:
        """Create the group by way of `home`, and connect the members to `homes`."""
        ctx = self.ctx
        self.client: Client = await ctx.connect(home)
        self.js: JetStream = jetstream_of(self.client, timeout=CANDIDATE_AFTER)
        subject = f"{ctx.subject}.*"
        await answered(
            self.client, lambda: new_stream(ctx, self.js, subjects=[subject], num_replicas=3)
        )
        self.group: ElasticGroup = await answered(
            self.client,
            lambda: groups_of(self.js).create_elastic(
                name_of(ctx),
                "g",
                max_members=PARTITIONS,
                members=MEMBERS,
                partitioning_filters=[PartitioningFilter(subject, [1])],
            ),
        )
        self.tasks = [
            ctx.start(work, await ctx.connect(server), ctx, True, name, self.log, ACK_WAIT)
            for name, server in zip(MEMBERS, homes)
        ]

    async def publish(self, count: int) -> None:
        """Publish the next numbers, and wait until all numbers so far were processed."""
        for number in range(self.count, self.count + count):
            subject = f"{self.ctx.subject}.{number % KEYS}"
            await publish_surely(self.client, self.js, subject, b"%d" % number)
        self.count += count
        await processed(self.client, self.log, self.count)

    async def end(self) -> None:
        """Check the order, and that both members have worked; delete the group."""
        assert self.log.members() == set(MEMBERS)
        self.log.check_first(self.count)
        await answered(self.client, self._delete)
        for task in self.tasks:
            await task.result()

    async def _delete(self) -> None:
        try:
            await self.group.delete()
        except GroupNotFound:
            return  # the answer to an earlier request was lost


@check(since=SINCE, slow=True, longest=LONGEST)
async def check_group_over_step_downs(ctx: Context) -> None:
    """When the leaders of queue, consumer and configuration step down, the members continue."""
    cluster = ctx.own_cluster(jetstream=True)
    stage = Stage(ctx)
    await stage.begin(cluster.members[0], cluster.members[1:])
    await stage.publish(20)
    queue = stage.group.queue
    for asset in (f"STREAM.{queue}", f"CONSUMER.{queue}.a", "STREAM.KV_elastic-consumer-groups"):
        await step_down(stage.client, asset)
        await stage.publish(10)
    await stage.end()


@check(since=SINCE, slow=True, longest=LONGEST)
async def check_group_over_a_crash(ctx: Context) -> None:
    """When a server crashes that leads a member's consumer, nothing is lost or overtaken."""
    cluster = ctx.own_cluster(jetstream=True)
    stage = Stage(ctx)
    await stage.begin(cluster.members[0], cluster.members[:2])
    await stage.publish(20)
    consumer = await stage.js.consumer(stage.group.queue, "a")
    leader = leader_of(cluster, await consumer.info())
    stage.client = await ctx.connect(other_than(cluster, leader))
    stage.js = jetstream_of(stage.client, timeout=CANDIDATE_AFTER)
    stage.group = await groups_of(stage.js).elastic(name_of(ctx), "g")
    leader.kill()
    await stage.publish(20)
    await stage.end()


@check(since=SINCE, slow=True, longest=LONGEST)
async def check_group_without_a_quorum(ctx: Context) -> None:
    """While most servers are down, members wait; when these are back, members continue."""
    cluster = ctx.own_cluster(jetstream=True)
    home, *others = cluster.members
    stage = Stage(ctx)
    await stage.begin(home, [home, home])
    await stage.publish(10)
    for server in others:
        server.kill()

    async def refused() -> bool:
        try:
            await stage.js.account_info()
        except TemporarilyUnavailable:
            return True
        except (JetStreamNotAvailable, TimeoutExpired):
            pass
        return False

    await until(stage.client, refused, ELECTION)
    await pause(stage.client, 2 * READ_INTERVAL)  # each member has read the configuration in vain
    for server in others:
        server.restart()
    await stage.publish(10)
    await stage.end()
