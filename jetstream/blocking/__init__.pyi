# Written by `python -m tests.facades`. Do not edit.

from collections.abc import Callable, Sequence

from typing_extensions import Unpack

from jetstream import context as _api
from jetstream.advisories.kinds import Kind
from jetstream.api.counters import Counter
from jetstream.api.listing import Listing
from jetstream.api.stored import StoredMsg
from jetstream.blocking.advisories import Advisories as Advisories
from jetstream.blocking.backup import StreamSnapshot as StreamSnapshot
from jetstream.blocking.dead_letters import DeadLetter as DeadLetter
from jetstream.blocking.dead_letters import DeadLetters as DeadLetters
from jetstream.blocking.endpoints import Endpoint as Endpoint
from jetstream.blocking.endpoints import EndpointGroup as EndpointGroup
from jetstream.blocking.endpoints import EndpointRequests as EndpointRequests
from jetstream.blocking.endpoints import ServiceRequest as ServiceRequest
from jetstream.blocking.groups import ConsumerGroups as ConsumerGroups
from jetstream.blocking.groups import ElasticGroup as ElasticGroup
from jetstream.blocking.groups import GroupMember as GroupMember
from jetstream.blocking.groups import GroupMsg as GroupMsg
from jetstream.blocking.groups import StaticGroup as StaticGroup
from jetstream.blocking.kv import InitialEntries as InitialEntries
from jetstream.blocking.kv import KeyLister as KeyLister
from jetstream.blocking.kv import KeyValue as KeyValue
from jetstream.blocking.kv import KeyWatcher as KeyWatcher
from jetstream.blocking.objects import InitialObjects as InitialObjects
from jetstream.blocking.objects import ObjectReader as ObjectReader
from jetstream.blocking.objects import ObjectStore as ObjectStore
from jetstream.blocking.objects import ObjectWatcher as ObjectWatcher
from jetstream.blocking.ordered import OrderedConsumer as OrderedConsumer
from jetstream.blocking.publish import AtomicBatch as AtomicBatch
from jetstream.blocking.publish import FastBatch as FastBatch
from jetstream.blocking.publish import Publication as Publication
from jetstream.blocking.publish import PublishWindow as PublishWindow
from jetstream.blocking.pull import Batch as Batch
from jetstream.blocking.pull import Fetch as Fetch
from jetstream.blocking.pull import JsMsg as JsMsg
from jetstream.blocking.pull import Messages as Messages
from jetstream.blocking.pull import PullEvents as PullEvents
from jetstream.blocking.pull import PullSubscription as PullSubscription
from jetstream.blocking.push import PushEvents as PushEvents
from jetstream.blocking.push import PushMessages as PushMessages
from jetstream.blocking.services import Service as Service
from jetstream.blocking.services import ServiceEvents as ServiceEvents
from jetstream.blocking.services import Services as Services
from jetstream.blocking.services import add_auth_callout as add_auth_callout
from jetstream.blocking.services import add_service as add_service
from jetstream.blocking.stored import StoredMsgs as StoredMsgs
from jetstream.config import ConsumerConfigDict, StreamConfigDict
from jetstream.kv.config import KeyValueConfig, KeyValueConfigDict, KeyValueStatus
from jetstream.objects.config import ObjectStoreConfig, ObjectStoreConfigDict, ObjectStoreStatus
from jetstream.publish.headers import PublishOptions
from jetstream.publish.source import ObjectData
from jetstream.pull.options import PriorityOptions
from jetstream.schema.account_info import AccountInfo
from jetstream.schema.consumer_config import DeliverPolicy, ReplayPolicy
from jetstream.schema.consumer_info import ConsumerInfo, ConsumerPause
from jetstream.schema.pub_ack import PubAck
from jetstream.schema.stream_info import StreamInfo
from jetstream.schema.timestamp import TimestampLike
from jetstream.streams import consumer as _consumer
from jetstream.streams import stream as _stream
from jetstream.streams.consumer import KnownConfig
from jetstream.streams.manager import ConsumerConfigLike, StreamConfigLike
from natsproto.blocking import Client
from natsproto.durations import Seconds
from natsproto.port import BlockingPort
from natsproto.wire.encode import BytesLike

