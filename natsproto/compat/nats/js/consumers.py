"""The dataclasses of consumers."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any, ClassVar

from .base import Base
from .enums import AckPolicy, DeliverPolicy, ReplayPolicy
from .streams import ClusterInfo


@dataclass
class ConsumerConfig(Base):
    """The configuration of a consumer."""

    name: str | None = None
    durable_name: str | None = None
    description: str | None = None
    deliver_policy: DeliverPolicy | None = DeliverPolicy.ALL
    opt_start_seq: int | None = None
    opt_start_time: datetime.datetime | None = None
    ack_policy: AckPolicy | None = AckPolicy.EXPLICIT
    ack_wait: float | None = None
    max_deliver: int | None = None
    backoff: list[float] | None = None
    filter_subject: str | None = None
    filter_subjects: list[str] | None = None
    replay_policy: ReplayPolicy | None = ReplayPolicy.INSTANT
    rate_limit_bps: int | None = None
    sample_freq: str | None = None
    max_waiting: int | None = None
    max_ack_pending: int | None = None
    flow_control: bool | None = None
    idle_heartbeat: float | None = None
    headers_only: bool | None = None
    deliver_subject: str | None = None
    deliver_group: str | None = None
    inactive_threshold: float | None = None
    num_replicas: int | None = None
    mem_storage: bool | None = None
    metadata: dict[str, str] | None = None
    pause_until: str | None = None

    DURATIONS: ClassVar[tuple[str, ...]] = (
        "ack_wait",
        "backoff",
        "idle_heartbeat",
        "inactive_threshold",
    )
    TIMES: ClassVar[tuple[str, ...]] = ("opt_start_time",)

    def as_dict(self) -> dict[str, object]:
        """Return the configuration as it is sent; some durations are always part of it."""
        found = super().as_dict()
        for name in ("ack_wait", "idle_heartbeat", "inactive_threshold"):
            found.setdefault(name, 0)
        return found


@dataclass
class SequenceInfo(Base):
    """A position of a consumer."""

    consumer_seq: int
    stream_seq: int
    last_active: datetime.datetime | None = None

    TIMES: ClassVar[tuple[str, ...]] = ("last_active",)


@dataclass
class ConsumerInfo(Base):
    """The configuration and the state of a consumer."""

    name: str
    stream_name: str
    config: ConsumerConfig
    created: datetime.datetime
    delivered: SequenceInfo | None = None
    ack_floor: SequenceInfo | None = None
    num_ack_pending: int | None = None
    num_redelivered: int | None = None
    num_waiting: int | None = None
    num_pending: int | None = None
    cluster: ClusterInfo | None = None
    push_bound: bool | None = None
    paused: bool | None = None
    pause_remaining: str | None = None

    TIMES: ClassVar[tuple[str, ...]] = ("created",)
    OBJECTS: ClassVar[dict[str, Any]] = {
        "config": ConsumerConfig,
        "delivered": SequenceInfo,
        "ack_floor": SequenceInfo,
        "cluster": ClusterInfo,
    }


@dataclass
class ConsumerPause(Base):
    """The answer to a pause of a consumer."""

    paused: bool
    pause_until: str | None = None
    pause_remaining: str | None = None


@dataclass
class ConsumerReset(Base):
    """The answer to a reset of a consumer."""

    info: ConsumerInfo
    reset_seq: int

    @classmethod
    def from_response(cls, resp: dict[str, Any]) -> ConsumerReset:
        """Return the answer: the fields of the consumer, and the sequence it was reset to."""
        return cls(info=ConsumerInfo.from_response(resp), reset_seq=resp.get("reset_seq", 0))
