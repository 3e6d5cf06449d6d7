"""Millions of rows through the sink and the source, each once, with constant memory."""

from __future__ import annotations

import os

import pytest
from pyspark.sql import functions as F

from jetstream.spark.compat import LIMITED
from tests.spark.watch import Watch, peaks

# More of them by hand: SPARK_ROWS=20000000.
ROWS = int(os.environ.get("SPARK_ROWS", "2000000"))
BATCHES = 12
# Before the measurement: Spark imports its last modules when a first task ends.
FIRST = 1000
# Megabytes: how much the second half may have above the first quarter, and a process at all.
MARGIN, MOST = 16.0, 256.0

NUMBER = "CAST(CAST(data AS STRING) AS BIGINT)"
WORKER = "pyspark.worker"
WRITE_PLANNER = "pyspark.sql.worker.write_into_data_source"
READ_PLANNER = "pyspark.sql.worker.plan_data_source_read"
QUERY = "pyspark.sql.streaming.python_streaming_source_runner"


def load(reader, options, schema="sequence BIGINT, data BINARY", **more):
    return reader.format("jetstream").schema(schema).options(**options, **more).load()


def checks(number):
    return [f"sum({number})", f"bit_xor(xxhash64({number}))"]


@pytest.fixture(scope="module")
def written(spark, server, js):
    """Write the numbers below ROWS to a stream; return its options and the watches."""

    def write(start, end, delivery):
        frame = spark.range(start, end, 1, 2).selectExpr("CAST(id AS STRING) AS data")
        writer = frame.write.format("jetstream").mode("append").options(**options)
        writer.options(subject="scale", delivery=delivery).save()

    js.create_stream(name="SCALE", subjects=["scale"], allow_batched=True)
    options = {"servers": server.url, "stream": "SCALE"}
    write(0, FIRST, "dedup")
    with Watch(server) as by_window:
        write(FIRST, ROWS // 8, "dedup")
    with Watch(server) as by_batches:
        write(ROWS // 8, ROWS, "fast")  # the fastest
    yield options, [by_window, by_batches]
    js.delete_stream("SCALE")


def test_the_sink(js, written):
    _, watches = written
    assert js.stream("SCALE").cached_info.state.messages == ROWS
    for watch in watches:
        watch.check(WORKER, WRITE_PLANNER, margin=MARGIN, most=MOST)


def test_the_source(spark, server, written):
    options, _ = written
    options = {**options, "minPartitions": "2"}
    assert load(spark.read, options, endingOffsets=str(FIRST + 1)).count() == FIRST
    # As many, and the same by sum and by hashes: these are the numbers, each of them once.
    with Watch(server) as watch:
        frame = load(spark.read, options)
        row = frame.selectExpr("count(*)", *checks(NUMBER), *checks("sequence")).first()
    expected = spark.range(ROWS).selectExpr("count(*)", *checks("id"), *checks("id + 1")).first()
    assert row == expected
    assert row[0] == ROWS
    watch.check(WORKER, READ_PLANNER, margin=MARGIN, most=MOST)


def test_a_query(spark, server, written, tmp_path):
    """A query has many micro-batches, planned by one process; before 4.2 it has only one."""
    options, _ = written
    sums = []

    def take(frame, number):
        sums.append(tuple(frame.agg(F.count("*"), F.sum("sequence")).first()))

    more = {"startingOffsets": "earliest", "maxMessagesPerTrigger": str(-(-ROWS // BATCHES))}
    with Watch(server) as watch:
        frame = load(spark.readStream, options, "sequence BIGINT", **more)
        writer = frame.writeStream.foreachBatch(take).trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.start().awaitTermination()
    assert len(sums) == (BATCHES if LIMITED else 1)
    assert [sum(each) for each in zip(*sums)] == [ROWS, ROWS * (ROWS + 1) // 2]
    watch.check(WORKER, QUERY, margin=MARGIN, most=MOST)


GROWTH = [  # messages so far, memory of the two workers and the planner;  whether it is flat
    ("flat", [(0, 50, 90, 30), (25, 100, 90, 30), (50, 90, 100, 30), (100, 99, 99, 30)], True),
    ("starting", [(0, 9, 9, 9), (0, 90, 9, 30), (20, 100, 99, 30), (100, 101, 99, 30)], True),
    ("a little in time", [(0, 99, 9, 9), (25, 99, 99, 9), (26, 120, 99, 9), (90, 99, 9, 9)], True),
    (
        "one worker",
        [(0, 90, 90, 30), (25, 90, 90, 30), (50, 90, 90, 30), (100, 90, 107, 30)],
        False,
    ),
    ("the planner", [(0, 90, 90, 30), (25, 90, 90, 30), (100, 90, 90, 47)], False),
    ("all of it", [(0, 90, 300, 30), (100, 90, 300, 30)], False),
]


@pytest.mark.parametrize(("table", "is_flat"), [each[1:] for each in GROWTH])
def test_the_watch_detects_growth(server, table, is_flat):
    watch = Watch(server)
    for messages, one, other, planner in table:
        sizes = ((WORKER, one), (WORKER, other), (QUERY, planner))
        watch.samples += [(messages, kind, float(size)) for kind, size in sizes]
    assert set(peaks(watch.samples)) == {WORKER, QUERY}
    if is_flat:
        watch.check(WORKER, QUERY, margin=MARGIN, most=MOST)
    else:
        with pytest.raises(AssertionError):
            watch.check(WORKER, margin=MARGIN, most=MOST)
