"""Responses of the server about streams, consumers, the account and publishes."""

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

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any

    from .timestamp import Timestamp


class LostData(Fields):
    """The messages that a stream has lost because of a damaged disk."""

    msgs: list[int]
    bytes: int

    FIELDS: tuple[Field, ...] = (
        Field("msgs", SEQUENCES, "The sequences of the messages."),
        Field("bytes", SEQUENCE, "Their size in bytes."),
    )


class StreamState(Fields):
    """The state of a stream."""

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

    FIELDS: tuple[Field, ...] = (
        Field("messages", SEQUENCE, "Number of messages."),
        Field("bytes", SEQUENCE, "Number of bytes."),
        Field("first_seq", SEQUENCE, "The sequence of the first message."),
        Field("first_ts", TIME, "When the first message was stored."),
        Field("last_seq", SEQUENCE, "The sequence of the last message, even if it was removed."),
        Field("last_ts", TIME, "When the last message was stored."),
        Field("num_subjects", COUNT, "Number of subjects.", (2, 7)),
        Field("subjects", COUNTS, "Number of messages of each subject; if requested.", (2, 7)),
        Field("num_deleted", COUNT, "Number of removed messages between first and last."),
        Field("deleted", SEQUENCES, "Their sequences; if requested."),
        Field("lost", Object(LostData), "Messages lost because of a damaged disk."),
        Field("consumer_count", COUNT, "Number of consumers."),
    )


class StreamSourceInfo(Fields):
    """The replication status of a mirror or source."""

    name: str
    external: ExternalStream | None
    lag: int
    active: float
    error: Any
    filter_subject: str
    subject_transforms: list[SubjectTransform]

    FIELDS: tuple[Field, ...] = (
        Field("name", TEXT, "The origin."),
        Field(
            "external",
            Object(ExternalStream),
            "Its address, if it is in another account or domain.",
        ),
        Field("lag", SEQUENCE, "Number of messages still to be copied."),
        Field("active", SIGNED_DURATION, "Time since the last contact; negative: never."),
        Field("error", ANY, "The error, in the form of the API."),
        Field("filter_subject", TEXT, "The subjects that are copied.", (2, 10)),
        Field("subject_transforms", list_of(SubjectTransform), "The transforms.", (2, 10)),
    )


class StreamAlternate(Fields):
    """A stream with the same messages: the stream itself or a mirror."""

    name: str
    domain: str
    cluster: str

    FIELDS: tuple[Field, ...] = (
        Field("name", TEXT, "The stream.", (2, 8)),
        Field("domain", TEXT, "Its domain.", (2, 8)),
        Field("cluster", TEXT, "Its cluster.", (2, 8)),
    )


