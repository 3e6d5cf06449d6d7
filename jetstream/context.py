"""JetStream: the context of ADR-37, on any natsproto client.

JetStream is the public face of its managers: streams and consumers (streams/manager.py), publishing
(publish/request.py), key-value buckets (kv/manager.py) and object stores (objects/manager.py). Its
methods are written out, so that every tool sees their signatures and docstrings.
"""

from __future__ import annotations

from natsproto.durations import check_patience
from natsproto.errors import InvalidValue
from natsproto.session import check_flag
from natsproto.wire.text import cut_middle, shorten

from .api.client import ApiClient, session_of

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Unpack

    from natsproto.client import Client
    from natsproto.durations import Seconds
    from natsproto.wire.encode import BytesLike

    from .advisories.api import Advisories
    from .advisories.kinds import Kind
    from .api.listing import Listing
    from .config import ConsumerConfigDict, StreamConfigDict
    from .kv.config import KeyValueConfig, KeyValueConfigDict, KeyValueStatus
    from .kv.manager import KeyValueManager
    from .kv.store import KeyValue
    from .objects.config import ObjectStoreConfig, ObjectStoreConfigDict, ObjectStoreStatus
    from .objects.manager import ObjectStoreManager
    from .objects.store import ObjectStore
    from .publish.atomic import AtomicBatch
    from .publish.fast import FastBatch
    from .publish.headers import PublishOptions
    from .publish.request import Publisher
    from .publish.source import ObjectData
    from .publish.window import PublishWindow
    from .push.api import PushMessages
    from .schema.account_info import AccountInfo
    from .schema.consumer_info import ConsumerInfo, ConsumerPause
    from .schema.pub_ack import PubAck
    from .schema.stream_info import StreamInfo
    from .schema.timestamp import TimestampLike
    from .streams.consumer import BoundConsumer, Consumer, KnownConfig
    from .streams.manager import ConsumerConfigLike, StreamConfigLike, StreamManager
    from .streams.snapshot import StreamSnapshot
    from .streams.stream import Stream
    from .subscribe.pull import PullSubscription


