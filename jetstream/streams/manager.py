"""StreamManager: creates, finds, updates and lists the streams and consumers of one JetStream.

JetStream, Stream, the subscribe workflows and the buckets all depend on it, and on nothing above
it. The docstrings of JetStream describe each call for users.
"""

from __future__ import annotations

from jetstream.api.assets import (
    change_consumer,
    change_stream,
    consumer_info,
    explain,
    put_consumer,
    put_stream,
    stream_info,
)
from jetstream.errors import AmbiguousStream, InvalidResponse
from jetstream.errors.api import (
    ConsumerDoesNotExist,
    ConsumerExists,
    ConsumerNotFound,
    StreamNameInUse,
    StreamNotFound,
)
from jetstream.schema.account_info import AccountInfo
from jetstream.schema.consumer_config import ConsumerConfig
from jetstream.schema.consumer_info import ConsumerInfo, ConsumerPause
from jetstream.schema.stream_config import StreamConfig
from jetstream.schema.stream_info import StreamInfo
from jetstream.schema.timestamp import Timestamp
from jetstream.schema.types import MOST_SEQUENCE
from natsproto.session import check_count
from natsproto.wire.subjects import check_known_name, check_subscribe
from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from typing_extensions import Unpack

    from jetstream.api.client import ApiClient
    from jetstream.api.listing import Listing
    from jetstream.config import ConsumerConfigDict, StreamConfigDict
    from jetstream.schema.timestamp import TimestampLike

    from .consumer import Consumer
    from .stream import Stream

    StreamConfigLike: TypeAlias = StreamConfig | dict[str, Any]
    ConsumerConfigLike: TypeAlias = ConsumerConfig | dict[str, Any]


