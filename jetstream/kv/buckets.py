"""Buckets: how JetStream makes, finds and lists them (ADR-8)."""

from __future__ import annotations

from jetstream.errors.kv import NotABucket
from natsproto.errors import NotSupported

from .bucket import BucketStreams, check_given
from .config import GOVERNED, KeyValueConfig, KeyValueStatus
from .names import STREAM, stream_of
from .store import KeyValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from jetstream.api.client import Api
    from jetstream.api.listing import Listing
    from jetstream.context import JetStream
    from jetstream.stream import Stream


class Buckets:
    """What the calls of KeyValueManager do."""

    def __init__(self, js: JetStream, api: Api) -> None:
        self._js = js
        self._api = api
        self._streams = BucketStreams(js, api, STREAM)

    async def create(self, config: KeyValueConfig | None, fields: Mapping[str, Any]) -> KeyValue:
        wanted = await self._config(config, fields)
        read = KeyValueConfig.of_stream
        return self._bucket(await self._streams.create(wanted.to_stream(), wanted, read))

    async def update(self, config: KeyValueConfig | None, fields: Mapping[str, Any]) -> KeyValue:
        stream = (await self._config(config, fields)).to_stream()
        return self._bucket(await self._streams.update(stream, GOVERNED))

    async def create_or_update(
        self, config: KeyValueConfig | None, fields: Mapping[str, Any]
    ) -> KeyValue:
        stream = (await self._config(config, fields)).to_stream()
        return self._bucket(await self._streams.create_or_update(stream, GOVERNED))

    async def find(self, bucket: str) -> KeyValue:
        return self._bucket(await self._streams.find(stream_of(bucket)))

    async def delete(self, bucket: str) -> None:
        await self._streams.delete(stream_of(bucket))

    async def names(self) -> list[str]:
        return await self._streams.names()

    async def statuses(self) -> Listing[KeyValueStatus]:
        infos = await self._streams.infos()
        return infos.like([KeyValueStatus(info) for info in infos])

    def _bucket(self, stream: Stream) -> KeyValue:
        if stream.cached_info.config.max_msgs_per_subject < 1:
            raise NotABucket(stream.name[len(STREAM) :])
        return KeyValue(self._js, self._api, stream)

    async def _config(
        self, given: KeyValueConfig | None, fields: Mapping[str, Any]
    ) -> KeyValueConfig:
        """The configuration that was given, checked."""
        check_given(KeyValueConfig, given, "KV-14")
        config = KeyValueConfig.of(given, fields)
        config.check()
        self._api.check_since(config)
        if config.limit_marker_ttl:
            # KV-9: whoever answers for this JetStream may be another server than ours.
            level = (await self._js.account_info()).api.level
            if level < 1:
                text = "limit_marker_ttl needs JetStream API level 1; this one has %d"
                raise NotSupported(text % level)
        return config
