"""The descriptions of services: the answers to PING, INFO and STATS as dataclasses."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from natsproto.compat.nats.js.base import Base

INFO_RESPONSE_TYPE = "io.nats.micro.v1.info_response"
PING_RESPONSE_TYPE = "io.nats.micro.v1.ping_response"
STATS_RESPONSE_TYPE = "io.nats.micro.v1.stats_response"


@dataclass
class EndpointStats:
    """The counters of an endpoint; times are in nanoseconds."""

    name: str
    subject: str
    queue_group: str
    num_requests: int
    num_errors: int
    processing_time: int
    average_processing_time: int
    last_error: str | None = None
    data: Any | None = None

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> EndpointStats:
        """Return the counters in a response; other clients leave some of them out."""
        return cls(
            name=data["name"],
            subject=data["subject"],
            queue_group=data.get("queue_group", ""),
            num_requests=data.get("num_requests", 0),
            num_errors=data.get("num_errors", 0),
            processing_time=data.get("processing_time", 0),
            average_processing_time=data.get("average_processing_time", 0),
            last_error=data.get("last_error"),
            data=data.get("data"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the counters as they are sent; nats-py reads all of them."""
        return {**vars(self), "last_error": self.last_error or ""}


@dataclass
class EndpointInfo:
    """The description of an endpoint."""

    name: str
    subject: str
    queue_group: str
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> EndpointInfo:
        """Return the description in a response."""
        return cls(
            name=data["name"],
            subject=data["subject"],
            queue_group=data.get("queue_group", ""),
            metadata=data.get("metadata") or {},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the description as it is sent."""
        return asdict(self)


@dataclass
class ServicePing:
    """The answer to PING."""

    id: str
    name: str
    version: str
    metadata: dict[str, str] = field(default_factory=dict[str, str])
    type: str = PING_RESPONSE_TYPE

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ServicePing:
        """Return the answer in a response."""
        return cls(**_identity(data, PING_RESPONSE_TYPE))

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as it is sent."""
        return asdict(self)


@dataclass
class ServiceStats:
    """The answer to STATS. `started` is in UTC, without a zone."""

    id: str
    name: str
    version: str
    started: datetime
    endpoints: list[EndpointStats] = field(default_factory=list[EndpointStats])
    metadata: dict[str, str] = field(default_factory=dict[str, str])
    type: str = STATS_RESPONSE_TYPE

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ServiceStats:
        """Return the answer in a response."""
        return cls(
            **_identity(data, STATS_RESPONSE_TYPE),
            started=_read_time(data["started"]),
            endpoints=[EndpointStats.from_dict(each) for each in _rows(data)],
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as it is sent."""
        return {
            **vars(self),
            "started": self.started.isoformat(timespec="milliseconds") + "Z",
            "endpoints": [each.to_dict() for each in self.endpoints],
        }


@dataclass
class ServiceInfo:
    """The answer to INFO."""

    name: str
    id: str
    version: str
    description: str | None = None
    endpoints: list[EndpointInfo] = field(default_factory=list[EndpointInfo])
    metadata: dict[str, str] = field(default_factory=dict[str, str])
    type: str = INFO_RESPONSE_TYPE

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ServiceInfo:
        """Return the answer in a response."""
        return cls(
            **_identity(data, INFO_RESPONSE_TYPE),
            description=data.get("description"),
            endpoints=[EndpointInfo.from_dict(each) for each in _rows(data)],
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as it is sent."""
        return asdict(self)


def _read_time(text: str) -> datetime:
    """Return a time in UTC, of any precision: other clients send nanoseconds."""
    return Base._parse_utc_iso(text).replace(tzinfo=None)  # pyright: ignore[reportPrivateUsage]


def _identity(data: dict[str, Any], type: str) -> dict[str, Any]:
    """Return the fields that all answers have; the type is optional in a response."""
    return {
        "id": data["id"],
        "name": data["name"],
        "version": data["version"],
        "metadata": data.get("metadata") or {},
        "type": data.get("type", type),
    }


def _rows(data: dict[str, Any]) -> list[dict[str, Any]]:
    return data.get("endpoints") or []
