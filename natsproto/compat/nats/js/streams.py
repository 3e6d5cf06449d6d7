"""The dataclasses of streams."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from .base import Base
from .enums import DiscardPolicy, PersistMode, RetentionPolicy, StorageType, StoreCompression

_BATCH = {"batch": "batch_id", "count": "batch_size"}


@dataclass
class PubAck(Base):
    """The confirmation that a message is stored."""

    stream: str
    seq: int
    domain: str | None = None
    duplicate: bool | None = None
    batch_id: str | None = None
    batch_size: int | None = None
    val: str | None = None

    @classmethod
    def from_response(cls, resp: dict[str, Any]) -> PubAck:
        """Return the confirmation in a response, where two fields have other names."""
        return super().from_response({_BATCH.get(name, name): resp[name] for name in resp})

    def as_dict(self) -> dict[str, object]:
        """Return the confirmation as the server sends it."""
        names = {ours: theirs for theirs, ours in _BATCH.items()}
        return {names.get(name, name): value for name, value in super().as_dict().items()}


@dataclass
class Placement(Base):
    """Where in a cluster a stream is placed."""

    cluster: str | None = None
    tags: list[str] | None = None


@dataclass
class ExternalStream(Base):
    """The API of a stream in another account or domain."""

    api: str
    deliver: str | None = None


@dataclass
class SubjectTransform(Base):
    """A rule that changes subjects."""

    src: str
    dest: str


@dataclass
class StreamConsumerSource(Base):
    """A consumer that a stream takes its messages from."""

    name: str
    deliver_subject: str


@dataclass
class StreamSource(Base):
    """A stream that another one takes messages from."""

    name: str
    opt_start_seq: int | None = None
    opt_start_time: datetime.datetime | None = None
    filter_subject: str | None = None
    external: ExternalStream | None = None
    subject_transforms: list[SubjectTransform] | None = None
    consumer: StreamConsumerSource | None = None

    TIMES: ClassVar[tuple[str, ...]] = ("opt_start_time",)
    OBJECTS: ClassVar[dict[str, Any]] = {
        "external": ExternalStream,
        "subject_transforms": SubjectTransform,
        "consumer": StreamConsumerSource,
    }


@dataclass
class StreamSourceInfo(Base):
    """The state of a source or mirror."""

    name: str
    lag: int | None = None
    active: int | None = None
    error: dict[str, Any] | None = None


@dataclass
class LostStreamData(Base):
    """Messages that a stream has lost."""

    msgs: list[int] | None = None
    bytes: int | None = None


@dataclass
class StreamState(Base):
    """The contents of a stream."""

    messages: int
    bytes: int
    first_seq: int
    last_seq: int
    consumer_count: int
    deleted: list[int] | None = None
    num_deleted: int | None = None
    lost: LostStreamData | None = None
    subjects: dict[str, int] | None = None

    OBJECTS: ClassVar[dict[str, Any]] = {"lost": LostStreamData}


@dataclass
class RePublish(Base):
    """Where a stream publishes its messages again."""

    src: str | None = None
    dest: str | None = None
    headers_only: bool | None = None


@dataclass
class StreamConsumerLimits(Base):
    """The limits of the consumers of a stream."""

    inactive_threshold: float | None = None
    max_ack_pending: int | None = None

    DURATIONS: ClassVar[tuple[str, ...]] = ("inactive_threshold",)


@dataclass
class StreamConfig(Base):
    """The configuration of a stream."""

    name: str | None = None
    description: str | None = None
    subjects: list[str] | None = None
    retention: RetentionPolicy | None = None
    max_consumers: int | None = None
    max_msgs: int | None = None
    max_bytes: int | None = None
    discard: DiscardPolicy | None = DiscardPolicy.OLD
    discard_new_per_subject: bool = False
    max_age: float | None = None
    max_msgs_per_subject: int = -1
    max_msg_size: int | None = -1
    storage: StorageType | None = None
    num_replicas: int | None = None
    no_ack: bool = False
    template_owner: str | None = None
    duplicate_window: float = 0
    placement: Placement | None = None
    mirror: StreamSource | None = None
    sources: list[StreamSource] | None = None
    sealed: bool = False
    deny_delete: bool = False
    deny_purge: bool = False
    allow_rollup_hdrs: bool = False
    first_seq: int | None = None
    republish: RePublish | None = None
    subject_transform: SubjectTransform | None = None
    allow_direct: bool | None = None
    mirror_direct: bool | None = None
    compression: StoreCompression | None = None
    allow_msg_ttl: bool | None = None
    allow_msg_schedules: bool | None = None
    allow_atomic: bool | None = None
    allow_batched: bool | None = None
    allow_msg_counter: bool | None = None
    persist_mode: PersistMode | None = None
    metadata: dict[str, str] | None = None
    consumer_limits: StreamConsumerLimits | None = None
    subject_delete_marker_ttl: float | None = None

    DURATIONS: ClassVar[tuple[str, ...]] = (
        "max_age",
        "duplicate_window",
        "subject_delete_marker_ttl",
    )
    OBJECTS: ClassVar[dict[str, Any]] = {
        "placement": Placement,
        "mirror": StreamSource,
        "sources": StreamSource,
        "republish": RePublish,
        "subject_transform": SubjectTransform,
        "consumer_limits": StreamConsumerLimits,
    }

    def as_dict(self) -> dict[str, object]:
        """Return the configuration as it is sent; `max_age` is always part of it.

        Raises ValueError if the compression or the metadata is invalid.
        """
        known = [each.value for each in StoreCompression]
        if self.compression and self.compression not in known:
            raise ValueError(f"nats: invalid store compression type: {self.compression}")
        if self.metadata and not isinstance(self.metadata, dict):
            raise ValueError("nats: invalid metadata format")
        found = super().as_dict()
        found.setdefault("max_age", 0)
        if not self.compression:
            found.pop("compression", None)
        if not self.subject_delete_marker_ttl:
            found.pop("subject_delete_marker_ttl", None)
        return found


@dataclass
class PeerInfo(Base):
    """A member of the cluster of a stream or consumer."""

    name: str | None = None
    current: bool | None = None
    offline: bool | None = None
    active: int | None = None
    lag: int | None = None


@dataclass
class ClusterInfo(Base):
    """The cluster of a stream or consumer."""

    leader: str | None = None
    name: str | None = None
    replicas: list[PeerInfo] | None = None
    raft_group: str | None = None
    leader_since: datetime.datetime | None = None
    traffic_acc: str | None = None

    TIMES: ClassVar[tuple[str, ...]] = ("leader_since",)
    OBJECTS: ClassVar[dict[str, Any]] = {"replicas": PeerInfo}


@dataclass
class StreamInfo(Base):
    """The configuration and the state of a stream."""

    config: StreamConfig
    state: StreamState
    mirror: StreamSourceInfo | None = None
    sources: list[StreamSourceInfo] | None = None
    cluster: ClusterInfo | None = None
    did_create: bool | None = None
    created: datetime.datetime | None = None

    TIMES: ClassVar[tuple[str, ...]] = ("created",)
    OBJECTS: ClassVar[dict[str, Any]] = {
        "config": StreamConfig,
        "state": StreamState,
        "mirror": StreamSourceInfo,
        "sources": StreamSourceInfo,
        "cluster": ClusterInfo,
    }


@dataclass
class RawStreamMsg(Base):
    """A stored message."""

    subject: str | None = None
    seq: int | None = None
    data: bytes | None = None
    hdrs: str | None = None
    headers: dict[str, str] | None = None
    stream: str | None = None
    time: datetime.datetime | None = None

    TIMES: ClassVar[tuple[str, ...]] = ("time",)

    @property
    def sequence(self) -> int | None:
        """The sequence, by its other name."""
        return self.seq

    @property
    def header(self) -> dict[str, str] | None:
        """The headers, by their other name."""
        return self.headers


@dataclass
class StreamPurgeRequest(Base):
    """Which messages to purge."""

    seq: int | None = None
    filter: str | None = None
    keep: int | None = None


class StreamsListIterator(Iterable[StreamInfo]):
    """A page of a list of streams, which are decoded one by one."""

    def __init__(self, offset: int, total: int, streams: list[dict[str, Any]]) -> None:
        self.offset: int = offset
        self.total: int = total
        self.streams: list[dict[str, Any]] = streams
        self._index = 0

    def __iter__(self) -> Iterator[StreamInfo]:
        return self

    def __next__(self) -> StreamInfo:
        if self._index >= len(self.streams):
            raise StopIteration
        self._index += 1
        return StreamInfo.from_response(self.streams[self._index - 1])
