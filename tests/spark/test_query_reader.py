"""The reader of streaming queries without Spark: starts, batches, replays and purges."""

from __future__ import annotations

import pytest

from jetstream.spark import stream as stream_module
from jetstream.spark.offsets import DataLost
from natsproto.errors import InvalidValue
from tests.spark.stepping import Query, next_of, started
from tests.spark.support import fill, make, query_reader, sequences

streaming = pytest.importorskip("pyspark.sql.streaming.datasource", reason="needs PySpark 4.2")
pytestmark = pytest.mark.usefixtures("impatient")
ALL = streaming.ReadAllAvailable()
POLL = stream_module._POLL
LONGEST_WAIT = stream_module._LONGEST_WAIT


def test_each_batch_starts_where_the_last_one_ended(server, js, name):
    make(js, name, 10)
    query = Query(query_reader(server, stream=name, startingOffsets="earliest"))
    assert query.batch() == list(range(1, 11))
    assert query.batch() is None
    fill(js, name, 5)
    assert query.batch() == list(range(11, 16))


def test_by_default_a_query_starts_at_the_end(server, js, name):
    make(js, name, 10)
    query = Query(query_reader(server, stream=name))
    assert query.batch() == []  # the first batch is there even if it is empty
    assert query.batch() is None
    fill(js, name, 2)
    assert query.batch() == [11, 12]


@pytest.mark.parametrize(("start", "first"), [("4", 4), ("11", 11), ("latest", 11)])
def test_where_a_query_starts(server, js, name, start, first):
    make(js, name, 10)
    reader = query_reader(server, stream=name, startingOffsets=start)
    assert next_of(reader.initialOffset(), name) == first


def test_invalid_starts_are_rejected(server, js, name):
    make(js, name, 10).purge(seq=5)
    with pytest.raises(InvalidValue, match="ends before sequence 11, not 99"):
        query_reader(server, stream=name, startingOffsets="99").initialOffset()
    with pytest.raises(DataLost, match="messages 2 to 4"):
        Query(query_reader(server, stream=name, startingOffsets="2")).batch()
    query = Query(query_reader(server, stream=name, startingOffsets="2", failOnDataLoss=False))
    assert query.batch() == [5, 6, 7, 8, 9, 10]


def test_a_start_that_was_removed_before_a_restart(server, js, name):
    """PySpark before 4.2 requests the initial offset at every start, despite a checkpoint."""
    stream = make(js, name, 10)
    reader = query_reader(server, stream=name, startingOffsets="2")
    end = reader.latestOffset()
    assert sequences(reader, reader.partitions(reader.initialOffset(), end)) == list(range(2, 11))
    stream.purge()
    fill(js, name, 3)
    again = query_reader(server, stream=name, startingOffsets="2")
    assert sequences(again, again.partitions(end, again.latestOffset())) == [11, 12, 13]


def test_a_start_by_time(server, js, name):
    make(js, name, 10)
    early, late = "2020-01-01T00:00:00Z", "2200-01-01T00:00:00Z"
    reader = query_reader(server, stream=name, startingTimestamp=early)
    assert next_of(reader.initialOffset(), name) == 1
    with pytest.raises(InvalidValue, match="startingTimestamp: 2200-01-01T00:00:00Z is in the fut"):
        query_reader(server, stream=name, startingTimestamp=late).initialOffset()


def test_an_unfinished_first_batch_loses_no_messages(server, js, name):
    """Trap: Spark requests the initial offset again, and latest is another place by then."""
    make(js, name, 10)
    reader = query_reader(server, stream=name)
    query = Query(reader)
    fill(js, name, 5)
    end = query.plan()
    assert next_of(end, name) == 16
    fill(js, name, 7)
    # The driver dies before the batch is finished. The next one gets only the end.
    again = query_reader(server, stream=name)
    start = query.call(again.initialOffset())
    assert next_of(start, name) == 23
    assert sequences(again, again.partitions(start, end)) == list(range(11, 16))
    assert Query(again, end).batch() == list(range(16, 23))


def ranges(reader, start, end):
    return [(part.start, part.end, part.filters) for part in reader.partitions(start, end)]