class StreamManager:
    """Manage the streams and consumers that one API client reaches."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        #: Makes the requests; handles have their own.
        self.calls: ApiClient = api
        #: The manager without a deadline.
        self.root: StreamManager = self

    def bounded(self) -> StreamManager:  # D-CALL-18
        """Return a manager whose calls share one timeout; those of its handles do not."""
        manager = StreamManager(self._api)
        manager.calls = self.calls.bounded()
        manager.root = self.root
        return manager

    async def account_info(self) -> AccountInfo:
        """Return the limits and the usage of the account."""
        return AccountInfo.from_json(await self.calls.call("INFO"))

    # Streams

    async def create_stream(
        self,
        config: StreamConfigLike | None = None,
        *,
        pedantic: bool = False,
        **fields: Unpack[StreamConfigDict],
    ) -> Stream:
        """Create a stream; raise StreamNameInUse if another one has its name."""
        wanted = StreamConfig.of(config, fields)
        api = self.calls.bounded()
        try:
            info = await put_stream(api, "CREATE", wanted, pedantic)
        except StreamNameInUse as error:
            await explain(error, api, wanted, wanted.name, "")
            raise
        return self.stream_of(info)

    async def update_stream(
        self,
        config: StreamConfigLike | None = None,
        *,
        pedantic: bool = False,
        **fields: Unpack[StreamConfigDict],
    ) -> Stream:
        """Update a stream; raise StreamNotFound if it does not exist."""
        wanted = StreamConfig.of(config, fields)
        api = self.calls.bounded()
        if config is None:
            wanted = await change_stream(api, wanted, fields)
        return self.stream_of(await put_stream(api, "UPDATE", wanted, pedantic))

    async def create_or_update_stream(
        self,
        config: StreamConfigLike | None = None,
        *,
        pedantic: bool = False,
        **fields: Unpack[StreamConfigDict],
    ) -> Stream:
        """Create a stream, or update it if it exists."""
        wanted = StreamConfig.of(config, fields)
        api = self.calls.bounded()
        try:
            changed = wanted
            if config is None:
                changed = await change_stream(api, wanted, fields)
            info = await put_stream(api, "UPDATE", changed, pedantic)
        except StreamNotFound:
            info = await put_stream(api, "CREATE", wanted, pedantic)
        return self.stream_of(info)

    async def stream(self, name: str) -> Stream:
        """Return the stream of this name; raise StreamNotFound if it does not exist."""
        return self.stream_of(await stream_info(self.calls, name))

    def stream_of(self, info: StreamInfo) -> Stream:
        """Return a handle to the stream that this info describes."""
        # Imported here, as below: many programs only publish.
        from .stream import Stream

        return Stream(self.root, self._api, info)

    async def delete_stream(self, name: str) -> None:
        """Delete a stream; raise StreamNotFound if it does not exist."""
        await self.calls.call("STREAM.DELETE.%s" % check_known_name("stream", name))

    async def streams(self, subject: str = "") -> Listing[StreamInfo]:
        """List all streams, or those that overlap with the subject."""
        rows = await self.calls.pages("STREAM.LIST", "streams", _by_subject(subject))
        return rows.like([StreamInfo.from_json(row) for row in rows])

    async def stream_names(self, subject: str = "") -> Listing[str]:
        """List the names of all streams, or of those that overlap with the subject."""
        rows = await self.calls.pages("STREAM.NAMES", "streams", _by_subject(subject))
        return _names(rows)

    async def stream_name_by_subject(self, subject: str) -> str:
        """Return the name of the one stream with this subject."""
        check_subscribe(subject)
        names = await self.stream_names(subject)
        if not names:
            raise StreamNotFound(404, 10059, "no stream accepts subject %s" % shorten(subject))
        if len(names) > 1:
            raise AmbiguousStream(subject, names)  # CALL-13
        return names[0]

    # Consumers

    async def create_consumer(
        self,
        stream: str,
        config: ConsumerConfigLike | None = None,
        *,
        pedantic: bool = False,
        **fields: Unpack[ConsumerConfigDict],
    ) -> Consumer:
        """Create a consumer; raise ConsumerExists if another one has its name."""
        wanted = ConsumerConfig.of(config, fields)
        api = self.calls.bounded()
        try:
            info = await put_consumer(api, stream, "create", wanted, pedantic)
        except ConsumerExists as error:
            await explain(error, api, wanted, stream, wanted.name or wanted.durable_name)
            raise
        return self._consumer(stream, wanted.name or wanted.durable_name, info)

    async def update_consumer(
        self,
        stream: str,
        config: ConsumerConfigLike | None = None,
        *,
        pedantic: bool = False,
        **fields: Unpack[ConsumerConfigDict],
    ) -> Consumer:
        """Update a consumer; raise ConsumerDoesNotExist if it does not exist."""
        wanted = ConsumerConfig.of(config, fields)
        api = self.calls.bounded()
        if config is None:
            try:
                wanted = await change_consumer(api, stream, wanted, fields)
            except ConsumerNotFound as error:
                missing = ConsumerDoesNotExist(400, 10149, "consumer does not exist")
                missing.asked = error.asked
                raise missing from None
        info = await put_consumer(api, stream, "update", wanted, pedantic)
        return self._consumer(stream, wanted.name or wanted.durable_name, info)

    async def create_or_update_consumer(
        self,
        stream: str,
        config: ConsumerConfigLike | None = None,
        *,
        pedantic: bool = False,
        **fields: Unpack[ConsumerConfigDict],
    ) -> Consumer:
        """Create a consumer, or update it if it exists."""
        wanted = ConsumerConfig.of(config, fields)
        api = self.calls.bounded()
        if config is None and (wanted.name or wanted.durable_name):
            try:
                wanted = await change_consumer(api, stream, wanted, fields)
            except ConsumerNotFound:
                pass  # the server creates it
        info = await put_consumer(api, stream, "", wanted, pedantic)
        return self._consumer(stream, wanted.name or wanted.durable_name, info)

    async def consumer(self, stream: str, name: str) -> Consumer:
        """Return the consumer of this name; raise ConsumerNotFound if it does not exist."""
        return self._consumer(stream, name, await consumer_info(self.calls, stream, name))

    def _consumer(self, stream: str, name: str, info: ConsumerInfo) -> Consumer:
        # Programs that only publish do not need this module, which imports all of pull.
        from .consumer import Consumer

        return Consumer(self._api, stream, name, info)

    async def delete_consumer(self, stream: str, name: str) -> None:
        """Delete a consumer; raise ConsumerNotFound if it does not exist."""
        await self.calls.call("CONSUMER.DELETE.%s" % _path(stream, name))

    async def consumers(self, stream: str) -> Listing[ConsumerInfo]:
        """List all consumers of the stream."""
        endpoint = "CONSUMER.LIST.%s" % check_known_name("stream", stream)
        rows = await self.calls.pages(endpoint, "consumers", {})
        return rows.like([ConsumerInfo.from_json(row) for row in rows])

    async def consumer_names(self, stream: str) -> Listing[str]:
        """List the names of all consumers of the stream."""
        endpoint = "CONSUMER.NAMES.%s" % check_known_name("stream", stream)
        return _names(await self.calls.pages(endpoint, "consumers", {}))

    async def pause_consumer(self, stream: str, name: str, until: TimestampLike) -> ConsumerPause:
        """Pause deliveries until this time."""
        body = {"pause_until": str(Timestamp.of(until))}
        endpoint = "CONSUMER.PAUSE.%s" % _path(stream, name)
        return ConsumerPause.from_json(await self.calls.call(endpoint, body, level=1))

    async def resume_consumer(self, stream: str, name: str) -> ConsumerPause:
        """Resume deliveries now."""
        endpoint = "CONSUMER.PAUSE.%s" % _path(stream, name)
        return ConsumerPause.from_json(await self.calls.call(endpoint, {}, level=1))

    async def reset_consumer(self, stream: str, name: str, seq: int = 0) -> ConsumerInfo:
        """Restart a consumer at a stream sequence, or at its ack floor (0)."""
        endpoint = "CONSUMER.RESET.%s" % _path(stream, name)
        body = {"seq": seq} if check_count("seq", seq, 0, MOST_SEQUENCE) else {}
        return ConsumerInfo.from_json(await self.calls.call(endpoint, body, level=4))

    async def unpin_consumer(self, stream: str, name: str, group: str) -> None:
        """Unpin the client that a priority group is pinned to."""
        from jetstream.pull.options import check_group

        check_group(group)
        endpoint = "CONSUMER.UNPIN.%s" % _path(stream, name)
        await self.calls.call(endpoint, {"group": group}, level=1)


def _by_subject(subject: str) -> dict[str, Any]:
    return {"subject": check_subscribe(subject).decode()} if subject != "" else {}


def _path(stream: str, consumer: str) -> str:
    check_known_name("stream", stream)
    return "%s.%s" % (stream, check_known_name("consumer", consumer))


def _names(rows: Listing[Any]) -> Listing[str]:
    for row in rows:
        if not isinstance(row, str):
            raise InvalidResponse("listing contains an entry that is not a name: %s" % shorten(row))
    return rows