__all__ = [
    "Advisories",
    "AtomicBatch",
    "Batch",
    "BoundConsumer",
    "Consumer",
    "ConsumerGroups",
    "DeadLetter",
    "DeadLetters",
    "ElasticGroup",
    "Endpoint",
    "EndpointGroup",
    "EndpointRequests",
    "FastBatch",
    "Fetch",
    "GroupMember",
    "GroupMsg",
    "InitialEntries",
    "InitialObjects",
    "JetStream",
    "JsMsg",
    "KeyLister",
    "KeyValue",
    "KeyWatcher",
    "Messages",
    "ObjectReader",
    "ObjectStore",
    "ObjectWatcher",
    "OrderedConsumer",
    "Publication",
    "PublishWindow",
    "PullEvents",
    "PullSubscription",
    "PushEvents",
    "PushMessages",
    "Service",
    "ServiceEvents",
    "ServiceRequest",
    "Services",
    "StaticGroup",
    "StoredMsgs",
    "Stream",
    "StreamSnapshot",
    "add_auth_callout",
    "add_service",
]

def __dir__() -> list[str]: ...

class BoundConsumer:
    """A consumer by its name, without a lookup. Returned by JetStream.bind_consumer."""

    inner: _consumer.BoundConsumer
    port: BlockingPort

    def __init__(self, inner: _consumer.BoundConsumer, port: BlockingPort) -> None: ...
    @property
    def name(self) -> str:
        """The name of the consumer."""
        ...

    @property
    def stream(self) -> str:
        """The name of its stream."""
        ...

    @property
    def cached_info(self) -> ConsumerInfo | None:
        """The info that the last call returned; None before the first `info`."""
        ...

    def info(self) -> ConsumerInfo:
        """Return configuration and state; raise ConsumerNotFound if the consumer is gone."""
        ...

    def delete(self) -> None:
        """Delete the consumer; raise ConsumerNotFound if it is gone."""
        ...

    def step_down(self, *, preferred: str = "") -> None:
        """Request that the leader of the consumer step down: the replicas elect another one.

        preferred  the server that becomes the leader (needs 2.11)
        """
        ...

    def fetch(
        self,
        max_messages: int | None = None,
        *,
        max_bytes: int | None = None,
        expires: Seconds | None = None,
        heartbeat: Seconds | None = None,
        no_wait: bool = False,
        **priority: Unpack[PriorityOptions],
    ) -> Batch:
        """Fetch up to `max_messages`, or `max_bytes` of them: await it, or iterate it.

        `await` returns a Batch, which may be empty, when it is full or `expires` is over. If the
        pull failed after messages arrived, the batch has them, and the `error`; otherwise the
        error is raised. `async for` returns each message when it arrives, and raises the error
        after the last one. Nothing is sent before that.

        expires  how long the server waits for messages: by default half of the consumer's
                 ack_wait, at most 30 s, so that no message of a batch is redelivered before its
                 end
        no_wait  fetch only messages that are available now
        """
        ...

    def iter_fetch(
        self,
        max_messages: int | None = None,
        *,
        max_bytes: int | None = None,
        expires: Seconds | None = None,
        heartbeat: Seconds | None = None,
        no_wait: bool = False,
        **priority: Unpack[PriorityOptions],
    ) -> Fetch:
        """Fetch message by message: `async for msg in consumer.iter_fetch(100)`.

        This is `fetch`, under the name that jetstream.blocking uses for the iteration:
        `for msg in consumer.iter_fetch(100)`.
        """
        ...

    def next(
        self,
        *,
        expires: Seconds = 30.0,
        heartbeat: Seconds | None = None,
        **priority: Unpack[PriorityOptions],
    ) -> JsMsg | None:
        """Pull and return the next message; None if there is none within `expires`."""
        ...

    def consume(
        self,
        *,
        max_messages: int | None = None,
        max_bytes: int | None = None,
        expires: Seconds = 30.0,
        heartbeat: Seconds | None = None,
        threshold_messages: int | None = None,
        threshold_bytes: int | None = None,
        stop_after: int | None = None,
        nak_on_exit: bool = False,
        **priority: Unpack[PriorityOptions],
    ) -> Messages:
        """Deliver messages continuously: `async with consumer.consume() as messages`, then iterate.

        A buffer of `max_messages` (500) or `max_bytes` is kept full: below the threshold, half of
        it, more is pulled. It continues across lost connections, changes of leader, and restarts.
        It raises ConsumerNotFound, StreamNotFound or ConsumerDeleted if the consumer is gone.

        Messages that are in the buffer when the block is left are redelivered when their ack wait
        is over; with `nak_on_exit` they are returned to the consumer at once.
        """
        ...

    def dead_letters(self, *, durable: str = "") -> DeadLetters:
        """Return the messages that this consumer failed to process: `async with` it, and iterate.

        These are messages that reached max_deliver without an acknowledgment, and those that were
        terminated. Retry or discard each of them.

        durable  the name of a stream that captures them, which is created if it does not exist;
                 then nothing is lost while no program is listening, and a letter stays in the
                 stream until it is retried or discarded; without a name, only future letters
                 are returned
        """
        ...

    def __repr__(self) -> str: ...

