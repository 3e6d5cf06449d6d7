"""ServiceLatencyMetric: how long a request to an exported service took (ADR-3)."""

from __future__ import annotations

from jetstream.schema.fields import Field
from jetstream.schema.types import COUNT, MAP_OF_ANY, SIGNED_DURATION, TEXT, TIME, Object

from .event import Advisory, AdvisoryClient

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.schema.timestamp import Timestamp


class ServiceLatencyMetric(Advisory):
    """The latency of a request to a service that an account exports with `latency`.

    Servers publish it in that account, to the subject that the export names: subscribe to it, and
    call `read_advisory` with each message.
    """

    status: int
    description: str
    requestor: AdvisoryClient | None
    responder: AdvisoryClient | None
    header: dict[str, object]
    start: Timestamp | None
    service: float
    system: float
    total: float

    FIELDS: tuple[Field, ...] = Advisory.FIELDS + (  # ADVIS-10
        Field("status", COUNT, "200, or 400, 408, 503 or 504 for a request that failed."),
        Field("description", TEXT, "Why it failed."),
        Field("requestor", Object(AdvisoryClient), "The client that sent the request."),
        Field("responder", Object(AdvisoryClient), "The client that answered it."),
        Field("header", MAP_OF_ANY, "The headers of the request that caused the measurement."),
        Field("start", TIME, "When the request was sent."),
        Field("service", SIGNED_DURATION, "How long the responder took."),
        Field("system", SIGNED_DURATION, "How long the servers took."),
        Field("total", SIGNED_DURATION, "The whole time, from the requestor's point of view."),
    )
