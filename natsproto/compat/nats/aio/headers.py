"""Headers as nats-py has them: a dict with one value for each name, or None."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from natsproto.compat.nats.errors import BadHeaderError
from natsproto.wire.headers import VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME = re.compile("[!#$%&'*+\\-.^_`|~0-9A-Za-z]+")
_LINE_ENDS = str.maketrans("\r\n", "  ")


def read_headers(block: bytes | None) -> dict[str, str] | None:
    """Return the headers of a block; None if it has none. The last value of a name counts.

    An inline status becomes `Status` and `Description`. Publishers may send anything, so lines that
    are not a header are skipped, and bytes that are not UTF-8 are replaced, as in nats-py.
    """
    if not block:
        return None
    first, *lines = block.split(b"\r\n")
    headers: dict[str, str] = {}
    status, _, description = first[len(VERSION) :].strip().partition(b" ")
    if status:
        headers["Status"] = _decode(status)
    if description:
        headers["Description"] = _decode(description.strip())
    for line in lines:
        name, colon, value = line.partition(b":")
        if colon and name.isascii() and len(name.split()) == 1:
            headers[name.decode().strip()] = _decode(value.strip())
    return headers or None


def write_headers(headers: Mapping[str, str]) -> list[tuple[str, str]] | None:
    """Return the pairs to send; None if there are none. Raises BadHeaderError for a bad name.

    Like nats-py it removes whitespace around names and values, drops empty names, and replaces
    line ends in values by spaces.
    """
    pairs: list[tuple[str, str]] = []
    for key, value in headers.items():
        name = key.strip()
        if not name:
            continue
        if _NAME.fullmatch(name) is None:
            raise BadHeaderError(key)
        pairs.append((name, str(value).translate(_LINE_ENDS).strip()))
    return pairs or None


def sendable(headers: Mapping[str, str] | None) -> dict[str, str] | None:
    """Return the headers that can be published; others come from publishers that do not check."""
    if headers is None:
        return None
    return {name: headers[name] for name in headers if _NAME.fullmatch(name)}


def _decode(value: bytes) -> str:
    return value.decode("utf-8", "replace")
