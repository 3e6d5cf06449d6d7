"""Elastic consumer groups on a real server: members that join, leave and die."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from jetstream import MemberMapping
from jetstream.errors import GroupNotFound
from jetstream.testing.blocking_view import groups_of, jetstream_of
from jetstream.testing.groups import (
    KEYS,
    LONGEST,
    PARTITIONS,
    PATIENCE,
    SINCE,
    Log,
    elastic_group,
    processed,
    publish_numbers,
    work,
)
from jetstream.testing.streams import js_server, name_of, pause
from jetstream.testing.suite import check
from natsproto.errors import TimeoutExpired
from natsproto.testing.context import WAIT, Context, raises

if TYPE_CHECKING:
    from jetstream import JetStream
    from natsproto.client import Client


@check(since=SINCE, longest=LONGEST)
async def check_group_elastic(ctx: Context) -> None:
    """Members are added and dropped; each key keeps its order, and nothing is lost."""
    js, group = await elastic_group(ctx)
    watching = await ctx.connect(js_server(ctx))
    log = Log()
    tasks = [
        ctx.start(work, await ctx.connect(js_server(ctx)), ctx, True, name, log)
        for name in ("a", "b")
    ]
    await publish_numbers(ctx, js, 0, 20)
    assert await group.add_members("a") == ["a"]
    await processed(watching, log, 20)
    assert log.members() == {"a"}
    assert await group.add_members("b") == ["a", "b"]
    count = await _until_by(ctx, js, watching, log, {"a", "b"}, 20)
    assert await group.active_members() == ["a", "b"]
    assert await group.drop_members("a") == ["b"]
    log.check(count)
    count = await _until_by(ctx, js, watching, log, {"b"}, count)
    log.check(count)
    await group.delete()
    for task in tasks:
        await task.result()
    with raises(GroupNotFound):
        await group.config()


async def _until_by(
    ctx: Context, js: JetStream, client: Client, log: Log, members: set[str], count: int
) -> int:
    """Publish rounds until these members process one; return how many messages there are.

    A member learns of a change from the group's bucket, some time after the call that made it.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        before = len(log.rows)
        await publish_numbers(ctx, js, count, 4 * KEYS)
        count += 4 * KEYS
        await processed(client, log, count)
        found = log.members(before)
        if found == members:
            return count
        assert time.monotonic() < deadline, found


@check(since=SINCE, longest=LONGEST)
async def check_group_elastic_member_dies(ctx: Context) -> None:
    """The partitions of a dead member go to the others once it is dropped; nothing is lost."""
    js, group = await elastic_group(ctx, "a", "b")
    dying = await ctx.connect(js_server(ctx))
    dead = (await groups_of(jetstream_of(dying)).elastic(name_of(ctx), "g")).join("a", ack_wait=1.0)
    await dead.start()
    await publish_numbers(ctx, js, 0, 20)
    await dead.next(WAIT)  # which is never acknowledged
    await dying.close(0)
    log = Log()
    other = await ctx.connect(js_server(ctx))
    task = ctx.start(work, other, ctx, True, "b", log, 1.0)
    await group.drop_members("a")
    await processed(await ctx.connect(js_server(ctx)), log, 20)
    log.check(20)
    await group.delete()
    await task.result()


@check(since=SINCE, longest=LONGEST)
async def check_group_finishes_its_work(ctx: Context) -> None:
    """A partition is handed over only after the current message is settled."""
    js, group = await elastic_group(ctx, "a")
    async with group.join("a") as first:
        await publish_numbers(ctx, js, 0, 1)
        held = await first.next(WAIT)
        await group.set_mappings([MemberMapping("b", [0, 1, 2, 3])])
        client = await ctx.connect(js_server(ctx))
        log = Log()
        task = ctx.start(work, client, ctx, True, "b", log)
        await pause(await ctx.connect(js_server(ctx)), 1.0)
        assert log.rows == []
        await held.ack()
        await publish_numbers(ctx, js, 5, 1)
        with raises(TimeoutExpired):
            await first.next(1.0)  # which releases the partitions
        assert first.partitions == []
        await processed(await ctx.connect(js_server(ctx)), log, 1)
        assert log.rows == [("0", 5, "b")]
    await group.delete_mappings()
    assert (await group.config()).names == []
    await group.delete()
    await task.result()


@check(since=SINCE)
async def check_group_as_orbit_stores_it(ctx: Context) -> None:
    """Configurations, names and streams are those of orbit.go."""
    js, group = await elastic_group(ctx, "m1", "m2")
    stream = name_of(ctx)
    bucket = await js.key_value("elastic-consumer-groups")
    stored = json.loads((await bucket.get(f"{stream}.g")).value)
    assert stored == {
        "max_members": PARTITIONS,
        "partitioning_filters": [{"filter": f"{ctx.subject}.*", "partitioning_wildcards": [1]}],
        "members": ["m1", "m2"],
    }
    queue = (await js.stream(f"{stream}-g")).cached_info.config
    assert (queue.retention, queue.discard, queue.subjects) == ("workqueue", "new", [])
    [source] = queue.sources
    [transform] = source.subject_transforms
    assert transform.src == f"{ctx.subject}.*"
    assert transform.dest == "{{Partition(4,1)}}.%s.{{Wildcard(1)}}" % ctx.subject
    async with group.join("m1") as member:
        with raises(TimeoutExpired):
            await member.next(0.1)
        config = (await js.consumer(f"{stream}-g", "m1")).cached_info.config
        assert config.durable_name == ""
        assert config.filter_subjects == [f"{each}.{ctx.subject}.*" for each in (0, 1)]
        assert (config.ack_wait, config.inactive_threshold, config.priority_timeout) == (5, 5, 5)
        assert config.priority_policy == "pinned_client"
    # As a program in Go would add a member.
    stored["members"] = ["m3", "m1", "m2"]
    await bucket.put(f"{stream}.g", json.dumps(stored).encode())
    assert (await group.config()).partitions("m3") == [2]
    await group.delete()