class JetStream:
    """JetStream of a client's account; `domain` or `prefix` select another one.

    `timeout`, in seconds, limits each call of the API, and is the default of publishes. Listings,
    objects and other calls with as many responses as there is data may take longer: each response
    restarts the timeout.
    """

    def __init__(
        self, client: Client, *, domain: str = "", prefix: str = "$JS.API", timeout: Seconds = 5.0
    ) -> None:
        if domain and prefix != "$JS.API":
            given = (shorten(domain), shorten(prefix))
            raise InvalidValue("domain %s and prefix %s: only one can be given" % given)
        seconds = check_patience("timeout", timeout)
        self._api = ApiClient(session_of(client), domain, prefix, seconds)
        self._manager: StreamManager | None = None
        self._publishing: Publisher | None = None
        self._key_values: KeyValueManager | None = None
        self._object_stores: ObjectStoreManager | None = None

    def __repr__(self) -> str:
        return "<JetStream %s>" % cut_middle(self._api.prefix)

    @property
    def _streams(self) -> StreamManager:
        if self._manager is None:
            # Imported here: many programs only publish, or pull from a consumer that exists.
            from .streams.manager import StreamManager

            self._manager = StreamManager(self._api)
        return self._manager

    @property
    def _publisher(self) -> Publisher:
        if self._publishing is None:
            # Imported here: many programs only consume. That is a quarter of the import.
            from .publish.request import Publisher

            self._publishing = Publisher(self._api)
        return self._publishing

    async def account_info(self) -> AccountInfo:
        """Return the limits and the usage of the account."""
        return await self._streams.account_info()

    # Streams

    async def create_stream(
        self,
        config: StreamConfigLike | None = None,
        *,
        pedantic: bool = False,
        **fields: Unpack[StreamConfigDict],
    ) -> Stream:
        """Create a stream, unless it exists with the same configuration.

        StreamNameInUse: it exists with another configuration; the error names the fields that
        differ. With `pedantic` the server rejects a configuration that it would otherwise adjust.
        """
        return await self._streams.create_stream(config, pedantic=pedantic, **fields)

    async def update_stream(
        self,
        config: StreamConfigLike | None = None,
        *,
        pedantic: bool = False,
        **fields: Unpack[StreamConfigDict],
    ) -> Stream:
        """Update a stream; raise StreamNotFound if it does not exist.

        Keywords alone change only these fields. A `config` replaces the whole configuration.
        `pedantic`: as in create_stream.
        """
        return await self._streams.update_stream(config, pedantic=pedantic, **fields)

    async def create_or_update_stream(
        self,
        config: StreamConfigLike | None = None,
        *,
        pedantic: bool = False,
        **fields: Unpack[StreamConfigDict],
    ) -> Stream:
        """Create a stream, or update it if it exists.

        If it exists, keywords alone change only these fields. A `config` replaces the whole
        configuration. `pedantic`: as in create_stream.
        """
        return await self._streams.create_or_update_stream(config, pedantic=pedantic, **fields)

    async def stream(self, name: str) -> Stream:
        """Return the stream of this name, with its info; raise StreamNotFound."""
        return await self._streams.stream(name)

    async def delete_stream(self, name: str) -> None:
        """Delete a stream with its messages and consumers; raise StreamNotFound."""
        await self._streams.delete_stream(name)

    async def streams(self, subject: str = "") -> Listing[StreamInfo]:
        """List all streams, or those that overlap with the subject.

        `missing` and `offline` of the list name existing streams that are not in it.
        """
        return await self._streams.streams(subject)

    async def stream_names(self, subject: str = "") -> Listing[str]:
        """List the names of all streams, or of those that overlap with the subject."""
        return await self._streams.stream_names(subject)

    async def stream_name_by_subject(self, subject: str) -> str:
        """Return the name of the stream with this subject.

        StreamNotFound: no stream has it. AmbiguousStream: more than one stream does.
        """
        return await self._streams.stream_name_by_subject(subject)

    # Consumers

    async def create_consumer(
        self,
        stream: str,
        config: ConsumerConfigLike | None = None,
        *,
        pedantic: bool = False,
        **fields: Unpack[ConsumerConfigDict],
    ) -> Consumer:
        """Create a consumer, unless it exists with the same configuration.

        ConsumerExists: it exists with another configuration; the error names the fields that
        differ. Without `name` and `durable_name` the consumer is ephemeral, with a random name.
        With `pedantic` the server rejects a configuration that it would otherwise adjust.
        """
        return await self._streams.create_consumer(stream, config, pedantic=pedantic, **fields)

    async def update_consumer(
        self,
        stream: str,
        config: ConsumerConfigLike | None = None,
        *,
        pedantic: bool = False,
        **fields: Unpack[ConsumerConfigDict],
    ) -> Consumer:
        """Update a consumer; raise ConsumerDoesNotExist if it does not exist.

        Keywords alone change only these fields. A `config` replaces the whole configuration.
        `pedantic`: as in create_consumer.
        """
        return await self._streams.update_consumer(stream, config, pedantic=pedantic, **fields)

    async def create_or_update_consumer(
        self,
        stream: str,
        config: ConsumerConfigLike | None = None,
        *,
        pedantic: bool = False,
        **fields: Unpack[ConsumerConfigDict],
    ) -> Consumer:
        """Create a consumer, or update it if it exists.

        If it exists, keywords alone change only these fields. A `config` replaces the whole
        configuration. `pedantic`: as in create_consumer.
        """
        return await self._streams.create_or_update_consumer(
            stream, config, pedantic=pedantic, **fields
        )

    async def consumer(self, stream: str, name: str) -> Consumer:
        """Return the consumer of this name, with its info.

        ConsumerNotFound, StreamNotFound: one of them does not exist.
        """
        return await self._streams.consumer(stream, name)

    # BIND-11
    def bind_consumer(self, stream: str, name: str, **known: Unpack[KnownConfig]) -> BoundConsumer:
        """Return a handle to a consumer without looking it up: nothing is sent.

        This is for clients that may pull and acknowledge but have no permission for the rest of the
        API, or cannot reach it, as with a consumer of another account. If the consumer does not
        exist, the first fetch raises. `known` are fields of its configuration that differ from the
        server's defaults: ack_policy, ack_wait, backoff, priority_policy. `info` reads them, too.
        """
        from .streams.consumer import bind_consumer

        return bind_consumer(self._api, stream, name, known)

    async def delete_consumer(self, stream: str, name: str) -> None:
        """Delete a consumer; raise ConsumerNotFound if it does not exist."""
        await self._streams.delete_consumer(stream, name)

    async def consumers(self, stream: str) -> Listing[ConsumerInfo]:
        """List all consumers of the stream.

        `missing` and `offline` of the list name consumers that exist and are not in it.
        """
        return await self._streams.consumers(stream)

    async def consumer_names(self, stream: str) -> Listing[str]:
        """List the names of all consumers of the stream."""
        return await self._streams.consumer_names(stream)

    async def pause_consumer(self, stream: str, name: str, until: TimestampLike) -> ConsumerPause:
        """Pause deliveries until a time: a Timestamp, aware datetime, RFC 3339 or nanoseconds."""
        return await self._streams.pause_consumer(stream, name, until)

    async def resume_consumer(self, stream: str, name: str) -> ConsumerPause:
        """Resume deliveries now."""
        return await self._streams.resume_consumer(stream, name)

    async def reset_consumer(self, stream: str, name: str, seq: int = 0) -> ConsumerInfo:
        """Restart a consumer at this sequence of the stream, or at its ack floor (0)."""
        return await self._streams.reset_consumer(stream, name, seq)

    async def unpin_consumer(self, stream: str, name: str, group: str) -> None:
        """Unpin the client that a priority group is pinned to."""
        await self._streams.unpin_consumer(stream, name, group)

    # Publishing

    async def publish(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        timeout: Seconds | None = None,
        retries: int = 2,
        **options: Unpack[PublishOptions],
    ) -> PubAck:
        """Publish a message to the stream with this subject, and return when it is stored.

        headers       the message's headers
        msg_id        an id by which the stream discards duplicates: it stores one message of each
                      id within its duplicate window; the PubAck of another one has `duplicate` set
        expect_stream, expect_last_seq, expect_last_msg_id, expect_last_subject_seq
                      conditions; if one fails, the message is not stored: WrongStream,
                      WrongLastSequence, WrongLastMsgId
        expect_last_subject
                      the subject of expect_last_subject_seq, wildcards allowed, instead of the
                      message's own
        ttl           seconds until the stream deletes the message, or "never"

        On 503 (no responders) the publish is retried after 250 ms, `retries` times (-1: until the
        timeout), and for 10 s in a cluster, which may be electing a leader; then NoStreamResponse
        is raised. The timeout covers all of that; without one each try has the timeout of this
        JetStream.

        PublishInDoubt: no acknowledgment arrived, so the message may or may not be stored. If the
        timeout is the cause, the error is a TimeoutExpired as well.
        """
        publisher = self._publishing or self._publisher
        return await publisher.send(subject, data, options, timeout, retries)

    def publisher(
        self, *, max_pending: int = 1000, ack_timeout: Seconds | None = None, retries: int = 2
    ) -> PublishWindow:
        """Publish without waiting for each acknowledgment: `async with js.publisher() as p`.

        At most `max_pending` acknowledgments are outstanding at a time; `p.flush()`, and leaving
        the block, wait for all of them and raise PublishesFailed if any publish failed.
        """
        return self._publisher.window(max_pending, ack_timeout, retries)

    def atomic_batch(self, *, timeout: Seconds | None = None) -> AtomicBatch:
        """Return a batch that a stream stores as a whole or not at all (needs allow_atomic)."""
        return self._publisher.atomic_batch(timeout)

    def fast_batch(
        self,
        *,
        allow_gaps: bool = False,
        flow: int = 500,
        max_acks: int = 2,
        ack_timeout: Seconds | None = None,
    ) -> FastBatch:
        """Return a batch that a stream stores as it arrives: `async with js.fast_batch() as b`.

        Each acknowledgment covers up to `flow` messages, fewer if the server is busy, and at most
        `max_acks` of them are outstanding at a time. Needs allow_batched and nats-server 2.14.
        """
        return self._publisher.fast_batch(allow_gaps, flow, max_acks, ack_timeout)

    async def add_to_counter(
        self, subject: str, by: int = 1, **options: Unpack[PublishOptions]
    ) -> int:
        """Add to the counter of a subject, and return its new value (needs allow_msg_counter).

        If the stream already has an increment with this `msg_id`, nothing is added, and the current
        value is returned.
        """
        return await self._publisher.add_to_counter(subject, by, **options)

    async def schedule(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        when: str,
        target: str,
        source: str = "",
        schedule_ttl: Seconds | str | None = None,
        time_zone: str = "",
        rollup: bool = False,
        **options: Unpack[PublishOptions],
    ) -> PubAck:
        """Schedule a message: the stream publishes it to `target` later, or repeatedly (ADR-51).

        `when` is "@at <RFC 3339>", "@every 5m", "@daily" or a cron expression of six fields, in
        `time_zone`. With a `source` the last message of that subject is published instead; with
        `rollup` each message replaces the earlier ones. The schedule is the message stored under
        `subject`: publish again to change it, purge it to cancel it. Needs allow_msg_schedules.
        """
        return await self._publisher.schedule(
            subject,
            data,
            when=when,
            target=target,
            source=source,
            schedule_ttl=schedule_ttl,
            time_zone=time_zone,
            rollup=rollup,
            **options,
        )

    async def cancel_schedule(
        self, subject: str, data: BytesLike = b"", *, target: str, **options: Unpack[PublishOptions]
    ) -> PubAck:
        """Publish a message to the target of a schedule and remove the schedule, in one step.

        `subject` is that of the schedule. To remove it without a message, purge its subject.
        """
        return await self._publisher.cancel_schedule(subject, data, target=target, **options)

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
        """Subscribe to messages that the server pushes: `async with` the result, and iterate.

        stream   the stream; by default the one with this subject
        durable  the name of a durable consumer, which is created if it does not exist; likewise
                 `name`, for a consumer that the server deletes when it is unused; without either
                 the consumer belongs to this call alone
        queue    the queue group to share the messages with; also the durable name if none is given
        ordered  deliver each message once and in order, through consumers that are recreated
                 whenever a message is missing (ADR-17); nothing is acknowledged
        bind     never create a consumer; raise ConsumerNotFound instead
        delete_on_end
                 delete the consumer at the end of the subscription, if this call created it; by
                 default only a consumer without durable name and queue
        alarm_after
                 how many heartbeats may be missed; only with idle_heartbeat
        max_pending_messages, max_pending_bytes
                 how much may wait to be read; more is dropped and reported; 0: no limit
        nak_on_exit
                 when the block is left, nak the messages that were not read, so that they are
                 redelivered at once and not after their ack wait

        The other keywords are the fields of a new consumer. A consumer that exists must have the
        same values: ConfigMismatch, or another BindRefused, if it differs.
        """
        from .subscribe.options import Limits, OrderedSubscribeOptions, SubscribeOptions
        from .subscribe.push import subscribe, subscribe_in_order

        limits = Limits(alarm_after, max_pending_messages, max_pending_bytes, nak_on_exit)
        given = (subject, stream, durable, queue, bind, delete_on_end, config, fields)
        if check_flag("ordered", ordered):
            wanted = OrderedSubscribeOptions(*given)
            return await subscribe_in_order(self._streams, self._api, wanted, limits)
        return await subscribe(self._streams, self._api, SubscribeOptions(*given), limits)

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
        """Return a pull consumer of a subject, to fetch from: the older API (ADR-13).

        stream   the stream; by default the one with this subject
        durable  the name of a durable consumer, which is created if it does not exist; likewise
                 `name`; without either the consumer belongs to this call alone, and `unsubscribe`
                 deletes it
        bind     never create a consumer; raise ConsumerNotFound instead

        The other keywords are the fields of a new consumer. A consumer that exists must have the
        same values: ConfigMismatch, or another BindRefused, if it differs.
        """
        from .subscribe.pull import PullSubscribeOptions, pull_subscribe

        wanted = PullSubscribeOptions(subject, stream, durable, bind, config, fields)
        return await pull_subscribe(self._streams, self._api, wanted)

    # Backups

    async def snapshot_stream(
        self,
        stream: str,
        *,
        consumers: bool = True,
        check: bool = False,
        chunk_size: int = 128 * 1024,
        window: int = 8 * 1024 * 1024,
    ) -> StreamSnapshot:
        """Return a snapshot of a whole stream: `async with` it, and iterate or `save` it.

        consumers   include the consumers and their states
        check       have the server verify the checksums of all messages first
        chunk_size  size of a chunk, 1 KiB to 1 MiB
        window      bytes that the server sends without acknowledgment, 1 KiB to 32 MiB (needs 2.14)

        Servers before 2.15 cannot take snapshots of memory streams.
        """
        from .streams.snapshot import open_snapshot

        return await open_snapshot(self._api, stream, consumers, check, chunk_size, window)

    async def restore_stream(
        self,
        data: ObjectData,
        config: StreamConfigLike | None = None,
        *,
        chunk_size: int = 128 * 1024,
        timeout: Seconds = 60.0,
        progress: Callable[[int], object] | None = None,
    ) -> Stream:
        """Create a stream from a snapshot, and return it when it is complete.

        data        a file that StreamSnapshot.save wrote, or the chunks, as bytes or an iterable
        config      the configuration, which is required for chunks; for a file, a configuration to
                    use instead of the snapshot's, such as one with other replicas; the name must
                    be the same
        timeout     how long the server may take to complete the stream after the last chunk
        progress    called with the number of bytes after each chunk that is stored

        StreamNameInUse, or another ApiError: nothing was created.
        """
        from .streams.restore import restore

        info = await restore(self._api, data, config, chunk_size, timeout, progress)
        return self._streams.stream_of(info)

    # Events of the servers

    def advisories(
        self,
        *kinds: Kind,
        stream: str | None = None,
        consumer: str | None = None,
        prefix: str = "$JS.EVENT",
    ) -> Advisories:
        """Subscribe to the events of servers: `async with js.advisories() as events`, and iterate.

        kinds     the kinds of events, such as "max_deliver" and "terminated"; by default all
        stream    only events of this stream, including those of its consumers
        consumer  only events of consumers with this name
        prefix    the prefix of the subjects, if an import has renamed them

        Each event is an object of the class of its kind (see jetstream.advisories), or an Advisory
        if its kind is unknown. Events about servers, and the API limit, exist in the system account
        only. With a `domain` of this JetStream, only events of that domain are returned.
        """
        from .advisories.api import open_advisories

        return open_advisories(self._api, kinds, stream, consumer, prefix)

    # Key-value buckets

    async def create_key_value(
        self, config: KeyValueConfig | None = None, **fields: Unpack[KeyValueConfigDict]
    ) -> KeyValue:
        """Create a bucket; raise BucketExists if it exists and a given field differs."""
        return await self._kv_manager().create(config, fields)

    async def update_key_value(
        self, config: KeyValueConfig | None = None, **fields: Unpack[KeyValueConfigDict]
    ) -> KeyValue:
        """Replace the configuration of a bucket; raise BucketNotFound if it does not exist.

        Settings of its stream that are not in KeyValueConfig keep their values.
        """
        return await self._kv_manager().update(config, fields)

    async def create_or_update_key_value(
        self, config: KeyValueConfig | None = None, **fields: Unpack[KeyValueConfigDict]
    ) -> KeyValue:
        """Create a bucket, or replace its configuration if it exists."""
        return await self._kv_manager().create_or_update(config, fields)

    async def key_value(self, bucket: str) -> KeyValue:
        """Return the bucket of this name.

        BucketNotFound: it does not exist. NotABucket: the stream is not a key-value bucket.
        """
        return await self._kv_manager().find(bucket)

    async def delete_key_value(self, bucket: str) -> None:
        """Delete a bucket with all its keys; raise BucketNotFound if it does not exist."""
        await self._kv_manager().delete(bucket)

    async def key_value_names(self) -> list[str]:
        """List the names of all buckets."""
        return await self._kv_manager().names()

    async def key_values(self) -> Listing[KeyValueStatus]:
        """List all buckets, with their configuration and state.

        `missing` and `offline` of the list name buckets that exist and are not in it.
        """
        return await self._kv_manager().statuses()

    def _kv_manager(self) -> KeyValueManager:
        if self._key_values is None:
            # Imported here: many programs do not use buckets.
            from .kv.manager import KeyValueManager

            self._key_values = KeyValueManager(self._streams, self._publisher, self._api)
        return self._key_values

    # Object stores

    async def create_object_store(
        self, config: ObjectStoreConfig | None = None, **fields: Unpack[ObjectStoreConfigDict]
    ) -> ObjectStore:
        """Create an object store; raise BucketExists if it exists and a given field differs."""
        return await self._object_manager().create(config, fields)

    async def update_object_store(
        self, config: ObjectStoreConfig | None = None, **fields: Unpack[ObjectStoreConfigDict]
    ) -> ObjectStore:
        """Replace the configuration of an object store; raise BucketNotFound."""
        return await self._object_manager().update(config, fields)

    async def create_or_update_object_store(
        self, config: ObjectStoreConfig | None = None, **fields: Unpack[ObjectStoreConfigDict]
    ) -> ObjectStore:
        """Create an object store, or replace its configuration if it exists."""
        return await self._object_manager().create_or_update(config, fields)

    async def object_store(self, bucket: str) -> ObjectStore:
        """Return the object store of this name; raise BucketNotFound if it does not exist."""
        return await self._object_manager().find(bucket)

    async def delete_object_store(self, bucket: str) -> None:
        """Delete an object store with all its objects; raise BucketNotFound."""
        await self._object_manager().delete(bucket)

    async def object_store_names(self) -> list[str]:
        """List the names of all object stores."""
        return await self._object_manager().names()

    async def object_stores(self) -> Listing[ObjectStoreStatus]:
        """List all object stores, with their configuration and state.

        `missing` and `offline` of the list name buckets that exist and are not in it.
        """
        return await self._object_manager().statuses()

    if not TYPE_CHECKING:  # a type checker would accept every name

        def __getattr__(self, name):
            from natsproto.hints import no_attribute

            from .api.hints import JETSTREAM

            raise no_attribute(self, name, JETSTREAM)

    def _object_manager(self) -> ObjectStoreManager:
        if self._object_stores is None:
            from .objects.manager import ObjectStoreManager

            self._object_stores = ObjectStoreManager(self._streams, self._publisher, self._api)
        return self._object_stores
