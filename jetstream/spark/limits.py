"""The size of a micro-batch: the limits that the options set, for several streams together.

Messages are counted by their sequences, which is exact where a stream has no gaps. With filters, or
with more gaps than messages, batches would have hardly any messages, so there the server counts:
each probe creates a consumer, reads its number of pending messages, and deletes it, which takes
half a millisecond.

Bytes are payloads and headers. A limit of bytes is applied to the sizes of the messages, which a
consumer that omits payloads delivers, unless the sizes that the server reports show that there are
fewer. Without a consumer (fetchMode=direct) the messages themselves are read.
"""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .options import Settings
    from .queries import StreamQueries, StreamSnapshot

_PATIENCE = 900.0  # the default of maxTriggerDelay, which applies only with a minimum
_NAMES = ("maxMessagesPerTrigger", "maxBytesPerTrigger", "minMessagesPerTrigger")


class Limits:
    """The limits of one query, and how long it has been waiting for its minimum."""

    def __init__(self, settings: Settings) -> None:
        self.most: int = settings.number("maxMessagesPerTrigger")
        self.most_bytes: int = settings.number("maxBytesPerTrigger")
        self.least: int = settings.number("minMessagesPerTrigger")
        given = settings.given("maxTriggerDelay")
        self.max_delay: float = settings.seconds("maxTriggerDelay") if given else _PATIENCE
        self.filters: list[str] = settings.filters
        self._may_probe = settings.text("fetchMode") == "pull"
        self._given = [name for name in _NAMES if settings.given(name)]
        self._waits_since: float | None = None
        self._counted: tuple[dict[str, int], dict[str, int]] = {}, {}  # begins and ends
        self._counts: dict[str, int] = {}
        self._known: dict[str, StreamSnapshot] = {}  # the last one of each stream

    def ignore(self) -> None:
        """Remove all limits, with a warning: PySpark before 4.2 always reads everything."""
        if self._given:
            names = ", ".join(self._given)
            warnings.warn("%s: ignored, PySpark is older than 4.2" % names, stacklevel=2)
        self.most = self.most_bytes = self.least = 0

    def apply(
        self,
        begins: dict[str, int],
        ends: dict[str, int],
        snapshots: dict[str, StreamSnapshot],
        queries: dict[str, StreamQueries],
        waiting: bool,
    ) -> dict[str, int]:
        """Return the allowed ends, at most `ends`; `begins` if the query has to wait.

        waiting  whether the query may wait for its minimum
        """
        if self._counted != (begins, ends):  # a waiting query calls this repeatedly
            self._counts = {
                name: self._count(queries[name], snapshots[name], begin, ends[name])
                for name, begin in begins.items()
            }
            self._counted = begins, ends
        counts = self._counts
        if waiting and self._is_too_early(sum(counts.values())):
            return begins
        shares = self._shares(counts)
        allowed = {
            name: ends[name]
            if shares[name] >= counts[name]
            else self._end(
                queries[name], snapshots[name], begin, ends[name], counts[name], shares[name]
            )
            for name, begin in begins.items()
        }
        if self.most_bytes:
            allowed = self._within_bytes(begins, allowed, snapshots, queries)
        return allowed

    def _within_bytes(
        self,
        begins: dict[str, int],
        ends: dict[str, int],
        snapshots: dict[str, StreamSnapshot],
        queries: dict[str, StreamQueries],
    ) -> dict[str, int]:
        """Return ends before which there are no more than the allowed bytes, or one message."""
        names = [name for name in begins if begins[name] < ends[name]]
        bounds = {name: self._most_bytes_of(begins[name], snapshots[name]) for name in names}
        for name in names:
            self._known[name] = snapshots[name]
        if sum(bounds.values()) <= self.most_bytes:
            return ends
        weights = {name: (ends[name] - begins[name]) * snapshots[name].average for name in names}
        result = dict(ends)
        left = self.most_bytes
        largest = max(names, key=lambda name: weights[name])
        for name in sorted(names, key=lambda name: (name == largest, name)):
            share = self.most_bytes * weights[name] // sum(weights.values())
            budget = left if name == largest else min(left, share)
            result[name], used = queries[name].end_of_bytes(
                begins[name], ends[name], self.filters, budget, snapshots[name].average
            )
            left -= used
        if all(result[name] == begins[name] for name in names):
            # The next message alone is too large, and has to be read all the same.
            result[largest] = queries[largest].end_of_first(
                begins[largest], ends[largest], self.filters
            )
        return result

    def _most_bytes_of(self, begin: int, snapshot: StreamSnapshot) -> int:
        """Return an upper bound for the bytes from this sequence to the end of the stream."""
        known = self._known.get(snapshot.name)
        if known is not None and known.created == snapshot.created and known.next <= begin:
            stored = snapshot.messages - known.messages
            if stored == snapshot.next - known.next:  # nothing was removed in the meantime
                return snapshot.bytes - known.bytes
        return snapshot.bytes

    def _by_server(self, snapshot: StreamSnapshot) -> bool:
        return self._may_probe and (bool(self.filters) or snapshot.sparse)

    def _count(self, queries: StreamQueries, snapshot: StreamSnapshot, begin: int, end: int) -> int:
        if begin >= end or not self._by_server(snapshot):
            return max(0, end - begin)
        return max(0, queries.count(begin, self.filters) - self._count_from(queries, end))

    def _count_from(self, queries: StreamQueries, start: int) -> int:
        return queries.count(start, self.filters)

    def _is_too_early(self, count: int) -> bool:
        if not self.least or count >= self.least or not count:
            self._waits_since = None
            return False
        now = time.monotonic()
        if self._waits_since is None:
            self._waits_since = now
        if now - self._waits_since < self.max_delay:
            return True
        self._waits_since = None
        return False

    def _shares(self, counts: dict[str, int]) -> dict[str, int]:
        """Divide the allowed messages among the streams in proportion to their counts."""
        # In whole numbers: as floats, 66,254 * (60,000 / 66,254) is less than 60,000.
        total = sum(counts.values())
        if not self.most or total <= self.most:
            return counts
        # At least one of each stream that has any: otherwise it would never be read.
        shares = {
            name: min(count, max(1, count * self.most // total)) for name, count in counts.items()
        }
        largest = max(counts, key=lambda name: counts[name])
        rest = self.most - sum(shares.values())  # what rounding has left
        shares[largest] = min(counts[largest], shares[largest] + max(0, rest))
        return shares

    def _end(
        self,
        queries: StreamQueries,
        snapshot: StreamSnapshot,
        begin: int,
        end: int,
        count: int,
        wanted: int,
    ) -> int:
        """Return the sequence after `wanted` of the `count` messages between begin and end."""
        if not self._by_server(snapshot):
            return begin + wanted
        left = self._count_from(queries, end) + count - wanted
        low, high = begin + 1, end
        # Find the first sequence after which at most `left` messages remain.
        while low < high:
            middle = (low + high) // 2
            if self._count_from(queries, middle) <= left:
                high = middle
            else:
                low = middle + 1
        return low


def default_read_limit(settings: Settings) -> Any:
    """Return the limit that Spark passes to latestOffset, unless it overrides the options."""
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxBytes,
        ReadMaxRows,
        ReadMinRows,
    )

    if settings.given("maxMessagesPerTrigger"):
        return ReadMaxRows(settings.number("maxMessagesPerTrigger"))
    if settings.given("maxBytesPerTrigger"):
        return ReadMaxBytes(settings.number("maxBytesPerTrigger"))
    if settings.given("minMessagesPerTrigger"):
        return ReadMinRows(settings.number("minMessagesPerTrigger"))
    return ReadAllAvailable()


def is_unlimited(limit: Any) -> bool:
    """Return whether there is no limit, or Spark overrides the options, as for Trigger.Once."""
    return type(limit).__name__ == "ReadAllAvailable"
