"""Tables and descriptions for people: plain text, which a pipe can filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from jetstream.config import ConsumerConfig, ConsumerLimits, StreamConfig
from jetstream.kv.config import KeyValueConfig
from jetstream.objects.config import ObjectStoreConfig
from jetstream.schema.fields import Fields
from jetstream.schema.timestamp import Timestamp
from jetstream.schema.types import DURATION, SIGNED_DURATION
from natsproto.cli.output import data_fields, group, headers_of

if TYPE_CHECKING:
    from jetstream.api.stored import StoredMsg
    from jetstream.message import JsMsg
    from jetstream.schema.fields import Field

_DURATIONS = (DURATION, SIGNED_DURATION)
# Parts of responses that are of no interest unless they are set.
_PAGING = ("total", "offset", "limit", "reset_seq")
# A zero in these means that the server's default applies.
_SETTINGS = (StreamConfig, ConsumerConfig, ConsumerLimits, KeyValueConfig, ObjectStoreConfig)


def table(heads: list[str], rows: list[list[Any]]) -> str:
    """Return rows in columns; numbers and amounts are aligned at the right."""
    cells = [heads, *[[_cell(value) for value in row] for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads))]
    right = [bool(rows) and all(_is_amount(row[at]) for row in rows) for at in range(len(heads))]
    lines: list[str] = []
    for row in cells:
        parts = [
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(row, widths, right)
        ]
        lines.append("  ".join(parts).rstrip())
    return "\n".join(lines)


def describe(fields: Fields, indent: str = "") -> str:
    """Return the fields that are set, one in each line, and those of objects below them."""
    lines: list[str] = []
    for field in fields.FIELDS:
        value: Any = getattr(fields, field.name)
        if _is_unset(fields, field, value):
            continue
        if isinstance(value, Fields):
            inner = describe(value, indent + "  ")
            lines += [f"{indent}{field.name}:", inner] if inner else []
        elif objects := _objects(value):
            lines.append(f"{indent}{field.name}:")
            lines += [describe(each, indent + "  ") for each in objects]
        else:
            lines.append(f"{indent}{field.name}: {_text(field, value)}")
    return "\n".join(lines)


def _is_unset(fields: Fields, field: Field, value: object) -> bool:
    """Return whether a value says nothing: empty, false, or zero without a count (D-CLI-10)."""
    if value in (None, "", [], {}) or value is False:
        return True
    if value != 0:
        return False
    return field.type in _DURATIONS or field.name in _PAGING or isinstance(fields, _SETTINGS)


def _text(field: Field, value: Any) -> str:
    if field.type in _DURATIONS:
        return duration(value)
    return "unlimited" if value == -1 and field.name[:4] == "max_" else _cell(value)


def duration(seconds: float) -> str:
    """Return a duration as in 2h, 1.5s or 20ms."""
    for unit, factor in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= factor and seconds % factor == 0:
            return f"{seconds / factor:g}{unit}"
    return f"{seconds:g}s" if seconds >= 1 or not seconds else f"{seconds * 1000:g}ms"


def amount(count: float) -> str:
    """Return a number of bytes as in 1.5 KiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def stored_fields(msg: StoredMsg) -> dict[str, Any]:
    """Return a stored message as an object of JSON."""
    fields: dict[str, Any] = {"stream": msg.stream, "seq": msg.seq, "time": str(msg.time)}
    fields["subject"] = msg.subject
    pairs = headers_of(msg)
    if pairs:
        fields["headers"] = group(pairs)
    fields.update(data_fields(msg.data))
    return fields


def delivered_fields(msg: JsMsg) -> dict[str, Any]:
    """Return a message of a consumer as an object of JSON."""
    data = msg.metadata
    fields: dict[str, Any] = {
        "stream": data.stream,
        "seq": data.stream_seq,
        "time": str(Timestamp(data.timestamp_ns)),
        "consumer": data.consumer,
        "consumer_seq": data.consumer_seq,
        "delivered": data.delivered,
        "pending": data.pending,
        "subject": msg.subject,
    }
    pairs = headers_of(msg)
    if pairs:
        fields["headers"] = group(pairs)
    fields.update(data_fields(msg.data))
    return fields


def message_text(head: str, msg: Any) -> bytes:
    """Return a message for people: a line about it, its headers, its payload."""
    lines = [head, *[f"{name}: {value}" for name, value in headers_of(msg)], ""]
    return "\n".join(lines).encode("utf-8", "surrogateescape") + bytes(msg.data) + b"\n"


def _objects(value: object) -> list[Fields]:
    """Return the objects in a list; an empty list for any other value."""
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [each for each in items if isinstance(each, Fields)]


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_amount(value: object) -> bool:
    is_text = isinstance(value, str) and value[:1].isdigit() and value[-1] == "B"
    return is_text or _is_number(value)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(str(each) for each in cast("list[object]", value))
    if isinstance(value, dict):
        return ", ".join(f"{key}={each}" for key, each in cast("dict[str, object]", value).items())
    return str(value)
