"""Read stored JSON, whose fields may be absent or null, but must have the right type."""

from __future__ import annotations

from jetstream.errors import InvalidResponse
from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_KINDS = {dict: "an object", list: "a list", str: "text", int: "a number"}


def read_object(data: bytes) -> dict[str, Any]:
    """Return the object in a stored value; raise InvalidResponse if there is none."""
    import json

    try:
        value: Any = json.loads(data.decode())
    except (ValueError, RuntimeError):  # RuntimeError: nested too deeply for the interpreter
        value = None
    if not isinstance(value, dict):
        raise InvalidResponse("configuration of a group is not a JSON object: %s" % shorten(data))
    return value  # pyright: ignore[reportUnknownVariableType] - JSON keys are str


def text(raw: Mapping[str, Any], name: str) -> str:
    """Return a field that is text, or ""."""
    value: str = _field(raw, name, str, "")
    return value


def number(raw: Mapping[str, Any], name: str) -> int:
    """Return a field that is a whole number, or 0."""
    value: int = _field(raw, name, int, 0)
    return value


def texts(raw: Mapping[str, Any], name: str) -> list[str]:
    """Return a list of texts, or an empty one."""
    return [_item(each, name, str) for each in _field(raw, name, list, [])]


def numbers(raw: Mapping[str, Any], name: str) -> list[int]:
    """Return a list of whole numbers, or an empty one."""
    return [_item(each, name, int) for each in _field(raw, name, list, [])]


def objects(raw: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return a list of objects, or an empty one."""
    return [_item(each, name, dict) for each in _field(raw, name, list, [])]


def _field(raw: Mapping[str, Any], name: str, kind: type, default: Any) -> Any:
    value = raw.get(name)
    return default if value is None else _item(value, name, kind)


def _item(value: Any, name: str, kind: type) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        what = "%s of a group is not %s: %s" % (name, _KINDS[kind], shorten(value))
        raise InvalidResponse(what)
    return value
