"""mode=consume without Spark: read by a durable consumer, acknowledged when finished."""

from __future__ import annotations

import json
import pickle

import pytest

from jetstream.blocking import JetStream
from jetstream.errors import ConsumerNotFound
from jetstream.spark import consume
from natsproto.adapters.blocking import connect
from natsproto.errors import InvalidValue, PermissionDenied
from natsproto.testing import Server
from tests.spark.support import check_left, check_soon, fill, make, query_reader, rows_of

streaming = pytest.importorskip("pyspark.sql.streaming.datasource", reason="needs PySpark 4.2")
ALL = streaming.ReadAllAvailable()
COLUMNS = ("sequence", "consumer", "num_delivered", "num_pending", "stream", "subject", "data")


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(consume, "_POLL", 0.05)


@pytest.fixture
def work(js, name):
    """Create a work queue of ten messages with a durable consumer."""
    make(js, name, 10, retention="workqueue")
    js.create_consumer(name, durable_name="worker", ack_wait=1.0)
    return name


def reader_of(server, name, columns=("sequence",), **options):
    return query_reader(server, columns, stream=name, mode="consume", consumer="worker", **options)


def step(reader, start, limit=None):
    """Return the sequences of the next batch, and its end."""
    limit = limit or reader.getDefaultReadLimit()
    end = json.loads(json.dumps(reader.latestOffset(start, limit)))
    parts = pickle.loads(pickle.dumps(reader.partitions(start, end)))
    return [row["sequence"] for row in rows_of(reader, parts)], end


def acked(js, name):
    info = js.consumer(name, "worker").cached_info
    return info.ack_floor.stream_seq, info.num_ack_pending


def check_acked(js, name, floor, pending):
    check_soon(lambda: acked(js, name), (floor, pending))


def test_finished_batches_are_acknowledged(server, js, work):
    reader = reader_of(server, work, maxMessagesPerTrigger=4)
    start = reader.initialOffset()
    found, end = step(reader, start)
    assert found == [1, 2, 3, 4]
    assert acked(js, work) == (0, 4)
    reader.commit(end)
    check_acked(js, work, 4, 0)
    found, later = step(reader, end)
    assert found == [5, 6, 7, 8]
    check_acked(js, work, 4, 4)
    found, last = step(reader, later)  # a request for the next offset: the batch before is finished
    assert found == [9, 10]
    check_acked(js, work, 8, 2)
    assert step(reader, last) == ([], last)
    check_acked(js, work, 10, 0)
    check_left(js, work, 0)


def test_columns_about_deliveries(server, work):
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


def test_messages_of_a_dead_driver_are_redelivered(server, js, work):
    dead = reader_of(server, work, maxMessagesPerTrigger=4)
    _, end = step(dead, dead.initialOffset())
    # The batch is in Spark's log and runs again, with the messages that exist now.
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
    check_left(js, work, 0)


def test_an_unlimited_batch_has_all_messages(server, work):
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


def test_unsuitable_consumers_are_rejected(server, js, name):
    make(js, name, 1)
    with pytest.raises(ConsumerNotFound, match=f"consumer not found: worker of stream {name}"):
        step(reader_of(server, name), reader_of(server, name).initialOffset())
    js.create_consumer(name, durable_name="worker", ack_policy="none")
    with pytest.raises(InvalidValue, match="has ack_policy none"):
        step(reader_of(server, name), reader_of(server, name).initialOffset())
    js.delete_consumer(name, "worker")
    js.create_consumer(name, durable_name="worker", deliver_subject="push")
    with pytest.raises(InvalidValue, match="is not a pull consumer"):
        step(reader_of(server, name), reader_of(server, name).initialOffset())


@pytest.mark.parametrize(
    "offset",
    [
        {"consumer": "S/other", "batch": 3},
        {"consumer": "%s/worker", "batch": "3"},
        {"streams": {"S": {"next": 3, "created": "then"}}},
        3,
    ],
)
def test_offsets_of_another_consumer_or_mode_are_rejected(server, work, offset):
    if isinstance(offset, dict) and "consumer" in offset:
        offset["consumer"] = offset["consumer"].replace("%s", work)
    with pytest.raises(InvalidValue, match="does not belong to consumer worker"):
        reader_of(server, work).latestOffset(offset, ALL)


def test_offsets_of_other_versions(server, work):
    offset = reader_of(server, work).initialOffset()
    assert offset["v"] == 1
    with pytest.raises(InvalidValue, match="has version 2, and this package reads up to 1"):
        reader_of(server, work).latestOffset({**offset, "v": 2}, ALL)
    del offset["v"]  # as older versions wrote it
    assert reader_of(server, work).latestOffset(offset, ALL)["batch"] == 1


