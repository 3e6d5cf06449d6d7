"""JetStream: the context of ADR-37, on any natsproto client.

Streams, consumers and publishing for one account, or for one domain or prefix of it. Written once:
the coroutines await the client's session and each other, nothing else.
"""

from __future__ import annotations

from natsproto.errors import InvalidValue
from natsproto.session import check_count, check_flag, check_patience
from natsproto.wire.subjects import check_known_name, check_subscribe
from natsproto.wire.text import cut_middle, shorten

from .api.assets import (
    change_consumer,
    change_stream,
    consumer_info,
    explain,
    put_consumer,
    put_stream,
    stream_info,
)
from .api.client import Api, session_of
from .errors import AmbiguousStream, InvalidResponse
from .errors.api import (
    ConsumerDoesNotExist,
    ConsumerExists,
    ConsumerNotFound,
    StreamNameInUse,
    StreamNotFound,
)
from .kv.manager import KeyValueManager
from .objects.manager import ObjectStoreManager
from .publish.acks import AckReader
from .publish.manager import PublishManager
from .schema.consumer_config import ConsumerConfig
from .schema.info import AccountInfo, ConsumerInfo, ConsumerPause, StreamInfo
from .schema.stream_config import StreamConfig
from .schema.timestamp import Timestamp
from .schema.types import MOST_SEQUENCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from typing_extensions import Unpack

    from natsproto.client import Client

    from .api.listing import Listing
    from .config import ConsumerConfigDict, StreamConfigDict
    from .consumer import BoundConsumer, Consumer, KnownConfig
    from .push.api import PushMessages
    from .schema.timestamp import TimestampLike
    from .stream import Stream
    from .subscribe.pull import PullSubscription

    StreamConfigLike: TypeAlias = StreamConfig | dict[str, Any]
    ConsumerConfigLike: TypeAlias = ConsumerConfig | dict[str, Any]


