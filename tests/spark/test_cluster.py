"""A cluster of three NATS servers and a local Spark: leaders crash and step down during jobs.

The tests observe progress instead of sleeping: tasks report at a gate in the middle of their rows,
and queries report the batches that they have finished. After a crash an election takes 4 s and
more, so two jobs share each crash.
"""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from jetstream.api.client import ApiClient
from jetstream.blocking import JetStream
from jetstream.errors import ApiError, HeartbeatMissed, JetStreamNotAvailable
from jetstream.spark import pull
from jetstream.spark.compat import LIMITED
from jetstream.spark.replay import ReplayMismatch
from natsproto.adapters.blocking import connect
from natsproto.errors import TimeoutExpired
from natsproto.testing import Cluster, Server
from tests.spark.failing import FailingDataSource
from tests.spark.gates import POLL, Gate, pass_gate, wait_for_subject
from tests.spark.sinks import SMALL, numbers, sabotage, write
from tests.spark.support import fill
from tests.spark.tasks import write_batch
from tests.spark.test_stream import Query

# PySpark warns about pandas where rows pass through Python; that does not matter here.
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
PATIENCE = 120.0
READ = 4000  # rows that are in the stream before
WRITTEN = 12_000
SOAK = bool(os.environ.get("SPARK_SOAK"))  # more of the same


@pytest.fixture(scope="module")
def cluster():
    with Cluster(3) as cluster:
        yield cluster


@pytest.fixture(scope="module", autouse=True)
def prepared(spark):
    spark.dataSource.register(FailingDataSource)
    spark.conf.set(SMALL, "500")  # so that there are many batches in a task
    yield
    spark.conf.unset(SMALL)


@pytest.fixture
def js(cluster):
    with connect(cluster.urls) as client:
        yield JetStream(client)


@pytest.fixture
def stream(cluster, js, name):
    """Create a stream with replicas on all members, and READ messages."""
    until(lambda: created(js, name))
    fill(js, name, READ, size=100)
    return js.stream(name)


def created(js, name):
    subjects = [f"{name}.>"]
    try:
        js.create_stream(
            name=name, subjects=subjects, num_replicas=3, allow_direct=True, allow_atomic=True
        )
    except (ApiError, JetStreamNotAvailable, TimeoutExpired):
        return False  # a member that has just returned is not ready for replicas
    return True


def until(look):
    """Poll until the condition holds."""
    deadline = time.monotonic() + PATIENCE
    while not look():
        assert time.monotonic() < deadline, f"it did not happen within {PATIENCE:g} s"
        time.sleep(POLL)


def leader_of(cluster, found):
    """Return the member that leads this stream or consumer."""
    return next(member for member in cluster.members if member.name == found.info().cluster.leader)


def threads(spark):
    # Spark finds a source in Python only in threads that have an active session. This sets it.
    return ThreadPoolExecutor(2, initializer=lambda: spark.createDataFrame([], "id INT"))


# Faults of the cluster while jobs wait at the gate, and their repair after the jobs


@contextmanager
def crash(cluster, stream, gate, in_flight=False):
    leader = leader_of(cluster, stream)
    blows = [leader.kill, gate.open]
    for blow in reversed(blows) if in_flight else blows:
        blow()
    yield
    leader.restart()


def crash_in_flight(cluster, stream, gate):
    """Crash the leader with many rows in flight, whose acknowledgments are lost."""
    return crash(cluster, stream, gate, in_flight=True)


@contextmanager
def step_down(cluster, stream, gate):
    with connect(cluster.urls) as client:
        subject = f"$JS.API.STREAM.LEADER.STEPDOWN.{stream.name}"
        gate.open()
        assert b'"success":true' in client.request(subject, timeout=PATIENCE).data
    yield


@contextmanager
def restart_a_follower(cluster, stream, gate):
    leader = leader_of(cluster, stream)
    follower = next(member for member in cluster.members if member is not leader)
    follower.terminate()
    gate.open()
    follower.restart()
    yield


# Jobs of Spark


class Read:
    """A batch read, in one task that stops in the middle of its range."""

    def __init__(self, spark, stream, servers, gate, directory):
        reader = spark.read.format("failing_jetstream").options(servers=servers)
        reader = reader.options(stream=stream.name)
        reader = reader.options(flag=str(directory / "flag"), how=str(gate.port))
        reader = reader.options(minPartitions="1", endingOffsets=str(READ + 1))
        self._frame = reader.options(fetchSize="100", arrowBatchRows="100").load()

    def run(self):
        self._rows = self._frame.select("sequence", "data").collect()

    def check(self, stored):
        found = [(row.sequence, int(row.data)) for row in self._rows]
        assert found == [(i + 1, i) for i in range(READ)]


class Write:
    """A write in one task that reports when it is in the middle, and continues."""

    delivery = "dedup"

    def __init__(self, spark, stream, servers, gate, directory):
        name, port = stream.name, gate.port
        self._subject = subject = f"{name}.{self.delivery}"

        def report():
            wait_for_subject(servers, name, subject, 1)
            pass_gate(port)

        self._frame = sabotage(numbers(spark, WRITTEN, 1), report, 4)
        self._options = {"servers": servers, "subject": subject, "delivery": self.delivery}
        if self.delivery == "atomic":
            self._markers = f"{name}.mark"
            self._options.update(stream=name, markerSubject=self._markers, writeId="w")

    def run(self):
        write(self._frame, self._options)

    def check(self, stored):
        assert sorted(map(int, stored[self._subject])) == list(range(WRITTEN))


class Atomic(Write):
    delivery = "atomic"

    def check(self, stored):
        assert list(map(int, stored[self._subject])) == list(range(WRITTEN))
        (marker,) = stored[self._markers + ".w.0"]  # those before it are swept
        assert json.loads(marker)["rows"] == WRITTEN