@pytest.mark.parametrize(
    "changed",
    [
        {"minPartitions": 3},
        {"minPartitions": 2, "maxRecordsPerPartition": 1000},
        {"minPartitions": 2, "filterSubjects": "{name}.1"},
        {"minPartitions": 2, "filterSubjects": ""},
        {},  # and a different number of cores
    ],
)
def test_a_replayed_batch_has_the_same_partitions(server, js, name, monkeypatch, changed):
    make(js, name, 8000, subjects=2)
    options = {"stream": name, "startingOffsets": "earliest"}
    first = {"minPartitions": 2, "filterSubjects": f"{name}.0"} if changed else {}
    monkeypatch.setattr("jetstream.spark.ranges._LEAST", 1000)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    reader = query_reader(server, **options, **first)
    query = Query(reader)
    end = query.plan()
    before = ranges(reader, query.start, end)
    assert len(before) == 2
    # The driver dies, and another one replays the batch on another machine, with other options.
    monkeypatch.setattr("os.cpu_count", lambda: 5)
    texts = {key: str(value).format(name=name) for key, value in changed.items()}
    again = query_reader(server, **options, **{key: texts[key] for key in texts if texts[key]})
    assert ranges(again, query.call(again.initialOffset()), end) == before
    # Later batches use the current options.
    fill(js, name, 8000, subjects=2)
    later = Query(again, end)
    after = ranges(again, end, later.plan())
    assert (len(after), after[0][2]) != (2, before[0][2])


def test_a_replayed_batch_keeps_its_partitions_without_removed_messages(server, js, name):
    stream = make(js, name, 100)
    options = {"stream": name, "startingOffsets": "earliest", "minPartitions": 4}
    query = Query(query_reader(server, **options, failOnDataLoss=False))
    end = query.plan()
    stream.purge(seq=31)
    again = query_reader(server, **options, failOnDataLoss=False)
    parts = again.partitions(query.start, end)
    assert [(part.start, part.end) for part in parts] == [(26, 26), (31, 51), (51, 76), (76, 101)]
    assert sequences(again, parts) == list(range(31, 101))
    with pytest.raises(DataLost, match="messages 1 to 30"):
        query_reader(server, **options).partitions(query.start, end)


def test_an_offset_of_an_older_version_is_split_by_the_options(server, js, name):
    make(js, name, 100)
    options = {"stream": name, "startingOffsets": "earliest"}
    query = Query(query_reader(server, **options, minPartitions=2))
    end = {"streams": query.plan()["streams"], "init": query.start["streams"]}
    again = query_reader(server, **options, minPartitions=5)
    assert len(again.partitions(again.initialOffset(), end)) == 5


def test_a_purge_uses_the_filter_of_the_batch_not_the_current_one(server, js, name):
    make(js, name, 30, subjects=3)
    options = {"stream": name, "startingOffsets": "earliest", "onCommit": "purge"}
    query = Query(query_reader(server, **options, subject=f"{name}.1"))
    assert len(query.batch()) == 10
    query_reader(server, **options).commit(query.start)
    left = js.stream(name).info(subjects_filter=">").state.subjects
    assert left == {f"{name}.0": 10, f"{name}.2": 10}


def test_the_initial_offset_does_not_change(server, js, name):
    make(js, name, 3)
    reader = query_reader(server, stream=name)
    first = reader.initialOffset()
    fill(js, name, 3)
    assert reader.initialOffset() == first


def test_available_now_ends_at_the_initial_end_of_the_stream(server, js, name):
    make(js, name, 10)
    reader = query_reader(server, stream=name, startingOffsets="earliest", maxMessagesPerTrigger=4)
    reader.prepareForTriggerAvailableNow()
    query = Query(reader)
    assert query.batch() == [1, 2, 3, 4]
    fill(js, name, 50)
    assert [query.batch() for _ in range(3)] == [[5, 6, 7, 8], [9, 10], None]


def test_lag_is_reported_without_a_request(server, js, name):
    make(js, name, 10)
    reader = query_reader(server, stream=name, startingOffsets="earliest", maxMessagesPerTrigger=4)
    assert reader.reportLatestOffset() is None
    query = Query(reader)
    query.batch()
    calls = server.monitor("/jsz")["api"]["total"]
    assert next_of(reader.reportLatestOffset(), name) == 11
    assert server.monitor("/jsz")["api"]["total"] == calls


