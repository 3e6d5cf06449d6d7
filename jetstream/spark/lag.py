"""How far a query is behind its streams, for its progress events.

Spark shows the JSON of `reportLatestOffset` as the `latestOffset` of a source. Beside the end of
each stream it has these fields; Spark has no metrics for Python sources.

    lag     the number of sequences between the last planned micro-batch and the end of each stream
    rate    new messages per second of each stream, between the last two lookups
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .offsets import Places
    from .queries import StreamSnapshot


class Lag:
    """The last two lookups of each stream, and where the query is."""

    def __init__(self) -> None:
        self._looked: dict[str, tuple[float, int]] = {}  # time and next sequence
        self._rates: dict[str, float] = {}
        self._read: dict[str, int] = {}

    def looked(self, snapshots: dict[str, StreamSnapshot], now: float) -> None:
        """Note the state of the streams."""
        for name, snapshot in snapshots.items():
            before, seq = self._looked.get(name, (now, snapshot.next))
            if now > before:
                self._rates[name] = round(max(0, snapshot.next - seq) / (now - before), 1)
            self._looked[name] = now, snapshot.next

    def planned(self, places: Places) -> None:
        """Note the end of the last micro-batch."""
        self._read = {name: place.next for name, place in places.items()}

    def fields(self) -> dict[str, Any]:
        """Return the fields for the progress."""
        lags = {
            name: max(0, seq - self._read[name])
            for name, (_, seq) in self._looked.items()
            if name in self._read
        }
        return {"lag": lags, "rate": dict(self._rates)}
