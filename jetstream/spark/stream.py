"""StreamReader: the source of a streaming query, by sequence.

Spark calls it in one long-lived process on the driver: initialOffset, then latestOffset, partitions
and commit for each micro-batch. It reports finished batches in two ways: by `commit(end)`, which
is called when the following batch is planned, and by the `start` of latestOffset, which is passed
even if no batch follows (since 4.2). Both purge finished batches.

Without a trigger interval Spark calls latestOffset a hundred times a second. While there are no new
messages, it returns only when the last lookup is 0.6 s old for each stream; these lookups are the
only load of an idle query.

PySpark 4.0 and 4.1 call latestOffset() without arguments and have no limits: a batch then has all
messages.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader

from natsproto.errors import InvalidValue

from .compat import LIMITED, SupportsTriggerAvailableNow
from .connect import jetstream
from .limits import Limits, default_read_limit, is_unlimited
from .offsets import (
    Place,
    end_offset,
    first_to_read,
    initial_offset,
    is_initial,
    planned,
    read_places,
    start_places,
    write_places,
)
from .plan import new_plan
from .pushdown import SKEW
from .queries import StreamQueries, StreamSnapshot, check_readable
from .ranges import Range, split
from .retry import retry
from .schema import check_schema
from .source import read_rows, starting_sequence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

    from jetstream.schema.timestamp import Timestamp

    from .offsets import Places
    from .options import Settings

_POLL = 0.6
_LONGEST_WAIT = 1.0


def stream_reader(settings: Settings, schema: StructType) -> DataSourceStreamReader:
    """Return the reader for this mode."""
    if settings.text("mode") == "consume":
        from .consume import ConsumeReader

        return ConsumeReader(settings, schema)
    return StreamReader(settings, schema)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """mode=sequence. Pickled to the workers when created; its state changes on the driver only."""

    def __init__(self, settings: Settings, schema: StructType) -> None:
        self.settings = settings
        self.schema = schema
        self.columns: list[str] = check_schema(schema, False, settings.flag("headersOnly"))
        self.limits: Limits = Limits(settings)
        self.fail: bool = settings.flag("failOnDataLoss")
        self._initial: dict[str, Any] | None = None
        self._snapshots: dict[str, StreamSnapshot] = {}
        self._looked_at = 0.0
        self._target: dict[str, StreamSnapshot] | None = None  # of AvailableNow
        self._reported: dict[str, Any] = {}  # before 4.2: the last result of latestOffset
        self._purged: dict[str, int] = {}
        _check_purge(settings)
        if not LIMITED:
            self.limits.ignore()

    # Called by Spark on the driver

    def initialOffset(self) -> dict[str, Any]:
        if self._initial is None:
            _check_start(self.settings)
            places: Places = {}
            for name, snapshot in self._take_snapshots().items():
                start = starting_sequence(self._queries(name), snapshot, self.settings, "latest")
                if start > snapshot.next:
                    text = "option startingOffsets: stream %s ends before sequence %d, not %d"
                    raise InvalidValue(text % (name, snapshot.next, start))
                # If it is gone, the first batch reports that; before 4.2, restarted drivers call
                # this.
                places[name] = Place(start, snapshot.created)
            self._initial = initial_offset(places)
        return self._initial

    def latestOffset(
        self, start: dict[str, Any] | None = None, limit: Any = None
    ) -> dict[str, Any]:
        if start is None:
            return self._all_there_is()
        begins = self._read(start)
        first = is_initial(start)
        if not first:
            self._finish(start)
        limited = not is_unlimited(limit)
        end = self._next_end(begins, start, limited)
        if end is None and not first and self._target is None:
            self._wait()
            end = self._next_end(begins, start, limited)
        if end is None:
            # The end of the first batch differs from its start even if it is empty: offsets.py.
            return end_offset(begins, start, new_plan(self.settings)) if first else start
        return end

    def _all_there_is(self) -> dict[str, Any]:
        """Return the end of all streams, for Spark before 4.2, which may call this first."""
        plan = new_plan(self.settings)
        offset = end_offset(self._latest(), self.initialOffset(), plan)
        if offset == self._reported:
            self._wait()
            offset = end_offset(self._latest(), self.initialOffset(), plan)
        self._reported = offset
        return offset

    def _latest(self) -> Places:
        snapshots = self._take_snapshots() if self._is_stale() else self._snapshots
        return {
            name: Place(snapshot.next, snapshot.created) for name, snapshot in snapshots.items()
        }

    def _next_end(
        self, places: Places, start: dict[str, Any], limited: bool
    ) -> dict[str, Any] | None:
        """Return the end of the batch that starts at these places; None if it is too early."""
        snapshots = self._target or self._snapshots
        if self._target is None and (not snapshots or self._is_stale()):
            snapshots = self._take_snapshots()
        begins = {name: first_to_read(places[name], snapshots[name], self.fail) for name in places}
        ends = {name: max(begins[name], snapshots[name].next) for name in places}
        if limited:
            waiting = self._target is None
            queries = {name: self._queries(name) for name in places}
            ends = self.limits.apply(begins, ends, snapshots, queries, waiting)
        result = {name: Place(ends[name], snapshots[name].created) for name in places}
        if result == places:
            return None
        return end_offset(result, start, new_plan(self.settings, begins))

    def getDefaultReadLimit(self) -> Any:
        return default_read_limit(self.settings)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the end of the streams at the last lookup, for the metrics of lag."""
        if not self._snapshots:
            return None
        places = {
            name: Place(snapshot.next, snapshot.created)
            for name, snapshot in self._snapshots.items()
        }
        return {"streams": write_places(places)}

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = dict(self._take_snapshots())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        ends = self._read(end)
        begins = self._check_streams(start_places(start, end))
        # Not the current options: a replayed batch must have the same partitions.
        plan = planned(end) or new_plan(self.settings)
        firsts: dict[str, int] = {}
        whole: list[Range] = []
        snapshots = self._take_snapshots() if self._is_stale() else self._snapshots
        for name, place in ends.items():
            snapshot = snapshots[name]
            if snapshot.created != place.created or snapshot.next < place.next:
                snapshot = self._take_snapshots()[name]
            if begins[name] == place:
                continue
            first = first_to_read(begins[name], snapshot, self.fail)
            if place.created != snapshot.created:
                first = place.next  # it was recreated: none of the messages exist anymore
            firsts[name] = first
            start_of_plan = plan.first.get(name, first)
            if start_of_plan < place.next:
                whole.append(Range(name, start_of_plan, place.next, plan.filters, place.created))
        parts = split(whole, plan)
        for part in parts:  # empty ones stay, so that the others keep their numbers
            part.start = min(part.end, max(part.start, firsts[part.stream]))
        return list(parts)

    def commit(self, end: dict[str, Any]) -> None:
        self._finish(end)

    def stop(self) -> None:
        pass  # the process ends, and its connection with it

    # Called by Spark on workers

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_rows(partition, self.settings, self.schema, self.columns)

    # Internals

    def _queries(self, stream: str) -> StreamQueries:
        return StreamQueries(self.settings, stream)

    def _take_snapshots(self) -> dict[str, StreamSnapshot]:
        """Look up the current state of the streams."""
        snapshots = {name: self._queries(name).snapshot() for name in self.settings.list("stream")}
        if not self._snapshots:
            for snapshot in snapshots.values():
                check_readable(snapshot, self.settings)
        self._snapshots = snapshots
        self._looked_at = time.monotonic()
        return snapshots

    @property
    def _interval(self) -> float:
        return _POLL * len(self.settings.list("stream"))

    def _is_stale(self) -> bool:
        return time.monotonic() - self._looked_at >= self._interval

    def _wait(self) -> None:
        """Wait briefly, as a query may be stopped, until the next lookup is due, and do it."""
        rest = self._looked_at + self._interval - time.monotonic()
        if rest > 0:
            time.sleep(min(rest, _LONGEST_WAIT))
        if rest <= _LONGEST_WAIT:
            self._take_snapshots()

    def _read(self, offset: dict[str, Any]) -> Places:
        return self._check_streams(read_places(offset))

    def _check_streams(self, places: Places) -> Places:
        known = self.settings.list("stream")
        if set(places) != set(known):
            raise InvalidValue(
                "checkpoint is for streams %s, option stream for %s: use another checkpoint for a"
                " query on other streams" % (",".join(sorted(places)), ",".join(known))
            )
        return places

    def _finish(self, end: dict[str, Any]) -> None:
        """Purge the messages of the batch that ends here, and of those before it."""
        places = self._read(end)
        if self.settings.text("onCommit") != "purge":
            return
        plan = planned(end) or new_plan(self.settings)
        for name, place in places.items():
            if place.next > self._purged.get(name, 1):
                retry(partial(self._purge, name, place, plan.filters))
                self._purged[name] = place.next

    def _purge(self, name: str, place: Place, filters: list[str]) -> None:
        stream = jetstream(self.settings).stream(name)
        if str(stream.cached_info.created) == place.created:
            for subject in filters or [">"]:
                stream.purge(subject=subject, seq=place.next)


def _check_start(settings: Settings) -> None:
    """Reject a start in the future: its sequence is not known yet."""
    start: Timestamp | None = settings.get("startingTimestamp")
    if start is not None and start.ns > time.time_ns() + SKEW:
        raise InvalidValue("option startingTimestamp: %s is in the future" % start)


def _check_purge(settings: Settings) -> None:
    if settings.text("onCommit") == "purge":
        start = settings.get("startingOffsets")
        if start != "earliest":
            raise InvalidValue(
                "onCommit=purge deletes all earlier messages: it needs startingOffsets=earliest"
            )