class Clock:
    """Replaces `time`: sleep returns at once and advances the clock."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now

    def sleep(self, duration):
        self.now += duration


@pytest.mark.parametrize("count", [1, 2, 5])
def test_an_idle_query_sends_fewer_than_two_requests_per_second(
    server, js, name, monkeypatch, count
):
    """Without the consumers that wake it up, because the streams limit their number."""
    names = [f"{name}{i}" for i in range(count)]
    for each in names:
        make(js, each, 1, max_consumers=3)
    reader = query_reader(server, stream=",".join(names), startingOffsets="earliest")
    query = Query(reader)
    query.batch()
    clock = Clock()
    monkeypatch.setattr(stream_module, "time", clock)
    monkeypatch.setattr(stream_module, "_POLL", POLL)
    monkeypatch.setattr(stream_module, "_LONGEST_WAIT", LONGEST_WAIT)
    query.batch()
    calls = server.monitor("/jsz")["api"]["total"]
    start = clock.now
    while clock.now < start + 30:
        before = clock.now
        assert query.batch() is None
        assert clock.now - before <= 1.0  # a query that is stopped need not wait for long
        reader.reportLatestOffset()
    assert server.monitor("/jsz")["api"]["total"] - calls <= 2 * 30


def test_a_stream_cannot_be_removed_from_a_query(server, js, name):
    make(js, name, 1)
    make(js, name + "B", 1)
    start = Query(query_reader(server, stream=f"{name},{name}B")).start
    with pytest.raises(InvalidValue, match=f"checkpoint is for streams {name},{name}B, option"):
        query_reader(server, stream=name).latestOffset(start, ALL)


def test_a_stream_that_is_added_to_a_query_is_read_from_its_first_message(server, js, name):
    make(js, name, 3)
    query = Query(query_reader(server, stream=name, startingOffsets="earliest"))
    assert query.batch() == [1, 2, 3]
    fill(js, name, 2)
    end = query.plan()  # and the query ends before it has read them
    make(js, name + "B", 4)
    query = Query(query_reader(server, stream=f"{name},{name}B"), query.start)
    assert sequences(query.reader, query.reader.partitions(query.start, end)) == [4, 5]
    query.start = end
    assert query.batch() == [1, 2, 3, 4]
    fill(js, name, 1)
    assert query.batch() == [6]
    assert query.batch() is None


# onCommit


def test_finished_batches_are_purged_by_commit_or_the_next_offset(server, js, name):
    query = started(server, js, name, onCommit="purge")
    state = js.stream(name).cached_info.state
    assert state.messages == 10  # the batch is planned and read, but not reported as finished
    query.reader.commit(query.start)
    assert js.stream(name).cached_info.state.messages == 0
    fill(js, name, 5)
    assert query.batch() == list(range(11, 16))
    assert js.stream(name).cached_info.state.messages == 5
    assert query.batch() is None  # the next offset was requested
    assert js.stream(name).cached_info.state.messages == 0


def test_a_stream_that_was_recreated_is_not_purged(server, js, name):
    """Its messages at these sequences were never read."""
    query = started(server, js, name, onCommit="purge")
    js.delete_stream(name)
    make(js, name, 20)
    query.reader.commit(query.start)
    assert js.stream(name).cached_info.state.messages == 20


def test_a_purge_removes_only_read_messages(server, js, name):
    make(js, name, 30, subjects=3)
    query = Query(
        query_reader(
            server,
            stream=name,
            startingOffsets="earliest",
            onCommit="purge",
            subject=f"{name}.1",
        )
    )
    assert len(query.batch()) == 10
    query.reader.commit(query.start)
    left = js.stream(name).info(subjects_filter=">").state.subjects
    assert left == {f"{name}.0": 10, f"{name}.2": 10}


def test_purges_that_are_denied_or_remove_too_much_are_rejected(server, js, name):
    make(js, name, 1, deny_purge=True)
    with pytest.raises(InvalidValue, match="has deny_purge"):
        query_reader(
            server, stream=name, startingOffsets="earliest", onCommit="purge"
        ).initialOffset()
    with pytest.raises(InvalidValue, match="it needs startingOffsets=earliest"):
        query_reader(server, stream=name, onCommit="purge")


def test_a_work_queue_by_direct_get(server, js, name):
    make(js, name, 10, retention="workqueue", allow_direct=True)
    with pytest.raises(InvalidValue, match="is a work queue"):
        query_reader(server, stream=name).initialOffset()
    query = Query(
        query_reader(
            server,
            stream=name,
            startingOffsets="earliest",
            fetchMode="direct",
            onCommit="purge",
            maxMessagesPerTrigger=6,
        )
    )
    assert [query.batch() for _ in range(3)] == [[1, 2, 3, 4, 5, 6], [7, 8, 9, 10], None]
    assert js.stream(name).cached_info.state.messages == 0
