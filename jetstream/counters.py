"""Counters: subjects whose stream adds up what is published to them (ADR-49)."""

from __future__ import annotations

from natsproto._record import Record
from natsproto.errors import InvalidValue

from .errors import InvalidResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INCREMENT = "Nats-Incr"
SOURCES = "Nats-Counter-Sources"


class Counter(Record):
    """The value of a counter, and what each source has added to it: {stream: {subject: value}}."""

    __slots__ = ("sources", "value")

    def __init__(self, value: int, sources: dict[str, dict[str, int]]) -> None:
        self.value = value
        self.sources = sources


def increment(by: int) -> str:
    """The header value for adding this; any size, exact."""
    if not isinstance(by, int) or isinstance(by, bool):
        raise InvalidValue("counter increment %r is not a whole number" % (by,), "COUNT-1")
    return "%+d" % by


def read_counter(data: bytes, sources: str) -> Counter:
    """The counter in a stored message: its body, and its header of sources ("" if none)."""
    import json

    try:
        value = int(json.loads(data.decode())["val"])
        told: dict[str, Any] = json.loads(sources) if sources else {}
        parts = {
            stream: {subject: int(part) for subject, part in row.items()}
            for stream, row in told.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidResponse(
            "counter %r with sources %r cannot be read" % (data, sources)
        ) from None
    return Counter(value, parts)
