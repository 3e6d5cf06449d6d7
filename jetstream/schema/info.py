"""What the server tells about streams, consumers, the account and what was published."""

from __future__ import annotations

from .cluster_info import ClusterInfo
from .cluster_info import DesiredCluster as DesiredCluster
from .cluster_info import MoveOrigin as MoveOrigin
from .cluster_info import MoveStatus as MoveStatus
from .cluster_info import PeerInfo as PeerInfo
from .consumer_config import ConsumerConfig
from .fields import Field, Fields
from .stream_config import StreamConfig
from .stream_sources import ExternalStream, SubjectTransform
from .types import (
    ANY,
    COUNT,
    COUNTS,
    DURATION,
    FLAG,
    SEQUENCE,
    SEQUENCES,
    SIGNED_DURATION,
    TEXT,
    TIME,
    Embedded,
    Object,
    list_of,
    map_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .timestamp import Timestamp


class LostData(Fields):
    """What a stream has lost, by a damaged disk."""

    msgs: list[int]
    bytes: int

    FIELDS = (
        Field("msgs", SEQUENCES, "The sequences of the messages."),
        Field("bytes", SEQUENCE, "How many bytes they had."),
    )


class StreamState(Fields):
    """What a stream holds."""

    messages: int
    bytes: int
    first_seq: int
    first_ts: Timestamp | None
    last_seq: int
    last_ts: Timestamp | None
    num_subjects: int
    subjects: dict[str, int]
    num_deleted: int
    deleted: list[int]
    lost: LostData | None
    consumer_count: int

    FIELDS = (
        Field("messages", SEQUENCE, "How many messages."),
        Field("bytes", SEQUENCE, "How many bytes."),
        Field("first_seq", SEQUENCE, "The sequence of the first message."),
        Field("first_ts", TIME, "When the first message was stored."),
        Field("last_seq", SEQUENCE, "The sequence of the last message, there or gone."),
        Field("last_ts", TIME, "When the last message was stored."),
        Field("num_subjects", COUNT, "How many subjects.", (2, 7)),
        Field("subjects", COUNTS, "How many messages of each subject; if asked for.", (2, 7)),
        Field("num_deleted", COUNT, "How many messages between first and last are gone."),
        Field("deleted", SEQUENCES, "Their sequences; if asked for."),
        Field("lost", Object(LostData), "What a damaged disk has cost."),
        Field("consumer_count", COUNT, "How many consumers."),
    )


class StreamSourceInfo(Fields):
    """How a mirror or a source is getting on."""

    name: str
    external: ExternalStream | None
    lag: int
    active: float
    error: Any
    filter_subject: str
    subject_transforms: list[SubjectTransform]

    FIELDS = (
        Field("name", TEXT, "The stream that is copied."),
        Field("external", Object(ExternalStream), "Where it is, if not in this account."),
        Field("lag", SEQUENCE, "How many messages are still to be copied."),
        Field("active", SIGNED_DURATION, "How long ago something was heard of it; below 0: never."),
        Field("error", ANY, "What is wrong, as the API tells errors."),
        Field("filter_subject", TEXT, "What is copied.", (2, 10)),
        Field("subject_transforms", list_of(SubjectTransform), "What is copied, and how.", (2, 10)),
    )


class StreamAlternate(Fields):
    """A stream that has the same messages: the stream or a mirror of it."""

    name: str
    domain: str
    cluster: str

    FIELDS = (
        Field("name", TEXT, "The stream.", (2, 8)),
        Field("domain", TEXT, "Its domain.", (2, 8)),
        Field("cluster", TEXT, "Its cluster.", (2, 8)),
    )


class StreamInfo(Fields):
    """A stream: configuration and state.

    `total`, `offset` and `limit` are about the page of `state.subjects` that this is.
    """

    config: StreamConfig
    created: Timestamp | None
    state: StreamState
    domain: str
    cluster: ClusterInfo | None
    mirror: StreamSourceInfo | None
    sources: list[StreamSourceInfo]
    alternates: list[StreamAlternate]
    ts: Timestamp | None
    did_create: bool
    total: int
    offset: int
    limit: int

    FIELDS = (
        Field("config", Embedded(StreamConfig), "Its configuration, with the server's defaults."),
        Field("created", TIME, "When it was created."),
        Field("state", Embedded(StreamState), "What it holds."),
        Field("domain", TEXT, "The domain that it is in.", (2, 6)),
        Field("cluster", Object(ClusterInfo), "The servers that have it."),
        Field("mirror", Object(StreamSourceInfo), "How the copying gets on."),
        Field("sources", list_of(StreamSourceInfo), "How the copying gets on."),
        Field("alternates", list_of(StreamAlternate), "Streams with the same messages.", (2, 8)),
        Field("ts", TIME, "When this was told.", (2, 10)),
        Field("did_create", FLAG, "The call created it; it was not there before."),
        Field("total", COUNT, "How many subjects there are to list.", (2, 7)),
        Field("offset", COUNT, "How many subjects come before those of this answer.", (2, 7)),
        Field("limit", COUNT, "How many subjects an answer lists at most.", (2, 7)),
    )


class SequenceInfo(Fields):
    """A place in the stream, as the consumer counts and as the stream does."""

    consumer_seq: int
    stream_seq: int
    last_active: Timestamp | None

    FIELDS = (
        Field("consumer_seq", SEQUENCE, "How many deliveries."),
        Field("stream_seq", SEQUENCE, "The sequence in the stream."),
        Field("last_active", TIME, "When that was.", (2, 4)),
    )


class PriorityGroupState(Fields):
    """A priority group of a consumer, and who is pinned."""

    group: str
    pinned_client_id: str
    pinned_ts: Timestamp | None

    FIELDS = (
        Field("group", TEXT, "The group.", (2, 11)),
        Field("pinned_client_id", TEXT, "The id of the pinned client; empty: none.", (2, 11)),
        Field("pinned_ts", TIME, "Since when it is pinned.", (2, 11)),
    )


class ConsumerInfo(Fields):
    """A consumer: configuration and state."""

    stream_name: str
    name: str
    created: Timestamp | None
    config: ConsumerConfig
    delivered: SequenceInfo
    ack_floor: SequenceInfo
    num_ack_pending: int
    num_redelivered: int
    num_waiting: int
    num_pending: int
    cluster: ClusterInfo | None
    push_bound: bool
    paused: bool
    pause_remaining: float
    ts: Timestamp | None
    priority_groups: list[PriorityGroupState]
    reset_seq: int

    FIELDS = (
        Field("stream_name", TEXT, "Its stream."),
        Field("name", TEXT, "Its name."),
        Field("created", TIME, "When it was created."),
        Field("config", Embedded(ConsumerConfig), "Its configuration, with the server's defaults."),
        Field("delivered", Embedded(SequenceInfo), "The last delivery."),
        Field("ack_floor", Embedded(SequenceInfo), "All up to here is acknowledged."),
        Field("num_ack_pending", COUNT, "How many messages are delivered and not acknowledged."),
        Field("num_redelivered", COUNT, "How many of them were delivered more than once."),
        Field("num_waiting", COUNT, "Pull: how many requests wait."),
        Field("num_pending", SEQUENCE, "How many messages are still to be delivered."),
        Field("cluster", Object(ClusterInfo), "The servers that have it."),
        Field("push_bound", FLAG, "Push: somebody is subscribed to deliver_subject.", (2, 4)),
        Field("paused", FLAG, "It delivers nothing at present.", (2, 11)),
        Field("pause_remaining", DURATION, "For how long it is still paused.", (2, 11)),
        Field("ts", TIME, "When this was told.", (2, 10)),
        Field("priority_groups", list_of(PriorityGroupState), "Its groups.", (2, 11)),
        Field("reset_seq", SEQUENCE, "Answer to a reset: where in the stream it is now.", (2, 14)),
    )


class ConsumerPause(Fields):
    """Whether a consumer is paused, and for how long."""

    paused: bool
    pause_until: Timestamp | None
    pause_remaining: float

    FIELDS = (
        Field("paused", FLAG, "It delivers nothing at present.", (2, 11)),
        Field("pause_until", TIME, "It delivers nothing until then.", (2, 11)),
        Field("pause_remaining", DURATION, "For how long it is still paused.", (2, 11)),
    )


class PubAck(Fields):
    """The message is stored: in this stream, at this sequence."""

    stream: str
    seq: int
    domain: str
    duplicate: bool
    val: str
    batch: str
    count: int

    FIELDS = (
        Field("stream", TEXT, "The stream."),
        Field("seq", SEQUENCE, "The message's sequence, or that of the last of a batch."),
        Field("domain", TEXT, "The domain of the stream.", (2, 4)),
        Field("duplicate", FLAG, "The stream has it already, by its id; nothing was stored."),
        Field("val", TEXT, "The value of the counter after this increment.", (2, 12)),
        Field("batch", TEXT, "The id of the batch.", (2, 12)),
        Field("count", SEQUENCE, "How many messages the batch has.", (2, 12)),
    )


class AccountLimits(Fields):
    """How much an account may have; -1: no limit."""

    max_memory: int
    max_storage: int
    max_streams: int
    max_consumers: int
    max_ack_pending: int
    memory_max_stream_bytes: int
    storage_max_stream_bytes: int
    max_bytes_required: bool

    FIELDS = (
        Field("max_memory", COUNT, "Bytes in memory."),
        Field("max_storage", COUNT, "Bytes in files."),
        Field("max_streams", COUNT, "Streams."),
        Field("max_consumers", COUNT, "Consumers."),
        Field("max_ack_pending", COUNT, "The max_ack_pending of a consumer.", (2, 8)),
        Field("memory_max_stream_bytes", COUNT, "The bytes of one stream in memory.", (2, 8)),
        Field("storage_max_stream_bytes", COUNT, "The bytes of one stream in files.", (2, 8)),
        Field("max_bytes_required", FLAG, "A stream must have max_bytes.", (2, 7)),
    )


class Tier(Fields):
    """How much of JetStream is in use, and the limits."""

    memory: int
    storage: int
    reserved_memory: int
    reserved_storage: int
    streams: int
    consumers: int
    limits: AccountLimits

    FIELDS: tuple[Field, ...] = (
        Field("memory", SEQUENCE, "Bytes in memory."),
        Field("storage", SEQUENCE, "Bytes in files."),
        Field("reserved_memory", SEQUENCE, "Bytes in memory that streams may claim.", (2, 10)),
        Field("reserved_storage", SEQUENCE, "Bytes in files that streams may claim.", (2, 10)),
        Field("streams", COUNT, "Streams."),
        Field("consumers", COUNT, "Consumers."),
        Field("limits", Embedded(AccountLimits), "How much there may be."),
    )


class ApiStats(Fields):
    """The API's requests of an account, as this server saw them."""

    level: int
    total: int
    errors: int
    inflight: int

    FIELDS = (
        Field("level", COUNT, "The API level of the server.", (2, 11)),
        Field("total", SEQUENCE, "How many requests."),
        Field("errors", SEQUENCE, "How many of them failed."),
        Field("inflight", SEQUENCE, "How many are being served.", (2, 7)),
    )


class AccountInfo(Tier):
    """JetStream as one account has it; with tiers the totals, and the limits are in the tiers."""

    domain: str
    api: ApiStats
    tiers: dict[str, Tier]

    FIELDS: tuple[Field, ...] = Tier.FIELDS + (
        Field("domain", TEXT, "The domain."),
        Field("api", Embedded(ApiStats), "The API's requests."),
        Field("tiers", map_of(Tier), "Usage and limits by replicas: `R1`, `R3`.", (2, 8)),
    )
