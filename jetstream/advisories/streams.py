"""Advisories about streams; the fields are those that servers send (ADVIS-3).

Events about replicas and batches are published in the system account as well (ADVIS-4).
"""

from __future__ import annotations

from jetstream.schema.cluster_info import PeerInfo
from jetstream.schema.fields import Field
from jetstream.schema.stream_info import StreamState
from jetstream.schema.types import COUNT, TEXT, TIME, Embedded, Object, list_of

from .event import Advisory, AdvisoryClient

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.schema.timestamp import Timestamp


class StreamActionAdvisory(Advisory):
    """A stream was created, updated or deleted."""

    stream: str
    action: str

    FIELDS: tuple[Field, ...] = Advisory.FIELDS + (
        Field("stream", TEXT, "The stream."),
        Field("action", TEXT, "`create`, `modify` or `delete`."),
    )


class StreamLeaderElectedAdvisory(Advisory):
    """A replicated stream has a new leader."""

    stream: str
    leader: str
    replicas: list[PeerInfo]
    account: str

    FIELDS: tuple[Field, ...] = Advisory.FIELDS + (
        Field("stream", TEXT, "The stream."),
        Field("leader", TEXT, "The server that is the leader now."),
        Field("replicas", list_of(PeerInfo), "The servers with a replica."),
        Field("account", TEXT, "The account; only in the system account."),
    )


class StreamQuorumLostAdvisory(Advisory):
    """A replicated stream has lost its quorum: it stores nothing."""

    stream: str
    replicas: list[PeerInfo]
    account: str

    FIELDS: tuple[Field, ...] = Advisory.FIELDS + (
        Field("stream", TEXT, "The stream."),
        Field("replicas", list_of(PeerInfo), "The servers with a replica."),
        Field("account", TEXT, "The account; only in the system account."),
    )


class StreamBatchAbandonedAdvisory(Advisory):
    """A stream has abandoned an atomic batch: none of it is stored."""

    stream: str
    batch: str
    reason: str
    account: str

    FIELDS: tuple[Field, ...] = Advisory.FIELDS + (
        Field("stream", TEXT, "The stream.", (2, 12)),
        Field("batch", TEXT, "The id of the batch.", (2, 12)),
        Field("reason", TEXT, "`timeout`, `large`, `incomplete` or `unsupported`.", (2, 12)),
        Field("account", TEXT, "The account; only in the system account.", (2, 12)),
    )


class SnapshotCreateAdvisory(Advisory):
    """A snapshot of a stream has started."""

    stream: str
    state: StreamState
    client: AdvisoryClient | None

    FIELDS: tuple[Field, ...] = Advisory.FIELDS + (
        Field("stream", TEXT, "The stream."),
        Field("state", Embedded(StreamState), "The state of the stream."),
        Field("client", Object(AdvisoryClient), "The client that sent the request."),
    )


class SnapshotCompleteAdvisory(Advisory):
    """A snapshot of a stream has ended."""

    stream: str
    start: Timestamp | None
    end: Timestamp | None
    error: str
    client: AdvisoryClient | None

    FIELDS: tuple[Field, ...] = Advisory.FIELDS + (
        Field("stream", TEXT, "The stream."),
        Field("start", TIME, "The start of the snapshot."),
        Field("end", TIME, "The end of the snapshot."),
        Field("error", TEXT, "The error, if it failed.", (2, 15)),
        Field("client", Object(AdvisoryClient), "The client that sent the request."),
    )


class RestoreCreateAdvisory(Advisory):
    """The restore of a stream has started."""

    stream: str
    client: AdvisoryClient | None

    FIELDS: tuple[Field, ...] = Advisory.FIELDS + (
        Field("stream", TEXT, "The stream."),
        Field("client", Object(AdvisoryClient), "The client that sent the request."),
    )


class RestoreCompleteAdvisory(Advisory):
    """The restore of a stream has ended."""

    stream: str
    start: Timestamp | None
    end: Timestamp | None
    bytes: int
    client: AdvisoryClient | None

    FIELDS: tuple[Field, ...] = Advisory.FIELDS + (
        Field("stream", TEXT, "The stream."),
        Field("start", TIME, "The start of the restore."),
        Field("end", TIME, "The end of the restore."),
        Field("bytes", COUNT, "The size of the snapshot in bytes."),
        Field("client", Object(AdvisoryClient), "The client that sent the request."),
    )
