"""Reading without Spark: how ranges are split, where they start and end, and their rows."""

from __future__ import annotations

import json
import pickle
import tracemalloc

import pytest
from pyspark.sql.datasource import InputPartition

from jetstream.schema.timestamp import Timestamp
from jetstream.spark import pull
from jetstream.spark.connect import client
from jetstream.spark.options import BATCH, read_options
from jetstream.spark.plan import new_plan
from jetstream.spark.queries import StreamQueries
from jetstream.spark.ranges import Range, split
from natsproto.adapters.blocking import connect
from natsproto.errors import InvalidValue
from tests.spark.support import batch_reader, fill, make, rows_of, sequences


def lengths(options: dict[str, str], *whole: tuple[int, int], workers: int = 4) -> list:
    settings = read_options({"stream": "S", **options}, BATCH)
    parts = [Range(f"S{i}", start, end, [], "") for i, (start, end) in enumerate(whole)]
    plan = new_plan(settings)
    plan.workers = workers
    return [(part.stream, part.start, part.end) for part in split(parts, plan)]


def test_ranges_are_split_into_equal_parts():
    assert lengths({}, (1, 100)) == [("S0", 1, 100)]  # too few for several
    assert len(lengths({}, (1, 100_001))) == 4
    assert lengths({"minPartitions": "3"}, (1, 11)) == [("S0", 1, 4), ("S0", 4, 7), ("S0", 7, 11)]
    assert len(lengths({"minPartitions": "30"}, (1, 11))) == 10  # not more than sequences
    assert lengths({"maxRecordsPerPartition": "6"}, (1, 11)) == [("S0", 1, 6), ("S0", 6, 11)]
    assert len(lengths({"maxRecordsPerPartition": "6", "minPartitions": "5"}, (1, 11))) == 5
    # Two streams: every part is of one of them, and all sequences are in one part.
    parts = lengths({"minPartitions": "4"}, (1, 31), (5, 15))
    assert [end - start for name, start, end in parts if name == "S0"] == [10, 10, 10]
    assert [end - start for name, start, end in parts if name == "S1"] == [10]
    assert lengths({}) == []


def test_too_many_tasks_are_rejected():
    assert len(lengths({"maxRecordsPerPartition": "1"}, (1, 1001))) == 1000
    with pytest.raises(InvalidValue, match="maxRecordsPerPartition 10 cuts 10000000 sequences"):
        lengths({"maxRecordsPerPartition": "10"}, (1, 10_000_001))


def test_a_stream_is_read_in_order_however_it_is_split(server, js, name):
    make(js, name, 100, subjects=3)
    for options in (
        {},
        {"minPartitions": 7},
        {"maxRecordsPerPartition": 1},
        {"fetchSize": 1},
        {"fetchSize": 7},
        {"arrowBatchRows": 3},
        {"fetchSize": 9, "arrowBatchRows": 4, "minPartitions": 2},
        {"fetchMode": "direct"},
        {"fetchMode": "direct", "fetchSize": 7},
    ):
        if options.get("fetchMode") == "direct":
            js.update_stream(name=name, subjects=[f"{name}.>"], allow_direct=True)
        reader = batch_reader(server, ("sequence", "subject", "data"), stream=name, **options)
        rows = rows_of(reader)
        assert [row["sequence"] for row in rows] == list(range(1, 101))
        assert [row["data"] for row in rows] == [b"%08d" % i for i in range(100)]
        assert [row["subject"] for row in rows] == [f"{name}.{i % 3}" for i in range(100)]


def test_arrow_batches_have_no_more_rows_than_allowed(server, js, name):
    make(js, name, 25)
    reader = batch_reader(server, stream=name, arrowBatchRows=10)
    assert [len(batch) for part in reader.partitions() for batch in reader.read(part)] == [
        10,
        10,
        5,
    ]


