"""onCommit=purge: the messages of finished batches are deleted from their streams."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from jetstream.errors import StreamNotFound
from natsproto.errors import InvalidValue

from .connect import jetstream
from .retry import retry

if TYPE_CHECKING:
    from .offsets import Place, Places
    from .options import Settings
    from .plan import Plan


class Purge:
    """What a query has purged so far; it does nothing without onCommit=purge."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._purged: dict[str, int] = {}
        self._wanted = settings.text("onCommit") == "purge"
        if self._wanted and settings.get("startingOffsets") != "earliest":
            raise InvalidValue(
                "onCommit=purge deletes all earlier messages: it needs startingOffsets=earliest"
            )

    def finish(self, places: Places, plan: Plan) -> None:
        """Purge the messages of the batch that ends here, and of those before it."""
        if not self._wanted:
            return
        for name, place in places.items():
            if place.next > self._purged.get(name, 1):
                retry(partial(self._purge, name, place, plan.filters))
                self._purged[name] = place.next

    def _purge(self, name: str, place: Place, filters: list[str]) -> None:
        try:
            stream = jetstream(self._settings).stream(name)
        except StreamNotFound:
            return  # the reader reports that
        if str(stream.cached_info.created) == place.created:
            for subject in filters or [">"]:
                stream.purge(subject=subject, seq=place.next)
