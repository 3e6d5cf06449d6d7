"""The reader of streaming queries without Spark: its calls in the order of Spark's own."""

from __future__ import annotations

import json

import pytest

from jetstream.blocking import JetStream
from jetstream.spark import stream as stream_module
from jetstream.spark.limits import is_unlimited
from jetstream.spark.offsets import DataLost
from natsproto.adapters.blocking import connect
from natsproto.errors import InvalidValue
from natsproto.testing import Server
from tests.spark.support import fill, make, query_reader, sequences

streaming = pytest.importorskip("pyspark.sql.streaming.datasource", reason="needs PySpark 4.2")
ALL = streaming.ReadAllAvailable()


POLL = stream_module._POLL


class Query:
    """What Spark does with a reader, with JSON in between; `start` is the last finished offset."""

    def __init__(self, reader, start=None):
        self.reader = reader
        self.start = start or self.call(reader.initialOffset())
        self.limit = reader.getDefaultReadLimit()

    def call(self, offset):
        return json.loads(json.dumps(offset))

    def plan(self, limit=None):
        return self.call(self.reader.latestOffset(self.start, limit or self.limit))

    def batch(self, limit=None):
        """The sequences of the next batch; None if there is none."""
        end = self.plan(limit)
        if end == self.start:
            return None
        found = sequences(self.reader, self.reader.partitions(self.start, end))
        self.start = end
        return found


def next_of(offset, name):
    return offset["streams"][name]["next"]


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(stream_module, "_POLL", 0.0)


def test_batches_follow_one_another(server, js, name):
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


def test_a_start_that_cannot_be(server, js, name):
    make(js, name, 10).purge(seq=5)
    with pytest.raises(InvalidValue, match="ends before sequence 11, not 99"):
        query_reader(server, stream=name, startingOffsets="99").initialOffset()
    with pytest.raises(DataLost, match="messages 2 to 4"):
        Query(query_reader(server, stream=name, startingOffsets="2")).batch()
    query = Query(query_reader(server, stream=name, startingOffsets="2", failOnDataLoss=False))
    assert query.batch() == [5, 6, 7, 8, 9, 10]


def test_a_start_that_is_gone_by_the_time_of_a_restart(server, js, name):
    """PySpark before 4.2 has every driver ask for the initial offset, whatever its checkpoint."""
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


def test_a_first_batch_that_was_not_finished_loses_nothing(server, js, name):
    """Trap: Spark asks for the initial offset again, and latest is another place by then."""
    make(js, name, 10)
    reader = query_reader(server, stream=name)
    query = Query(reader)
    fill(js, name, 5)
    end = query.plan()
    assert next_of(end, name) == 16
    fill(js, name, 7)
    # The driver dies before the batch is done. The next one is told of the end alone.
    again = query_reader(server, stream=name)
    start = query.call(again.initialOffset())
    assert next_of(start, name) == 23
    assert sequences(again, again.partitions(start, end)) == list(range(11, 16))
    assert Query(again, end).batch() == list(range(16, 23))


def test_the_initial_offset_stays_what_it_was_told_to_be(server, js, name):
    make(js, name, 3)
    reader = query_reader(server, stream=name)
    first = reader.initialOffset()
    fill(js, name, 3)
    assert reader.initialOffset() == first


def test_limits(server, js, name):
    make(js, name, 10)
    options = {"stream": name, "startingOffsets": "earliest"}
    query = Query(query_reader(server, maxMessagesPerTrigger=4, **options))
    assert [query.batch() for _ in range(4)] == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10], None]
    query = Query(query_reader(server, maxMessagesPerTrigger=4, **options))
    assert query.batch(ALL) == list(range(1, 11))  # Trigger.Once
    assert is_unlimited(query_reader(server, **options).getDefaultReadLimit())


def test_limits_with_filters_count_what_is_wanted(server, js, name):
    make(js, name, 100, subjects=10)
    options = {"stream": name, "startingOffsets": "earliest", "subject": f"{name}.3"}
    query = Query(query_reader(server, maxMessagesPerTrigger=4, **options))
    assert [query.batch() for _ in range(4)] == [[4, 14, 24, 34], [44, 54, 64, 74], [84, 94], None]
    assert js.consumer_names(name) == []


def test_limits_where_most_is_gaps_count_what_is_there(server, js, name):
    """Where a stream keeps the last message of each subject, and one is old, others change."""
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
    # A message that is larger than the limit is not in the way for ever.
    query = Query(query_reader(server, maxBytesPerTrigger=1, **options))
    assert query.batch() == [1]


def test_a_minimum_waits_but_not_for_ever(server, js, name, monkeypatch):
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


def test_available_now_ends_where_the_stream_ended_when_it_began(server, js, name):
    make(js, name, 10)
    reader = query_reader(server, stream=name, startingOffsets="earliest", maxMessagesPerTrigger=4)
    reader.prepareForTriggerAvailableNow()
    query = Query(reader)
    assert query.batch() == [1, 2, 3, 4]
    fill(js, name, 50)
    assert [query.batch() for _ in range(3)] == [[5, 6, 7, 8], [9, 10], None]


def test_lag_is_reported_without_a_call(server, js, name):
    make(js, name, 10)
    reader = query_reader(server, stream=name, startingOffsets="earliest", maxMessagesPerTrigger=4)
    assert reader.reportLatestOffset() is None
    query = Query(reader)
    query.batch()
    calls = server.monitor("/jsz")["api"]["total"]
    assert next_of(reader.reportLatestOffset(), name) == 11
    assert server.monitor("/jsz")["api"]["total"] == calls


