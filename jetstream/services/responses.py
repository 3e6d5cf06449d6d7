"""The responses to PING, INFO and STATS: written by our services, read from those of any client.

They are written field by field, because others validate them: every field of ADR-32 is there,
metadata is never null (SERVICE-3), and durations are whole nanoseconds. They are read more
leniently (SERVICE-26): fields may be missing or null, and durations may have a fraction.
"""

from __future__ import annotations

from jetstream.api.client import read_object
from jetstream.errors import InvalidResponse
from jetstream.schema.fields import Field, Fields
from jetstream.schema.types import ANY, COUNT, MAP, TEXT, TIME, FieldType, TypeMismatch, list_of
from natsproto.wire.record import Record
from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from jetstream.schema.timestamp import Timestamp

    from .counters import Counters

    Response = TypeVar("Response", bound="ServicePing")

PING = "PING"
INFO = "INFO"
STATS = "STATS"
VERBS = (PING, INFO, STATS)
_TYPE = "io.nats.micro.v1.%s_response"
_NANO = 10**9


# Written


class Identity(Record):
    """The fields that all responses of an instance share, and its description."""

    __slots__ = ("description", "id", "metadata", "name", "version")

    def __init__(
        self, name: str, id: str, version: str, description: str, metadata: dict[str, str]
    ) -> None:
        self.name: str = name
        self.id: str = id
        self.version: str = version
        self.description: str = description
        self.metadata: dict[str, str] = metadata


class EndpointRecord(Record):
    """An endpoint in the response to INFO; `queue_group` is "" if it has none."""

    __slots__ = ("metadata", "name", "queue_group", "subject")

    def __init__(self, name: str, subject: str, queue_group: str, metadata: dict[str, str]) -> None:
        self.name: str = name
        self.subject: str = subject
        self.queue_group: str = queue_group
        self.metadata: dict[str, str] = metadata


def ping_json(identity: Identity) -> dict[str, Any]:  # SERVICE-13
    """Return the response to PING."""
    return _common(identity, "ping")


def info_json(identity: Identity, endpoints: list[EndpointRecord]) -> dict[str, Any]:
    """Return the response to INFO."""
    response = _common(identity, "info")
    response["description"] = identity.description  # SERVICE-14
    response["endpoints"] = [
        {
            "name": each.name,
            "subject": each.subject,
            "queue_group": each.queue_group,
            "metadata": dict(each.metadata),
        }
        for each in endpoints
    ]
    return response


def stats_json(
    identity: Identity, started: Timestamp, endpoints: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the response to STATS; `endpoints` are those of `endpoint_json`."""
    response = _common(identity, "stats")
    response["started"] = str(started)  # SERVICE-17
    response["endpoints"] = endpoints  # SERVICE-15
    return response


def endpoint_json(endpoint: EndpointRecord, counters: Counters) -> dict[str, Any]:
    """Return the statistics of one endpoint, without `data`."""
    return {
        "name": endpoint.name,
        "subject": endpoint.subject,
        "queue_group": endpoint.queue_group,
        "num_requests": counters.num_requests,
        "num_errors": counters.num_errors,
        "last_error": counters.last_error,
        "processing_time": counters.processing_ns,
        "average_processing_time": counters.average_ns,
    }


def _common(identity: Identity, kind: str) -> dict[str, Any]:
    return {
        "type": _TYPE % kind,
        "name": identity.name,
        "id": identity.id,
        "version": identity.version,
        "metadata": dict(identity.metadata),
    }


def encode(response: object) -> bytes:
    """Encode a response, or any other JSON value, without whitespace."""
    import json  # takes longer to import than most of this package

    return json.dumps(response, separators=(",", ":")).encode()


# Read


class _Nanoseconds(FieldType):
    """A duration in nanoseconds on the wire and seconds here; JavaScript may send a fraction."""

    label = "seconds"
    lossy = True

    def zero(self) -> float:
        return 0.0

    def check(self, value: Any) -> float:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise TypeMismatch("is not a number of seconds")
        return float(value)

    def decode(self, raw: Any) -> float:
        if not isinstance(raw, (int, float)) or isinstance(raw, bool):
            raise TypeMismatch("is not a number of nanoseconds")
        return raw / _NANO

    def encode(self, value: Any) -> int:
        return int(value * _NANO)


_NANOSECONDS = _Nanoseconds()


class EndpointInfo(Fields):
    """An endpoint, as INFO reports it."""

    name: str
    subject: str
    queue_group: str
    metadata: dict[str, str]

    FIELDS: tuple[Field, ...] = (
        Field("name", TEXT, "The name, which other endpoints may have as well."),
        Field("subject", TEXT, "The subject that requests are sent to."),
        Field("queue_group", TEXT, 'The queue group; "" without one.'),
        Field("metadata", MAP, "Metadata."),
    )


class EndpointStats(Fields):
    """The statistics of an endpoint, as STATS reports them."""

    name: str
    subject: str
    queue_group: str
    num_requests: int
    num_errors: int
    last_error: Any
    processing_time: float
    average_processing_time: float
    data: Any

    FIELDS: tuple[Field, ...] = (
        Field("name", TEXT, "The name, which other endpoints may have as well."),
        Field("subject", TEXT, "The subject that requests are sent to."),
        Field("queue_group", TEXT, 'The queue group; "" without one.'),
        Field("num_requests", COUNT, "Number of requests."),
        Field("num_errors", COUNT, "Number of requests that ended with an error."),
        Field("last_error", ANY, "The last error, as a text; empty or None if there was none."),
        Field("processing_time", _NANOSECONDS, "Time that all requests took together."),
        Field("average_processing_time", _NANOSECONDS, "Average time of a request."),
        Field("data", ANY, "Data of the service's own; None if there is none."),
    )


class ServicePing(Fields):
    """The response of an instance to PING."""

    name: str
    id: str
    version: str
    metadata: dict[str, str]

    FIELDS: tuple[Field, ...] = (
        Field("name", TEXT, "The name of the service, which all its instances have."),
        Field("id", TEXT, "The id of the instance."),
        Field("version", TEXT, "The version."),
        Field("metadata", MAP, "Metadata."),
    )


class ServiceInfo(ServicePing):
    """The response of an instance to INFO."""

    description: str
    endpoints: list[EndpointInfo]

    FIELDS: tuple[Field, ...] = ServicePing.FIELDS + (
        Field("description", TEXT, "The description."),
        Field("endpoints", list_of(EndpointInfo), "The endpoints."),
    )


class ServiceStats(ServicePing):
    """The response of an instance to STATS."""

    started: Timestamp | None
    endpoints: list[EndpointStats]

    FIELDS: tuple[Field, ...] = ServicePing.FIELDS + (
        Field("started", TIME, "When the instance was started, or its statistics were reset."),
        Field("endpoints", list_of(EndpointStats), "The statistics of the endpoints."),
    )


def read_response(cls: type[Response], verb: str, data: bytes) -> Response:
    """Decode a response to a verb; raise InvalidResponse if it is not one."""
    raw = read_object(data)
    kind = raw.get("type")
    if kind != _TYPE % verb.lower():
        raise InvalidResponse("response has another type than %s: %s" % (verb, shorten(kind)))
    return cls.from_json(raw)
