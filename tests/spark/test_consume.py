"""mode=consume without Spark: taken by a durable consumer, acknowledged when finished."""

from __future__ import annotations

import json
import pickle

import pytest

from jetstream.errors import ConsumerNotFound
from jetstream.spark import consume
from natsproto.errors import InvalidValue
from tests.spark.support import fill, make, query_reader, rows_of

streaming = pytest.importorskip("pyspark.sql.streaming.datasource", reason="needs PySpark 4.2")
ALL = streaming.ReadAllAvailable()
COLUMNS = ("sequence", "consumer", "num_delivered", "num_pending", "stream", "subject", "data")


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(consume, "_POLL", 0.05)


@pytest.fixture
def work(js, name):
    """A work queue of ten messages with a durable consumer."""
    make(js, name, 10, retention="workqueue")
    js.create_consumer(name, durable_name="worker", ack_wait=1.0)
    return name


def reader_of(server, name, columns=("sequence",), **options):
    return query_reader(server, columns, stream=name, mode="consume", consumer="worker", **options)


def step(reader, start, limit=None):
    """The sequences of the next batch, and its end."""
    limit = limit or reader.getDefaultReadLimit()
    end = json.loads(json.dumps(reader.latestOffset(start, limit)))
    parts = pickle.loads(pickle.dumps(reader.partitions(start, end)))
    return [row["sequence"] for row in rows_of(reader, parts)], end


def acked(js, name):
    info = js.consumer(name, "worker").cached_info
    return info.ack_floor.stream_seq, info.num_ack_pending


def test_batches_are_acknowledged_when_they_are_finished(server, js, work):
    reader = reader_of(server, work, maxMessagesPerTrigger=4)
    start = reader.initialOffset()
    found, end = step(reader, start)
    assert found == [1, 2, 3, 4]
    assert acked(js, work) == (0, 4)
    reader.commit(end)
    assert acked(js, work) == (4, 0)
    found, later = step(reader, end)
    assert found == [5, 6, 7, 8]
    assert acked(js, work) == (4, 4)
    found, last = step(reader, later)  # what follows is asked for: so the one before is done
    assert found == [9, 10]
    assert acked(js, work)[0] == 8
    assert step(reader, last) == ([], last)
    assert acked(js, work) == (10, 0)
    assert js.stream(work).cached_info.state.messages == 0


def test_the_columns_of_deliveries(server, work):
    reader = reader_of(server, work, COLUMNS)
    end = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    rows = rows_of(reader, reader.partitions(reader.initialOffset(), end))
    assert rows[2] == {
        "sequence": 3,
        "consumer": "worker",
        "num_delivered": 1,
        "num_pending": 7,
        "stream": work,
        "subject": f"{work}.0",
        "data": b"00000002",
    }


def test_a_batch_stays_the_same_until_it_is_finished(server, work):
    reader = reader_of(server, work, maxMessagesPerTrigger=4)
    start = reader.initialOffset()
    found, end = step(reader, start)
    assert step(reader, start) == (found, end)
    assert step(reader, end)[0] == [5, 6, 7, 8]


def test_what_a_driver_that_died_had_taken_comes_again(server, js, work):
    dead = reader_of(server, work, maxMessagesPerTrigger=4)
    _, end = step(dead, dead.initialOffset())
    # The batch is in Spark's log, and is run again: with what there is now.
    again = reader_of(server, work, maxMessagesPerTrigger=10)
    parts = again.partitions(again.initialOffset(), end)
    assert [row["sequence"] for row in rows_of(again, parts)] == [5, 6, 7, 8, 9, 10]
    again.commit(end)
    found = []
    while len(found) < 4:  # after ack_wait
        more, end = step(again, end)
        found += more
    assert found == [1, 2, 3, 4]
    again.latestOffset(end, ALL)
    assert js.stream(work).cached_info.state.messages == 0


def test_all_there_is_in_one_batch_if_spark_wants_that(server, work):
    reader = reader_of(server, work, maxMessagesPerTrigger=4)
    found, _ = step(reader, reader.initialOffset(), ALL)
    assert found == list(range(1, 11))


def test_available_now(server, js, work):
    reader = reader_of(server, work, maxMessagesPerTrigger=4)
    reader.prepareForTriggerAvailableNow()
    end = reader.initialOffset()
    sizes = []
    while True:
        start = end
        found, end = step(reader, start)
        fill(js, work, 3)  # later ones are for later
        if end == start:
            break
        sizes.append(len(found))
    assert sizes == [4, 4, 2]


def test_consumers_that_do_not_fit(server, js, name):
    make(js, name, 1)
    with pytest.raises(ConsumerNotFound):
        step(reader_of(server, name), reader_of(server, name).initialOffset())
    js.create_consumer(name, durable_name="worker", ack_policy="none")
    with pytest.raises(InvalidValue, match="has ack_policy none"):
        step(reader_of(server, name), reader_of(server, name).initialOffset())
    js.delete_consumer(name, "worker")
    js.create_consumer(name, durable_name="worker", deliver_subject="push")
    with pytest.raises(InvalidValue, match="is not a pull consumer"):
        step(reader_of(server, name), reader_of(server, name).initialOffset())


def test_offsets_of_another_consumer(server, work):
    with pytest.raises(InvalidValue, match="is not of consumer worker"):
        reader_of(server, work).latestOffset({"consumer": "S/other", "batch": 3}, ALL)


def test_spark_before_4_2(server, js, work):
    reader = reader_of(server, work, maxMessagesPerTrigger=4)
    end = reader.latestOffset()
    assert [row["sequence"] for row in rows_of(reader, reader.partitions({**end, "batch": 0}, end))]
    reader.commit(end)
    later = reader.latestOffset()
    assert later["batch"] > end["batch"]
    assert acked(js, work) == (4, 4)
    assert reader.reportLatestOffset() is None
