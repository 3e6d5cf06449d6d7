"""Run tasks of the sink without Spark: the same calls, in the same context."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.types import BinaryType, StringType, StructType

from jetstream.spark.options import WRITE, read_options
from jetstream.spark.sink import BatchWriter, StreamWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Row = tuple[str, bytes]  # its subject and its data
SCHEMA = StructType().add("subject", StringType()).add("data", BinaryType())
_runs = itertools.count(1)
BATCH = 7  # rows of an Arrow batch, so that a task has several


class Crash(Exception):
    """The driver crashed."""


@contextlib.contextmanager
def task(partition: int, **properties: str) -> Iterator[None]:
    context: Any = TaskContext._getOrCreate()
    context._partitionId, context._attemptNumber = partition, 0
    context._localProperties = properties
    try:
        yield
    finally:
        TaskContext._setTaskContext(None)


def batches(rows: Iterable[Row], crash_after: int | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows in Arrow batches; raise Crash after `crash_after` of them."""
    rows = list(rows)
    for start in range(0, len(rows), BATCH):
        if crash_after is not None and start >= crash_after:
            raise Crash
        chunk = rows[start : start + BATCH]
        yield pa.RecordBatch.from_pydict(
            {"subject": [row[0] for row in chunk], "data": [row[1] for row in chunk]},
            schema=pa.schema([("subject", pa.string()), ("data", pa.binary())]),
        )
    if crash_after is not None:
        raise Crash


def write_batch(
    options: dict[str, str],
    query: str | None,
    number: int,
    partitions: list[list[Row]],
    crashes: dict[int, int] | None = None,
    commit: bool = True,
) -> None:
    """Write a micro-batch in a new run of the query, or a frame if `query` is None.

    `crashes` has the tasks that started before the driver crashed, and their rows by then.
    """
    kind = BatchWriter if query is None else StreamWriter
    writer: Any = kind(read_options(options, WRITE), SCHEMA, False)
    local = {"sql.streaming.queryId": query or "", "streaming.sql.batchId": str(number)}
    local["spark.jobGroup.id"] = "run %d" % next(_runs)
    messages = []
    for partition, rows in enumerate(partitions):
        if crashes is not None and partition not in crashes:
            continue
        found = batches(rows, None if crashes is None else crashes[partition])
        with task(partition, **local), contextlib.suppress(Crash):
            if query is None:
                messages.append(writer.write(found))
            else:
                messages.append(writer.write_micro_batch(found))
    if crashes is None and commit:
        # Spark commits with another instance, in a separate process.
        last: Any = kind(read_options(options, WRITE), SCHEMA, False)
        last.commit(messages, *([] if query is None else [number]))
