"""Helpers for the checks of consumer groups: groups, members at work, and what they processed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jetstream import PartitioningFilter
from natsproto.testing.context import Context

from .blocking_view import groups_of, jetstream_of
from .streams import name_of, new_stream, open_js, until

if TYPE_CHECKING:
    from jetstream import ElasticGroup, JetStream, StaticGroup
    from natsproto.client import Client

SINCE = (2, 11)
KEYS = 5
PARTITIONS = 4
LONGEST = 120.0
PATIENCE = 40.0  # an ack wait, a pin and an unused consumer may have to expire first


class Log:
    """The messages that the members have processed: key, number, member."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, int, str]] = []

    def numbers(self, key: str) -> list[int]:
        """Return the numbers of a key in the order in which they were processed."""
        return [number for each, number, _ in self.rows if each == key]

    def members(self, first: int = 0) -> set[str]:
        """Return the names of the members that have processed messages, from row `first` on."""
        return {member for _, _, member in self.rows[first:]}

    def check(self, count: int) -> None:
        """Assert that each key has all its numbers, in order; the same one may appear again."""
        for each in range(KEYS):
            numbers = self.numbers(str(each))
            assert numbers == sorted(numbers), (each, numbers)
            assert set(numbers) == set(range(each, count, KEYS)), (each, numbers)

    def check_first(self, count: int) -> None:
        """Do the same where servers crash: they may deliver acknowledged messages again."""
        self.rows = [row for at, row in enumerate(self.rows) if row[:2] not in self._keys(at)]
        self.check(count)

    def _keys(self, end: int) -> list[tuple[str, int]]:
        return [(key, number) for key, number, _ in self.rows[:end]]


async def publish_numbers(ctx: Context, js: JetStream, first: int, count: int) -> None:
    """Publish numbers, starting with `first`; the key of a number is its last digit, base KEYS."""
    async with js.publisher() as window:
        for number in range(first, first + count):
            await window.publish(f"{ctx.subject}.{number % KEYS}", b"%d" % number)


async def work(
    client: Client, ctx: Context, elastic: bool, name: str, log: Log, ack_wait: float = 5.0
) -> None:
    """Process messages as this member until the group is deleted."""
    groups = groups_of(jetstream_of(client))
    find = groups.elastic if elastic else groups.static
    group = await find(name_of(ctx), "g")
    async with group.join(name, ack_wait=ack_wait) as member:
        async for msg in member:
            log.rows.append((msg.subject.rpartition(".")[2], int(msg.data), name))
            await msg.ack()


async def static_group(ctx: Context, **config: Any) -> tuple[JetStream, StaticGroup]:
    """Create a stream that partitions its subjects, and a static group of it."""
    js = await open_js(ctx)
    destination = "{{partition(%d,1)}}.%s.{{wildcard(1)}}" % (PARTITIONS, ctx.subject)
    await new_stream(
        ctx,
        js,
        subjects=[f"{ctx.subject}.*"],
        subject_transform={"src": f"{ctx.subject}.*", "dest": destination},
    )
    settings: dict[str, Any] = {"max_members": PARTITIONS, "members": ["a", "b"]}
    settings.update(config)
    return js, await groups_of(js).create_static(name_of(ctx), "g", **settings)


async def elastic_group(ctx: Context, *members: str) -> tuple[JetStream, ElasticGroup]:
    """Create a stream and an elastic group of it, whose key is the last token."""
    js = await open_js(ctx)
    await new_stream(ctx, js, subjects=[f"{ctx.subject}.*"])
    group = await groups_of(js).create_elastic(
        name_of(ctx),
        "g",
        max_members=PARTITIONS,
        members=members,
        partitioning_filters=[PartitioningFilter(f"{ctx.subject}.*", [1])],
    )
    return js, group


async def processed(client: Client, log: Log, count: int) -> None:
    """Wait until this many different messages were processed."""

    async def look() -> bool:
        return len({number for _, number, _ in log.rows}) >= count

    await until(client, look, PATIENCE)