class JetStream(PublishManager, KeyValueManager, ObjectStoreManager):
    """The JetStream of a client's account. `domain` or `prefix` reach another one."""

    def __init__(
        self, client: Client, *, domain: str = "", prefix: str = "$JS.API", timeout: float = 5.0
    ) -> None:
        if domain and prefix != "$JS.API":
            given = (shorten(domain), shorten(prefix))
            raise InvalidValue("domain %s and prefix %s: only one can be given" % given)
        self._api = Api(session_of(client), domain, prefix, check_patience("timeout", timeout))
        self._acks = AckReader()

    def __repr__(self) -> str:
        return "<JetStream %s>" % cut_middle(self._api.prefix)

    async def account_info(self) -> AccountInfo:
        """What the account may use of JetStream, and what it uses."""
        return AccountInfo.from_json(await self._api.call("INFO"))

    # Streams

    async def create_stream(
        self,
        config: StreamConfigLike | None = None,
        *,
        pedantic: bool = False,
        **fields: Unpack[StreamConfigDict],
    ) -> Stream:
        """Create the stream; fine if it exists with the same configuration.

        StreamNameInUse if it exists with another one; the error names the fields that differ.
        With `pedantic` the server refuses a configuration that it would otherwise adjust.
        """
        wanted = StreamConfig.of(config, fields)
        try:
            info = await put_stream(self._api, "CREATE", wanted, pedantic)
        except StreamNameInUse as error:
            await explain(error, self._api, wanted, wanted.name, "")
            raise
        return self._stream(info)

    async def update_stream(
        self,
        config: StreamConfigLike | None = None,
        *,
        pedantic: bool = False,
        **fields: Unpack[StreamConfigDict],
    ) -> Stream:
        """Change the stream; StreamNotFound if it does not exist.

        Keywords alone change these fields; the others stay as they are. A `config` replaces the
        whole configuration. `pedantic`: as in create_stream.
        """
        wanted = StreamConfig.of(config, fields)
        if config is None:
            wanted = await change_stream(self._api, wanted, fields)
        return self._stream(await put_stream(self._api, "UPDATE", wanted, pedantic))

    async def create_or_update_stream(
        self,
        config: StreamConfigLike | None = None,
        *,
        pedantic: bool = False,
        **fields: Unpack[StreamConfigDict],
    ) -> Stream:
        """Create the stream, or update it if it exists.

        Of a stream that exists, keywords alone change these fields; the others stay as they are.
        A `config` replaces the whole configuration. `pedantic`: as in create_stream.
        """
        wanted = StreamConfig.of(config, fields)
        try:
            changed = wanted
            if config is None:
                changed = await change_stream(self._api, wanted, fields)
            info = await put_stream(self._api, "UPDATE", changed, pedantic)
        except StreamNotFound:
            info = await put_stream(self._api, "CREATE", wanted, pedantic)
        return self._stream(info)

    async def stream(self, name: str) -> Stream:
        """The stream of this name, with its info; StreamNotFound."""
        return self._stream(await stream_info(self._api, name))

    def _stream(self, info: StreamInfo) -> Stream:
        # Here, as below: a program may well have neither streams nor consumers in its hands.
        from .stream import Stream

        return Stream(self, self._api, info)

    async def delete_stream(self, name: str) -> None:
        """Delete it with its messages and consumers; StreamNotFound."""
        await self._api.call("STREAM.DELETE.%s" % check_known_name("stream", name))

    async def streams(self, subject: str = "") -> Listing[StreamInfo]:
        """List all streams, or those that overlap with the subject.

        `missing` and `offline` of the list name streams that exist and are not in it.
        """
        rows = await self._api.pages("STREAM.LIST", "streams", _by_subject(subject))
        return rows.like([StreamInfo.from_json(row) for row in rows])

    async def stream_names(self, subject: str = "") -> Listing[str]:
        """List the names of all streams, or of those that overlap with the subject."""
        rows = await self._api.pages("STREAM.NAMES", "streams", _by_subject(subject))
        return _names(rows)

    async def stream_name_by_subject(self, subject: str) -> str:
        """The one stream that takes the subject; StreamNotFound; AmbiguousStream if several do."""
        check_subscribe(subject)
        names = await self.stream_names(subject)
        if not names:
            raise StreamNotFound(404, 10059, "no stream takes subject %s" % shorten(subject))
        if len(names) > 1:
            raise AmbiguousStream(subject, names)
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
        """Create the consumer; fine if it exists with the same configuration.

        ConsumerExists if it exists with another one; the error names the fields that differ.
        Without `name` and `durable_name` it is an ephemeral one with a name of its own.
        With `pedantic` the server refuses a configuration that it would otherwise adjust.
        """
        wanted = ConsumerConfig.of(config, fields)
        try:
            info = await put_consumer(self._api, stream, "create", wanted, pedantic)
        except ConsumerExists as error:
            await explain(error, self._api, wanted, stream, wanted.name or wanted.durable_name)
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
        """Change the consumer; ConsumerDoesNotExist if it does not exist.

        Keywords alone change these fields; the others stay as they are. A `config` replaces the
        whole configuration. `pedantic`: as in create_consumer.
        """
        wanted = ConsumerConfig.of(config, fields)
        if config is None:
            try:
                wanted = await change_consumer(self._api, stream, wanted, fields)
            except ConsumerNotFound as error:
                missing = ConsumerDoesNotExist(400, 10149, "consumer does not exist")
                missing.asked = error.asked
                raise missing from None
        info = await put_consumer(self._api, stream, "update", wanted, pedantic)
        return self._consumer(stream, wanted.name or wanted.durable_name, info)

    async def create_or_update_consumer(
        self,
        stream: str,
        config: ConsumerConfigLike | None = None,
        *,
        pedantic: bool = False,
        **fields: Unpack[ConsumerConfigDict],
    ) -> Consumer:
        """Create the consumer, or update it if it exists.

        Of a consumer that exists, keywords alone change these fields; the others stay as they are.
        A `config` replaces the whole configuration. `pedantic`: as in create_consumer.
        """
        wanted = ConsumerConfig.of(config, fields)
        if config is None and (wanted.name or wanted.durable_name):
            try:
                wanted = await change_consumer(self._api, stream, wanted, fields)
            except ConsumerNotFound:
                pass  # it is to be created
        info = await put_consumer(self._api, stream, "", wanted, pedantic)
        return self._consumer(stream, wanted.name or wanted.durable_name, info)

    async def consumer(self, stream: str, name: str) -> Consumer:
        """The consumer of this name, with its info; ConsumerNotFound, StreamNotFound."""
        return self._consumer(stream, name, await consumer_info(self._api, stream, name))

    def _consumer(self, stream: str, name: str, info: ConsumerInfo) -> Consumer:
        # Here, because programs that only publish need none: it brings all of pulling along.
        from .consumer import Consumer

        return Consumer(self._api, stream, name, info)

    def bind_consumer(self, stream: str, name: str, **known: Unpack[KnownConfig]) -> BoundConsumer:
        """A handle to the consumer of this name, without a lookup: nothing is sent.

        This is for clients that may pull and acknowledge, but may not call the rest of the API, or
        cannot reach it, as with a consumer of another account. If no such consumer exists, the
        first fetch says so. `known` are fields of its configuration that are not the server's
        defaults: ack_policy, ack_wait, backoff, priority_policy. `info` finds them out, too.
        """
        from .consumer import BoundConsumer

        _path(stream, name)
        return BoundConsumer(self._api, stream, name, ConsumerConfig.of(None, known))

    async def delete_consumer(self, stream: str, name: str) -> None:
        """Delete it; ConsumerNotFound."""
        await self._api.call("CONSUMER.DELETE.%s" % _path(stream, name))

    async def consumers(self, stream: str) -> Listing[ConsumerInfo]:
        """List all consumers of the stream.

        `missing` and `offline` of the list name consumers that exist and are not in it.
        """
        endpoint = "CONSUMER.LIST.%s" % check_known_name("stream", stream)
        rows = await self._api.pages(endpoint, "consumers", {})
        return rows.like([ConsumerInfo.from_json(row) for row in rows])

    async def consumer_names(self, stream: str) -> Listing[str]:
        """List the names of all consumers of the stream."""
        endpoint = "CONSUMER.NAMES.%s" % check_known_name("stream", stream)
        return _names(await self._api.pages(endpoint, "consumers", {}))

    async def pause_consumer(self, stream: str, name: str, until: TimestampLike) -> ConsumerPause:
        """Deliver nothing until then: a Timestamp, an aware datetime, RFC 3339 or nanoseconds."""
        body = {"pause_until": str(Timestamp.of(until))}
        endpoint = "CONSUMER.PAUSE.%s" % _path(stream, name)
        return ConsumerPause.from_json(await self._api.call(endpoint, body, level=1))

    async def resume_consumer(self, stream: str, name: str) -> ConsumerPause:
        """Deliver again, at once."""
        endpoint = "CONSUMER.PAUSE.%s" % _path(stream, name)
        return ConsumerPause.from_json(await self._api.call(endpoint, {}, level=1))

    async def reset_consumer(self, stream: str, name: str, seq: int = 0) -> ConsumerInfo:
        """Start anew: at that sequence of the stream, or at the acknowledged floor (0)."""
        endpoint = "CONSUMER.RESET.%s" % _path(stream, name)
        body = {"seq": seq} if check_count("seq", seq, 0, MOST_SEQUENCE) else {}
        return ConsumerInfo.from_json(await self._api.call(endpoint, body, level=4))

    async def unpin_consumer(self, stream: str, name: str, group: str) -> None:
        """Take the pin of a priority group from the client that holds it."""
        from .pull.options import check_group

        check_group(group)
        endpoint = "CONSUMER.UNPIN.%s" % _path(stream, name)
        await self._api.call(endpoint, {"group": group}, level=1)

    # Subscribing. Many programs never do, so these methods import what they need.

    async def subscribe(
        self,
        subject: str = "",
        config: ConsumerConfigLike | None = None,
        *,
        stream: str = "",
        durable: str = "",
        queue: str = "",
        ordered: bool = False,
        bind: bool = False,
        delete_on_end: bool | None = None,
        alarm_after: float = 3.0,
        max_pending_messages: int | None = None,
        max_pending_bytes: int | None = None,
        nak_on_exit: bool = False,
        **fields: Unpack[ConsumerConfigDict],
    ) -> PushMessages:
        """Messages of this subject as the server pushes them: `async with` it, and iterate.

        stream   where they are; without it the one stream that takes the subject
        durable  the consumer of this name, which is created if it is not there; likewise `name`,
                 for one that goes when nobody listens; without either it is this call's own
        queue    share the messages with all who say the same; it is the durable name as well if
                 none is given
        ordered  each message once and in order, by consumers of its own that are made anew when
                 anything is missing (ADR-17); nothing is acknowledged
        bind     never create a consumer: ConsumerNotFound
        delete_on_end
                 delete the consumer at the end of the subscription, if this call created it: by
                 default only one without durable name and queue
        alarm_after
                 how many heartbeats may be missing; only with idle_heartbeat
        max_pending_messages, max_pending_bytes
                 what may wait to be taken; more is dropped and told; 0: any
        nak_on_exit
                 when the block is left, nak the messages that were not taken, so that they are
                 redelivered at once and not after their ack wait

        The other keywords are the fields of a new consumer. One that is there has to have them all:
        ConfigMismatch, or another BindRefused, if it is not what was asked for.
        """
        from .subscribe.options import Limits, Wanted, WantedInOrder
        from .subscribe.push import subscribe, subscribe_in_order

        limits = Limits(alarm_after, max_pending_messages, max_pending_bytes, nak_on_exit)
        asked = (subject, stream, durable, queue, bind, delete_on_end, config, fields)
        if check_flag("ordered", ordered):
            return await subscribe_in_order(self, self._api, WantedInOrder(*asked), limits)
        return await subscribe(self, self._api, Wanted(*asked), limits)

    async def pull_subscribe(
        self,
        subject: str = "",
        config: ConsumerConfigLike | None = None,
        *,
        stream: str = "",
        durable: str = "",
        bind: bool = False,
        **fields: Unpack[ConsumerConfigDict],
    ) -> PullSubscription:
        """A pull consumer of this subject, to be fetched from: the older way (ADR-13).

        stream   where they are; without it the one stream that takes the subject
        durable  the consumer of this name, which is created if it is not there; likewise `name`;
                 without either it is this call's own, and deleted by `unsubscribe`
        bind     never create a consumer: ConsumerNotFound

        The other keywords are the fields of a new consumer. One that is there has to have them all:
        ConfigMismatch, or another BindRefused, if it is not what was asked for.
        """
        from .subscribe.pull import PullWanted, pull_subscribe

        wanted = PullWanted(subject, stream, durable, bind, config, fields)
        return await pull_subscribe(self, self._api, wanted)


def _by_subject(subject: str) -> dict[str, Any]:
    return {"subject": check_subscribe(subject).decode()} if subject != "" else {}


def _path(stream: str, consumer: str) -> str:
    check_known_name("stream", stream)
    return "%s.%s" % (stream, check_known_name("consumer", consumer))


def _names(rows: Listing[Any]) -> Listing[str]:
    for row in rows:
        if not isinstance(row, str):
            raise InvalidResponse("%s is listed where a name belongs" % shorten(row))
    return rows
