"""ObjectStoreManager: the calls of JetStream that are about buckets of objects (ADR-20)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import Unpack

    from jetstream.api.client import Api
    from jetstream.api.listing import Listing

    from .config import ObjectStoreConfig, ObjectStoreConfigDict, ObjectStoreStatus
    from .store import ObjectStore
    from .stores import ObjectStores


class ObjectStoreManager:
    """The part of JetStream that makes and finds buckets of objects."""

    _api: Api

    async def create_object_store(
        self, config: ObjectStoreConfig | None = None, **fields: Unpack[ObjectStoreConfigDict]
    ) -> ObjectStore:
        """Create a bucket. If it exists, what is given must be as it is there: BucketExists."""
        return await self._object_stores.create(config, fields)

    async def update_object_store(
        self, config: ObjectStoreConfig | None = None, **fields: Unpack[ObjectStoreConfigDict]
    ) -> ObjectStore:
        """Give it this whole configuration; BucketNotFound if it is not there."""
        return await self._object_stores.update(config, fields)

    async def create_or_update_object_store(
        self, config: ObjectStoreConfig | None = None, **fields: Unpack[ObjectStoreConfigDict]
    ) -> ObjectStore:
        """Have it with this configuration, whether it was there or not."""
        return await self._object_stores.create_or_update(config, fields)

    async def object_store(self, bucket: str) -> ObjectStore:
        """The bucket of this name; BucketNotFound."""
        return await self._object_stores.find(bucket)

    async def delete_object_store(self, bucket: str) -> None:
        """Delete it with all its objects; BucketNotFound."""
        await self._object_stores.delete(bucket)

    async def object_store_names(self) -> list[str]:
        """The names of all buckets of objects."""
        return await self._object_stores.names()

    async def object_stores(self) -> Listing[ObjectStoreStatus]:
        """Return all buckets of objects, with their configuration and contents.

        `missing` and `offline` of the list name buckets that exist and are not in it.
        """
        return await self._object_stores.statuses()

    @property
    def _object_stores(self) -> ObjectStores:
        # Here, because many programs have no objects.
        from .stores import ObjectStores

        js: Any = self  # which is a part of it
        return ObjectStores(js, self._api)
