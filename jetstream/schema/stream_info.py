"""Responses of the server about streams."""

from __future__ import annotations

from .cluster_info import ClusterInfo
from .fields import Field, Fields
from .stream_config import StreamConfig
from .stream_sources import ExternalStream, SubjectTransform
from .types import (
    ANY,
    COUNT,
    COUNTS,
    FLAG,
    SEQUENCE,
    SEQUENCES,
    SIGNED_DURATION,
    TEXT,
    TIME,
    Embedded,
    Object,
    list_of,
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
