"""Calls of consumer groups."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from jetstream import MemberMapping, PartitioningFilter
from natsproto.errors import NatsError

from .coroutines import call

if TYPE_CHECKING:
    from jetstream import ElasticGroup, StaticGroup

    from .stage import Stage

#: Whose messages have the partition as their first token, as a static group needs.
PARTITIONED: Any = {
    "name": "P",
    "subjects": ["part.*"],
    "storage": "memory",
    "subject_transform": {"src": "part.*", "dest": "{{partition(2,1)}}.part.{{wildcard(1)}}"},
}
#: The source of an elastic group.
KEYED: Any = {"name": "E", "subjects": ["keyed.*"], "storage": "memory"}
STATIC: Any = {"max_members": 2, "members": ["a"], "filters": ["part.*"]}
ELASTIC: Any = {
    "max_members": 2,
    "members": ["a"],
    "partitioning_filters": [PartitioningFilter("keyed.*", [1])],
}


async def _ready(on: Stage) -> None:
    await on.other.create_stream(PARTITIONED)
    await on.other.create_stream(KEYED)
    on.clean(
        lambda: on.other.delete_stream("P"),
        lambda: on.other.delete_stream("E"),
        lambda: on.other.delete_stream("E-g"),
        lambda: on.other.delete_key_value("static-consumer-groups"),
        lambda: on.other.delete_key_value("elastic-consumer-groups"),
    )


async def _static(on: Stage) -> StaticGroup:
    await _ready(on)
    await on.friendly_groups.create_static("P", "g", **STATIC)
    return await on.groups.static("P", "g")


async def _elastic(on: Stage) -> ElasticGroup:
    await _ready(on)
    await on.friendly_groups.create_elastic("E", "g", **ELASTIC)
    return await on.groups.elastic("E", "g")


@call(
    "ConsumerGroups.create_static",
    "ConsumerGroups.static",
    "ConsumerGroups.static_names",
    "StaticGroup.config",
    "StaticGroup.active_members",
    "StaticGroup.delete",
)
async def static_group(on: Stage) -> None:
    await _ready(on)

    async def use() -> None:
        await on.groups.create_static("P", "g", **STATIC)
        group = await on.groups.static("P", "g")
        await on.groups.static_names("P")
        await group.config()
        await group.active_members()
        await group.delete()

    await on(use())


@call(
    "ConsumerGroups.create_elastic",
    "ConsumerGroups.elastic",
    "ConsumerGroups.elastic_names",
    "ElasticGroup.config",
    "ElasticGroup.add_members",
    "ElasticGroup.drop_members",
    "ElasticGroup.set_mappings",
    "ElasticGroup.delete_mappings",
    "ElasticGroup.active_members",
    "ElasticGroup.delete",
)
async def elastic_group(on: Stage) -> None:
    await _ready(on)

    async def use() -> None:
        await on.groups.create_elastic("E", "g", **ELASTIC)
        group = await on.groups.elastic("E", "g")
        await on.groups.elastic_names("E")
        await group.config()
        await group.add_members("b")
        await group.drop_members("b")
        await group.set_mappings([MemberMapping("a", [0, 1])])
        await group.delete_mappings()
        await group.active_members()
        await group.delete()

    await on(use())


@call("StaticGroup.step_down", "ElasticGroup.step_down", fails=True)
async def step_down(on: Stage) -> None:
    """The server answers with an error where the member has no consumer."""
    static, elastic = await _static(on), await _elastic(on)

    async def use() -> None:
        with suppress(NatsError):
            await static.step_down("a")
        await elastic.step_down("a")

    await on(use())


@call(
    "GroupMember.__aenter__",
    "GroupMember.__aexit__",
    "GroupMember.start",
    "GroupMember.next",
    "GroupMember.__anext__",
    "GroupMember.stop",
)
async def member(on: Stage) -> None:
    group = await _static(on)
    for key in range(3):
        await on.other.publish(f"part.{key}", b"%d" % key)

    async def use() -> None:
        async with group.join("a", ack_wait=2.0) as joined:
            await joined.start()
            msg = await joined.next(on.timeout)
            await msg.ack()
            msg = await joined.__anext__()
            await msg.ack()
        await joined.stop()

    await on(use())


@call("GroupMember.run")
async def run_member(on: Stage) -> None:
    group = await _elastic(on)
    await on.other.publish("keyed.1", b"1")
    joined = group.join("a", ack_wait=2.0)

    async def handle(msg: Any) -> None:
        await msg.ack()
        await joined.stop()

    async def use() -> None:
        await joined.start()
        await joined.run(handle)

    await on(use())
