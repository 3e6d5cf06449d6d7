"""Buckets: create, find and delete key-value stores and object stores."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import api
from .constants import (
    KV_MAX_HISTORY,
    KV_PRE_TEMPLATE,
    KV_STREAM_TEMPLATE,
    OBJ_ALL_CHUNKS_PRE_TEMPLATE,
    OBJ_ALL_META_PRE_TEMPLATE,
    OBJ_STREAM_TEMPLATE,
    VALID_BUCKET_RE,
)
from .errors import (
    BadBucketError,
    BucketNotFoundError,
    InvalidBucketNameError,
    KeyHistoryTooLargeError,
    KeyValueLimitMarkerTTLNotSupportedError,
    NotFoundError,
)
from .kv import KeyValue
from .object_store import ObjectStore

if TYPE_CHECKING:
    from .client import JetStreamContext

_DUPLICATES = 2 * 60.0


def check_bucket(bucket: str | None) -> str:
    """Return the name of a bucket; raise InvalidBucketNameError if it is invalid."""
    if not bucket or VALID_BUCKET_RE.match(bucket) is None:
        raise InvalidBucketNameError(bucket)
    return bucket


class Buckets:
    """The buckets of one JetStream."""

    def __init__(self, js: JetStreamContext) -> None:
        self._js = js

    async def key_value(self, bucket: str) -> KeyValue:
        """Return a key-value store that exists."""
        stream = KV_STREAM_TEMPLATE.format(bucket=check_bucket(bucket))
        info = await self._find(stream)
        if (info.config.max_msgs_per_subject or 0) < 1:
            raise BadBucketError
        return self._make(bucket, stream, bool(info.config.allow_direct))

    async def create_key_value(
        self, config: api.KeyValueConfig | None, params: dict[str, Any]
    ) -> KeyValue:
        """Create a key-value store."""
        if config is None:
            config = api.KeyValueConfig(bucket=params["bucket"])
        config = config.evolve(**params)
        check_bucket(config.bucket)
        if config.history > KV_MAX_HISTORY:
            raise KeyHistoryTooLargeError
        version = self._js._nc.connected_server_version
        if config.limit_marker_ttl and (version.major, version.minor) < (2, 11):
            raise KeyValueLimitMarkerTTLNotSupportedError
        window = _DUPLICATES
        if config.ttl and config.ttl < window:
            window = config.ttl
        stream = api.StreamConfig(
            name=KV_STREAM_TEMPLATE.format(bucket=config.bucket),
            description=config.description,
            subjects=[KV_PRE_TEMPLATE.format(bucket=config.bucket) + ">"],
            allow_direct=config.direct,
            allow_rollup_hdrs=True,
            allow_msg_ttl=True if (version.major, version.minor) >= (2, 11) else None,
            deny_delete=True,
            discard=api.DiscardPolicy.NEW,
            duplicate_window=window,
            max_age=config.ttl,
            max_bytes=config.max_bytes,
            max_consumers=-1,
            max_msg_size=config.max_value_size,
            max_msgs=-1,
            max_msgs_per_subject=config.history,
            num_replicas=config.replicas,
            storage=config.storage,
            placement=config.placement,
            republish=config.republish,
            subject_delete_marker_ttl=config.limit_marker_ttl,
        )
        info = await self._js.add_stream(stream)
        assert info.config.name is not None
        return self._make(config.bucket, info.config.name, bool(config.direct))

    async def delete_key_value(self, bucket: str) -> bool:
        """Delete a key-value store."""
        return await self._js.delete_stream(KV_STREAM_TEMPLATE.format(bucket=check_bucket(bucket)))

    async def object_store(self, bucket: str) -> ObjectStore:
        """Return an object store that exists."""
        stream = OBJ_STREAM_TEMPLATE.format(bucket=check_bucket(bucket))
        await self._find(stream)
        return ObjectStore(bucket, stream, self._js)

    async def create_object_store(
        self, bucket: str | None, config: api.ObjectStoreConfig | None, params: dict[str, Any]
    ) -> ObjectStore:
        """Create an object store."""
        config = (config or api.ObjectStoreConfig(bucket=bucket)).evolve(**params)
        name = check_bucket(config.bucket or bucket)
        stream = api.StreamConfig(
            name=OBJ_STREAM_TEMPLATE.format(bucket=name),
            description=config.description,
            subjects=[
                OBJ_ALL_CHUNKS_PRE_TEMPLATE.format(bucket=name),
                OBJ_ALL_META_PRE_TEMPLATE.format(bucket=name),
            ],
            max_age=config.ttl,
            max_bytes=config.max_bytes,
            storage=config.storage,
            num_replicas=config.replicas,
            placement=config.placement,
            discard=api.DiscardPolicy.NEW,
            allow_rollup_hdrs=True,
            allow_direct=True,
        )
        await self._js.add_stream(stream)
        return ObjectStore(name, OBJ_STREAM_TEMPLATE.format(bucket=name), self._js)

    async def delete_object_store(self, bucket: str) -> bool:
        """Delete an object store."""
        stream = OBJ_STREAM_TEMPLATE.format(bucket=check_bucket(bucket))
        return await self._js.delete_stream(stream)

    async def _find(self, stream: str) -> api.StreamInfo:
        try:
            return await self._js.stream_info(stream)
        except NotFoundError:
            raise BucketNotFoundError from None

    def _make(self, bucket: str, stream: str, direct: bool) -> KeyValue:
        pre = KV_PRE_TEMPLATE.format(bucket=bucket)
        return KeyValue(bucket, stream, pre, self._js, direct)
