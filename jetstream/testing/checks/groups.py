"""Static consumer groups on a real server: order, and instances that die, leave and take over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jetstream.errors import GroupChanged, GroupExists, GroupNotFound, NotAMember
from jetstream.testing.blocking_view import groups_of, jetstream_of
from jetstream.testing.groups import (
    LONGEST,
    PARTITIONS,
    SINCE,
    Log,
    processed,
    publish_numbers,
    static_group,
    work,
)
from jetstream.testing.streams import js_server, name_of, until
from jetstream.testing.suite import check
from natsproto.errors import InvalidState, InvalidValue, TimeoutExpired
from natsproto.testing.context import WAIT, Context, raises

if TYPE_CHECKING:
    pass


@check(since=SINCE, longest=LONGEST)
async def check_group_static(ctx: Context) -> None:
    """Two members share the partitions, and process the messages of each key in order."""
    js, group = await static_group(ctx, filters=[f"{ctx.subject}.*"])
    watching = await ctx.connect(js_server(ctx))
    log = Log()
    await publish_numbers(ctx, js, 0, 30)
    tasks = [
        ctx.start(work, await ctx.connect(js_server(ctx)), ctx, False, name, log)
        for name in ("a", "b")
    ]
    await processed(watching, log, 30)
    log.check(30)
    assert log.members() == {"a", "b"}

    async def look() -> bool:
        return await group.active_members() == ["a", "b"]

    await until(watching, look)  # a member does not wait between two pulls
    consumer = await js.consumer(name_of(ctx), "g-a")
    assert consumer.cached_info.config.priority_groups == ["PCG"]
    assert consumer.cached_info.config.max_ack_pending == 1
    await group.delete()
    for task in tasks:
        await task.result()
    assert await js.consumer_names(name_of(ctx)) == []
    with raises(GroupNotFound):
        await group.config()


@check(since=SINCE)
async def check_group_messages(ctx: Context) -> None:
    """A message has the subject that it was published to, and its partition; acks work."""
    js, group = await static_group(ctx, members=["a"])
    await publish_numbers(ctx, js, 0, 2)
    async with group.join("a") as member:
        assert member.partitions == [0, 1, 2, 3]
        first = await member.next(WAIT)
        assert first.subject == f"{ctx.subject}.0"
        assert first.partition in range(PARTITIONS)
        with raises(TimeoutExpired):  # strict order: only one message at a time
            await member.next(0.2)
        await first.ack_sync()
        assert (await member.next(WAIT)).data == b"1"
    assert member.closed
    with raises(InvalidState):
        await member.next(WAIT)


@check(since=SINCE)
async def check_group_errors(ctx: Context) -> None:
    """Groups that do not exist or differ, and members that are not in them, are rejected."""
    js, group = await static_group(ctx)
    groups = groups_of(js)
    stream = name_of(ctx)
    assert await groups.static_names(stream) == ["g"]
    assert await groups.elastic_names(stream) == []
    again = await groups.create_static(stream, "g", max_members=PARTITIONS, members=["a", "b"])
    assert (await again.config()).members == ["a", "b"]
    with raises(GroupExists):
        await groups.create_static(stream, "g", max_members=PARTITIONS, members=["a"])
    with raises(GroupNotFound):
        await groups.static(stream, "other")
    with raises(GroupNotFound):
        await groups.elastic(stream, "g")
    with raises(NotAMember):
        async with group.join("c"):
            pass
    with raises(InvalidValue):
        group.join("a", filter_subject="x")


@check(since=SINCE)
async def check_group_static_changed(ctx: Context) -> None:
    """A member of a static group stops when the configuration changes."""
    js, group = await static_group(ctx)
    async with group.join("a") as member:
        with raises(TimeoutExpired):
            await member.next(0.1)
        bucket = await js.key_value("static-consumer-groups")
        await bucket.put(f"{name_of(ctx)}.g", b'{"max_members":4,"members":["a"]}')
        with raises(GroupChanged):
            await member.next(WAIT)
        assert member.closed
    assert await js.consumer_names(name_of(ctx)) == ["g-a"]


@check(since=SINCE, longest=LONGEST)
async def check_group_instance_dies(ctx: Context) -> None:
    """When the active instance of a member dies, another one takes over; nothing is lost."""
    js, group = await static_group(ctx, members=["a"])
    own = await ctx.connect(js_server(ctx))
    await publish_numbers(ctx, js, 0, 10)
    dying = (await groups_of(jetstream_of(own)).static(name_of(ctx), "g")).join("a", ack_wait=1.0)
    await dying.start()
    assert (await dying.next(WAIT)).data == b"0"
    other = await ctx.connect(js_server(ctx))
    log = Log()
    task = ctx.start(work, other, ctx, False, "a", log, 1.0)
    await own.close(0)
    await processed(await ctx.connect(js_server(ctx)), log, 10)
    log.check(10)
    await group.delete()
    await task.result()


@check(since=SINCE, longest=LONGEST)
async def check_group_instance_leaves(ctx: Context) -> None:
    """An instance that leaves, or steps down, is replaced at once by another one."""
    js, group = await static_group(ctx, members=["a"])
    log = Log()
    async with group.join("a", ack_wait=30.0) as member:
        await publish_numbers(ctx, js, 0, 1)
        await (await member.next(WAIT)).ack_sync()
        other = await ctx.connect(js_server(ctx))
        task = ctx.start(work, other, ctx, False, "a", log, 30.0)
    await publish_numbers(ctx, js, 1, 4)
    await processed(await ctx.connect(js_server(ctx)), log, 4)
    await group.step_down("a")
    await group.delete()
    await task.result()


@check(since=SINCE)
async def check_group_run(ctx: Context) -> None:
    """A callback processes each message; its error reaches `on_error`, or ends the member."""
    js, group = await static_group(ctx, members=["a"])
    await publish_numbers(ctx, js, 0, 3)
    seen: list[bytes] = []
    failed: list[bytes] = []

    async def callback(msg: Any) -> None:
        seen.append(msg.data)
        if msg.data == b"1" and not failed:
            raise ValueError("once")
        await msg.ack()
        if msg.data == b"2":
            raise KeyError("the end")

    async def on_error(msg: Any, error: Exception) -> None:
        if isinstance(error, KeyError):
            raise error
        failed.append(msg.data)
        await msg.nak()

    member = group.join("a")
    try:
        await member.run(callback, on_error=on_error)
    except KeyError:
        pass
    assert seen == [b"0", b"1", b"1", b"2"]
    assert failed == [b"1"]
    assert member.closed
