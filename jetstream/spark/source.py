"""BatchReader: a stream, or a part of it, as a table.

The range of sequences is fixed when Spark plans the read, so all actions on one DataFrame see the
same rows, and a task that is tried again reads what it read before.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader

from .arrow import arrow_schema, record_batch
from .compat import PUSHDOWN
from .filters import intersection
from .lookup import Lookup, check_readable
from .offsets import gone, lose
from .pushdown import Narrowing
from .ranges import Range, read_range, split
from .schema import check_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql.datasource import Filter, InputPartition
    from pyspark.sql.types import StructType

    from .lookup import View
    from .options import Settings


class BatchReader(DataSourceReader):
    """Made on the driver, pickled to the workers."""

    def __init__(self, settings: Settings, schema: StructType) -> None:
        self.settings = settings
        self.schema = schema
        self.columns = check_schema(schema, False, settings.flag("headersOnly"))
        self.narrowing = Narrowing()
        allow_pushdown(self)

    def push(self, filters: list[Filter]) -> Iterable[Filter]:
        for each in filters:
            self.narrowing.add(each)
        return filters  # Spark applies them all the same

    def partitions(self) -> Sequence[InputPartition]:
        whole: list[Range] = []
        for stream in self.settings.list("stream"):
            lookup = Lookup(self.settings, stream)
            view = lookup.view()
            check_readable(view, self.settings)
            whole += self._range(lookup, view)
        return list(split(whole, self.settings, default_parallelism()))

    def _range(self, lookup: Lookup, view: View) -> list[Range]:
        settings = self.settings
        filters = settings.filters
        if self.narrowing.subjects is not None and lookup.filters_any_subjects():
            filters = intersection(filters or None, self.narrowing.subjects)
            if not filters:
                return []
        start = starting_sequence(lookup, view, settings, "earliest")
        end = self._end(lookup, view)
        if start < view.first and settings.given("startingOffsets"):
            lose(gone(start, view.first - 1, view.name), settings.flag("failOnDataLoss"))
        narrowing = self.narrowing
        start = max(start, view.first, narrowing.first)
        end = min(end, view.next, narrowing.last + 1)
        earliest, latest = narrowing.by_time
        if start < end and earliest is not None:
            start = max(start, lookup.sequence_at(earliest, view))
        if start < end and latest is not None:
            end = min(end, lookup.sequence_at(latest, view))
        if start >= end:
            return []
        return [Range(view.name, start, end, filters, view.created)]

    def _end(self, lookup: Lookup, view: View) -> int:
        if self.settings.given("endingTimestamp"):
            return lookup.sequence_at(self.settings.get("endingTimestamp"), view)
        place = place_of(self.settings, "endingOffsets", view.name, "latest")
        return sequence_of(place, view)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_rows(partition, self.settings, self.schema, self.columns)


def read_rows(
    partition: InputPartition, settings: Settings, schema: StructType, columns: list[str]
) -> Iterator[Any]:
    """The record batches of a range; nothing for what Spark makes up where there is none."""
    if isinstance(partition, Range):
        wanted = arrow_schema(schema)
        # Nobody asks for what is in the messages: then the server need not send it.
        bare = settings.flag("headersOnly") or not {"data", "headers"} & set(columns)
        if settings.text("fetchMode") == "direct":
            bare = False
        for rows in read_range(partition, settings, bare):
            yield record_batch(rows, wanted)


def starting_sequence(lookup: Lookup, view: View, settings: Settings, default: str) -> int:
    """Where the options say to start."""
    if settings.given("startingTimestamp"):
        return lookup.sequence_at(settings.get("startingTimestamp"), view)
    return sequence_of(place_of(settings, "startingOffsets", view.name, default), view)


def place_of(settings: Settings, name: str, stream: str, default: str) -> int | str:
    """What startingOffsets or endingOffsets say about this stream."""
    offsets: int | str | dict[str, int | str] | None = settings.get(name)
    if offsets is None:
        return default
    return offsets[stream] if isinstance(offsets, dict) else offsets


def sequence_of(place: int | str, view: View) -> int:
    if isinstance(place, int):
        return place
    return view.first if place == "earliest" else view.next


def default_parallelism() -> int:
    """Spark does not tell a Python source how many cores it has; here are those of the driver."""
    return os.cpu_count() or 1


class _Pushdown:
    """Stands for `reader.pushFilters`, in a way that Spark's guard takes for the inherited one.

    While spark.sql.python.filterPushdown.enabled is false, as it is by default, a reader with a
    pushFilters of its own is an error. The guard compares `__func__`. If the setting is on, Spark
    calls this; if it is off, nobody does, and the read works without. tests/spark pins both.
    """

    def __init__(self, reader: BatchReader) -> None:
        self._reader = reader

    @property
    def __func__(self) -> Any:
        return DataSourceReader.pushFilters

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        return self._reader.push(filters)


def allow_pushdown(reader: BatchReader) -> None:
    if PUSHDOWN:
        reader.pushFilters = _Pushdown(reader)  # type: ignore[method-assign]
