"""Queries that wait for messages."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from jetstream.blocking import JetStream
from jetstream.spark.options import STREAM, read_options
from jetstream.spark.wakeup import Wakeup
from natsproto.adapters.blocking import connect
from tests.spark.stepping import Query, needs_limits, started
from tests.spark.support import fill, make, query_reader, sequences


def publish_later(server, subject, count=1):
    """Publish in a thread, while the query waits; return the thread."""

    def publish():
        with connect(server.url) as client:
            for _ in range(count):
                JetStream(client).publish(subject, b"")

    thread = threading.Timer(0.2, publish)
    thread.start()
    return thread


def wakeup(server, **options):
    return Wakeup(read_options({"servers": server.url, **options}, STREAM))


@pytest.mark.parametrize("late", ["A", "B"])
def test_a_new_message_wakes_a_query(server, js, name, late):
    names = [f"{name}A", f"{name}B"]
    for each in names:
        make(js, each, 3)
    waiting = wakeup(server, stream=",".join(names))
    ends = dict.fromkeys(names, 4)
    thread = publish_later(server, f"{name}{late}.0")
    start = time.monotonic()
    assert waiting.wait(ends, 20.0)
    assert time.monotonic() - start < 10.0
    thread.join()
    assert waiting.wait(ends, 0.0)  # nobody has read it


def test_nothing_wakes_a_query_but_new_messages_that_it_reads(server, js, name):
    make(js, name, 3)
    waiting = wakeup(server, stream=name, filterSubjects=f"{name}.a")
    thread = publish_later(server, f"{name}.b")
    assert not waiting.wait({name: 4}, 0.5)
    thread.join()
    js.publish(f"{name}.a", b"")
    assert waiting.wait({name: 4}, 20.0)
    assert not waiting.wait({name: 6}, 0.1)  # it was read in the meantime


@pytest.mark.parametrize("count", [20, 2000])
def test_messages_that_were_read_in_the_meantime(server, js, name, count):
    """Few of them are pulled, and many are skipped by a new consumer."""
    make(js, name, 3)
    waiting = wakeup(server, stream=name)
    assert not waiting.wait({name: 4}, 0.1)
    fill(js, name, count)
    assert not waiting.wait({name: 4 + count}, 0.1)
    assert len(js.consumer_names(name)) == (1 if count == 20 else 2)
    js.publish(f"{name}.0", b"")
    assert waiting.wait({name: 4 + count}, 20.0)


def test_a_consumer_that_is_gone(server, js, name):
    """The query looks at its streams itself, and waits again."""
    make(js, name, 3)
    waiting = wakeup(server, stream=name)
    assert not waiting.wait({name: 4}, 0.1)
    for each in js.consumer_names(name):
        js.delete_consumer(name, each)
    assert waiting.wait({name: 4}, 1.0)
    assert not waiting.wait({name: 4}, 0.1)
    js.delete_stream(name)
    assert waiting.wait({name: 4}, 1.0)


def test_the_consumers_of_a_query_that_is_stopped_are_deleted(spark, server, js, name, tmp_path):
    """Spark ends the process by a signal. The server would keep them for 30 s."""
    make(js, name, 3)
    with connect(server.url) as client:
        pulls = client.subscribe(f"$JS.API.CONSUMER.MSG.NEXT.{name}.*")
        deleted = client.subscribe(f"$JS.EVENT.ADVISORY.CONSUMER.DELETED.{name}.*")
        client.flush()
        source = spark.readStream.format("jetstream").options(servers=server.url, stream=name)
        query = source.load().writeStream.format("noop").option("checkpointLocation", str(tmp_path))
        running = query.start()
        consumer = pulls.next(timeout=60.0).subject.rpartition(".")[2]
        running.stop()
        assert deleted.next(timeout=20.0).subject.endswith(f".{consumer}")


def test_the_consumers_of_a_driver_that_ends_are_deleted(server, js, name):
    make(js, name, 3)
    reader = query_reader(server, stream=name)
    reader.stop()  # there are none
    assert not reader._wakeup.wait({name: 4}, 0.1)
    assert len(js.consumer_names(name)) == 1
    reader.stop()
    assert js.consumer_names(name) == []
    reader.stop()  # they are gone


def test_only_the_process_of_a_query_handles_its_termination(server, js, name):
    before = signal.getsignal(signal.SIGTERM)
    make(js, name, 3)
    assert not wakeup(server, stream=name).wait({name: 4}, 0.1)
    assert signal.getsignal(signal.SIGTERM) is before


@needs_limits
def test_an_idle_query_sends_one_message_per_second(server, js, name):
    """A pull that ends without a message says as much as a look at the stream."""
    query = started(server, js, name)
    query.batch()
    before = server.monitor("/varz")["in_msgs"]
    start = time.monotonic()
    while time.monotonic() - start < 3.0:
        assert query.batch() is None
    assert server.monitor("/varz")["in_msgs"] - before <= 4 + 1  # at most one look
    fill(js, name, 1)
    assert query.batch() == [11]


@needs_limits
@pytest.mark.parametrize(
    ("what", "calls"), [("all messages", 5), ("a gap elsewhere", 5), ("a filter", 6)]
)
def test_the_calls_of_a_micro_batch_of_four_tasks(server, js, name, what, calls):
    """One to plan it and one for each task; where messages are read to divide them, one more."""
    stream = make(js, name, 100, subjects=2)
    options = {"stream": name, "startingOffsets": "earliest", "minPartitions": 4}
    if what == "a gap elsewhere":
        stream.delete_msg(50)
    if what == "a filter":
        options["subject"] = f"{name}.1"
    query = Query(query_reader(server, **options))
    query.batch()
    assert query.batch() is None  # creates the consumer that wakes it up
    for _ in range(2):
        fill(js, name, 80, subjects=2)
        before = server.monitor("/jsz")["api"]["total"]
        end = query.plan()
        tasks = query.reader.partitions(query.start, end)
        rows = [len(sequences(query.reader, [task])) for task in tasks]
        assert rows == [20] * 4 if what != "a filter" else [10] * 4
        assert server.monitor("/jsz")["api"]["total"] - before <= calls
        query.start = end
