"""ObjectStores: how JetStream makes, finds and lists buckets of objects (ADR-20)."""

from __future__ import annotations

from natsproto.errors import InvalidValue

from .api_errors import StreamNameInUse, StreamNotFound
from .errors import BucketExists, BucketNotFound
from .object_config import ObjectStoreConfig, ObjectStoreStatus
from .object_names import STREAM, stream_of
from .object_store import ObjectStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .api import JetStream
    from .call import Api
    from .config import StreamConfig
    from .stream import Stream


class ObjectStores:
    """What the calls of ObjectStoreManager do."""

    def __init__(self, js: JetStream, api: Api) -> None:
        self._js = js
        self._api = api

    async def create(
        self, config: ObjectStoreConfig | None, fields: Mapping[str, Any]
    ) -> ObjectStore:
        stream = self._stream_config(config, fields)
        try:
            return self._store(await self._js.create_stream(stream))
        except StreamNameInUse:
            raise BucketExists(stream.name[len(STREAM) :]) from None

    async def update(
        self, config: ObjectStoreConfig | None, fields: Mapping[str, Any]
    ) -> ObjectStore:
        stream = self._stream_config(config, fields)
        try:
            return self._store(await self._js.update_stream(stream))
        except StreamNotFound:
            raise BucketNotFound(stream.name[len(STREAM) :]) from None

    async def create_or_update(
        self, config: ObjectStoreConfig | None, fields: Mapping[str, Any]
    ) -> ObjectStore:
        stream = self._stream_config(config, fields)
        return self._store(await self._js.create_or_update_stream(stream))

    async def find(self, bucket: str) -> ObjectStore:
        try:
            return self._store(await self._js.stream(stream_of(bucket)))
        except StreamNotFound:
            raise BucketNotFound(bucket) from None

    async def delete(self, bucket: str) -> None:
        try:
            await self._js.delete_stream(stream_of(bucket))
        except StreamNotFound:
            raise BucketNotFound(bucket) from None

    async def names(self) -> list[str]:
        names = await self._js.stream_names()
        return [name[len(STREAM) :] for name in names if name.startswith(STREAM)]

    async def statuses(self) -> list[ObjectStoreStatus]:
        infos = await self._js.streams()
        return [ObjectStoreStatus(info) for info in infos if info.config.name.startswith(STREAM)]

    def _store(self, stream: Stream) -> ObjectStore:
        return ObjectStore(self._js, self._api, stream)

    def _stream_config(
        self, given: ObjectStoreConfig | None, fields: Mapping[str, Any]
    ) -> StreamConfig:
        if given is not None and not isinstance(given, ObjectStoreConfig):
            raise InvalidValue("%r is no ObjectStoreConfig" % (given,), "OBJ-6")
        config = ObjectStoreConfig.of(given, fields)
        stream = config.to_stream()
        self._api.check_since(config)
        return stream
