"""TableReader: a key-value bucket as a table, with one row for each key and its latest value.

One task reads the whole bucket, because the bucket's watch knows when it has seen every key even
while others write, and ranges of sequences do not: a key that is changed between the plan and the
read leaves its range. So a table has every key that existed when the task started, each with the
value of that moment or a later one. Each action on a frame reads the bucket again.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from .arrow import arrow_schema
from .connect import jetstream
from .retry import retry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql.types import StructType

    from jetstream.blocking.kv import KeyWatcher
    from jetstream.kv.entry import KeyValueEntry

    from .options import Settings

_MICROSECOND = 1000  # nanoseconds


class TableReader(DataSourceReader):
    """Created on the driver, and pickled to the worker."""

    def __init__(self, settings: Settings, schema: StructType, columns: list[str]) -> None:
        self.settings = settings
        self.schema = schema
        self.columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        # Fails now, with the reason, if the bucket does not exist.
        retry(lambda: jetstream(self.settings).key_value(self.settings.text("bucket")))
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        wanted = arrow_schema(self.schema)
        with retry(self._watch) as watcher:
            entries = watcher.initial()
            size = self.settings.number("arrowBatchRows")
            while some := list(islice(entries, size)):
                yield table_batch(some, wanted)

    def _watch(self) -> KeyWatcher:
        bucket = jetstream(self.settings).key_value(self.settings.text("bucket"))
        return bucket.watch(
            self.settings.list("keys") or ">",
            ignore_deletes=True,
            meta_only="value" not in self.columns,
        )


def table_batch(entries: list[KeyValueEntry], schema: Any) -> Any:
    """Return a record batch with the columns of this Arrow schema."""
    return pa.RecordBatch.from_arrays(
        [_column(entries, field.name, field.type) for field in schema], schema=schema
    )


def _column(entries: list[KeyValueEntry], name: str, kind: Any) -> Any:
    if name == "timestamp":
        times = [entry.created.ns // _MICROSECOND for entry in entries]
        return pa.array(times, pa.int64()).cast(kind)
    return pa.array([getattr(entry, name) for entry in entries], kind)
