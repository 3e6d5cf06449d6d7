"""KeyValueManager: the calls of JetStream that are about buckets (ADR-8)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import Unpack

    from jetstream.api.client import Api
    from jetstream.api.listing import Listing

    from .buckets import Buckets
    from .config import KeyValueConfig, KeyValueConfigDict, KeyValueStatus
    from .store import KeyValue


class KeyValueManager:
    """The part of JetStream that makes and finds buckets."""

    _api: Api

    async def create_key_value(
        self, config: KeyValueConfig | None = None, **fields: Unpack[KeyValueConfigDict]
    ) -> KeyValue:
        """Create a bucket. If it exists, what is given must be as it is there: BucketExists."""
        return await self._buckets.create(config, fields)

    async def update_key_value(
        self, config: KeyValueConfig | None = None, **fields: Unpack[KeyValueConfigDict]
    ) -> KeyValue:
        """Give it this whole configuration; BucketNotFound if it is not there.

        What a KeyValueConfig does not say about its stream, because another client set it, stays.
        """
        return await self._buckets.update(config, fields)

    async def create_or_update_key_value(
        self, config: KeyValueConfig | None = None, **fields: Unpack[KeyValueConfigDict]
    ) -> KeyValue:
        """Have it with this configuration, whether it was there or not."""
        return await self._buckets.create_or_update(config, fields)

    async def key_value(self, bucket: str) -> KeyValue:
        """The bucket of this name; BucketNotFound; NotABucket if the stream is something else."""
        return await self._buckets.find(bucket)

    async def delete_key_value(self, bucket: str) -> None:
        """Delete it with all its keys; BucketNotFound."""
        await self._buckets.delete(bucket)

    async def key_value_names(self) -> list[str]:
        """The names of all buckets."""
        return await self._buckets.names()

    async def key_values(self) -> Listing[KeyValueStatus]:
        """Return all buckets, with their configuration and contents.

        `missing` and `offline` of the list name buckets that exist and are not in it.
        """
        return await self._buckets.statuses()

    @property
    def _buckets(self) -> Buckets:
        # Here, because many programs have no buckets, and it is much to import.
        from .buckets import Buckets

        js: Any = self  # which is a part of it
        return Buckets(js, self._api)
