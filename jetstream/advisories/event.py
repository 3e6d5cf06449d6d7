"""Advisory: an event of a JetStream server, and the base class of all kinds of events."""

from __future__ import annotations

from jetstream.schema.fields import Field, Fields
from jetstream.schema.types import DURATION, SEQUENCE, TEXT, TEXTS, TIME

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.schema.timestamp import Timestamp
    from natsproto.wire.frames import Msg


class Advisory(Fields):
    """An event that a server has published: an advisory or a metric.

    Kinds that this library knows have a class each. Any other event is an `Advisory` with its
    fields in `extra`; so is one that does not have the fields of its kind (D-ADVIS-5, D-ADVIS-6).
    """

    type: str
    id: str
    timestamp: Timestamp | None
    domain: str

    #: The message that was received; None if the event was read from a stream.
    msg: Msg | None = None

    FIELDS: tuple[Field, ...] = (  # ADVIS-1
        Field("type", TEXT, "The type; its last part is the kind."),
        Field("id", TEXT, "The id of the event."),
        Field("timestamp", TIME, "The time of the event."),
        Field("domain", TEXT, "The domain of the server."),
    )

    @property
    def kind(self) -> str:
        """The kind of event: the last part of its type, such as `max_deliver`."""
        return self.type.split(".")[-1]


class AdvisoryClient(Fields):
    """The client that sent a request to the API."""

    start: Timestamp | None
    host: str
    id: int
    acc: str
    svc: str
    user: str
    name: str
    lang: str
    ver: str
    rtt: float
    server: str
    cluster: str
    stop: Timestamp | None
    issuer_key: str
    name_tag: str
    tags: list[str]
    kind: str
    client_type: str
    client_id: str
    reply: str

    FIELDS: tuple[Field, ...] = (
        Field("start", TIME, "The start of its connection."),
        Field("host", TEXT, "Its address."),
        Field("id", SEQUENCE, "Its id."),
        Field("acc", TEXT, "Its account."),
        Field("svc", TEXT, "The account that provides the service."),
        Field("user", TEXT, "Its user."),
        Field("name", TEXT, "Its name."),
        Field("lang", TEXT, "Its language."),
        Field("ver", TEXT, "The version of its library."),
        Field("rtt", DURATION, "The round-trip time."),
        Field("server", TEXT, "Its server."),
        Field("cluster", TEXT, "The cluster of its server."),
        Field("stop", TIME, "The end of its connection."),
        Field("issuer_key", TEXT, "The key that issued its JWT."),
        Field("name_tag", TEXT, "The name in its JWT."),
        Field("tags", TEXTS, "The tags in its JWT."),
        Field("kind", TEXT, "The kind of connection."),
        Field("client_type", TEXT, "`nats`, `mqtt` or `websocket`."),
        Field("client_id", TEXT, "The MQTT client id."),
        Field("reply", TEXT, "The original reply subject, after a service import."),
    )