class Clock:
    """In place of `time`: nobody sleeps, the clock goes on."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now

    def sleep(self, duration):
        self.now += duration


@pytest.mark.parametrize("count", [1, 2, 5])
def test_an_idle_query_asks_less_than_twice_a_second(server, js, name, monkeypatch, count):
    names = [f"{name}{i}" for i in range(count)]
    for each in names:
        make(js, each, 1)
    reader = query_reader(server, stream=",".join(names), startingOffsets="earliest")
    query = Query(reader)
    query.batch()
    clock = Clock()
    monkeypatch.setattr(stream_module, "time", clock)
    monkeypatch.setattr(stream_module, "_POLL", POLL)
    query.batch()
    calls = server.monitor("/jsz")["api"]["total"]
    start = clock.now
    while clock.now < start + 30:
        before = clock.now
        assert query.batch() is None
        assert clock.now - before <= 1.0  # a query that is stopped need not wait for long
        reader.reportLatestOffset()
    assert server.monitor("/jsz")["api"]["total"] - calls <= 2 * 30


def test_other_streams_than_those_of_the_checkpoint_are_refused(server, js, name):
    make(js, name, 1)
    make(js, name + "B", 1)
    start = Query(query_reader(server, stream=name)).start
    with pytest.raises(InvalidValue, match=f"the checkpoint is for streams {name}, option"):
        query_reader(server, stream=f"{name},{name}B").latestOffset(start, ALL)


# What goes wrong


def started(server, js, name, **options):
    make(js, name, 10)
    query = Query(query_reader(server, stream=name, startingOffsets="earliest", **options))
    query.batch()
    return query


def test_messages_that_are_gone_before_they_were_read(server, js, name, caplog):
    query = started(server, js, name)
    fill(js, name, 10)
    js.stream(name).purge(seq=16)
    with pytest.raises(DataLost, match="messages 11 to 15 of stream"):
        query.batch()
    query.reader.fail = False
    assert query.batch() == list(range(16, 21))
    assert "messages 11 to 15" in caplog.text


def test_a_purge_of_what_was_read_is_no_loss(server, js, name):
    query = started(server, js, name)
    js.stream(name).purge()
    assert query.batch() is None
    fill(js, name, 3)
    assert query.batch() == [11, 12, 13]


def test_a_gap_is_no_loss(server, js, name):
    query = started(server, js, name)
    fill(js, name, 5)
    for seq in (11, 13, 15):
        js.stream(name).delete_msg(seq)
    # The first of them is gone, and the stream begins before it: a gap.
    assert query.batch() == [12, 14]


def test_a_stream_that_ends_before_the_offset_gives_its_sequences_again(server, js, name, caplog):
    """As one that was restored from a copy, or lost its last messages with its server's power."""
    query = started(server, js, name)
    query.start["streams"][name]["next"] = 15
    with pytest.raises(DataLost, match="ends before sequence 11, and was read up to 14"):
        query.batch()
    query.reader.fail = False
    assert query.batch() == []
    assert "ends before sequence 11" in caplog.text
    assert query.batch() is None
    fill(js, name, 6)
    assert query.batch() == list(range(11, 17))


@pytest.mark.parametrize("count", [0, 5, 50])
def test_a_stream_that_was_made_anew(server, js, name, caplog, count):
    query = started(server, js, name)
    js.delete_stream(name)
    make(js, name, count)
    with pytest.raises(DataLost, match="was made anew at"):
        query.batch()
    query.reader.fail = False
    assert query.batch() == list(range(1, count + 1))
    assert "was made anew" in caplog.text
    fill(js, name, 1)
    assert query.batch() == [count + 1]


def test_a_stream_that_was_made_anew_after_planning(server, js, name):
    query = started(server, js, name, failOnDataLoss=False)
    fill(js, name, 10)
    end = query.plan()
    js.delete_stream(name)
    make(js, name, 4)
    again = query_reader(server, stream=name, failOnDataLoss=False)
    assert again.partitions(query.start, end) == []
    with pytest.raises(DataLost):
        query_reader(server, stream=name).partitions(query.start, end)
    query.start = end
    assert query.batch() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, [11, 12, 13]),
        ({"onCommit": "purge"}, [11, 12, 13]),
        ({"maxMessagesPerTrigger": 2, "subject": "*.0"}, [3, 4]),
    ],
)
def test_a_server_that_restarts_between_batches(name, options, found):
    with Server(jetstream=True) as server, connect(server.url) as admin:
        js = JetStream(admin)
        query = started(server, js, name, requestTimeout="1s", **options)
        server.kill()
        server.restart()
        with connect(server.url) as other:
            fill(JetStream(other), name, 3)
        assert query.batch() == found


# onCommit


def test_what_is_finished_is_purged_by_commit_or_by_going_on(server, js, name):
    query = started(server, js, name, onCommit="purge")
    state = js.stream(name).cached_info.state
    assert state.messages == 10  # the batch is planned and read, but nobody says that it is done
    query.reader.commit(query.start)
    assert js.stream(name).cached_info.state.messages == 0
    fill(js, name, 5)
    assert query.batch() == list(range(11, 16))
    assert js.stream(name).cached_info.state.messages == 5
    assert query.batch() is None  # it was asked what follows
    assert js.stream(name).cached_info.state.messages == 0


def test_a_purge_takes_only_what_was_read(server, js, name):
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


def test_a_purge_that_is_not_allowed_or_would_take_too_much(server, js, name):
    make(js, name, 1, deny_purge=True)
    with pytest.raises(InvalidValue, match="denies it"):
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
