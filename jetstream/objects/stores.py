"""ObjectStores: how JetStream makes, finds and lists buckets of objects (ADR-20)."""

from __future__ import annotations

from jetstream.kv.bucket import GOVERNED, BucketStreams, check_given

from .config import ObjectStoreConfig, ObjectStoreStatus
from .names import STREAM, stream_of
from .store import ObjectStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from jetstream.api.client import Api
    from jetstream.api.listing import Listing
    from jetstream.context import JetStream
    from jetstream.stream import Stream


class ObjectStores:
    """What the calls of ObjectStoreManager do."""

    def __init__(self, js: JetStream, api: Api) -> None:
        self._js = js
        self._api = api
        self._streams = BucketStreams(js, api, STREAM)

    async def create(
        self, config: ObjectStoreConfig | None, fields: Mapping[str, Any]
    ) -> ObjectStore:
        wanted = self._config(config, fields)
        read = ObjectStoreConfig.of_stream
        return self._store(await self._streams.create(wanted.to_stream(), wanted, read))

    async def update(
        self, config: ObjectStoreConfig | None, fields: Mapping[str, Any]
    ) -> ObjectStore:
        stream = self._config(config, fields).to_stream()
        return self._store(await self._streams.update(stream, GOVERNED))

    async def create_or_update(
        self, config: ObjectStoreConfig | None, fields: Mapping[str, Any]
    ) -> ObjectStore:
        stream = self._config(config, fields).to_stream()
        return self._store(await self._streams.create_or_update(stream, GOVERNED))

    async def find(self, bucket: str) -> ObjectStore:
        return self._store(await self._streams.find(stream_of(bucket)))

    async def delete(self, bucket: str) -> None:
        await self._streams.delete(stream_of(bucket))

    async def names(self) -> list[str]:
        return await self._streams.names()

    async def statuses(self) -> Listing[ObjectStoreStatus]:
        infos = await self._streams.infos()
        return infos.like([ObjectStoreStatus(info) for info in infos])

    def _store(self, stream: Stream) -> ObjectStore:
        return ObjectStore(self._js, self._api, stream)

    def _config(
        self, given: ObjectStoreConfig | None, fields: Mapping[str, Any]
    ) -> ObjectStoreConfig:
        """The configuration that was given, checked."""
        check_given(ObjectStoreConfig, given, "OBJ-6")
        config = ObjectStoreConfig.of(given, fields)
        config.check()
        self._api.check_since(config)
        return config
