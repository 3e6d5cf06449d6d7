"""Helpers for tests of the sink: frames and batches of numbers, and the stored messages."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import functions as F

from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect
from tests.spark.gates import POLL

SMALL = "spark.sql.execution.arrow.maxRecordsPerBatch"


def numbers(spark, count, partitions=2):
    # Wide enough to leave the buffers of the processes that rows pass through.
    data = F.lpad(F.col("id").cast("string"), 300, "0")
    return spark.range(0, count, 1, partitions).select(data.alias("data"))


def write(frame, options, **more):
    frame.write.format("jetstream").mode("append").options(**options, **more).save()


def stored(stream):
    """Return all messages in order, except markers."""
    found = []
    state = stream.info().state
    while state.messages and (not found or found[-1].seq < state.last_seq):
        found += stream.get_msgs(batch=1000, seq=found[-1].seq + 1 if found else 1)
    return [msg for msg in found if ".mark." not in msg.subject]


def in_order(stream):
    """Return the stored numbers, in the order of the stream."""
    return [int(msg.data) for msg in stored(stream)]


def payloads(stream):
    return sorted(in_order(stream))


def sabotage(frame, what, after=2):
    """Return the frame; the first attempt at each task calls `what` in the middle of its rows."""

    def rows(batches):
        first = TaskContext.get().attemptNumber() == 0
        for number, batch in enumerate(batches):
            if first and number == after:
                what()
            yield batch

    return frame.mapInArrow(rows, frame.schema)


def wait_for_rows(url, name, count):
    """Wait, in a task, until this many messages are stored."""
    with connect(url) as client:
        stream = JetStream(client).stream(name)
        while stream.info().state.messages < count:
            time.sleep(POLL)


def run_query(spark, source, options, checkpoint, queryName=None, **more):
    """Run a query over the files in the directory until it has written all rows."""
    files = spark.readStream.schema("data STRING").option("maxFilesPerTrigger", "1")
    writer = (
        files.text(str(source))
        .writeStream.format("jetstream")
        .options(**options, **more)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
    )
    query = (writer.queryName(queryName) if queryName else writer).start()
    query.awaitTermination()
    return query


def make_files(directory, count, rows=1000):
    directory.mkdir()
    for number in range(count):
        lines = [str(row) for row in range(number * rows, (number + 1) * rows)]
        (directory / f"{number}.txt").write_text("\n".join(lines) + "\n")
    return directory


# Without Spark


def make_batch(start, end, **columns):
    numbers = range(start, end)
    arrays = {"data": [b"%d" % number for number in numbers]}
    arrays.update({name: [make(number) for number in numbers] for name, make in columns.items()})
    return pa.RecordBatch.from_pydict(arrays)


def seen(tally):
    return tally.rows, tally.duplicates, tally.streams


REFUSED = [  # why,  the stream,  the rows,  the row that is named,  the error
    (
        "full",
        {"max_msgs": 10, "discard": "new"},
        make_batch(0, 20),
        10,
        "StoreFailed: maximum messages exceeded (503, 10077)",
    ),
    (
        "another sequence expected",
        {},
        make_batch(0, 3, expected_last_subject_sequence=lambda number: 2 * number),
        1,
        "WrongLastSequence: wrong last sequence: 1 (400, 10071)",
    ),
    (
        "message too large",
        {"max_msg_size": 100},
        pa.RecordBatch.from_pydict({"data": [b"", bytes(200)]}),
        1,
        "MessageTooLarge: ",
    ),
    (
        "no times to live",
        {},
        make_batch(0, 1, ttl=lambda number: 60),
        0,
        "TtlDisabled: per-message TTL is disabled",
    ),
    (
        "above the payload of the server",
        {},
        pa.RecordBatch.from_pydict({"data": [b"", bytes(2 * 1024 * 1024)]}),
        1,
        "PayloadTooLarge: 209",
    ),
]

each_refused = pytest.mark.parametrize(
    ("config", "batch", "row", "why"),
    [each[1:] for each in REFUSED],
    ids=[each[0] for each in REFUSED],
)
