"""A Spark cluster: killed executors, copies of slow tasks, and files distributed with a job.

A master, two workers with an executor of one core each, and a driver are separate processes. The
functions without "test" in their names run in that driver (remote.py), their inner functions in
its tasks.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark import TaskContext
from pyspark.sql import functions as F

from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect
from natsproto.testing import Server, jwts
from tests.core import ROOT
from tests.spark.conftest import OLDEST_JAVA, java_version
from tests.spark.failing import FailingDataSource, fail_once
from tests.spark.gates import Gate, pass_gate, stored_on, wait_for_subject
from tests.spark.remote import ANSWER
from tests.spark.sinks import SMALL, numbers, payloads, wait_for_rows, write
from tests.spark.support import make
from tests.spark.test_cluster import SOAK, threads, until

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="processes are found in /proc: Linux"
)
SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.efficiency.enabled": "false",
    SMALL: "500",
}


class SparkCluster:
    """`call` runs a function of this module in the driver."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        order = json.dumps({"directory": str(directory), "settings": SETTINGS})
        with (directory / "log").open("w") as log:
            self._driver = subprocess.Popen(
                [sys.executable, "-m", "tests.spark.remote", order],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=ROOT,
                text=True,
            )

    def call(self, function, **arguments):
        driver = self._driver
        order = {"call": f"{__name__}:{function.__name__}", "with": arguments}
        driver.stdin.write(json.dumps(order) + "\n")
        driver.stdin.flush()
        for line in driver.stdout:
            if line.startswith(ANSWER):
                answer = json.loads(line.removeprefix(ANSWER))
                assert "error" not in answer, answer["error"]
                return answer["value"]
        raise AssertionError((self.directory / "log").read_text()[-3000:])

    def stop(self) -> None:
        self._driver.communicate()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if java_version() < OLDEST_JAVA:
        pytest.skip(f"Spark needs Java {OLDEST_JAVA}")
    cluster = SparkCluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.stop()


@pytest.fixture
def stream(js, name):
    return js.create_stream(name=name, subjects=[f"{name}.>"], allow_direct=True, allow_atomic=True)


def options_of(delivery, server, stream):
    """Return the options of a delivery that stores every row once."""
    options = {"servers": server.url, "delivery": delivery}
    if delivery == "atomic":
        options.update(stream=stream.name, markerSubject=f"{stream.name}.mark")
    return options


# Executors that are killed


def read(spark, options):
    spark.dataSource.register(FailingDataSource)
    frame = spark.read.format("failing_jetstream").options(**options).load()
    return [row.sequence for row in frame.select("sequence").collect()]


def test_an_executor_is_killed_during_a_read(cluster, server, js, name, tmp_path):
    make(js, name, 3000)
    (tmp_path / "flag-1501").touch()  # the second task has no accident
    options = {"servers": server.url, "stream": name, "minPartitions": "2"}
    options.update(arrowBatchRows="100", flag=str(tmp_path / "flag"), how="executor")
    assert cluster.call(read, options=options) == list(range(1, 3001))
    assert (tmp_path / "flag-1").exists()


def deadly(frame, url, name, flag):
    """Return the frame; once, when some rows are stored, kill the executor of the first."""

    def rows(batches):
        for number, batch in enumerate(batches):
            if number == 4 and TaskContext.get().partitionId() == 0:
                wait_for_rows(url, name, 1)
                fail_once(flag, "executor")
            yield batch

    return frame.mapInArrow(rows, frame.schema)


def write_once(spark, options, name, flag):
    frame = deadly(numbers(spark, 6000), options["servers"], name, flag)
    write(frame, options, subject=f"{name}.a")


@pytest.mark.parametrize("delivery", ["dedup", "atomic"] if SOAK else ["dedup"])
def test_an_executor_is_killed_during_a_write(cluster, server, stream, delivery, tmp_path):
    flag = tmp_path / "flag"
    options = options_of(delivery, server, stream)
    cluster.call(write_once, options=options, name=stream.name, flag=str(flag))
    assert payloads(stream) == list(range(6000))
    assert flag.exists()