@pytest.mark.parametrize(
    ("options", "first", "last"),
    [
        ({}, 1, 50),
        ({"startingOffsets": "latest"}, 1, 0),
        ({"startingOffsets": "10"}, 10, 50),
        ({"endingOffsets": "10"}, 1, 9),
        ({"endingOffsets": "1000"}, 1, 50),
        ({"startingOffsets": "51"}, 1, 0),
        ({"endingOffsets": "earliest"}, 1, 0),
        ({"startingOffsets": "20", "endingOffsets": "30"}, 20, 29),
        ({"startingOffsets": "20", "endingOffsets": "20"}, 1, 0),
        ({"startingTimestamp": "1000"}, 1, 50),
        ({"endingTimestamp": "2200-01-01T00:00:00Z"}, 1, 50),
        ({"endingTimestamp": "1000"}, 1, 0),
    ],
)
def test_where_a_read_starts_and_ends(server, js, fifty, options, first, last):
    reader = batch_reader(server, stream=fifty, **options)
    assert sequences(reader) == list(range(first, last + 1))


@pytest.fixture(scope="module")
def fifty(js):
    make(js, "FIFTY", 50, allow_direct=True)
    return "FIFTY"


def test_times_are_exact_and_gaps_do_not_matter(server, js, name):
    stream = make(js, name, 40)
    for seq in (*range(10, 20), 30):
        stream.delete_msg(seq)
    rows = rows_of(batch_reader(server, ("sequence", "timestamp_ns"), stream=name))
    queries = StreamQueries(read_options({"servers": server.url, "stream": name}, BATCH), name)
    snapshot = queries.snapshot()
    for row in rows:
        for later in (0, 1):
            found = queries.sequence_at(Timestamp(row["timestamp_ns"] + later), snapshot)
            rest = [each for each in rows if each["timestamp_ns"] >= row["timestamp_ns"] + later]
            assert [each for each in rows if each["sequence"] >= found] == rest


POISON = [b"NATS/1.0\r\nA: b", b"NATS/1.0\r\nA: b\r\n", b"NATS/1.0", b"x", b"\r\n\r\n", b"\n\n\n"]


def test_malformed_headers_do_not_stop_direct_reads(server, js, name):
    """The server inserts its own headers, so the response differs from the stored message."""
    make(js, name, 2, allow_direct=True)
    with connect(server.url) as client:
        for number, block in enumerate(POISON):
            connection = client.inner.session.connection
            connection.send(f"{name}.p".encode(), b"data %d" % number, b"", block)
        client.flush()
    fill(js, name, 2)
    columns = ("sequence", "subject", "data", "headers")
    found = {
        mode: [
            {
                **row,
                "headers": row["headers"] or None,
            }  # none of them can be read, or there are none
            for row in rows_of(batch_reader(server, columns, stream=name, fetchMode=mode))
        ]
        for mode in ("pull", "direct")
    }
    assert [row["sequence"] for row in found["direct"]] == list(range(1, len(POISON) + 5))
    assert found["direct"] == found["pull"]


def test_gaps_are_normal(server, js, name):
    stream = make(js, name, 30)
    gone = {5, 6, 7, 14, 15, 16, 28, 29, 30}
    for seq in gone:
        stream.delete_msg(seq)
    js.update_stream(name=name, subjects=[f"{name}.>"], allow_direct=True)
    for options in ({}, {"minPartitions": 10}, {"fetchSize": 4}, {"fetchMode": "direct"}):
        reader = batch_reader(server, stream=name, **options)
        assert sequences(reader) == [seq for seq in range(1, 31) if seq not in gone]


def test_empty_streams_and_empty_ranges(server, js, name):
    stream = make(js, name, 0)
    assert sequences(batch_reader(server, stream=name)) == []
    made_up = InputPartition(None)  # by Spark, which wants one at least
    assert list(batch_reader(server, stream=name).read(made_up)) == []
    js.publish(f"{name}.x", b"")
    stream.purge()
    assert sequences(batch_reader(server, stream=name)) == []


@pytest.mark.parametrize("mode", ["pull", "direct"])
def test_filters(server, js, name, mode):
    make(js, name, 90, subjects=9, allow_direct=True)
    for options, kept in (
        ({"subject": f"{name}.4"}, [4]),
        ({"filterSubjects": f"{name}.4,{name}.7"}, [4, 7]),
        ({"filterSubjects": f"{name}.*"}, list(range(9))),
        ({"filterSubjects": f"{name}.*,{name}.4"}, list(range(9))),
        ({"filterSubjects": f"*.4,{name}.*"}, list(range(9))),
        ({"filterSubjects": f"*.4,{name}.4,{name}.5"}, [4, 5]),
        ({"subject": f"{name}.none"}, []),
    ):
        reader = batch_reader(server, stream=name, minPartitions=3, fetchMode=mode, **options)
        assert sequences(reader) == [i + 1 for i in range(90) if i % 9 in kept]


