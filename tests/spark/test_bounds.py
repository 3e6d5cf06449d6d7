"""Starts and ends by subject: batch reads, queries that restart, and the segments between them."""

from __future__ import annotations

import json
import random

import pytest

from jetstream.spark.bounds import segments
from jetstream.spark.compat import LIMITED
from natsproto.errors import InvalidValue
from tests.spark.stepping import Query, needs_limits
from tests.spark.support import batch_reader, fill, make, query_reader, sequences

pytestmark = pytest.mark.usefixtures("impatient")
COUNT = 60


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ([], []),
        ([("", 1, 9)], [(1, 9, [""])]),
        ([("", 9, 9)], []),
        ([("a", 1, 9), ("b", 1, 9)], [(1, 9, ["a", "b"])]),
        ([("a", 1, 9), ("b", 4, 9)], [(1, 4, ["a"]), (4, 9, ["a", "b"])]),
        ([("a", 1, 4), ("b", 6, 9)], [(1, 4, ["a"]), (6, 9, ["b"])]),
        (
            [("a", 2, 9), ("b", 1, 5), ("c", 7, 7)],
            [(1, 2, ["b"]), (2, 5, ["a", "b"]), (5, 9, ["a"])],
        ),
    ],
)
def test_segments(bounds, expected):
    assert segments(bounds) == expected


def by_subject(name, values, **more):
    """Return options for the subjects `<name>.0`, `<name>.1` and so on."""
    subjects = [f"{name}.{number}" for number in range(len(values))]
    offsets = json.dumps({name: dict(zip(subjects, values))})
    return {
        "stream": name,
        "filterSubjects": ",".join(subjects),
        "startingOffsets": offsets,
        **more,
    }


def wanted(firsts, count=COUNT, ends=None):
    """Return the sequences between each subject's bounds; message i has subject (i - 1) % 3."""
    ends = ends or [count + 1] * len(firsts)
    return [
        seq
        for seq in range(1, count + 1)
        if (seq - 1) % 3 < len(firsts) and firsts[(seq - 1) % 3] <= seq < ends[(seq - 1) % 3]
    ]


@pytest.mark.parametrize("mode", ["pull", "direct"])
def test_a_batch_starts_and_ends_by_subject(server, js, name, mode):
    stream = make(js, name, COUNT, subjects=3, allow_direct=True)

    def read(values, **more):
        return sequences(batch_reader(server, fetchMode=mode, **by_subject(name, values, **more)))

    assert read([1, 20, 40]) == wanted([1, 20, 40])
    assert read([30, "earliest"]) == wanted([30, 1])
    assert read(["latest", 50], minPartitions=4) == wanted([COUNT + 1, 50])
    ends = json.dumps({name: {f"{name}.0": 10, f"{name}.1": 30, f"{name}.2": "latest"}})
    assert read([5, 20, 40], endingOffsets=ends) == wanted([5, 20, 40], ends=[10, 30, COUNT + 1])
    assert read([5, 20, 40], endingOffsets=45) == wanted([5, 20, 40], ends=[45, 45, 45])
    time = str(stream.get_msg(31).time)
    options = by_subject(name, [0, time])
    options["startingTimestamp"] = options.pop("startingOffsets")
    assert sequences(batch_reader(server, fetchMode=mode, **options)) == wanted([1, 31])


def test_parts_of_all_segments_are_balanced(server, js, name, monkeypatch):
    monkeypatch.setattr("jetstream.spark.ranges._LEAST", 5)
    make(js, name, COUNT, subjects=3)
    reader = batch_reader(server, **by_subject(name, [1, 20, 40], minPartitions=3))
    parts = reader.partitions()
    assert {len(part.filters) for part in parts} == {1, 2, 3}
    assert all(4 >= len(sequences(reader, [part])) - 3 >= -2 for part in parts)
    assert sequences(reader, parts) == wanted([1, 20, 40])


@needs_limits
@pytest.mark.parametrize("seed", range(6))
def test_queries_that_restart_read_each_message_once(server, js, name, seed):
    """With random starts and limits; every reader is new, and half of the batches are repeated."""
    numbers = random.Random(seed)
    make(js, name, COUNT, subjects=3)
    firsts = [numbers.randint(1, COUNT + 1) for _ in range(3)]
    found: list[int] = []
    start = None
    total = COUNT
    for turn in range(200):
        options = by_subject(name, firsts)
        if numbers.random() < 0.7:
            options["maxMessagesPerTrigger"] = numbers.randint(1, 20)
        if turn > 0:
            options["startingOffsets"] = "latest"  # only the checkpoint counts
        query = Query(query_reader(server, **options), start)
        end = query.plan()
        if end == query.start and start is not None:
            break
        rows = sequences(query.reader, query.reader.partitions(query.start, end))
        if numbers.random() < 0.5:
            again = query_reader(server, **by_subject(name, firsts))
            assert sequences(again, again.partitions(query.start, end)) == rows
        found += rows
        start = end
        if turn == 2:
            fill(js, name, 6, subjects=3)
            total += 6
    assert found == sorted(found)
    assert found == wanted(firsts, total)
    assert "floors" not in start


