"""StaticGroup and ElasticGroup: handles to a group, to join it, change it and delete it."""

from __future__ import annotations

from jetstream.config import ConsumerConfig
from jetstream.errors import GroupNotFound
from jetstream.errors.api import ConsumerNotFound, StreamNotFound
from jetstream.errors.kv import BucketNotFound, KeyNotFound
from natsproto.errors import InvalidValue
from natsproto.wire.text import cut_middle

from .config import ElasticGroupConfig, StaticGroupConfig
from .member import GroupMember
from .names import (
    ELASTIC_BUCKET,
    PRIORITY_GROUP,
    STATIC_BUCKET,
    elastic_stream,
    key_of,
    static_consumer,
)
from .plan import MemberPlan

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Unpack

    from jetstream.context import JetStream
    from jetstream.schema.consumer_config import ConsumerConfigDict
    from jetstream.streams.manager import ConsumerConfigLike

    from .config import MemberMapping


class StaticGroup:
    """A consumer group whose members never change. Returned by ConsumerGroups."""

    def __init__(self, js: JetStream, stream: str, name: str) -> None:
        self._js = js
        self._key = key_of(stream, name)
        self.stream = stream
        self.name = name

    async def config(self) -> StaticGroupConfig:
        """Return the configuration; raise GroupNotFound if the group does not exist."""
        return StaticGroupConfig.decode((await _get(self._js, STATIC_BUCKET, self._key))[0])

    def join(
        self,
        member: str,
        config: ConsumerConfigLike | None = None,
        **fields: Unpack[ConsumerConfigDict],
    ) -> GroupMember:
        """Return a member of this name: `async with` it, and iterate.

        config, fields  settings of its consumer, the same for all instances of the member; by
                        default an ack_wait of 5 s and a max_ack_pending of 1, for strict order
        """
        wanted = ConsumerConfig.of(config, fields)
        return GroupMember(MemberPlan(self._js, self.stream, self.name, member, False, wanted))

    async def active_members(self) -> list[str]:
        """Return the names of the members that currently wait for messages."""
        waiting = {info.name for info in await self._js.consumers(self.stream) if info.num_waiting}
        names = (await self.config()).names
        return sorted([each for each in names if static_consumer(self.name, each) in waiting])

    async def step_down(self, member: str) -> None:
        """Replace the active instance of the member by another one."""
        name = static_consumer(self.name, member)
        await self._js.unpin_consumer(self.stream, name, PRIORITY_GROUP)

    async def delete(self) -> None:
        """Delete the group and the consumers of its members, which stop."""
        names = (await self.config()).names
        await (await self._js.key_value(STATIC_BUCKET)).delete(self._key)
        for each in names:
            await self._delete_consumer(static_consumer(self.name, each))

    async def _delete_consumer(self, name: str) -> None:
        try:
            await self._js.delete_consumer(self.stream, name)
        except ConsumerNotFound:
            pass

    def __repr__(self) -> str:
        return "<StaticGroup %s>" % cut_middle(self._key)


class ElasticGroup:
    """A consumer group whose members may change. Returned by ConsumerGroups."""

    def __init__(self, js: JetStream, stream: str, name: str) -> None:
        self._js = js
        self._key = key_of(stream, name)
        self.stream = stream
        self.name = name

    @property
    def queue(self) -> str:
        """The name of the stream that the members consume from."""
        return elastic_stream(self.stream, self.name)

    async def config(self) -> ElasticGroupConfig:
        """Return the configuration; raise GroupNotFound if the group does not exist."""
        return (await self._config())[0]

    async def _config(self) -> tuple[ElasticGroupConfig, int]:
        data, revision = await _get(self._js, ELASTIC_BUCKET, self._key)
        return ElasticGroupConfig.decode(data), revision

    def join(
        self,
        member: str,
        config: ConsumerConfigLike | None = None,
        **fields: Unpack[ConsumerConfigDict],
    ) -> GroupMember:
        """Return a member of this name: `async with` it, and iterate.

        It may join before it is added to the group, and receives messages from then on.

        config, fields  settings of its consumer, the same for all instances of the member; by
                        default an ack_wait of 5 s and a max_ack_pending of 1, for strict order
        """
        wanted = ConsumerConfig.of(config, fields)
        return GroupMember(MemberPlan(self._js, self.stream, self.name, member, True, wanted))

    async def add_members(self, *members: str) -> list[str]:
        """Add members, and return all of them; the partitions are distributed again."""
        config, revision = await self._changeable()
        config.members = sorted(set(config.members) | set(members))
        return await self._update(config, revision)

    async def drop_members(self, *members: str) -> list[str]:
        """Remove members, and return the others; the partitions are distributed again."""
        config, revision = await self._changeable()
        config.members = [each for each in config.members if each not in members]
        return await self._update(config, revision)

    async def set_mappings(self, mappings: Sequence[MemberMapping]) -> None:
        """Set the partitions of each member, instead of distributing them evenly."""
        config, revision = await self._config()
        config.members = []
        config.mappings = list(mappings)
        await self._update(config, revision)

    async def delete_mappings(self) -> None:
        """Remove all mappings, which leaves the group without members."""
        await self.set_mappings([])

    async def active_members(self) -> list[str]:
        """Return the names of the members that have a consumer now."""
        present = set(await self._js.consumer_names(self.queue))
        return sorted([each for each in (await self.config()).names if each in present])

    async def step_down(self, member: str) -> None:
        """Replace the active instance of the member by another one."""
        await self._js.unpin_consumer(self.queue, member, PRIORITY_GROUP)

    async def delete(self) -> None:
        """Delete the group and its work queue; the members stop.

        If it fails halfway, such as by a timeout, it can be called again. Raises GroupNotFound if
        there is nothing to delete.
        """
        missing: GroupNotFound | None = None
        try:
            await self.config()
            await (await self._js.key_value(ELASTIC_BUCKET)).delete(self._key)
        except GroupNotFound as error:
            missing = error
        try:
            await self._js.delete_stream(self.queue)
        except StreamNotFound:
            if missing is not None:
                raise missing from None

    def __repr__(self) -> str:
        return "<ElasticGroup %s>" % cut_middle(self._key)

    async def _changeable(self) -> tuple[ElasticGroupConfig, int]:
        config, revision = await self._config()
        if config.mappings:
            text = "group %s has mappings: change those instead of its members"
            raise InvalidValue(text % cut_middle(self._key), "GROUP-5")
        return config, revision

    async def _update(self, config: ElasticGroupConfig, revision: int) -> list[str]:
        """Store a changed configuration, unless another program has changed it in the meantime."""
        bucket = await self._js.key_value(ELASTIC_BUCKET)
        await bucket.update(self._key, config.check().encode(), revision)
        return config.names


async def _get(js: JetStream, name: str, key: str) -> tuple[bytes, int]:
    """Return a stored configuration and its revision."""
    try:
        entry = await (await js.key_value(name)).get(key)
    except (BucketNotFound, KeyNotFound):
        raise GroupNotFound(key) from None
    return entry.value, entry.revision
