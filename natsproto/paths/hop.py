"""Hop: the report of one server on the path of a message."""

from __future__ import annotations

from natsproto.errors import InvalidValue
from natsproto.wire.record import Record
from natsproto.wire.text import shorten

from .steps import Egress, Ingress, Step, decode_step, number, text

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any

HOP = "nats-trace-hop"
PARENT = "traceparent"


class HopServer(Record):
    """The server that sent a report, and the `time` of the report. Absent fields are empty."""

    __slots__ = ("cluster", "domain", "host", "id", "name", "time", "version")

    def __init__(self, data: dict[str, Any]) -> None:
        self.name: str = text(data, "name")
        self.id: str = text(data, "id")
        self.host: str = text(data, "host")
        self.cluster: str = text(data, "cluster")
        self.domain: str = text(data, "domain")
        self.version: str = text(data, "ver")
        self.time: str = text(data, "time")


class Hop(Record):
    """One server on the path: its steps in order, and the hops that follow it.

    id: its place in the tree, such as "1.2"; "" for the server that the message was sent to
    headers: those of the message as this server received it; each name has a list of values
    size: the bytes of the message with its headers
    count: the number of servers that this one sent the message to
    next: their hops, as far as they have reported
    data: all fields of the report
    """

    __slots__ = ("count", "data", "headers", "id", "next", "server", "size", "steps")

    def __init__(self, data: dict[str, Any]) -> None:
        request = _object(data.get("request"))
        self.data: dict[str, Any] = data
        self.server: HopServer = HopServer(_object(data.get("server")))
        self.headers: dict[str, list[str]] = _headers(request.get("header"))
        self.id: str = self.header(HOP)  # HOP-4
        self.size: int = number(request, "msgsize")
        self.count: int = number(data, "hops")
        self.steps: list[Step] = [decode_step(_object(each)) for each in _list(data.get("events"))]
        self.next: list[Hop] = []

    def header(self, name: str) -> str:
        """Return the first value of a header, in any case of its name; "" if it is absent."""
        for key, values in self.headers.items():
            if key.lower() == name.lower() and values:
                return values[0]
        return ""

    @property
    def ingress(self) -> Ingress | None:
        """The step in which the message entered the server."""
        for step in self.steps:
            if isinstance(step, Ingress):
                return step
        return None

    @property
    def egresses(self) -> list[Egress]:
        """The steps in which the message left the server, one for each receiver."""
        return [step for step in self.steps if isinstance(step, Egress)]

    def announced(self) -> list[str]:
        """Return the ids of the hops that follow and will report (HOP-5)."""
        return [step.hop for step in self.egresses if step.hop and not step.error]


def decode_hop(payload: bytes) -> Hop:
    """Return the hop of a report; raise InvalidValue if the payload is not a JSON object."""
    import json  # takes longer to import than this whole package

    try:
        data: Any = json.loads(payload.decode())
    except (ValueError, RuntimeError):  # RuntimeError: nested too deeply for the interpreter
        data = None
    if not isinstance(data, dict):
        raise InvalidValue("report of a hop is not a JSON object: %s" % shorten(payload), "HOP-1")
    return Hop(data)  # pyright: ignore[reportUnknownArgumentType] - JSON keys are str


def _headers(value: Any) -> dict[str, list[str]]:
    """Return the headers without values that are not text."""
    return {
        name: [each for each in _list(values) if isinstance(each, str)]
        for name, values in _object(value).items()
    }


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]
