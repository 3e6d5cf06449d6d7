"""Fit a monitoring response into the server's max_payload.

A server rejects a message above its max_payload, so the requester would get no response at all. The
largest parts are omitted first, until the response fits: finding a service with some of its
endpoints is better than not finding it.
"""

from __future__ import annotations

from .responses import encode

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any

#: The parts that are omitted, step by step (D-SERVICE-27).
DETAILS = "data and metadata of endpoints"
METADATA = "metadata and description"
ENDPOINTS = "endpoints"
EVERYTHING = "everything"
_COMMA = 1


def fit(response: dict[str, Any], most: int) -> tuple[bytes | None, int, str]:
    """Return the response in at most `most` bytes, its full size, and the omitted parts.

    The response is None if nothing useful fits; the omitted parts are "" if there are none.
    """
    raw = encode(response)
    size = len(raw)
    if size <= most:
        return raw, size, ""
    small = dict(response)
    if "endpoints" in small:
        small["endpoints"] = [_without_details(each) for each in small["endpoints"]]
        raw = encode(small)
        if len(raw) <= most:
            return raw, size, DETAILS
    small["metadata"] = {}
    if "description" in small:
        small["description"] = ""
    raw = encode(small)
    if len(raw) <= most:
        return raw, size, METADATA
    if "endpoints" in small:
        small["endpoints"] = _leading(small, most)
        raw = encode(small)
    return (raw, size, ENDPOINTS) if len(raw) <= most else (None, size, EVERYTHING)


def _without_details(endpoint: dict[str, Any]) -> dict[str, Any]:
    made = dict(endpoint)
    made.pop("data", None)
    if "metadata" in made:
        made["metadata"] = {}
    return made


def _leading(response: dict[str, Any], most: int) -> list[dict[str, Any]]:
    """Return as many of the first endpoints as there is room for."""
    room = most - len(encode(dict(response, endpoints=[])))
    kept: list[dict[str, Any]] = []
    for endpoint in response["endpoints"]:
        room -= len(encode(endpoint)) + (_COMMA if kept else 0)
        if room >= 0:
            kept.append(endpoint)
    return kept
