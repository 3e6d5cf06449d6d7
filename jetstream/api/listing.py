"""Listing: the rows of a listing of the API, and what the server could not tell about."""

from __future__ import annotations

from jetstream.errors import InvalidResponse
from natsproto.wire.text import shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TypeVar

    Row = TypeVar("Row")

    class Listing(list[Row]):
        """A list. `missing` and `offline` name what exists and is not in it.

        missing  names of those whose servers did not answer
        offline  names of those that no server can run, with the reason for each
        """

        missing: list[str]
        offline: dict[str, str]

        def __init__(self, rows: Iterable[Row] = ()) -> None: ...

        def like(self, rows: list[Any]) -> Listing[Any]: ...

else:

    class Listing(list):
        """A list. `missing` and `offline` name what exists and is not in it."""

        def __init__(self, rows=()):
            super().__init__(rows)
            self.missing = []
            self.offline = {}

        def like(self, rows):
            """Return these rows with the same notes."""
            made = Listing(rows)
            made.missing = self.missing
            made.offline = self.offline
            return made


def read_missing(reply: dict[str, Any]) -> list[str]:
    """The names that a page lacks because their servers did not answer."""
    names: Any = reply.get("missing") or []
    if not isinstance(names, list):
        raise InvalidResponse("missing %s of an answer is not a list" % shorten(names))
    return [_text(name) for name in names]  # pyright: ignore[reportUnknownVariableType]


def read_offline(reply: dict[str, Any]) -> dict[str, str]:
    """The names that a page lacks because no server can run them, and why."""
    reasons: Any = reply.get("offline") or {}
    if not isinstance(reasons, dict):
        raise InvalidResponse("offline %s of an answer is not an object" % shorten(reasons))
    return {key: _text(reasons[key]) for key in reasons}  # pyright: ignore[reportUnknownVariableType]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidResponse("%s is listed where a name belongs" % shorten(value))
    return value
