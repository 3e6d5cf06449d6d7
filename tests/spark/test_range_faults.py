"""Reading without Spark: streams that cannot be read, and faults during the read."""

from __future__ import annotations

import pytest

from jetstream.blocking import JetStream
from jetstream.spark import pull, retry
from jetstream.spark.offsets import DataLost
from natsproto.adapters.blocking import connect
from natsproto.errors import ConnectionLost, InvalidValue, NatsError, PermissionDenied
from natsproto.testing import Server
from tests.spark.support import batch_reader, make, sequences


def test_a_work_queue_is_not_emptied_by_reading_it(server, js, name):
    stream = make(js, name, 10, retention="workqueue", allow_direct=True)
    with pytest.raises(InvalidValue, match=r"is a work queue.*fetchMode=direct.*mode=consume"):
        batch_reader(server, stream=name).partitions()
    reader = batch_reader(server, stream=name, fetchMode="direct")
    assert sequences(reader) == list(range(1, 11))
    assert stream.info().state.messages == 10


def test_a_stream_with_limits_for_its_consumers(server, js, name):
    make(js, name, 10, consumer_limits={"inactive_threshold": 5.0})
    assert sequences(batch_reader(server, stream=name)) == list(range(1, 11))


def test_direct_get_must_be_allowed(server, js, name):
    make(js, name, 1)
    with pytest.raises(InvalidValue, match="does not allow direct get"):
        batch_reader(server, stream=name, fetchMode="direct").partitions()


def test_a_missing_stream_is_an_error(server, js, name):
    make(js, name, 1)
    with pytest.raises(NatsError, match="stream not found: NOWHERE"):
        batch_reader(server, stream=f"{name},NOWHERE").partitions()


def test_sequences_up_to_the_limit_of_servers(server, js, name):
    make(js, name, 3, first_seq=2**60, allow_direct=True)
    for mode in ("pull", "direct"):
        reader = batch_reader(server, stream=name, startingOffsets=2**60 + 1, fetchMode=mode)
        assert sequences(reader) == [2**60 + 1, 2**60 + 2]
    make(js, name + "B", 3, first_seq=2**62 - 3)
    assert sequences(batch_reader(server, stream=name + "B")) == [2**62 - 3, 2**62 - 2, 2**62 - 1]
    make(js, name + "C", 3, first_seq=2**62)
    with pytest.raises(InvalidValue, match="is at sequence 4611686018427387906, and servers deliv"):
        batch_reader(server, stream=name + "C").partitions()


USERS = [
    {"user": "admin", "password": "x"},
    {
        "user": "reader",
        "password": "x",
        "permissions": {"publish": {"deny": ["$JS.API.CONSUMER.MSG.NEXT.>", "$JS.API.DIRECT.>"]}},
    },
]


def test_a_read_without_permission_fails_at_once(name):
    """The server does not respond to a pull without permission, so the read must not wait."""
    config = {"authorization": {"users": USERS}}
    with Server(jetstream=True, config=config) as server:
        with connect(server.url, user="admin", password="x") as admin:
            make(JetStream(admin), name, 5, allow_direct=True)
        for mode in ("pull", "direct"):
            options = {"user": "reader", "password": "x", "fetchMode": mode}
            reader = batch_reader(server, stream=name, **options)
            with pytest.raises(PermissionDenied, match="Permissions Violation for Publish"):
                sequences(reader)


def test_requested_messages_that_were_removed_are_data_loss(server, js, name, caplog):
    stream = make(js, name, 20)
    stream.purge(seq=11)
    with pytest.raises(DataLost, match="messages 5 to 10 of stream"):
        batch_reader(server, stream=name, startingOffsets=5).partitions()
    reader = batch_reader(server, stream=name, startingOffsets=5, failOnDataLoss=False)
    assert sequences(reader) == list(range(11, 21))
    assert "messages 5 to 10" in caplog.text
    assert sequences(batch_reader(server, stream=name)) == list(range(11, 21))


@pytest.mark.parametrize("fail", [True, False])
def test_messages_removed_between_planning_and_reading(server, js, name, fail, caplog):
    stream = make(js, name, 20)
    reader = batch_reader(server, stream=name, failOnDataLoss=fail)
    partitions = reader.partitions()
    stream.purge(seq=11)
    if fail:
        with pytest.raises(DataLost, match="messages 1 to 10 of stream"):
            sequences(reader, partitions)
    else:
        assert sequences(reader, partitions) == list(range(11, 21))
        assert "messages 1 to 10" in caplog.text