class Consumer(BoundConsumer):
    """A consumer. Returned by methods of JetStream and Stream."""

    def __init__(self, inner: _consumer.Consumer, port: BlockingPort) -> None: ...
    @property
    def cached_info(self) -> ConsumerInfo:
        """The info that the last call returned."""
        ...

class Stream:
    """A stream. Returned by methods of JetStream."""

    inner: _stream.Stream
    port: BlockingPort

    def __init__(self, inner: _stream.Stream, port: BlockingPort) -> None: ...
    @property
    def name(self) -> str:
        """The name of the stream."""
        ...

    @property
    def cached_info(self) -> StreamInfo:
        """The info that the last call returned."""
        ...

    def info(self, *, subjects_filter: str = "", deleted_details: bool = False) -> StreamInfo:
        """Return the configuration and the state of the stream; raise StreamNotFound.

        subjects_filter  include the number of messages of each subject that matches
        deleted_details  include the sequences of deleted messages
        """
        ...

    def purge(
        self, *, subject: str | None = None, seq: int | None = None, keep: int | None = None
    ) -> int:
        """Delete messages: all, those of a subject, those below a sequence, or all but the newest.

        Return the number of deleted messages.
        """
        ...

    def get_msg(
        self,
        seq: int = 0,
        *,
        last_by_subject: str = "",
        next_by_subject: str = "",
        no_headers: bool = False,
    ) -> StoredMsg:
        """Return a stored message by its sequence, or the last or next (from `seq`) of a subject.

        MessageNotFound: there is none. Where the stream allows direct get, any replica may answer.
        With `no_headers`, the leader answers, and omits the headers of the message.
        """
        ...

    def get_msgs(
        self,
        *,
        batch: int,
        seq: int = 0,
        start_time: TimestampLike | None = None,
        subject: str = "",
        max_bytes: int = 0,
    ) -> list[StoredMsg]:
        """Return up to `batch` messages, starting at a sequence or a time, by direct get (ADR-31).

        With `max_bytes` the result may be shorter even if there are more messages.
        """
        ...

    def iter_get_msgs(
        self,
        *,
        batch: int = ...,
        seq: int = 0,
        start_time: TimestampLike | None = None,
        subject: str = "",
        max_bytes: int = 0,
    ) -> StoredMsgs:
        """Iterate over stored messages by direct get: `async for` returns each on arrival.

        The parameters are those of `get_msgs`; without `batch` the iteration ends with the last
        message that is stored when it gets there.
        """
        ...

    def get_last_msgs(
        self,
        subjects: Sequence[str],
        *,
        up_to_seq: int = 0,
        up_to_time: TimestampLike | None = None,
        batch: int = 0,
    ) -> list[StoredMsg]:
        """Return the last message of each subject, wildcards allowed, by direct get (ADR-31).

        The messages are the last ones as of now, or as of a sequence or a time; at most `batch`.
        The server rejects more than 1024 subjects.
        """
        ...

    def iter_get_last_msgs(
        self,
        subjects: Sequence[str],
        *,
        up_to_seq: int = 0,
        up_to_time: TimestampLike | None = None,
        batch: int = 0,
    ) -> StoredMsgs:
        """Iterate over the last message of each subject: `async for` returns each on arrival.

        The parameters are those of `get_last_msgs`.
        """
        ...

    def get_counter(self, subject: str) -> Counter:
        """Return the counter of a subject (ADR-49); raise MessageNotFound if it has none."""
        ...

    def get_counters(self, subjects: Sequence[str]) -> list[Counter]:
        """Return the counters of these subjects, wildcards allowed; needs allow_direct."""
        ...

    def delete_msg(self, seq: int, *, secure: bool = False) -> None:
        """Delete one message; with `secure` its bytes on disk are overwritten."""
        ...

    def delete(self) -> None:
        """Delete the stream with its messages and consumers."""
        ...

    def step_down(self, *, preferred: str = "") -> None:
        """Request that the leader of the stream step down: the replicas elect another one.

        preferred  the server that becomes the leader (needs 2.11)
        """
        ...

    def remove_peer(self, peer: str) -> None:
        """Remove the replica on a server, given by name or id, such as one that is lost for good.

        Another server of the cluster gets a replica, if there is one.
        """
        ...

    def evacuate_peer(self, peer: str) -> None:
        """Move the replica on a server, given by name or id, to another one (needs 2.15).

        The replica stays until the new one is up to date; `info().cluster.desired` is the progress.
        """
        ...

    def cancel_move(self) -> StreamInfo:
        """Cancel a move of the replicas that is in progress (needs 2.15), and return the info."""
        ...

    def create_consumer(
        self,
        config: ConsumerConfigLike | None = None,
        *,
        pedantic: bool = False,
        **fields: Unpack[ConsumerConfigDict],
    ) -> Consumer:
        """Create a consumer; see JetStream.create_consumer."""
        ...

    def update_consumer(
        self,
        config: ConsumerConfigLike | None = None,
        *,
        pedantic: bool = False,
        **fields: Unpack[ConsumerConfigDict],
    ) -> Consumer:
        """Update a consumer; see JetStream.update_consumer."""
        ...

    def create_or_update_consumer(
        self,
        config: ConsumerConfigLike | None = None,
        *,
        pedantic: bool = False,
        **fields: Unpack[ConsumerConfigDict],
    ) -> Consumer:
        """Create or update a consumer; see JetStream.create_or_update_consumer."""
        ...

    def consumer(self, name: str) -> Consumer:
        """Return a consumer; see JetStream.consumer."""
        ...

    def bind_consumer(self, name: str, **known: Unpack[KnownConfig]) -> BoundConsumer:
        """Return a handle to a consumer without looking it up; see JetStream.bind_consumer."""
        ...

    def ordered_consumer(
        self,
        *,
        filter_subjects: str | Sequence[str] | None = None,
        deliver_policy: DeliverPolicy = "all",
        opt_start_seq: int | None = None,
        opt_start_time: TimestampLike | None = None,
        replay_policy: ReplayPolicy = "instant",
        headers_only: bool = False,
        inactive_threshold: Seconds = ...,
        name_prefix: str = "",
        metadata: dict[str, str] | None = None,
        max_reset_attempts: int | None = None,
    ) -> OrderedConsumer:
        """Return an ordered consumer: each message once, in order, without gaps, for one client.

        Its consumers live in the memory of one server and are recreated when they are lost; nothing
        is acknowledged, and nothing is left on the server. Reading raises after
        `max_reset_attempts` consecutive failures (None: never). Its consumers are named
        `<name_prefix>_1` and so on.
        """
        ...

    def delete_consumer(self, name: str) -> None:
        """Delete a consumer; see JetStream.delete_consumer."""
        ...

    def consumers(self) -> Listing[ConsumerInfo]:
        """List the consumers; see JetStream.consumers."""
        ...

    def consumer_names(self) -> Listing[str]:
        """List the names of the consumers; see JetStream.consumer_names."""
        ...

    def pause_consumer(self, name: str, until: TimestampLike) -> ConsumerPause:
        """Pause a consumer; see JetStream.pause_consumer."""
        ...

    def resume_consumer(self, name: str) -> ConsumerPause:
        """Resume a consumer; see JetStream.resume_consumer."""
        ...

    def reset_consumer(self, name: str, seq: int = 0) -> ConsumerInfo:
        """Reset a consumer; see JetStream.reset_consumer."""
        ...

    def unpin_consumer(self, name: str, group: str) -> None:
        """Unpin a client; see JetStream.unpin_consumer."""
        ...

    def __repr__(self) -> str: ...

