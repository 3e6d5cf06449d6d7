"""Queries that restart from their checkpoint: with other options, or after it was changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

from jetstream.spark.compat import LIMITED
from tests.spark.support import fill, make
from tests.spark.test_stream import Query


def test_changed_limits_filters_and_partitions_apply_after_a_restart(
    spark, server, js, name, tmp_path
):
    make(js, name, 10, subjects=2)
    query = Query(
        spark,
        server,
        tmp_path,
        stream=name,
        startingOffsets="earliest",
        maxMessagesPerTrigger="4",
    )
    query.run()
    # Before 4.2 Spark knows no limits.
    assert [len(rows) for rows in query.batches.values()] == ([4, 4, 2] if LIMITED else [10])
    fill(js, name, 10, subjects=2)
    del query.options["maxMessagesPerTrigger"]
    query.options.update(startingOffsets="latest", filterSubjects=f"{name}.1", minPartitions="3")
    query.run()
    assert query.rows == [12, 14, 16, 18, 20]


def test_another_mode_or_fewer_streams_need_another_checkpoint(spark, server, js, name, tmp_path):
    make(js, name, 3)
    make(js, name + "B", 2)
    js.create_consumer(name, durable_name="worker")
    query = Query(spark, server, tmp_path, stream=name, startingOffsets="earliest")
    query.run()
    query.options["stream"] = f"{name},{name}B"
    query.run()
    assert query.rows == [1, 2]  # of the stream that was added
    query.options["stream"] = name
    with pytest.raises(StreamingQueryException, match="use another checkpoint for a query"):
        query.run()
    query.options = {**query.options, "stream": name, "mode": "consume", "consumer": "worker"}
    del query.options["startingOffsets"]
    with pytest.raises(StreamingQueryException, match="does not belong to consumer worker of"):
        query.run()


def test_a_manually_changed_checkpoint_is_rejected(spark, server, js, name, tmp_path):
    make(js, name, 5)
    query = Query(spark, server, tmp_path, stream=name, startingOffsets="earliest")
    query.run()
    log = Path(query.checkpoint, "offsets", "0")
    lines = log.read_text().split("\n")
    offset = json.loads(lines[-1])

    def change(place):
        offset["streams"][name]["next"] = place
        log.write_text("\n".join([*lines[:-1], json.dumps(offset)]))
        (log.parent / ".0.crc").unlink(missing_ok=True)

    change(3.5)
    with pytest.raises(StreamingQueryException, match="is not one of mode=sequence"):
        query.run()
    change(3)  # which is how to have messages read again
    query.run()
    assert query.rows == [3, 4, 5]


def test_two_queries_at_once(spark, server, js, name, tmp_path):
    make(js, name, 10)
    make(js, name + "B", 10)
    queries = [
        Query(spark, server, tmp_path / each, stream=each, startingOffsets="earliest")
        for each in (name, name + "B")
    ]
    running = [queries[0].start(), queries[1].start(processingTime="100 milliseconds")]
    try:
        for each in running:
            each.processAllAvailable()
        fill(js, name + "B", 5)
        running[1].processAllAvailable()
        assert queries[0].rows == list(range(1, 11))
        assert queries[1].rows == list(range(1, 16))
    finally:
        for each in running:
            each.stop()
    # Spark kills the processes of a query; the server deletes the consumers that they leave.
    left = [each.config for each in js.consumers(name)]
    assert [
        each for each in left if each.durable_name or not 0 < each.inactive_threshold <= 60
    ] == []
