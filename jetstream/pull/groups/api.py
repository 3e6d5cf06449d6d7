"""ConsumerGroups: create and find consumer groups."""

from __future__ import annotations

from jetstream.config import StreamConfig, StreamSource, SubjectTransform
from jetstream.errors import GroupExists
from jetstream.errors.kv import BucketExists, BucketNotFound, KeyExists

from .config import (
    ElasticGroupConfig,
    MemberMapping,
    PartitioningFilter,
    StaticGroupConfig,
)
from .group import ElasticGroup, StaticGroup
from .names import (
    ELASTIC_BUCKET,
    STATIC_BUCKET,
    elastic_stream,
    key_of,
)
from .partitions import EVERYTHING, transform

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from jetstream.context import JetStream
    from jetstream.kv.store import KeyValue


class ConsumerGroups:
    """Partitioned consumer groups of a JetStream; needs nats-server 2.11.

    They are compatible with pcgroups of orbit.go.
    """

    def __init__(self, js: JetStream) -> None:
        self._js = js

    async def create_static(
        self,
        stream: str,
        name: str,
        *,
        max_members: int,
        members: Sequence[str] = (),
        mappings: Sequence[MemberMapping] = (),
        filters: Sequence[str] = (),
    ) -> StaticGroup:
        """Create a group whose members never change; raise GroupExists if another one exists.

        The subjects of the stream must begin with the number of their partition, which a
        subject_transform of the stream can provide.

        max_members  the number of partitions
        members      the names of the members, which share the partitions evenly
        mappings     alternatively, the partitions of each member
        filters      only these subjects, without the partition
        """
        config = StaticGroupConfig(max_members, members, mappings, filters).check()
        key = key_of(stream, name)
        bucket = await self._bucket(STATIC_BUCKET, await self._stream(stream))
        found = StaticGroupConfig.decode(await _store(bucket, key, config.encode()))
        if found.settings() != config.settings():
            raise GroupExists(key)
        return StaticGroup(self._js, stream, name)

    async def create_elastic(
        self,
        stream: str,
        name: str,
        *,
        max_members: int,
        members: Sequence[str] = (),
        partitioning_filters: Sequence[PartitioningFilter] = (),
        max_buffered_msgs: int = 0,
        max_buffered_bytes: int = 0,
    ) -> ElasticGroup:
        """Create a group whose members may change; raise GroupExists if another one exists.

        This creates a work queue, the stream `<stream>-<name>`, that sources the stream.

        max_members           the number of partitions
        members               the first members; `add_members` adds others
        partitioning_filters  the subjects, and the wildcards in them that make the key; by default
                              all subjects, and the whole subject is the key
        max_buffered_msgs     limits of the work queue; 0: none
        max_buffered_bytes
        """
        config = ElasticGroupConfig(
            max_members,
            members,
            (),
            partitioning_filters,
            max_buffered_msgs,
            max_buffered_bytes,
        ).check()
        key = key_of(stream, name)
        source = await self._stream(stream)
        bucket = await self._bucket(ELASTIC_BUCKET, source)
        found = ElasticGroupConfig.decode(await _store(bucket, key, config.encode()))
        if found.settings() != config.settings():
            raise GroupExists(key)
        await self._create_queue(source, elastic_stream(stream, name), config)
        return ElasticGroup(self._js, stream, name)

    async def static(self, stream: str, name: str) -> StaticGroup:
        """Return the static group of this name; raise GroupNotFound if it does not exist."""
        group = StaticGroup(self._js, stream, name)
        await group.config()
        return group

    async def elastic(self, stream: str, name: str) -> ElasticGroup:
        """Return the elastic group of this name; raise GroupNotFound if it does not exist."""
        group = ElasticGroup(self._js, stream, name)
        await group.config()
        return group

    async def static_names(self, stream: str) -> list[str]:
        """List the names of the static groups of a stream."""
        return await self._names(STATIC_BUCKET, stream)

    async def elastic_names(self, stream: str) -> list[str]:
        """List the names of the elastic groups of a stream."""
        return await self._names(ELASTIC_BUCKET, stream)

    def __repr__(self) -> str:
        return "<ConsumerGroups of %r>" % self._js

    async def _names(self, name: str, stream: str) -> list[str]:
        try:
            bucket = await self._js.key_value(name)
        except BucketNotFound:
            return []
        prefix = key_of(stream, "x")[:-1]
        return sorted([key[len(prefix) :] for key in await bucket.keys(prefix + "*")])

    async def _stream(self, name: str) -> StreamConfig:
        return (await self._js.stream(name)).cached_info.config

    async def _bucket(self, name: str, source: StreamConfig) -> KeyValue:
        """Return the bucket of the configurations; create it if it does not exist (GROUP-1)."""
        try:
            return await self._js.key_value(name)
        except BucketNotFound:
            pass
        try:
            return await self._js.create_key_value(bucket=name, replicas=source.num_replicas or 1)
        except BucketExists:  # another program was faster
            return await self._js.key_value(name)

    async def _create_queue(
        self, source: StreamConfig, name: str, config: ElasticGroupConfig
    ) -> None:
        """Create the work queue of an elastic group (GROUP-7)."""
        rows = config.partitioning_filters or [PartitioningFilter(EVERYTHING)]
        transforms = [
            SubjectTransform(src=row.filter, dest=transform(row, config.max_members))
            for row in rows
        ]
        wanted = StreamConfig(
            name=name,
            retention="workqueue",
            discard="new",
            num_replicas=source.num_replicas or 1,
            max_msgs=config.max_buffered_msgs or -1,
            max_bytes=config.max_buffered_bytes or -1,
            sources=[StreamSource(name=source.name, subject_transforms=transforms)],
            allow_direct=True,
        )
        wanted.storage = source.storage
        await self._js.create_stream(wanted)


async def _store(bucket: KeyValue, key: str, data: bytes) -> bytes:
    """Store a new configuration; return the one that is stored afterwards."""
    try:
        await bucket.create(key, data)
    except KeyExists:
        return (await bucket.get(key)).value
    return data
