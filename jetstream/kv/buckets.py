"""BucketManager: creates, finds, updates and lists the buckets of one kind.

Key-value buckets and object stores are streams whose names start with a prefix. All other
differences are in the class attributes of their managers, and in `check` and `open`.
"""

from __future__ import annotations

from jetstream.api.assets import put_stream
from jetstream.api.changes import is_derived_window
from jetstream.api.listing import Listing
from jetstream.errors.api import StreamNameInUse, StreamNotFound
from jetstream.errors.kv import BucketExists, BucketNotFound

from .bucket import check_bucket_name, check_given
from .generic import Generic

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Protocol, TypeVar

    from typing_extensions import Self

    from jetstream.api.client import ApiClient
    from jetstream.config import StreamConfig
    from jetstream.publish.request import Publisher
    from jetstream.schema.fields import Fields
    from jetstream.streams.manager import StreamManager
    from jetstream.streams.stream import Stream

    class BucketFields(Protocol):
        """The configuration of a bucket, as a table of fields that makes a stream."""

        @classmethod
        def of(cls, config: Self | Mapping[str, Any] | None, values: Mapping[str, Any]) -> Self: ...

        def check(self) -> None: ...

        def to_stream(self) -> StreamConfig: ...

    Config = TypeVar("Config", bound=BucketFields)
    Store = TypeVar("Store")
    Status = TypeVar("Status")
else:
    Config = Store = Status = None

# Fields in which 0 means another value.
_AT_LEAST_ONE = ("history", "replicas")
_UNLIMITED = ("max_bytes", "max_value_size")
_SERVERS_OWN = "_nats."