class JetStream:
    """JetStream of a client's account; `domain` or `prefix` select another one.

    `timeout`, in seconds, is for each call of the API, and the default of publishes.
    """

    inner: _api.JetStream
    port: BlockingPort

    def __init__(
        self, client: Client, *, domain: str = "", prefix: str = "$JS.API", timeout: Seconds = 5.0
    ) -> None: ...
    def __repr__(self) -> str: ...
    def account_info(self) -> AccountInfo:
        """Return the limits and the usage of the account."""
        ...

    def create_stream(
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
        ...

    def update_stream(
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
        ...

    def create_or_update_stream(
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
        ...

    def stream(self, name: str) -> Stream:
        """Return the stream of this name, with its info; raise StreamNotFound."""
        ...

    def delete_stream(self, name: str) -> None:
        """Delete a stream with its messages and consumers; raise StreamNotFound."""
        ...

    def streams(self, subject: str = "") -> Listing[StreamInfo]:
        """List all streams, or those that overlap with the subject.

        `missing` and `offline` of the list name existing streams that are not in it.
        """
        ...

    def stream_names(self, subject: str = "") -> Listing[str]:
        """List the names of all streams, or of those that overlap with the subject."""
        ...

    def stream_name_by_subject(self, subject: str) -> str:
        """Return the name of the stream with this subject.

        StreamNotFound: no stream has it. AmbiguousStream: more than one stream does.
        """
        ...

    def create_consumer(
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
        ...

    def update_consumer(
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
        ...

    def create_or_update_consumer(
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
        ...

    def consumer(self, stream: str, name: str) -> Consumer:
        """Return the consumer of this name, with its info.

        ConsumerNotFound, StreamNotFound: one of them does not exist.
        """
        ...

    def bind_consumer(self, stream: str, name: str, **known: Unpack[KnownConfig]) -> BoundConsumer:
        """Return a handle to a consumer without looking it up: nothing is sent.

        This is for clients that may pull and acknowledge but have no permission for the rest of the
        API, or cannot reach it, as with a consumer of another account. If the consumer does not
        exist, the first fetch raises. `known` are fields of its configuration that differ from the
        server's defaults: ack_policy, ack_wait, backoff, priority_policy. `info` reads them, too.
        """
        ...

    def delete_consumer(self, stream: str, name: str) -> None:
        """Delete a consumer; raise ConsumerNotFound if it does not exist."""
        ...

    def consumers(self, stream: str) -> Listing[ConsumerInfo]:
        """List all consumers of the stream.

        `missing` and `offline` of the list name consumers that exist and are not in it.
        """
        ...

    def consumer_names(self, stream: str) -> Listing[str]:
        """List the names of all consumers of the stream."""
        ...

    def pause_consumer(self, stream: str, name: str, until: TimestampLike) -> ConsumerPause:
        """Pause deliveries until a time: a Timestamp, aware datetime, RFC 3339 or nanoseconds."""
        ...

    def resume_consumer(self, stream: str, name: str) -> ConsumerPause:
        """Resume deliveries now."""
        ...

    def reset_consumer(self, stream: str, name: str, seq: int = 0) -> ConsumerInfo:
        """Restart a consumer at this sequence of the stream, or at its ack floor (0)."""
        ...

    def unpin_consumer(self, stream: str, name: str, group: str) -> None:
        """Unpin the client that a priority group is pinned to."""
        ...

    def create_key_value(
        self, config: KeyValueConfig | None = None, **fields: Unpack[KeyValueConfigDict]
    ) -> KeyValue:
        """Create a bucket; raise BucketExists if it exists and a given field differs."""
        ...

    def update_key_value(
        self, config: KeyValueConfig | None = None, **fields: Unpack[KeyValueConfigDict]
    ) -> KeyValue:
        """Replace the configuration of a bucket; raise BucketNotFound if it does not exist.

        Settings of its stream that are not in KeyValueConfig keep their values.
        """
        ...

    def create_or_update_key_value(
        self, config: KeyValueConfig | None = None, **fields: Unpack[KeyValueConfigDict]
    ) -> KeyValue:
        """Create a bucket, or replace its configuration if it exists."""
        ...

    def key_value(self, bucket: str) -> KeyValue:
        """Return the bucket of this name.

        BucketNotFound: it does not exist. NotABucket: the stream is not a key-value bucket.
        """
        ...

    def delete_key_value(self, bucket: str) -> None:
        """Delete a bucket with all its keys; raise BucketNotFound if it does not exist."""
        ...

    def key_value_names(self) -> list[str]:
        """List the names of all buckets."""
        ...

    def key_values(self) -> Listing[KeyValueStatus]:
        """List all buckets, with their configuration and state.

        `missing` and `offline` of the list name buckets that exist and are not in it.
        """
        ...

    def create_object_store(
        self, config: ObjectStoreConfig | None = None, **fields: Unpack[ObjectStoreConfigDict]
    ) -> ObjectStore:
        """Create an object store; raise BucketExists if it exists and a given field differs."""
        ...

    def update_object_store(
        self, config: ObjectStoreConfig | None = None, **fields: Unpack[ObjectStoreConfigDict]
    ) -> ObjectStore:
        """Replace the configuration of an object store; raise BucketNotFound."""
        ...

    def create_or_update_object_store(
        self, config: ObjectStoreConfig | None = None, **fields: Unpack[ObjectStoreConfigDict]
    ) -> ObjectStore:
        """Create an object store, or replace its configuration if it exists."""
        ...

    def object_store(self, bucket: str) -> ObjectStore:
        """Return the object store of this name; raise BucketNotFound if it does not exist."""
        ...

    def delete_object_store(self, bucket: str) -> None:
        """Delete an object store with all its objects; raise BucketNotFound."""
        ...

    def object_store_names(self) -> list[str]:
        """List the names of all object stores."""
        ...

    def object_stores(self) -> Listing[ObjectStoreStatus]:
        """List all object stores, with their configuration and state.

        `missing` and `offline` of the list name buckets that exist and are not in it.
        """
        ...

    def subscribe(
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
        ...

    def pull_subscribe(
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
        ...

    def snapshot_stream(
        self,
        stream: str,
        *,
        consumers: bool = True,
        check: bool = False,
        chunk_size: int = ...,
        window: int = ...,
    ) -> StreamSnapshot:
        """Return a snapshot of a whole stream: `async with` it, and iterate or `save` it.

        consumers   include the consumers and their states
        check       have the server verify the checksums of all messages first
        chunk_size  size of a chunk, 1 KiB to 1 MiB
        window      bytes that the server sends without acknowledgment, 1 KiB to 32 MiB (needs 2.14)

        Servers before 2.15 cannot take snapshots of memory streams.
        """
        ...

    def restore_stream(
        self,
        data: ObjectData,
        config: StreamConfigLike | None = None,
        *,
        chunk_size: int = ...,
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
        ...

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
        ...

    def publish(
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
        ...

    def add_to_counter(self, subject: str, by: int = 1, **options: Unpack[PublishOptions]) -> int:
        """Add to the counter of a subject, and return its new value (needs allow_msg_counter).

        If the stream already has an increment with this `msg_id`, nothing is added, and the current
        value is returned.
        """
        ...

    def schedule(
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
        ...

    def cancel_schedule(
        self, subject: str, data: BytesLike = b"", *, target: str, **options: Unpack[PublishOptions]
    ) -> PubAck:
        """Publish a message to the target of a schedule and remove the schedule, in one step.

        `subject` is that of the schedule. To remove it without a message, purge its subject.
        """
        ...

    def publisher(
        self, *, max_pending: int = 1000, ack_timeout: Seconds | None = None, retries: int = 2
    ) -> PublishWindow:
        """Return a window of publishes: `with js.publisher() as window`."""
        ...

    def atomic_batch(self, *, timeout: Seconds | None = None) -> AtomicBatch:
        """Return a batch that a stream stores as a whole or not at all (needs allow_atomic)."""
        ...

    def fast_batch(
        self,
        *,
        allow_gaps: bool = False,
        flow: int = 500,
        max_acks: int = 2,
        ack_timeout: Seconds | None = None,
    ) -> FastBatch:
        """Return a batch for fast ingestion: `with js.fast_batch() as batch`."""
        ...
