"""StreamReader: the source of a streaming query, by sequence.

Spark calls it in one long-lived process on the driver: initialOffset, then latestOffset, partitions
and commit for each micro-batch. It reports finished batches in two ways: by `commit(end)`, which
is called when the following batch is planned, and by the `start` of latestOffset, which is passed
even if no batch follows (since 4.2). Both purge finished batches.

Without a trigger interval Spark calls latestOffset a hundred times a second. While there are no new
messages, it waits for up to a second for the first one (wakeup.py), and looks at the streams every
5 s in any case. Where no consumer can be used for that, it returns when the last lookup is 0.6 s
old for each stream.

PySpark 4.0 and 4.1 call latestOffset() without arguments and have no limits: a batch then has all
messages.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader

from jetstream.errors import StreamNotFound
from natsproto.errors import InvalidValue, NatsError

from .bounds import starts_by_subject, subjects_of
from .compat import LIMITED, SupportsTriggerAvailableNow
from .connect import jetstream
from .lag import Lag
from .limits import Limits, default_read_limit, is_unlimited
from .offsets import (
    Place,
    end_offset,
    first_to_read,
    initial_offset,
    is_initial,
    planned,
    read_floors,
    read_places,
    report_deleted_stream,
    resumed,
    start_places,
    write_places,
)
from .plan import new_plan
from .purge import Purge
from .queries import StreamQueries, StreamSnapshot, check_readable, stream_names
from .ranges import Range, cut_evenly, split, whole_range
from .schema import check_schema
from .source import check_start, read_rows, starting_sequence
from .wakeup import Wakeup

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

    from .offsets import Floors, Places
    from .options import Settings

_POLL = 0.6
_LONGEST_WAIT = 1.0  # because a query may be stopped
_LOOK = 5.0
_LIST = 30.0  # how often streams that match the pattern are looked for


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
        self._on_recreate: str = settings.text("onRecreate")
        self._initial: dict[str, Any] | None = None
        self._snapshots: dict[str, StreamSnapshot] = {}
        self._looked_at = 0.0
        self._quiet_at = 0.0  # when a wait for a new message ended without one
        self._names: list[str] = []
        self._listed_at = 0.0
        self.lag: Lag = Lag()
        self._target: dict[str, StreamSnapshot] | None = None  # of AvailableNow
        self._reported: dict[str, Any] = {}  # before 4.2: the last result of latestOffset
        self._purge = Purge(settings)
        self._wakeup = Wakeup(settings)
        if not LIMITED:
            self.limits.ignore()
            if starts_by_subject(settings):
                raise InvalidValue("a query that starts by subject needs PySpark 4.2 or later")

    # Called by Spark on the driver

    def initialOffset(self) -> dict[str, Any]:
        if self._initial is None:
            places: Places = {}
            floors: Floors = {}
            for name, snapshot in self._take_snapshots().items():
                starts = {each: self._start(snapshot, each) for each in subjects_of(self.settings)}
                # If it is gone, the first batch reports that; before 4.2, restarted drivers call
                # this.
                places[name] = Place(min(starts.values()), snapshot.created)
                floors[name] = starts
            self._initial = initial_offset(places, floors)
        return self._initial

    def _start(self, snapshot: StreamSnapshot, subject: str) -> int:
        """Return the first sequence to read, of this subject or, if that is "", of all."""
        check_start(self.settings, snapshot.name, subject)
        queries = self._queries(snapshot.name)
        return starting_sequence(queries, snapshot, self.settings, "latest", subject)

    def latestOffset(
        self, start: dict[str, Any] | None = None, limit: Any = None
    ) -> dict[str, Any]:
        if start is None:
            return self._all_there_is()
        first = is_initial(start)
        if not first:
            self._finish(start)
        limited = not is_unlimited(limit)
        end = self._next_end(start, limited)
        if end is None and not first and self._target is None:
            self._wait()
            end = self._next_end(start, limited)
        if end is None:
            # The end of the first batch differs from its start even if it is empty: offsets.py.
            return end_offset(self._read(start), start, new_plan(self.settings)) if first else start
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

    def _next_end(self, start: dict[str, Any], limited: bool) -> dict[str, Any] | None:
        """Return the end of the batch that starts at this offset; None if it is too early."""
        before = self._read(start)
        snapshots = self._target or self._snapshots
        if self._target is None and (not snapshots or self._is_stale()):
            snapshots = self._take_snapshots()
        start = self._resumed(start, snapshots)
        places = {**self._discovered(before, snapshots), **read_places(start)}
        for name in places.keys() - snapshots.keys():
            report_deleted_stream(name, self.fail)
            del places[name]
        begins = {name: self._first_to_read(places[name], snapshots[name]) for name in places}
        created = {name: snapshots[name].created for name in places}
        filters, begins, nexts = self._active(begins, snapshots, read_floors(start, created))
        ends = {name: max(begins[name], nexts[name]) for name in places}
        if limited:
            self.limits.filters = filters
            waiting = self._target is None
            queries = {name: self._queries(name) for name in places}
            ends = self.limits.apply(begins, ends, snapshots, queries, waiting)
        result = {name: Place(ends[name], snapshots[name].created) for name in places}
        if result == before:
            self.lag.planned(result)
            return None
        self.lag.planned(result)
        plan = new_plan(self.settings, begins)
        plan.filters = filters
        if self.settings.text("fetchMode") == "pull":
            at_once = self.settings.number("fetchSize")
            for name, begin in begins.items():
                whole = whole_range(snapshots[name], begin, ends[name], plan.filters)
                cut_evenly(self._queries(name), whole, plan, at_once)
        return end_offset(result, start, plan)

    def _active(
        self, begins: dict[str, int], snapshots: dict[str, StreamSnapshot], floors: Floors
    ) -> tuple[list[str], dict[str, int], dict[str, int]]:
        """Return the filters, begins and ends of a batch.

        It ends where another subject starts, because a batch has one list of filters.
        """
        filters = self.settings.filters
        nexts = {name: snapshots[name].next for name in begins}
        for name, known in floors.items():  # at most one: bounds.py
            firsts = {each: known.get(each, 1) for each in filters}
            # If the filters were changed, perhaps none of them starts here.
            begin = max(begins[name], min(firsts.values(), default=1))
            begins = {**begins, name: begin}
            filters = [each for each in filters if firsts[each] <= begin]
            later = [first for first in firsts.values() if first > begin]
            nexts[name] = min([nexts[name], *later])
        return filters, begins, nexts

    def _discovered(self, places: Places, snapshots: dict[str, StreamSnapshot]) -> Places:
        """Return the first messages of streams that are new since the last batch."""
        return {
            name: Place(snapshot.first, snapshot.created)
            for name, snapshot in snapshots.items()
            if name not in places
        }

    def getDefaultReadLimit(self) -> Any:
        return default_read_limit(self.settings)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the end of the streams at the last lookup, with lags and rates (lag.py)."""
        if not self._snapshots:
            return None
        places = {
            name: Place(snapshot.next, snapshot.created)
            for name, snapshot in self._snapshots.items()
        }
        return {"streams": write_places(places), **self.lag.fields()}

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = dict(self._take_snapshots())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        snapshots = self._take_snapshots() if self._is_stale() else self._snapshots
        end = self._resumed(end, snapshots)
        ends = self._read(end)
        begins = self._check_streams(start_places(self._resumed(start, snapshots), end))
        if not LIMITED:  # otherwise latestOffset has the start of the batch, and reports them
            for name in sorted(begins.keys() - ends.keys()):
                report_deleted_stream(name, self.fail)
        # Not the current options: a replayed batch must have the same partitions.
        plan = planned(end) or new_plan(self.settings)
        firsts: dict[str, int] = {}
        whole: list[Range] = []
        for name, place in ends.items():
            snapshot = snapshots.get(name)
            if snapshot is None or not snapshot.has(place):
                snapshot = self._take_snapshots().get(name)
            # A stream that was new to this batch has no beginning in its start.
            first = plan.first.get(name, snapshot.first if snapshot else place.next)
            begin = begins.get(name) or Place(first, place.created)
            if begin != place:
                firsts[name] = self._first_of_planned(name, begin, place, snapshot)
                # The plan has no start before 4.2; a deleted stream keeps its parts there, too.
                readable = firsts[name] if snapshot else begin.next
                start_of_plan = plan.first.get(name, readable)
                if start_of_plan < place.next:
                    each = Range(name, start_of_plan, place.next, plan.filters, place.created)
                    if snapshot is not None:
                        each.describe(snapshot)
                    whole.append(each)
        parts = split(whole, plan)
        for part in parts:  # empty ones stay, so that the others keep their numbers
            part.start = min(part.end, max(part.start, firsts[part.stream]))
        return list(parts)

    def _first_of_planned(
        self, name: str, begin: Place, end: Place, snapshot: StreamSnapshot | None
    ) -> int:
        """Return the first sequence of a planned batch that can still be read."""
        if snapshot is None:
            report_deleted_stream(name, self.fail)
            return end.next
        first = self._first_to_read(begin, snapshot)
        # If the stream was recreated, none of the messages exist anymore.
        return first if snapshot.created == end.created else end.next

    def commit(self, end: dict[str, Any]) -> None:
        self._finish(end)

    def stop(self) -> None:
        # Only if the driver ends; see termination.py for queries that are stopped.
        with contextlib.suppress(NatsError):
            self._wakeup.delete(jetstream(self.settings))

    # Called by Spark on workers

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_rows(partition, self.settings, self.schema, self.columns)

    # Internals

    def _queries(self, stream: str) -> StreamQueries:
        return StreamQueries(self.settings, stream)

    def _take_snapshots(self) -> dict[str, StreamSnapshot]:
        """Look up the current state of the streams."""
        now = time.monotonic()
        if not self._names or (
            self.settings.given("streamPattern") and now - self._listed_at >= _LIST
        ):
            self._names = stream_names(self.settings)
            self._listed_at = now
        try:
            snapshots = {name: self._queries(name).snapshot() for name in self._names}
        except StreamNotFound:
            if not self.settings.given("streamPattern"):
                raise
            self._names = stream_names(self.settings)  # without the deleted one
            snapshots = {name: self._queries(name).snapshot() for name in self._names}
        for name, snapshot in snapshots.items():
            if name not in self._snapshots:
                check_readable(snapshot, self.settings)
        self._snapshots = snapshots
        self._looked_at = time.monotonic()
        self.lag.looked(snapshots, self._looked_at)
        return snapshots

    @property
    def _interval(self) -> float:
        return _POLL * len(self._names)

    def _is_stale(self) -> bool:
        return time.monotonic() - max(self._looked_at, self._quiet_at) >= self._interval

    def _wait(self) -> None:
        """Wait briefly for a new message, or until the next lookup is due, and look."""
        if self._may_pull() and _LONGEST_WAIT:
            ends = {name: snapshot.next for name, snapshot in self._snapshots.items()}
            since = time.monotonic() - self._looked_at
            if self._wakeup.wait(ends, _LONGEST_WAIT) or since >= _LOOK:
                self._take_snapshots()
            else:
                self._quiet_at = time.monotonic()
            return
        rest = self._looked_at + self._interval - time.monotonic()
        if rest > 0:
            time.sleep(min(rest, _LONGEST_WAIT))
        if rest <= _LONGEST_WAIT:
            self._take_snapshots()

    def _may_pull(self) -> bool:
        if self.settings.text("fetchMode") == "direct":
            return False
        return not any(snapshot.limits_consumers for snapshot in self._snapshots.values())

    def _read(self, offset: dict[str, Any]) -> Places:
        return self._check_streams(read_places(offset))

    def _check_streams(self, places: Places) -> Places:
        """Raise InvalidValue if a stream is no longer one of the query; new ones are welcome."""
        if self.settings.given("streamPattern"):
            return places  # a missing one is reported by its name
        known = self.settings.list("stream")
        if not set(places) <= set(known):
            raise InvalidValue(
                "checkpoint is for streams %s, option stream for %s: use another checkpoint for a"
                " query without one of them" % (",".join(sorted(places)), ",".join(known))
            )
        return places

    def _resumed(
        self, offset: dict[str, Any], snapshots: dict[str, StreamSnapshot]
    ) -> dict[str, Any]:
        """Return the offset, with onRecreate=resume as one of the streams that exist now."""
        return resumed(offset, snapshots) if self._on_recreate == "resume" else offset

    def _first_to_read(self, place: Place, snapshot: StreamSnapshot) -> int:
        """Return the first sequence to read; raise DataLost, or warn, if it is gone."""
        by_default = "fail" if self.fail else "restart"
        fails_if_recreated = (self._on_recreate or by_default) == "fail"
        return first_to_read(place, snapshot, self.fail, fails_if_recreated)

    def _finish(self, end: dict[str, Any]) -> None:
        """Purge the messages of the batch that ends here, and of those before it."""
        self._purge.finish(self._read(end), planned(end) or new_plan(self.settings))