@needs_limits
def test_latest_of_a_subject_is_the_same_position_after_a_restart(server, js, name):
    """The end of the first batch has it, so it does not matter when that batch is finished."""
    make(js, name, 30, subjects=3)
    options = by_subject(name, [1, "latest", 20])
    query = Query(query_reader(server, **options))
    end = query.plan()
    assert (end["v"], end["floors"]) == (3, {name: {f"{name}.1": 31}})
    fill(js, name, 30, subjects=3)
    restarted = Query(query_reader(server, **options))
    found = sequences(restarted.reader, restarted.reader.partitions(restarted.start, end))
    assert found == [seq for seq in wanted([1, 61, 61]) if seq < 20]
    restarted.start = end
    while (batch := restarted.batch()) is not None:
        found += batch
    assert found == wanted([1, 31, 20])


@needs_limits
def test_filters_may_change_before_all_subjects_have_started(server, js, name):
    make(js, name, COUNT, subjects=3)
    query = Query(query_reader(server, **by_subject(name, [1, 20, 40], maxMessagesPerTrigger=3)))
    assert query.batch() == [1, 4, 7]
    later = {"stream": name, "filterSubjects": f"{name}.1,{name}.2"}
    query = Query(query_reader(server, **later), query.start)
    found = []
    while (batch := query.batch()) is not None:
        found += batch
    assert found == wanted([COUNT + 1, 20, 40])


@needs_limits
def test_a_recreated_stream_has_other_positions(server, js, name):
    make(js, name, COUNT, subjects=3)
    options = by_subject(name, [1, 20, 40], maxMessagesPerTrigger=3, failOnDataLoss=False)
    query = Query(query_reader(server, **options))
    assert query.batch() == [1, 4, 7]
    js.delete_stream(name)
    make(js, name, 6, subjects=3)
    assert [query.batch(), query.batch(), query.batch()] == [[1, 2, 3], [4, 5, 6], None]
    assert "floors" not in query.start


@needs_limits
def test_a_query_that_resumes_keeps_its_positions(server, js, name):
    make(js, name, COUNT, subjects=3)
    options = by_subject(name, [1, 20, 40], maxMessagesPerTrigger=3, onRecreate="resume")
    query = Query(query_reader(server, **options))
    found = query.batch()
    js.delete_stream(name)
    make(js, name, COUNT, subjects=3)
    while (batch := query.batch()) is not None:
        found += batch
    assert found == wanted([1, 20, 40])


@needs_limits
def test_starts_by_subject_that_are_rejected(server, js, name):
    make(js, name, 3, subjects=3)
    with pytest.raises(InvalidValue, match=f"stream {name} ends before sequence 4, not 9"):
        query_reader(server, **by_subject(name, [1, 9])).initialOffset()
    reader = query_reader(server, **by_subject(name, [1, 2]))
    offset = {**reader.initialOffset(), "floors": {name: {f"{name}.1": "two"}}}
    with pytest.raises(InvalidValue, match="use another checkpoint"):
        reader.latestOffset(offset)
    with pytest.raises(InvalidValue, match="has version 4, and this package reads up to 3"):
        reader.latestOffset({**offset, "v": 4})


@pytest.mark.skipif(LIMITED, reason="PySpark 4.2 and later pass the start of a batch")
def test_queries_by_subject_need_a_later_spark(server, name):
    with pytest.raises(InvalidValue, match=r"starts by subject needs PySpark 4\.2"):
        query_reader(server, **by_subject(name, [1, 9]))


@needs_limits
def test_a_query_by_subject_in_spark(spark, server, js, name, tmp_path):
    make(js, name, COUNT, subjects=3)
    for expected in (wanted([1, 20, 40]), wanted([1, 20, 40], COUNT + 3)):
        query = (
            spark.readStream.format("jetstream")
            .options(servers=server.url, **by_subject(name, [1, 20, 40]))
            .load()
            .select("sequence")
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "rows"))
        )
        query.awaitTermination()
        rows = spark.read.parquet(str(tmp_path / "rows")).collect()
        assert sorted(row.sequence for row in rows) == expected
        fill(js, name, 3, subjects=3)
