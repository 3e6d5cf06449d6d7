"""BatchReader: a stream, or a part of it, as a table.

The range of sequences is fixed when Spark plans the read, so all actions on one DataFrame see the
same rows, and a task that is retried reads the same messages.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader

from natsproto.errors import InvalidValue

from .arrow import arrow_schema, record_batch
from .bounds import place_of, segments, subjects_of, time_of
from .garbage import no_collection
from .offsets import describe_gap, report_data_loss
from .plan import new_plan
from .queries import StreamQueries, check_readable, stream_names
from .ranges import Range, cut_evenly, read_range, split, whole_range
from .schema import check_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

    from .options import Settings
    from .queries import StreamSnapshot

# The clocks of successive leaders of a stream, and of this machine, may differ by this much.
_SKEW = 10 * 10**9


class BatchReader(DataSourceReader):
    """Created on the driver, and pickled to the workers."""

    def __init__(self, settings: Settings, schema: StructType) -> None:
        self.settings = settings
        self.schema = schema
        self.columns: list[str] = check_schema(schema, False, settings.flag("headersOnly"))

    def partitions(self) -> Sequence[InputPartition]:
        whole: list[Range] = []
        plan = new_plan(self.settings)
        for stream in stream_names(self.settings):
            queries = StreamQueries(self.settings, stream)
            snapshot = queries.snapshot()
            check_readable(snapshot, self.settings)
            for each in self._ranges(queries, snapshot):
                whole.append(each)
                if self.settings.text("fetchMode") == "pull":
                    cut_evenly(queries, each, plan, self.settings.number("fetchSize"))
        return list(split(whole, plan))

    def _ranges(self, queries: StreamQueries, snapshot: StreamSnapshot) -> list[Range]:
        """Return the range to read, or several if subjects have their own starts or ends."""
        subjects = subjects_of(self.settings)
        bounds = [(each, *self._bounds(queries, snapshot, each)) for each in subjects]
        ranges: list[Range] = []
        for start, end, filters in segments(bounds):
            whole = whole_range(
                snapshot, start, end, self.settings.filters if subjects == [""] else filters
            )
            whole.later = True
            ranges.append(whole)
        return ranges

    def _bounds(
        self, queries: StreamQueries, snapshot: StreamSnapshot, subject: str
    ) -> tuple[int, int]:
        """Return the first sequence to read, and the first one not to read."""
        settings = self.settings
        check_start(settings, snapshot.name, subject)
        start = starting_sequence(queries, snapshot, settings, "earliest", subject)
        if start < snapshot.first and settings.given("startingOffsets"):
            report_data_loss(
                describe_gap(start, snapshot.first - 1, snapshot.name),
                settings.flag("failOnDataLoss"),
            )
        until = time_of(settings, "endingTimestamp", snapshot.name, subject)
        if until is not None:
            end = queries.sequence_at(until, snapshot)
        else:
            place = place_of(settings, "endingOffsets", snapshot.name, subject)
            end = sequence_of(place or "latest", snapshot)
        return max(start, snapshot.first), min(end, snapshot.next)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_rows(partition, self.settings, self.schema, self.columns)


def read_rows(
    partition: InputPartition, settings: Settings, schema: StructType, columns: list[str]
) -> Iterator[Any]:
    """Yield the record batches of a range; none if Spark has made up the partition."""
    if isinstance(partition, Range):
        wanted = arrow_schema(schema)
        # If neither column is selected, the server need not send the payloads.
        bare = settings.flag("headersOnly") or not {"data", "headers"} & set(columns)
        if settings.text("fetchMode") == "direct":
            bare = False
        with no_collection():
            for rows in read_range(partition, settings, bare):
                yield record_batch(rows, wanted)


def check_start(settings: Settings, stream: str, subject: str = "") -> None:
    """Reject a start in the future: its sequence is not known yet."""
    start = time_of(settings, "startingTimestamp", stream, subject)
    if start is not None and start.ns > time.time_ns() + _SKEW:
        raise InvalidValue("option startingTimestamp: %s is in the future" % start)


def starting_sequence(
    queries: StreamQueries,
    snapshot: StreamSnapshot,
    settings: Settings,
    default: str,
    subject: str = "",
) -> int:
    """Return the sequence at which the options say to start; InvalidValue if it is too high."""
    since = time_of(settings, "startingTimestamp", snapshot.name, subject)
    if since is not None:
        return queries.sequence_at(since, snapshot)
    place = place_of(settings, "startingOffsets", snapshot.name, subject)
    start = sequence_of(place or default, snapshot)
    if start > snapshot.next:
        text = "option startingOffsets: stream %s ends before sequence %d, not %d"
        raise InvalidValue(text % (snapshot.name, snapshot.next, start))
    return start


def sequence_of(place: int | str, snapshot: StreamSnapshot) -> int:
    """Return the sequence of "earliest", "latest", or a number."""
    if isinstance(place, int):
        return place
    return snapshot.first if place == "earliest" else snapshot.next