class AtLeastOnce(Write):
    delivery = "atLeastOnce"

    def check(self, stored):
        assert sorted(set(map(int, stored[self._subject]))) == list(range(WRITTEN))


CASES = [
    (crash, Read, AtLeastOnce),
    (crash_in_flight, Write, Atomic),
    (step_down, Write, Atomic),
    (restart_a_follower, Read, Write),
]
if SOAK:
    CASES += [(strike, Read, Atomic) for strike in (crash, step_down, restart_a_follower)]
    CASES += [(strike, Write, AtLeastOnce) for strike in (crash_in_flight, step_down)]
    CASES *= 3


def test_the_check_of_a_repeated_write_leaves_a_replicated_stream_intact(cluster, js, stream):
    """A wrong Nats-Expected-Last-Msg-Id alone stops the stream, on nats-server 2.14 and 2.15."""
    subject = f"{stream.name}.checked"
    options = {"servers": ",".join(cluster.urls), "writeId": "w"}
    for _ in range(3):
        write_batch(options, None, 0, [[(subject, b"1"), (subject, b"2")], [(subject, b"3")]])
    assert js.publish(subject, b"4", timeout=PATIENCE).seq == READ + 4
    with pytest.raises(ReplayMismatch):
        write_batch(options, None, 0, [[(subject, b"1"), (subject, b"2")]])


@pytest.mark.parametrize(
    ("strike", "one", "two"),
    CASES,
    ids=["-".join(each.__name__ for each in case).lower() for case in CASES],
)
def test_jobs_survive_faults_of_the_cluster(spark, cluster, js, stream, tmp_path, strike, one, two):
    servers = ",".join(cluster.urls)
    with threads(spark) as pool, Gate() as gate:
        jobs = [job(spark, stream, servers, gate, tmp_path) for job in (one, two)]
        running = [pool.submit(job.run) for job in jobs]
        gate.await_tasks(2, running)
        with strike(cluster, stream, gate):
            assert strike is not crash_in_flight or not any(each.done() for each in running)
            for each in running:
                each.result()
    cluster.wait_formed()
    stored = all_messages(js, stream.name)
    for job in jobs:
        job.check(stored)


def all_messages(js, name):
    """Return the stored messages, in order, by subject."""
    until(lambda: is_whole(js, name))
    # A follower may lead the consumer, and may have received messages that it has not stored yet.
    left = js.stream(name).cached_info.state.messages
    consumer = js.create_consumer(name, ack_policy="none", mem_storage=True)
    found = {}
    while left:
        batch = list(consumer.fetch(min(left, 5000)))
        for msg in batch:
            found.setdefault(msg.subject, []).append(msg.data)
        left -= len(batch)
    return found


def test_a_silent_consumer_is_detected(name, monkeypatch):
    """Its server may crash during a pull, and the client is connected to another one."""
    monkeypatch.setattr(pull, "_SILENCE", 0.2)
    with Server(jetstream=True) as server, connect(server.url) as client:
        js = JetStream(client)
        js.create_stream(name=name, subjects=[f"{name}.>"])
        consumer = js.create_consumer(name, durable_name="c")
        pulls = pull.Pulls(client, ApiClient(client.inner.session, "", "$JS.API", 5.0), consumer)
        for wait in (0.0, 0.1):
            pulls.request(10, wait)
            assert pulls.take() == ([], None)
        server.freeze()
        pulls.request(10)
        assert isinstance(pulls.take()[1], HeartbeatMissed)
        server.thaw()


# Queries


def until_rows(query, running, count):
    """Wait until the query has this many different rows; raise its error if it fails."""

    def look():
        if not running.isActive:
            running.awaitTermination()
        return len(set(query.rows)) >= count

    until(look)


def is_whole(js, name):
    """Return whether all replicas of the stream are up to date."""
    try:
        cluster = js.stream(name).cached_info.cluster
    except (ApiError, JetStreamNotAvailable, TimeoutExpired):
        return False
    return bool(cluster.leader) and all(replica.current for replica in cluster.replicas)


@pytest.mark.skipif(not LIMITED, reason="needs micro-batches with a limit: PySpark 4.2")
def test_queries_survive_a_rolling_restart(spark, cluster, js, stream, tmp_path):
    """Each row is read once by sequence, and at least once from a shared consumer.

    The leader of the consumer crashes, so unacknowledged messages are redelivered.
    """
    consumer = js.create_consumer(stream.name, durable_name="worker", ack_wait=5)
    options = {"stream": stream.name, "maxMessagesPerTrigger": "500"}
    home = cluster.members[0]
    exact = Query(spark, home, tmp_path / "exact", startingOffsets="earliest", **options)
    shared = Query(spark, home, tmp_path / "shared", mode="consume", consumer="worker", **options)
    running = [exact.start(), shared.start()]
    try:
        count, leader = 0, leader_of(cluster, consumer)
        for member in [leader, *[each for each in cluster.members if each is not leader]]:
            for query, handle in zip((exact, shared), running):
                until_rows(query, handle, count + 1)
            if member is leader:
                member.kill()
            member.restart()
            cluster.wait_formed()
            until(lambda: is_whole(js, stream.name))
            count = js.stream(stream.name).cached_info.state.messages
            fill(js, stream.name, READ // 2)  # for the next one
        count += READ // 2
        for query, handle in zip((exact, shared), running):
            until_rows(query, handle, count)
    finally:
        for handle in running:
            handle.stop()
    assert exact.rows == list(range(1, count + 1))
    assert set(shared.rows) == set(exact.rows)
