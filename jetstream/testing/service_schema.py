"""JSON Schemas of the responses to PING, INFO and STATS (ADR-32), and a validator for them.

The schemas are stricter than ADR-32 where responses of ours are concerned: every field has to be
there, and no field may be null.
"""

from __future__ import annotations

import re
from typing import Any

from jetstream.schema.timestamp import Timestamp

_TEXT = {"type": "string"}
_NAME = {"type": "string", "pattern": r"^[A-Za-z0-9_-]+$"}
_COUNT = {"type": "integer", "minimum": 0}
_METADATA = {"type": "object", "additionalProperties": _TEXT}
_NUMBER = r"(0|[1-9][0-9]*)"
_BEFORE = r"(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_WORD = r"[0-9A-Za-z-]+"
_SEMVER = rf"^{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_BEFORE}(\.{_BEFORE})*)?(\+{_WORD}(\.{_WORD})*)?$"


def _object(optional: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def _response(kind: str, **properties: Any) -> dict[str, Any]:
    return _object(
        type={"const": f"io.nats.micro.v1.{kind}_response"},
        name=_NAME,
        id={"type": "string", "pattern": r"^[^\s.*>]+$"},
        version={"type": "string", "pattern": _SEMVER},
        metadata=_METADATA,
        **properties,
    )


#: By verb.
SCHEMAS: dict[str, dict[str, Any]] = {
    "PING": _response("ping"),
    "INFO": _response(
        "info",
        description=_TEXT,
        endpoints={
            "type": "array",
            "items": _object(
                name=_NAME,
                subject={"type": "string", "pattern": r"^\S+$"},
                queue_group=_TEXT,
                metadata=_METADATA,
            ),
        },
    ),
    "STATS": _response(
        "stats",
        started={"type": "string", "format": "date-time"},
        endpoints={
            "type": "array",
            "items": _object(
                ("data",),
                name=_NAME,
                subject={"type": "string", "pattern": r"^\S+$"},
                queue_group=_TEXT,
                num_requests=_COUNT,
                num_errors=_COUNT,
                last_error=_TEXT,
                processing_time=_COUNT,
                average_processing_time=_COUNT,
                data={},
            ),
        },
    ),
}
_TYPES: dict[str, Any] = {"string": str, "integer": int, "object": dict, "array": list}


def _has_type(value: Any, name: str) -> bool:
    return isinstance(value, _TYPES[name]) and not isinstance(value, bool)


def validate(value: Any, schema: dict[str, Any], path: str = "$") -> None:
    """Assert that a JSON value satisfies a schema, of the keywords that SCHEMAS uses."""
    if "const" in schema:
        assert value == schema["const"], f"{path} is {value!r}, not {schema['const']!r}"
    if "type" in schema:
        assert _has_type(value, schema["type"]), f"{path} is not a {schema['type']}: {value!r}"
    if "minimum" in schema:
        assert value >= schema["minimum"], f"{path} is too small: {value!r}"
    if "pattern" in schema:
        assert re.fullmatch(schema["pattern"].strip("^$"), value), f"{path} is invalid: {value!r}"
    if schema.get("format") == "date-time":
        assert str(Timestamp.parse(value)) == value, f"{path} is not in UTC: {value!r}"
    if schema.get("type") == "array":
        for number, item in enumerate(value):
            validate(item, schema["items"], f"{path}[{number}]")
    if schema.get("type") == "object":
        _validate_object(value, schema, path)


def _validate_object(value: dict[str, Any], schema: dict[str, Any], path: str) -> None:
    missing = [name for name in schema.get("required", []) if name not in value]
    assert not missing, f"{path} has no {missing[0]}"
    properties = schema.get("properties", {})
    for name, item in value.items():
        known = properties.get(name, schema.get("additionalProperties"))
        assert known is not False, f"{path} has an unknown field {name!r}"
        validate(item, known, f"{path}.{name}")
