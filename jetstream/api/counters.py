"""Counters: subjects whose stream adds up the increments published to them (ADR-49)."""

from __future__ import annotations

from jetstream.errors import InvalidResponse
from natsproto.errors import InvalidValue
from natsproto.wire.record import Record
from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any

    from .stored import StoredMsg

INCREMENT = "Nats-Incr"
SOURCES = "Nats-Counter-Sources"


class Counter(Record):
    """The value of a counter, and the part of each source: {stream: {subject: value}}.

    `increment` is the last increment; None if the message does not have it.
    """

    __slots__ = ("subject", "value", "increment", "sources")

    def __init__(
        self,
        subject: str,
        value: int,
        increment: int | None,
        sources: dict[str, dict[str, int]],
    ) -> None:
        self.subject: str = subject
        self.value: int = value
        self.increment: int | None = increment
        self.sources: dict[str, dict[str, int]] = sources


def increment(by: int) -> str:
    """Return the header value of an increment; it may have any size, and is exact."""
    if not isinstance(by, int) or isinstance(by, bool):
        raise InvalidValue("counter increment %s is not a whole number" % shorten(by), "COUNT-1")
    try:
        return "%+d" % by
    except ValueError:  # Python writes no more than 4300 digits
        raise InvalidValue("counter increment has too many digits", "COUNT-1") from None


def read_value(text: object) -> int:
    """Return the number in this text, as the server writes it; raise InvalidResponse."""
    if isinstance(text, str):
        digits = text[1:] if text[:1] in ("+", "-") else text
        # By character, because isdigit knows digits of other scripts.
        if digits and all(char in "0123456789" for char in digits):
            try:
                return int(text)
            except ValueError:  # Python reads no more than 4300 digits
                pass
    # COUNT-3
    raise InvalidResponse("counter value %s is not a whole number in text" % shorten(text))


def read_counter(msg: StoredMsg) -> Counter:  # COUNT-4
    """Return the counter in a stored message; raise InvalidResponse if it is not a counter."""
    import json

    headers = msg.headers
    sources = headers.get(SOURCES) if headers else ""
    added = headers.get(INCREMENT) if headers else ""
    try:
        body: Any = json.loads(msg.data.decode())
        by_stream: Any = json.loads(sources) if sources else {}
        parts = {
            stream: {subject: read_value(row[subject]) for subject in row}
            for stream, row in by_stream.items()
        }
        value = read_value(body["val"])
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError):
        raise InvalidResponse(
            "message %s with sources %s is not a counter" % (shorten(msg.data), shorten(sources))
        ) from None
    return Counter(msg.subject, value, read_value(added) if added else None, parts)
