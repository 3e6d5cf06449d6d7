"""Responses of the server about the account."""

from __future__ import annotations

from .fields import Field, Fields
from .types import COUNT, FLAG, SEQUENCE, TEXT, Embedded, map_of


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
