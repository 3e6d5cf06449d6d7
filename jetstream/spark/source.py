"""BatchReader: a stream, or a part of it, as a table.

The range of sequences is fixed when Spark plans the read, so all actions on one DataFrame see the
same rows, and a task that is retried reads the same messages.
"""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader

from natsproto.errors import InvalidValue

from .arrow import arrow_schema, record_batch
from .compat import PUSHDOWN
from .filters import intersection
from .garbage import no_collection
from .offsets import describe_gap, report_data_loss
from .options import place_of, time_of
from .plan import new_plan
from .pushdown import SKEW, Narrowing
from .queries import StreamQueries, check_readable, stream_names
from .ranges import Range, cut_evenly, read_range, split, whole_range
from .schema import check_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql.datasource import Filter, InputPartition
    from pyspark.sql.types import StructType

    from .options import Settings
    from .queries import StreamSnapshot


class BatchReader(DataSourceReader):
    """Created on the driver, and pickled to the workers."""

    def __init__(self, settings: Settings, schema: StructType) -> None:
        self.settings = settings
        self.schema = schema
        self.columns: list[str] = check_schema(schema, False, settings.flag("headersOnly"))
        self.narrowing: Narrowing = Narrowing()

    def partitions(self) -> Sequence[InputPartition]:
        whole: list[Range] = []
        plan = new_plan(self.settings)
        for stream in stream_names(self.settings):
            queries = StreamQueries(self.settings, stream)
            snapshot = queries.snapshot()
            check_readable(snapshot, self.settings)
            for each in self._range(queries, snapshot):
                whole.append(each)
                if self.settings.text("fetchMode") == "pull":
                    cut_evenly(queries, each, plan)
        return list(split(whole, plan))

    def _range(self, queries: StreamQueries, snapshot: StreamSnapshot) -> list[Range]:
        settings = self.settings
        filters = settings.filters
        if self.narrowing.subjects is not None and queries.filters_any_subjects():
            filters = intersection(filters or None, self.narrowing.subjects)
            if not filters:
                return []
        check_start(settings, snapshot.name)
        start = starting_sequence(queries, snapshot, settings, "earliest")
        end = self._end(queries, snapshot)
        if start < snapshot.first and settings.given("startingOffsets"):
            report_data_loss(
                describe_gap(start, snapshot.first - 1, snapshot.name),
                settings.flag("failOnDataLoss"),
            )
        narrowing = self.narrowing
        start = max(start, snapshot.first, narrowing.first)
        end = min(end, snapshot.next, narrowing.last + 1)
        earliest, latest = narrowing.by_time
        if start < end and earliest is not None:
            start = max(start, queries.sequence_at(earliest, snapshot))
        if start < end and latest is not None:
            end = min(end, queries.sequence_at(latest, snapshot))
        if start >= end:
            return []
        whole = whole_range(snapshot, start, end, filters)
        whole.later = True
        return [whole]

    def _end(self, queries: StreamQueries, snapshot: StreamSnapshot) -> int:
        until = time_of(self.settings, "endingTimestamp", snapshot.name)
        if until is not None:
            return queries.sequence_at(until, snapshot)
        return sequence_of(
            place_of(self.settings, "endingOffsets", snapshot.name) or "latest", snapshot
        )

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_rows(partition, self.settings, self.schema, self.columns)


class PushdownReader(BatchReader):
    """pushdown=true: reads only messages that may pass the filters of the query.

    Off by default, because Spark keeps the plan of the first query for the DataFrame: the next
    query on it reads no more than that, even without filters, and if one query reads it twice, the
    filters of the second read apply to both (4.3; tests/spark pins it). Spark rejects a reader with
    this method while its setting is off, and names the setting.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        for each in filters:
            self.narrowing.add(each)
        return filters  # Spark applies them as well


def batch_reader(settings: Settings, schema: StructType) -> BatchReader:
    """Return the reader for these options."""
    if not settings.flag("pushdown"):
        return BatchReader(settings, schema)
    if not PUSHDOWN:
        warnings.warn("pushdown: ignored, PySpark is older than 4.1", stacklevel=2)
    return PushdownReader(settings, schema)


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


def check_start(settings: Settings, stream: str) -> None:
    """Reject a start in the future: its sequence is not known yet."""
    start = time_of(settings, "startingTimestamp", stream)
    if start is not None and start.ns > time.time_ns() + SKEW:
        raise InvalidValue("option startingTimestamp: %s is in the future" % start)


def starting_sequence(
    queries: StreamQueries, snapshot: StreamSnapshot, settings: Settings, default: str
) -> int:
    """Return the sequence at which the options say to start."""
    since = time_of(settings, "startingTimestamp", snapshot.name)
    if since is not None:
        return queries.sequence_at(since, snapshot)
    return sequence_of(place_of(settings, "startingOffsets", snapshot.name) or default, snapshot)


def sequence_of(place: int | str, snapshot: StreamSnapshot) -> int:
    """Return the sequence of "earliest", "latest", or a number."""
    if isinstance(place, int):
        return place
    return snapshot.first if place == "earliest" else snapshot.next