def test_several_streams(server, js, name):
    make(js, name, 10)
    other = name + "B"
    make(js, other, 20)
    places = json.dumps({name: 5, other: "earliest"})
    reader = batch_reader(
        server, ("stream", "sequence"), stream=f"{name},{other}", startingOffsets=places
    )
    found = [(row["stream"], row["sequence"]) for row in rows_of(reader)]
    assert found == [(name, i) for i in range(5, 11)] + [(other, i) for i in range(1, 21)]


def test_headers_only(server, js, name):
    make(js, name, 3)
    js.publish(f"{name}.h", b"12345", headers={"A": "b"})
    columns = ("data", "headers", "sequence")
    rows = rows_of(batch_reader(server, columns, stream=name, headersOnly=True))
    assert [row["data"] for row in rows] == [None] * 4
    assert dict(rows[3]["headers"]) == {"A": ["b"], "Nats-Msg-Size": ["5"]}


def test_payloads_are_not_sent_if_no_column_needs_them(server, js, name):
    js.create_stream(name=name, subjects=[f"{name}.>"])
    for _ in range(20):
        js.publish(f"{name}.x", bytes(10_000))

    def sent(*columns: str) -> int:
        reader = batch_reader(server, columns, stream=name)
        settings = reader.settings
        before = client(settings).stats.in_bytes
        assert len(rows_of(reader)) == 20
        return client(settings).stats.in_bytes - before

    assert sent("subject", "sequence", "timestamp") < 20_000
    assert sent("data") > 200_000


def test_a_range_is_repeatable_and_picklable(server, js, name):
    make(js, name, 20)
    reader = batch_reader(server, stream=name)
    partitions = reader.partitions()
    for _ in range(20):
        js.publish(f"{name}.x", b"later")
    copy, parts = pickle.loads(pickle.dumps((reader, partitions)))
    for _ in range(2):
        assert sequences(copy, parts) == list(range(1, 21))


def test_consumers_are_deleted_after_the_read(server, js, name):
    make(js, name, 20)
    for options in ({}, {"minPartitions": 3}, {"subject": f"{name}.none"}):
        rows_of(batch_reader(server, stream=name, **options))
    reader = batch_reader(server, stream=name, fetchSize=2, arrowBatchRows=2)
    batches = reader.read(reader.partitions()[0])
    next(batches)
    batches.close()  # as Spark does when a limit is reached
    assert js.consumer_names(name) == []


def test_memory_does_not_grow_with_the_stream(server, js, name):
    """200 messages of 256 KiB are 50 MiB; a pull has 16 MiB, and two are in flight."""
    js.create_stream(name=name, subjects=[f"{name}.>"])
    with js.publisher(max_pending=20) as publisher:
        for _ in range(200):
            publisher.publish(f"{name}.x", bytes(256 * 1024))
    reader = batch_reader(server, ("data", "sequence"), stream=name, minPartitions=1)
    rows_of(batch_reader(server, ("data",), stream=name, endingOffsets=2))  # imports pandas: 20 MiB
    tracemalloc.start()
    try:
        count = 0
        for part in reader.partitions():
            for batch in reader.read(part):
                count += len(batch)
        assert count == 200
        assert tracemalloc.get_traced_memory()[1] < 45 * 1024 * 1024
    finally:
        tracemalloc.stop()


def test_large_messages_after_small_ones_arrive_a_few_at_a_time(server, js, name, monkeypatch):
    monkeypatch.setattr(pull, "BUDGET", 10_000)
    make(js, name, 1000)
    for size in (4000, 4000, 4000, 20_000, 30_000, 8):  # two of them are larger than the budget
        js.publish(f"{name}.x", bytes(size))
    reader = batch_reader(
        server, ("sequence",), stream=name, startingOffsets=1001, headersOnly=True
    )
    assert sequences(reader) == [1001, 1002, 1003, 1004, 1005, 1006]
    reader = batch_reader(server, ("sequence", "data"), stream=name, startingOffsets=1001)
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    found = [[len(row["data"]) for row in batch.to_pylist()] for batch in batches]
    assert found == [[4000, 4000], [4000], [20_000], [30_000], [8]]
