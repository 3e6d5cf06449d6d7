"""The size of a micro-batch: the limits that the options set, without Spark."""

from __future__ import annotations

import pytest

from jetstream.spark.limits import is_unlimited
from tests.spark.stepping import Query, next_of
from tests.spark.support import fill, make, query_reader

streaming = pytest.importorskip("pyspark.sql.streaming.datasource", reason="needs PySpark 4.2")
pytestmark = pytest.mark.usefixtures("impatient")
ALL = streaming.ReadAllAvailable()


def test_limits(server, js, name):
    make(js, name, 10)
    options = {"stream": name, "startingOffsets": "earliest"}
    query = Query(query_reader(server, maxMessagesPerTrigger=4, **options))
    assert [query.batch() for _ in range(4)] == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10], None]
    query = Query(query_reader(server, maxMessagesPerTrigger=4, **options))
    assert query.batch(ALL) == list(range(1, 11))  # Trigger.Once
    assert is_unlimited(query_reader(server, **options).getDefaultReadLimit())


@pytest.mark.parametrize(("backlog", "most"), [(22, 15), (23, 13), (26, 15)])
def test_a_limit_is_reached_exactly(server, js, name, backlog, most):
    """As floats, 22 * (15 / 22) is less than 15: the batch would have 14 messages."""
    make(js, name, backlog)
    options = {"stream": name, "startingOffsets": "earliest", "maxMessagesPerTrigger": most}
    assert len(Query(query_reader(server, **options)).batch()) == most


def test_limits_with_filters_count_matching_messages(server, js, name):
    make(js, name, 100, subjects=10)
    options = {"stream": name, "startingOffsets": "earliest", "subject": f"{name}.3"}
    query = Query(query_reader(server, maxMessagesPerTrigger=4, **options))
    assert [query.batch() for _ in range(4)] == [[4, 14, 24, 34], [44, 54, 64, 74], [84, 94], None]
    # Counting leaves no consumers; those of the reads are left to the server for some seconds.
    assert len(js.consumer_names(name)) == 3
    assert {info.config.inactive_threshold for info in js.consumers(name)} == {5.0}


def test_limits_of_a_sparse_stream_count_existing_messages(server, js, name):
    """A stream keeps the last message of each subject; one subject is old, others change."""
    make(js, name, 1, max_msgs_per_subject=1)
    for subject in ("a", "b", "c") * 40:
        js.publish(f"{name}.{subject}", b"")
    options = {"stream": name, "startingOffsets": "earliest"}
    query = Query(query_reader(server, maxMessagesPerTrigger=2, **options))
    assert [query.batch() for _ in range(3)] == [[1, 119], [120, 121], None]


def test_a_limit_by_bytes(server, js, name):
    make(js, name, 0)
    fill(js, name, 100, size=1000)
    options = {"stream": name, "startingOffsets": "earliest"}
    query = Query(query_reader(server, maxBytesPerTrigger=20_000, **options))
    sizes = []
    while (found := query.batch()) is not None:
        sizes.append(len(found))
    assert sum(sizes) == 100
    assert all(15 <= size <= 20 for size in sizes[:-1])
    assert isinstance(query.limit, streaming.ReadMaxBytes)
    # A message that is larger than the limit does not block the query forever.
    query = Query(query_reader(server, maxBytesPerTrigger=1, **options))
    assert query.batch() == [1]


def test_a_minimum_waits_up_to_the_maximum_delay(server, js, name, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr("jetstream.spark.limits.time.monotonic", lambda: clock[0])
    make(js, name, 3)
    options = {"stream": name, "startingOffsets": "earliest", "minMessagesPerTrigger": 5}
    query = Query(query_reader(server, maxTriggerDelay="10s", **options))
    assert isinstance(query.limit, streaming.ReadMinRows)
    assert query.batch() == []
    assert query.batch() is None
    fill(js, name, 2)
    assert query.batch() == [1, 2, 3, 4, 5]
    fill(js, name, 1)
    assert query.batch() is None
    clock[0] += 9
    assert query.batch() is None
    clock[0] += 2
    assert query.batch() == [6]
    # AvailableNow does not wait at all.
    query = Query(query_reader(server, **options))
    fill(js, name, 1)
    query.reader.prepareForTriggerAvailableNow()
    assert query.batch() == list(range(1, 8))


def test_the_server_counts_once_while_a_query_waits(server, js, name):
    make(js, name, 20, subjects=4)
    options = {"stream": name, "startingOffsets": "earliest", "subject": f"{name}.1"}
    query = Query(query_reader(server, minMessagesPerTrigger=50, **options))
    assert query.batch() == []
    assert query.batch() is None
    calls = server.monitor("/jsz")["api"]["total"]
    assert query.batch() is None
    assert server.monitor("/jsz")["api"]["total"] - calls <= 3  # looks at the stream


def test_limits_are_shared_by_streams(server, js, name):
    other = name + "B"
    make(js, name, 30)
    make(js, other, 10)
    reader = query_reader(
        server,
        ("stream", "sequence"),
        stream=f"{name},{other}",
        startingOffsets="earliest",
        maxMessagesPerTrigger=8,
    )
    query = Query(reader)
    end = query.plan()
    assert (next_of(end, name), next_of(end, other)) == (7, 3)
    total = 0
    while (found := query.batch()) is not None:
        assert len(found) <= 8 + 1  # each gets one at least
        total += len(found)
    assert total == 40


def test_rounding_leaves_no_room_in_a_limit_of_several_streams(server, js, name):
    names = [f"{name}{letter}" for letter in "ABC"]
    for each in names:
        make(js, each, 10)
    options = {"stream": ",".join(names), "startingOffsets": "earliest"}
    query = Query(query_reader(server, maxMessagesPerTrigger=10, **options))
    assert [len(query.batch()) for _ in range(3)] == [10, 10, 10]
    assert query.batch() is None