@pytest.mark.parametrize(
    ("config", "options", "sizes"),
    [
        ({"max_ack_pending": 4}, {}, [4, 4, 2]),
        ({"max_batch": 3, "max_expires": 0.01, "max_bytes": 1000}, {}, [10]),
        ({}, {"maxBytesPerTrigger": 1}, [1] * 10),
        ({}, {"maxMessagesPerTrigger": 7, "fetchSize": 2}, [7, 3]),
    ],
)
def test_limits_of_the_consumer_and_of_the_options(server, js, name, config, options, sizes):
    make(js, name, 10)
    js.create_consumer(name, durable_name="worker", **config)
    reader = reader_of(server, name, **options)
    end = reader.initialOffset()
    for size in sizes:
        found, end = step(reader, end)
        assert len(found) == size
    assert step(reader, end) == ([], end)


def test_a_limit_by_bytes_with_messages_of_uneven_size(server, js, name):
    make(js, name, 100)
    with js.publisher() as publisher:
        for size in (3000,) * 10 + (15_000,) * 2 + (10,) * 20:
            publisher.publish(f"{name}.0", bytes(size), headers={"A": "b" * 100})
    js.create_consumer(name, durable_name="worker")
    reader = reader_of(server, name, ("data", "headers"), maxBytesPerTrigger=10_000)
    start = reader.initialOffset()
    found = []
    while (end := reader.latestOffset(start, reader.getDefaultReadLimit())) != start:
        rows = rows_of(reader, reader.partitions(start, end))
        found.append([len(row["data"]) + 100 * bool(row["headers"]) for row in rows])
        start = end
    assert sum(len(sizes) for sizes in found) == 132
    assert all(sum(sizes) <= 10_000 or len(sizes) == 1 for sizes in found)
    assert len(found) <= 10


def test_available_now_includes_unacknowledged_messages(server, js, work):
    """The server no longer counts them as pending, and no other client would pull them."""
    others = js.consumer(work, "worker").fetch(10)
    for msg in others:
        msg.nak()
    reader = reader_of(server, work)
    reader.prepareForTriggerAvailableNow()
    found, end = step(reader, reader.initialOffset())
    assert sorted(found) == list(range(1, 11))
    assert step(reader, end) == ([], end)


def test_a_batch_is_split_into_several_record_batches(server, work):
    reader = reader_of(server, work, arrowBatchRows=4)
    end = reader.latestOffset(reader.initialOffset(), ALL)
    (part,) = reader.partitions(reader.initialOffset(), end)
    assert [batch.num_rows for batch in reader.read(part)] == [4, 4, 2]


def test_a_server_that_restarts_between_batches(name):
    with Server(jetstream=True) as server:
        with connect(server.url) as client:
            js = JetStream(client)
            make(js, name, 10)
            js.create_consumer(name, durable_name="worker")
        reader = reader_of(server, name, maxMessagesPerTrigger=4, requestTimeout="1s")
        found, end = step(reader, reader.initialOffset())
        assert found == [1, 2, 3, 4]
        server.kill()
        server.restart()
        # A killed server may forget its deliveries: at least once.
        while not set(found) >= set(range(1, 11)):
            more, end = step(reader, end)
            found += more


def test_pulls_without_permission_fail(name):
    denied = {"publish": {"deny": ["$JS.API.CONSUMER.MSG.NEXT.>"]}}
    users = [
        {"user": "admin", "password": "x"},
        {"user": "reader", "password": "x", "permissions": denied},
    ]
    with Server(jetstream=True, config={"authorization": {"users": users}}) as server:
        with connect(server.url, user="admin", password="x") as client:
            make(JetStream(client), name, 5)
            JetStream(client).create_consumer(name, durable_name="worker")
        reader = reader_of(server, name, user="reader", password="x")
        with pytest.raises(PermissionDenied, match=f"MSG.NEXT.{name}.worker"):
            reader.latestOffset(reader.initialOffset(), ALL)


def test_spark_before_4_2(server, js, work):
    reader = reader_of(server, work, maxMessagesPerTrigger=4)
    end = reader.latestOffset()
    assert [row["sequence"] for row in rows_of(reader, reader.partitions({**end, "batch": 0}, end))]
    reader.commit(end)
    later = reader.latestOffset()
    assert later["batch"] > end["batch"]
    check_acked(js, work, 4, 4)
    assert reader.reportLatestOffset() is None
