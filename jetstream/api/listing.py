"""Listing: the rows of an API listing, and the names that the server could not describe."""

from __future__ import annotations

from jetstream.errors import InvalidResponse
from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TypeVar

    Row = TypeVar("Row")

    class Listing(list[Row]):
        """A list. `missing` and `offline` name streams or consumers that exist but are not in it.

        missing  those whose servers did not respond
        offline  those that no server can run, with the reason for each
        """

        missing: list[str]
        offline: dict[str, str]

        def __init__(self, rows: Iterable[Row] = ()) -> None: ...

        def like(self, rows: list[Any]) -> Listing[Any]: ...

else:

    class Listing(list):
        """A list. `missing` and `offline` name the assets that exist but are not in it."""

        def __init__(self, rows=()):
            super().__init__(rows)
            self.missing = []
            self.offline = {}

        def like(self, rows):
            """Return these rows with the same `missing` and `offline`."""
            made = Listing(rows)
            made.missing = self.missing
            made.offline = self.offline
            return made


def read_missing(reply: dict[str, Any]) -> list[str]:
    """Return the names that a page lacks because their servers did not respond."""
    names: Any = reply.get("missing") or []
    if not isinstance(names, list):
        raise InvalidResponse("field missing of the response is not a list: %s" % shorten(names))
    return [_text(name) for name in names]  # pyright: ignore[reportUnknownVariableType]


def read_offline(reply: dict[str, Any]) -> dict[str, str]:
    """Return the names that a page lacks because no server can run them, with the reasons."""
    reasons: Any = reply.get("offline") or {}
    if not isinstance(reasons, dict):
        text = "field offline of the response is not an object: %s"
        raise InvalidResponse(text % shorten(reasons))
    return {key: _text(reasons[key]) for key in reasons}  # pyright: ignore[reportUnknownVariableType]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidResponse("listed name or reason is not a string: %s" % shorten(value))
    return value