@pytest.mark.parametrize("fail", [True, False])
def test_messages_removed_during_the_read(server, js, name, fail, caplog):
    stream = make(js, name, 100)
    reader = batch_reader(server, stream=name, failOnDataLoss=fail, fetchSize=10, arrowBatchRows=10)
    batches = reader.read(reader.partitions()[0])
    found = next(batches).column(0).to_pylist()
    stream.purge(seq=61)
    if fail:
        with pytest.raises(DataLost, match=r"messages \d+ to 60 of stream"):
            list(batches)
    else:
        found += [seq for batch in batches for seq in batch.column(0).to_pylist()]
        # A pull may have been in flight.
        assert found == [*range(1, len(found) - 39), *range(61, 101)]
        assert "to 60 of stream" in caplog.text


def test_messages_removed_at_the_end_of_a_range_are_a_gap(server, js, name):
    stream = make(js, name, 20)
    reader = batch_reader(server, stream=name)
    partitions = reader.partitions()
    for seq in (18, 19, 20):
        stream.delete_msg(seq)
    assert sequences(reader, partitions) == list(range(1, 18))


def test_a_stream_that_is_recreated_between_planning_and_reading(server, js, name):
    stream = make(js, name, 20)
    reader = batch_reader(server, stream=name)
    partitions = reader.partitions()
    stream.delete()
    make(js, name, 5)
    with pytest.raises(DataLost, match=r"was recreated at .*, after the read was planned"):
        sequences(reader, partitions)


def test_a_consumer_that_is_deleted_during_the_read(server, js, name):
    make(js, name, 50)
    reader = batch_reader(server, stream=name, fetchSize=5, arrowBatchRows=5)
    batches = reader.read(reader.partitions()[0])
    found = next(batches).to_pylist()
    for each in js.consumer_names(name):
        js.delete_consumer(name, each)
    for batch in batches:
        found += batch.to_pylist()
    assert [row["sequence"] for row in found] == list(range(1, 51))


def test_a_server_that_restarts_during_the_read(name):
    with Server(jetstream=True) as server, connect(server.url) as admin:
        make(JetStream(admin), name, 50)
        reader = batch_reader(server, stream=name, fetchSize=5, arrowBatchRows=5)
        batches = reader.read(reader.partitions()[0])
        found = next(batches).to_pylist()
        server.kill()
        server.restart()
        for batch in batches:
            found += batch.to_pylist()
        assert [row["sequence"] for row in found] == list(range(1, 51))


def test_a_server_that_does_not_come_back(name, monkeypatch):
    monkeypatch.setattr(retry, "_DELAY", 0.0)
    with Server(jetstream=True) as server, connect(server.url) as admin:
        make(JetStream(admin), name, 50)
        reader = batch_reader(
            server, stream=name, fetchSize=5, arrowBatchRows=5, requestTimeout="50ms"
        )
        batches = reader.read(reader.partitions()[0])
        next(batches)
        server.kill()
        with pytest.raises(NatsError):
            list(batches)


def test_missing_deliveries_are_detected(server, js, name, monkeypatch):
    """A message of a pull is lost: the range is read again after the last good message."""
    make(js, name, 30)
    take = pull.Pulls.take
    lost = []

    def lossy(self):
        messages, failure = take(self)
        if not lost:
            lost.append(messages.pop(3))
            messages.pop()
        return messages, failure

    monkeypatch.setattr(pull.Pulls, "take", lossy)
    monkeypatch.setattr(retry, "_DELAY", 0.0)
    reader = batch_reader(server, stream=name, fetchSize=10)
    assert sequences(reader) == list(range(1, 31))
    assert lost


def test_repeated_connection_losses_are_an_error(server, js, name, monkeypatch):
    make(js, name, 5)

    def broken(self):
        return [], ConnectionLost("again")

    monkeypatch.setattr(pull.Pulls, "take", broken)
    monkeypatch.setattr(retry, "_DELAY", 0.0)
    with pytest.raises(ConnectionLost, match="again"):
        sequences(batch_reader(server, stream=name))