class BucketManager(Generic[Config, Store, Status]):
    """Manage the buckets of one kind; the managers of both kinds derive from it.

    PREFIX      the names of their streams start with it
    CONFIG      the class of their configuration
    STATUS      the class of their status
    GOVERNED    the fields of their streams that a configuration sets; the others keep their values
    RULES       the rules of their names and of their configuration
    """

    PREFIX: str
    CONFIG: type[Config]
    STATUS: type[Status]
    GOVERNED: tuple[str, ...]
    RULES: tuple[str, str]

    def __init__(self, streams: StreamManager, publisher: Publisher, api: ApiClient) -> None:
        self.streams = streams
        self.publisher = publisher
        self.api = api

    async def check(self, config: Config, streams: StreamManager) -> None:
        """Check the fields that only this kind of bucket has, before anything is sent."""

    def open(self, stream: Stream) -> Store:
        """Return the bucket in this stream."""
        raise NotImplementedError

    # KV-15, OBJ-7
    async def create(self, config: Config | None, fields: Mapping[str, Any]) -> Store:
        """Create a bucket; if it exists, compare the given fields (KV-47)."""
        streams = self.streams.bounded()
        given = await self._config(config, fields, streams)
        wanted = given.to_stream()
        # create_stream is not used: after a conflict it looks up the stream, and so does this
        # method.
        try:
            return self.open(streams.stream_of(await put_stream(streams.calls, "CREATE", wanted)))
        except StreamNameInUse:
            stream = await self._find(wanted.name, streams)
        self._compare(given, wanted, stream.cached_info.config)
        return self.open(stream)

    def _compare(self, given: Any, wanted: StreamConfig, found: StreamConfig) -> None:
        read: Any = self.CONFIG
        different = _differences(given, read.of_stream(wanted), read.of_stream(found))
        if not found.mirror and [each for each in wanted.subjects if each not in found.subjects]:
            different += ("subjects",)
        if different:
            raise BucketExists(self._bucket(wanted.name), different)

    async def update(self, config: Config | None, fields: Mapping[str, Any]) -> Store:
        """Replace the configuration of a bucket; raise BucketNotFound if it does not exist."""
        streams = self.streams.bounded()
        wanted = (await self._config(config, fields, streams)).to_stream()
        return await self._update(wanted, streams)

    async def create_or_update(self, config: Config | None, fields: Mapping[str, Any]) -> Store:
        """Create a bucket, or replace its configuration if it exists."""
        streams = self.streams.bounded()
        wanted = (await self._config(config, fields, streams)).to_stream()
        try:
            return await self._update(wanted, streams)
        except BucketNotFound:
            return self.open(await streams.create_or_update_stream(wanted))

    async def find(self, bucket: str, streams: StreamManager | None = None) -> Store:
        """Return the bucket of this name; raise BucketNotFound if it does not exist.

        `streams` looks it up, within the timeout of another call.
        """
        return self.open(await self._find(self._stream(bucket), streams or self.streams))

    async def delete(self, bucket: str) -> None:
        """Delete a bucket and its contents; raise BucketNotFound if it does not exist."""
        try:
            await self.streams.delete_stream(self._stream(bucket))
        except StreamNotFound:
            raise BucketNotFound(bucket) from None

    # By name, not by subject: a mirror has no subjects (KV-17).

    async def names(self) -> list[str]:  # OBJ-8
        """List the names of all buckets of this kind."""
        names = await self.streams.stream_names()
        return [self._bucket(name) for name in names if name.startswith(self.PREFIX)]

    async def statuses(self) -> Listing[Status]:
        """List all buckets of this kind, with their status."""
        listed = await self.streams.streams()
        make: Any = self.STATUS
        prefix = self.PREFIX
        found: Listing[Status] = Listing(
            [make(info) for info in listed if info.config.name.startswith(prefix)]
        )
        found.missing = [self._bucket(name) for name in listed.missing if name.startswith(prefix)]
        for name in listed.offline:
            if name.startswith(prefix):
                found.offline[self._bucket(name)] = listed.offline[name]
        return found

    # How it works

    async def _config(
        self, given: Config | None, fields: Mapping[str, Any], streams: StreamManager
    ) -> Config:
        """Return the given configuration, checked."""
        check_given(self.CONFIG, given, self.RULES[1])
        config = self.CONFIG.of(given, fields)
        config.check()
        table: Any = config
        self.api.check_since(table)
        await self.check(config, streams)
        return config

    async def _update(self, wanted: StreamConfig, streams: StreamManager) -> Store:
        found = await self._find(wanted.name, streams)
        _keep_rest(wanted, found.cached_info.config, self.GOVERNED)
        try:
            return self.open(await streams.update_stream(wanted))
        except StreamNotFound:
            raise BucketNotFound(self._bucket(wanted.name)) from None

    async def _find(self, stream: str, streams: StreamManager) -> Stream:
        try:
            return await streams.stream(stream)
        except StreamNotFound:
            raise BucketNotFound(self._bucket(stream)) from None

    def _stream(self, bucket: str) -> str:
        return self.PREFIX + check_bucket_name(bucket, self.RULES[0])

    def _bucket(self, stream: str) -> str:
        return stream[len(self.PREFIX) :]


def _keep_rest(config: StreamConfig, there: StreamConfig, governed: tuple[str, ...]) -> None:
    """Keep the settings of a stream that the configuration of a bucket does not cover.

    Another client may have set them, and the server does not allow all of them to be unset (KV-46).
    """
    names = [field.name for field in config.given_fields()] + list(governed)
    if is_derived_window(there) or 0 < config.max_age < there.duplicate_window:
        names.append("duplicate_window")  # the server derives it from max_age again
    for field in there.given_fields():
        if field.name not in names:
            setattr(config, field.name, getattr(there, field.name))
    if config.deny_purge:
        config.allow_rollup_hdrs = False  # as in a sealed bucket: a rollup would purge
    config.extra = dict(there.extra)


def _differences(given: Fields, wanted: Fields, there: Fields) -> tuple[str, ...]:
    """Return the names of the given fields whose values differ; `wanted` has theirs."""
    names = [field.name for field in given.given_fields()]
    return tuple([name for name in names if _meaning(wanted, name) != _meaning(there, name)])


def _meaning(config: Fields, name: str) -> object:
    value: Any = getattr(config, name)
    if name in _AT_LEAST_ONE:
        return value or 1
    if name in _UNLIMITED:
        return value if value > 0 else -1
    if name == "metadata":
        return {key: value[key] for key in value if not key.startswith(_SERVERS_OWN)}
    return value