def copy(spark, options, name, directory):
    reader = spark.readStream.format("jetstream").option("servers", options["servers"])
    reader = reader.options(stream=f"{name}IN", startingOffsets="earliest", minPartitions="2")
    frame = reader.option("arrowBatchRows", "500").load().select("data")
    frame = deadly(frame, options["servers"], name, f"{directory}/flag")
    writer = frame.writeStream.format("jetstream").options(**options, subject=f"{name}.a")
    writer = writer.option("checkpointLocation", f"{directory}/checkpoint")
    writer.trigger(availableNow=True).start().awaitTermination()


@pytest.mark.parametrize("delivery", ["dedup", "atomic"] if SOAK else ["atomic"])
def test_an_executor_is_killed_during_a_micro_batch(
    cluster, server, js, stream, delivery, tmp_path
):
    make(js, stream.name + "IN", 6000)
    options = options_of(delivery, server, stream)
    cluster.call(copy, options=options, name=stream.name, directory=str(tmp_path))
    assert payloads(stream) == list(range(6000))
    assert (tmp_path / "flag").exists()


# Copies of slow tasks


def speculate(spark, options, name):
    """Stop the first task until the copy that Spark starts has written more rows.

    Then both continue. The copy stops in turn, until the first one has written all rows (dedup),
    or was rejected (atomic) and Spark starts a third.
    """
    url = options["servers"]
    subject = F.format_string(name + ".%d", (F.col("data").cast("int") / 6000).cast("int"))
    frame = numbers(spark, 12_000).select("data", subject.alias("subject"))
    gate = Gate()
    port = gate.port

    def rows(batches):
        context = TaskContext.get()
        first, copied = context.partitionId() == 0, context.attemptNumber() == 1
        for number, batch in enumerate(batches):
            if first and not copied and number == 4:  # it has sent 2000 rows at most
                wait_for_subject(url, name, f"{name}.0", 2001)
            if first and copied and number == 0:  # not before the first one has begun to write
                wait_for_subject(url, name, f"{name}.0", 1)
            if first and copied and number == 8:
                pass_gate(port)
            yield batch

    with gate, threads(spark) as pool, connect(url) as client:
        stream = JetStream(client).stream(name)
        writing = pool.submit(write, frame.mapInArrow(rows, frame.schema), options)
        gate.await_tasks(1, [writing])
        if options["delivery"] == "atomic":
            until(lambda: writing.done() or failed_tasks(spark))
        else:
            until(lambda: writing.done() or stored_on(stream, f"{name}.0") == 6000)
        gate.open()
        writing.result()


def failed_tasks(spark):
    tracker = spark.sparkContext.statusTracker()
    infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return sum(info.numFailedTasks for info in infos if info is not None)


def count_fenced(cluster):
    """Count the WriterFenced errors in the logs of the executors."""
    return sum(path.read_text().count("WriterFenced") for path in cluster.directory.rglob("stderr"))


@pytest.mark.parametrize("delivery", ["dedup", "atomic"])
def test_two_copies_of_a_task_write_at_the_same_time(cluster, server, stream, delivery):
    before = count_fenced(cluster)
    options = options_of(delivery, server, stream)
    cluster.call(speculate, options=options, name=stream.name)
    assert payloads(stream) == list(range(12_000))
    if delivery == "atomic":
        assert count_fenced(cluster) > before
        markers = stream.info(subjects_filter=f"{stream.name}.mark.>").state.subjects
        assert list(markers.values()) == [1, 1]


# Files


def read_with_file(spark, options, path):
    spark.sparkContext.addFile(path)
    frame = spark.read.format("jetstream").options(**options, minPartitions="4").load()
    return sorted(row.sequence for row in frame.select("sequence").collect())


def test_credentials_are_distributed_with_the_job(cluster, tmp_path):
    """Each executor has a separate directory for the files of a job."""
    path = tmp_path / "shipped.creds"
    path.write_text(jwts.creds(jwts.user_jwt(jwts.USER), jwts.USER))
    with Server(jetstream=True, config=jwts.server_config(jetstream=True)) as server:
        with connect(server.url, creds=str(path)) as client:
            make(JetStream(client), "S", 100)
        options = {"servers": server.url, "stream": "S", "credsFile": path.name}
        found = cluster.call(read_with_file, options=options, path=str(path))
        assert found == list(range(1, 101))
