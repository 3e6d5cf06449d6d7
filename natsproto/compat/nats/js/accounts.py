"""The dataclasses of accounts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .base import Base


@dataclass
class AccountLimits(Base):
    """The limits of an account."""

    max_memory: int
    max_storage: int
    max_streams: int
    max_consumers: int
    max_ack_pending: int
    memory_max_stream_bytes: int
    storage_max_stream_bytes: int
    max_bytes_required: bool


@dataclass
class Tier(Base):
    """The use and the limits of a tier."""

    memory: int
    storage: int
    streams: int
    consumers: int
    limits: AccountLimits

    OBJECTS: ClassVar[dict[str, Any]] = {"limits": AccountLimits}


@dataclass
class APIStats(Base):
    """How often the API was called."""

    total: int
    errors: int
    level: int | None = None


@dataclass
class AccountInfo(Base):
    """The use and the limits of JetStream in an account."""

    memory: int
    storage: int
    streams: int
    consumers: int
    limits: AccountLimits
    api: APIStats
    domain: str | None = None
    tiers: dict[str, Tier] | None = None

    OBJECTS: ClassVar[dict[str, Any]] = {"limits": AccountLimits, "api": APIStats}

    @classmethod
    def _read(cls, name: str, value: Any) -> Any:
        if name == "tiers" and value:
            return {tier: Tier.from_response(each) for tier, each in value.items()}
        return super()._read(name, value)
