"""Streaming queries with removed messages, recreated streams, and servers that restart."""

from __future__ import annotations

import pytest

from jetstream.blocking import JetStream
from jetstream.spark.offsets import DataLost
from natsproto.adapters.blocking import connect
from natsproto.testing import Server
from tests.spark.stepping import Query, started
from tests.spark.support import fill, make, query_reader, sequences

pytest.importorskip("pyspark.sql.streaming.datasource", reason="needs PySpark 4.2")
pytestmark = pytest.mark.usefixtures("impatient")


def test_messages_removed_before_the_read_are_data_loss(server, js, name, caplog):
    query = started(server, js, name)
    fill(js, name, 10)
    js.stream(name).purge(seq=16)
    with pytest.raises(DataLost, match="messages 11 to 15 of stream"):
        query.batch()
    query.reader.fail = False
    assert query.batch() == list(range(16, 21))
    assert "messages 11 to 15" in caplog.text


def test_a_purge_of_read_messages_is_not_data_loss(server, js, name):
    query = started(server, js, name)
    js.stream(name).purge()
    assert query.batch() is None
    fill(js, name, 3)
    assert query.batch() == [11, 12, 13]


def test_a_gap_is_not_data_loss(server, js, name):
    query = started(server, js, name)
    fill(js, name, 5)
    for seq in (11, 13, 15):
        js.stream(name).delete_msg(seq)
    # The first of them is gone, and the stream begins before it: a gap.
    assert query.batch() == [12, 14]


def test_a_stream_that_ends_before_the_offset_reuses_sequences(server, js, name, caplog):
    """It was restored from a backup, or lost its last messages in a power failure."""
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
def test_a_recreated_stream_is_data_loss(server, js, name, caplog, count):
    query = started(server, js, name)
    js.delete_stream(name)
    make(js, name, count)
    with pytest.raises(DataLost, match="was recreated at"):
        query.batch()
    query.reader.fail = False
    assert query.batch() == list(range(1, count + 1))
    assert "was recreated" in caplog.text
    fill(js, name, 1)
    assert query.batch() == [count + 1]


def test_a_stream_that_is_recreated_after_planning(server, js, name):
    query = started(server, js, name, failOnDataLoss=False)
    fill(js, name, 10)
    end = query.plan()
    js.delete_stream(name)
    make(js, name, 4)
    again = query_reader(server, stream=name, failOnDataLoss=False)
    # The partition that was planned keeps its number, and has nothing to read.
    [part] = again.partitions(query.start, end)
    assert list(again.read(part)) == []
    with pytest.raises(DataLost):
        query_reader(server, stream=name).partitions(query.start, end)
    query.start = end
    assert query.batch() == [1, 2, 3, 4]


def test_a_query_may_restart_with_a_recreated_stream_and_still_fail_after_other_losses(
    server, js, name, caplog
):
    query = started(server, js, name, onRecreate="restart")
    js.delete_stream(name)
    make(js, name, 5)
    assert query.batch() == [1, 2, 3, 4, 5]
    assert "was recreated" in caplog.text
    fill(js, name, 5)
    js.stream(name).purge(seq=8)
    with pytest.raises(DataLost, match="messages 6 to 7"):
        query.batch()


def test_a_query_may_fail_with_a_recreated_stream_and_continue_after_other_losses(server, js, name):
    query = started(server, js, name, onRecreate="fail", failOnDataLoss=False)
    fill(js, name, 5)
    js.stream(name).purge(seq=13)
    assert query.batch() == [13, 14, 15]
    js.delete_stream(name)
    make(js, name, 20)
    with pytest.raises(DataLost, match=r"onRecreate=restart .*, onRecreate=resume"):
        query.batch()


def test_a_query_resumes_in_a_stream_with_the_same_sequences(server, js, name, caplog):
    """A stream that is restored from a snapshot keeps the sequences, but not its creation time."""
    query = started(server, js, name, onRecreate="resume")
    fill(js, name, 3)
    end = query.plan()  # and the query ends before it has read them
    with js.snapshot_stream(name) as snapshot:
        chunks = list(snapshot)
    config = js.stream(name).cached_info.config
    js.delete_stream(name)
    js.restore_stream(chunks, config)
    fill(js, name, 2)
    options = {"stream": name, "onRecreate": "resume"}
    query = Query(query_reader(server, **options), query.start)
    assert sequences(query.reader, query.reader.partitions(query.start, end)) == [11, 12, 13]
    query.start = end
    assert query.batch() == [14, 15]
    assert query.batch() is None
    # Now the offset is one of the new stream: no option is needed anymore.
    fill(js, name, 1)
    assert Query(query_reader(server, stream=name), query.start).batch() == [16]
    assert not caplog.text


def test_a_query_resumes_in_its_first_batch(server, js, name, caplog):
    make(js, name, 10)
    options = {"stream": name, "startingOffsets": 4, "onRecreate": "resume"}
    end = Query(query_reader(server, **options)).plan()  # and the query ends
    js.delete_stream(name)
    make(js, name, 12)
    query = Query(query_reader(server, **options, failOnDataLoss=False))
    parts = query.reader.partitions(query.start, end)
    assert sequences(query.reader, parts) == list(range(4, 11))
    assert not caplog.text


def test_a_query_resumes_without_new_messages(server, js, name):
    query = started(server, js, name, onRecreate="resume")
    js.delete_stream(name)
    make(js, name, 10)
    assert query.batch() == []  # records which stream it is
    assert query.batch() is None


def test_a_query_does_not_resume_where_messages_are_missing(server, js, name):
    query = started(server, js, name, onRecreate="resume")
    js.delete_stream(name)
    make(js, name, 7)
    with pytest.raises(DataLost, match="ends before sequence 8, and was read up to 10"):
        query.batch()
    fill(js, name, 8)
    js.stream(name).purge(seq=14)
    with pytest.raises(DataLost, match="messages 11 to 13"):
        query.batch()


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