class StreamInfo(Fields):
    """The configuration and state of a stream.

    `total`, `offset` and `limit` describe the page of `state.subjects` in this response.
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

    FIELDS: tuple[Field, ...] = (
        Field("config", Embedded(StreamConfig), "Its configuration, with the server's defaults."),
        Field("created", TIME, "Creation time."),
        Field("state", Embedded(StreamState), "Its state."),
        Field("domain", TEXT, "Its domain.", (2, 6)),
        Field("cluster", Object(ClusterInfo), "Its replicas."),
        Field("mirror", Object(StreamSourceInfo), "Replication status."),
        Field("sources", list_of(StreamSourceInfo), "Replication status."),
        Field("alternates", list_of(StreamAlternate), "Streams with the same messages.", (2, 8)),
        Field("ts", TIME, "Server time of this response.", (2, 10)),
        Field("did_create", FLAG, "The call created the stream."),
        Field("total", COUNT, "Number of subjects in total.", (2, 7)),
        Field("offset", COUNT, "Number of subjects before this page.", (2, 7)),
        Field("limit", COUNT, "Maximum number of subjects per page.", (2, 7)),
    )


class SequenceInfo(Fields):
    """A position, as a consumer sequence and as a stream sequence."""

    consumer_seq: int
    stream_seq: int
    last_active: Timestamp | None

    FIELDS: tuple[Field, ...] = (
        Field("consumer_seq", SEQUENCE, "The consumer sequence: the number of deliveries."),
        Field("stream_seq", SEQUENCE, "The stream sequence."),
        Field("last_active", TIME, "Time of the last activity.", (2, 4)),
    )


class PriorityGroupState(Fields):
    """A priority group of a consumer, and its pinned client."""

    group: str
    pinned_client_id: str
    pinned_ts: Timestamp | None

    FIELDS: tuple[Field, ...] = (
        Field("group", TEXT, "The group.", (2, 11)),
        Field("pinned_client_id", TEXT, "The id of the pinned client; empty: none.", (2, 11)),
        Field("pinned_ts", TIME, "The time at which it was pinned.", (2, 11)),
    )


class ConsumerInfo(Fields):
    """The configuration and state of a consumer."""

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

    FIELDS: tuple[Field, ...] = (
        Field("stream_name", TEXT, "Its stream."),
        Field("name", TEXT, "Its name."),
        Field("created", TIME, "Creation time."),
        Field("config", Embedded(ConsumerConfig), "Its configuration, with the server's defaults."),
        Field("delivered", Embedded(SequenceInfo), "The last delivery."),
        Field("ack_floor", Embedded(SequenceInfo), "All messages up to this one are acknowledged."),
        Field("num_ack_pending", COUNT, "Number of delivered, unacknowledged messages."),
        Field("num_redelivered", COUNT, "Number of those that were delivered more than once."),
        Field("num_waiting", COUNT, "Pull: number of waiting requests."),
        Field("num_pending", SEQUENCE, "Number of messages still to be delivered."),
        Field("cluster", Object(ClusterInfo), "Its replicas."),
        Field("push_bound", FLAG, "Push: deliver_subject has a subscriber.", (2, 4)),
        Field("paused", FLAG, "It is paused.", (2, 11)),
        Field("pause_remaining", DURATION, "Remaining time of the pause.", (2, 11)),
        Field("ts", TIME, "Server time of this response.", (2, 10)),
        Field("priority_groups", list_of(PriorityGroupState), "Its groups.", (2, 11)),
        Field("reset_seq", SEQUENCE, "After a reset: its new position in the stream.", (2, 14)),
    )


class ConsumerPause(Fields):
    """The pause of a consumer."""

    paused: bool
    pause_until: Timestamp | None
    pause_remaining: float

    FIELDS: tuple[Field, ...] = (
        Field("paused", FLAG, "It is paused.", (2, 11)),
        Field("pause_until", TIME, "The end of the pause.", (2, 11)),
        Field("pause_remaining", DURATION, "Remaining time of the pause.", (2, 11)),
    )


class PubAck(Fields):
    """The acknowledgment of a publish: the message is stored."""

    stream: str
    seq: int
    domain: str
    duplicate: bool
    val: str
    batch: str
    count: int

    FIELDS: tuple[Field, ...] = (
        Field("stream", TEXT, "The stream."),
        Field("seq", SEQUENCE, "The sequence of the message, or of the last message of a batch."),
        Field("domain", TEXT, "The domain of the stream.", (2, 4)),
        Field(
            "duplicate", FLAG, "The stream already has a message with this id; nothing was stored."
        ),
        Field("val", TEXT, "The value of the counter after this increment.", (2, 12)),
        Field("batch", TEXT, "The id of the batch.", (2, 12)),
        Field("count", SEQUENCE, "The number of messages in the batch.", (2, 12)),
    )


class AccountLimits(Fields):
    """The limits of an account; -1: no limit."""

    max_memory: int
    max_storage: int
    max_streams: int
    max_consumers: int
    max_ack_pending: int
    memory_max_stream_bytes: int
    storage_max_stream_bytes: int
    max_bytes_required: bool

    FIELDS: tuple[Field, ...] = (
        Field("max_memory", COUNT, "Bytes in memory."),
        Field("max_storage", COUNT, "Bytes in files."),
        Field("max_streams", COUNT, "Streams."),
        Field("max_consumers", COUNT, "Consumers."),
        Field("max_ack_pending", COUNT, "The max_ack_pending of a consumer.", (2, 8)),
        Field("memory_max_stream_bytes", COUNT, "The bytes of one stream in memory.", (2, 8)),
        Field("storage_max_stream_bytes", COUNT, "The bytes of one stream in files.", (2, 8)),
        Field("max_bytes_required", FLAG, "Streams must have max_bytes.", (2, 7)),
    )


class Tier(Fields):
    """The usage of JetStream, and its limits."""

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
        Field(
            "reserved_memory", SEQUENCE, "Bytes in memory that are reserved by streams.", (2, 10)
        ),
        Field(
            "reserved_storage", SEQUENCE, "Bytes in files that are reserved by streams.", (2, 10)
        ),
        Field("streams", COUNT, "Streams."),
        Field("consumers", COUNT, "Consumers."),
        Field("limits", Embedded(AccountLimits), "The limits."),
    )


class ApiStats(Fields):
    """The API requests of an account, as counted by this server."""

    level: int
    total: int
    errors: int
    inflight: int

    FIELDS: tuple[Field, ...] = (
        Field("level", COUNT, "The API level of the server.", (2, 11)),
        Field("total", SEQUENCE, "Number of requests."),
        Field("errors", SEQUENCE, "Number of failed requests."),
        Field("inflight", SEQUENCE, "Number of requests in progress.", (2, 7)),
    )


class AccountInfo(Tier):
    """The usage and limits of an account; with tiers, the totals: the tiers have the limits."""

    domain: str
    api: ApiStats
    tiers: dict[str, Tier]

    FIELDS: tuple[Field, ...] = Tier.FIELDS + (
        Field("domain", TEXT, "The domain."),
        Field("api", Embedded(ApiStats), "The API requests."),
        Field("tiers", map_of(Tier), "Usage and limits by replicas: `R1`, `R3`.", (2, 8)),
    )
