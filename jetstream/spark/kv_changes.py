"""The changes of a key-value bucket: its stream, with the columns of a bucket.

The readers are those of any stream; only the columns differ. A key is the end of a subject, a value
is the data of a message, and a deletion is a message with a marker in its headers.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from jetstream.kv.entry import DEL, OPERATION, PURGE, PUT, REASON
from jetstream.kv.names import STREAM

from .arrow import arrow_schema
from .offsets import LOG
from .source import BatchReader
from .stores import CHANGES, check_columns
from .stream import StreamReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.datasource import InputPartition

    from .options import Settings

_SOURCES = {  # the column of the stream that a column of changes is made of
    "key": ("subject", StringType()),
    "value": ("data", BinaryType()),
    "operation": ("headers", MapType(StringType(), ArrayType(StringType()))),
    "revision": ("sequence", LongType()),
    "timestamp": ("timestamp", TimestampType()),
}


class ReplacedRevisions(logging.Filter):
    """Drops warnings that old messages of a bucket are gone: newer ones have replaced them."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log a record."""
        text = record.getMessage()
        return not ("were removed" in text and "of stream " + STREAM in text)


_REPLACED = ReplacedRevisions()


class ChangesReader(BatchReader):
    """A batch read of the changes that the bucket still has."""

    def __init__(self, settings: Settings, schema: StructType) -> None:
        self.wanted = schema
        super().__init__(settings, stream_columns(schema))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return change_batches(super().read(partition), self.wanted, self.settings)


class ChangesStream(StreamReader):
    """A streaming query over the changes."""

    def __init__(self, settings: Settings, schema: StructType) -> None:
        self.wanted = schema
        super().__init__(settings, stream_columns(schema))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return change_batches(super().read(partition), self.wanted, self.settings)


def stream_columns(schema: StructType) -> StructType:
    """Return the columns of the stream that are needed for these columns of changes."""
    LOG.addFilter(_REPLACED)  # in the process that plans a query
    names = check_columns(schema, CHANGES)
    needed = [_SOURCES[name] for name in names if name in _SOURCES]
    if "value" in names and "operation" not in names:
        needed.append(_SOURCES["operation"])  # the value of a marker is null
    made = StructType()
    for name, kind in needed or [_SOURCES["revision"]]:
        made = made.add(name, kind)
    return made


def change_batches(batches: Iterator[Any], schema: StructType, settings: Settings) -> Iterator[Any]:
    """Yield record batches of a stream as those of changes."""
    LOG.addFilter(_REPLACED)  # in the process of a task
    wanted = arrow_schema(schema)
    [stream] = settings.list("stream")
    bucket = stream[len(STREAM) :]
    for batch in batches:
        columns = [_column(batch, field.name, field.type, bucket) for field in wanted]
        yield pa.RecordBatch.from_arrays(columns, schema=wanted)


def _column(batch: Any, name: str, kind: Any, bucket: str) -> Any:
    if name == "bucket":
        return pa.repeat(pa.scalar(bucket, kind), batch.num_rows)
    if name == "operation":
        return pa.array(_operations(batch), kind)
    source = batch.column(_SOURCES[name][0])
    if name == "key":
        # $KV.<bucket>.<key>, where the bucket of a mirror is that of its origin
        return pc.replace_substring_regex(source, r"^[^.]*\.[^.]*\.", "").cast(kind)
    if name == "value" and batch.column("headers").null_count < batch.num_rows:
        markers = pa.array([each != PUT for each in _operations(batch)])
        return pc.if_else(markers, pa.scalar(None, kind), source)
    return source


def _operations(batch: Any) -> list[str]:
    return [_operation(headers) for headers in batch.column("headers").to_pylist()]


def _operation(headers: list[tuple[str, list[str]]] | None) -> str:
    """Return the operation of a message by its headers (KV-25)."""
    if not headers:
        return PUT
    by_name = dict(headers)
    for operation in by_name.get(OPERATION, ()):
        return operation if operation in (PUT, PURGE) else DEL
    for reason in by_name.get(REASON, ()):
        return PURGE if reason in ("MaxAge", "Purge") else DEL
    return PUT
