"""StreamReader: a streaming query's view of streams, by sequence.

Spark calls it in one long-lived process on the driver: initialOffset, then latestOffset, partitions
and commit for each micro-batch. What is finished can be told in two ways only: `commit(end)`, which
comes when the batch behind it is planned, and `start` of latestOffset, which comes even if there is
no such batch (since 4.2). So both finalise.

Without a trigger interval Spark asks a hundred times a second. While nothing is new, an answer is
put off until the last look at the server is some time old (0.6 s for each stream): that is all the
load of an idle query.

PySpark 4.0 and 4.1 call latestOffset() without arguments and know no limits: all there is, then.
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
    """The reader for this mode."""
    if settings.text("mode") == "consume":
        from .consume import ConsumeReader

        return ConsumeReader(settings, schema)
    return StreamReader(settings, schema)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """mode=sequence. Pickled to the workers as it is made; what changes stays on the driver."""

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
        self._told: dict[str, Any] = {}  # before 4.2: the last answer
        self._purged: dict[str, int] = {}
        _check_purge(settings)
        if not LIMITED:
            self.limits.ignore()

    # What Spark calls on the driver

    def initialOffset(self) -> dict[str, Any]:
        if self._initial is None:
            _check_start(self.settings)
            places: Places = {}
            for name, snapshot in self._take_snapshots().items():
                start = starting_sequence(self._queries(name), snapshot, self.settings, "latest")
                if start > snapshot.next:
                    text = "option startingOffsets: stream %s ends before sequence %d, not %d"
                    raise InvalidValue(text % (name, snapshot.next, start))
                # If it is gone, the first batch says so. Before 4.2 later drivers ask this, too.
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
            # The first batch has an end of its own even if it is empty: see offsets.py.
            return end_offset(begins, start, new_plan(self.settings)) if first else start
        return end

    def _all_there_is(self) -> dict[str, Any]:
        """Before 4.2: also asked for before the initial offset, and never told where it starts."""
        plan = new_plan(self.settings)
        offset = end_offset(self._latest(), self.initialOffset(), plan)
        if offset == self._told:
            self._wait()
            offset = end_offset(self._latest(), self.initialOffset(), plan)
        self._told = offset
        return offset

    def _latest(self) -> Places:
        snapshots = self._take_snapshots() if self._is_stale() else self._snapshots
        return {
            name: Place(snapshot.next, snapshot.created) for name, snapshot in snapshots.items()
        }

    def _next_end(
        self, places: Places, start: dict[str, Any], limited: bool
    ) -> dict[str, Any] | None:
        """The end of the batch that begins there; None if it is not time for one."""
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
        """For the metrics of lag: what the last look has told."""
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
        # Not by the options of now: a batch that is replayed has the partitions that it had.
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
                first = place.next  # it was made anew: nothing of what was to be read is there
            firsts[name] = first
            start_of_plan = plan.first.get(name, first)
            if start_of_plan < place.next:
                whole.append(Range(name, start_of_plan, place.next, plan.filters, place.created))
        parts = split(whole, plan)
        for part in parts:  # those without messages stay: the others keep their numbers
            part.start = min(part.end, max(part.start, firsts[part.stream]))
        return list(parts)

    def commit(self, end: dict[str, Any]) -> None:
        self._finish(end)

    def stop(self) -> None:
        pass  # the process ends, and its connection with it

    # What it calls on workers

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_rows(partition, self.settings, self.schema, self.columns)

    # How it works

    def _queries(self, stream: str) -> StreamQueries:
        return StreamQueries(self.settings, stream)

    def _take_snapshots(self) -> dict[str, StreamSnapshot]:
        """Ask the server for the streams as they are now."""
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
        """Until it is time to look again; then look. Not for long: a query may be stopped."""
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
                "the checkpoint is for streams %s, option stream for %s: a query on other streams"
                " needs a checkpoint of its own" % (",".join(sorted(places)), ",".join(known))
            )
        return places

    def _finish(self, end: dict[str, Any]) -> None:
        """Purge what the batch that ends here, and those before it, have read."""
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
    """A place is a sequence, and that of a time to come is not known."""
    start: Timestamp | None = settings.get("startingTimestamp")
    if start is not None and start.ns > time.time_ns() + SKEW:
        raise InvalidValue("option startingTimestamp: %s is in the future" % start)


def _check_purge(settings: Settings) -> None:
    if settings.text("onCommit") == "purge":
        start = settings.get("startingOffsets")
        if start != "earliest":
            raise InvalidValue(
                "onCommit=purge deletes all below what was read: it needs startingOffsets=earliest"
            )
