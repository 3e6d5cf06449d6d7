"""A Spark cluster: executors that are killed, copies of slow tasks, files that come with a job.

A master, two workers with an executor of one core each, and a driver, all of them processes of
their own. The functions without "test" in their names run in that driver (remote.py), those inside
of them in its tasks.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark import TaskContext
from pyspark.sql import functions as F

from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect
from natsproto.testing import Server, jwts
from natsproto.testing.server import free_port
from tests.core import ROOT
from tests.spark.conftest import OLDEST_JAVA, java_version, lean_home
from tests.spark.failing import FailingDataSource, fail_once
from tests.spark.gates import Gate, pass_gate, stored_on, wait_for_subject
from tests.spark.remote import ANSWER
from tests.spark.support import make
from tests.spark.test_cluster import threads, until
from tests.spark.test_sink import SMALL, numbers, payloads, wait_for_rows, write

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="processes are found in /proc: Linux"
)
# Spark starts a copy of a task only on another host than the first, so they have two names.
HOSTS = ["127.0.0.1", "127.0.0.2"]
SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.efficiency.enabled": "false",
    SMALL: "500",
}


class SparkCluster:
    """Starts when it is made; `call` has a function of this module run by the driver."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._processes: list[subprocess.Popen[str]] = []
        self._home = lean_home(directory / "home")
        port = free_port()
        master = f"spark://{HOSTS[0]}:{port}"
        try:
            self._start_daemon("master.Master", "--host", HOSTS[0], "--port", str(port))
            until(lambda: is_open(HOSTS[0], port))  # who asks too early asks again much later
            for host in HOSTS:
                limits = ["--cores", "1", "--memory", "1g", "--work-dir", str(directory / host)]
                self._start_daemon("worker.Worker", "--host", host, *limits, master)
            settings = {**SETTINGS, "spark.master": master}
            order = {"directory": str(directory / "driver"), "settings": settings}
            command = [sys.executable, "-m", "tests.spark.remote", json.dumps(order)]
            self._driver = self._start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except BaseException:
            self.stop()
            raise

    def _start_daemon(self, name: str, *arguments: str) -> None:
        command = [str(self._home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
        self._start([*command, "--webui-port", "0", *arguments], stdout=subprocess.DEVNULL)

    def _start(self, command: list[str], **pipes: int) -> subprocess.Popen[str]:
        environment = {
            "SPARK_HOME": str(self._home),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
        }
        with (self.directory / "log").open("a") as log:
            process = subprocess.Popen(
                command, stderr=log, cwd=ROOT, env={**os.environ, **environment}, text=True, **pipes
            )
        self._processes.append(process)
        return process

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
        for process in reversed(self._processes):
            process.terminate()
            process.communicate()


def is_open(host, port):
    with socket.socket() as sock:
        return sock.connect_ex((host, port)) == 0


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


@pytest.fixture(params=["dedup", "atomic"])
def exact(request, server, stream):
    """The options of each delivery that stores every row once."""
    return options_of(request.param, server, stream)


def options_of(delivery, server, stream):
    options = {"servers": server.url, "delivery": delivery}
    if delivery == "atomic":
        options.update(stream=stream.name, markerSubject=f"{stream.name}.mark")
    return options


# Executors that are killed


def read(spark, options):
    spark.dataSource.register(FailingDataSource)
    frame = spark.read.format("failing_jetstream").options(**options).load()
    return [row.sequence for row in frame.select("sequence").collect()]


def test_an_executor_is_killed_in_a_read(cluster, server, js, name, tmp_path):
    make(js, name, 3000)
    (tmp_path / "flag-1501").touch()  # the second task has no accident
    options = {"servers": server.url, "stream": name, "minPartitions": "2"}
    options.update(arrowBatchRows="100", flag=str(tmp_path / "flag"), how="executor")
    assert cluster.call(read, options=options) == list(range(1, 3001))
    assert (tmp_path / "flag-1").exists()


def deadly(frame, url, name, flag):
    """The rows of the frame; once, when some are stored, the executor of the first is killed."""

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


def test_an_executor_is_killed_in_a_write(cluster, stream, exact, tmp_path):
    flag = tmp_path / "flag"
    cluster.call(write_once, options=exact, name=stream.name, flag=str(flag))
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


def test_an_executor_is_killed_in_a_micro_batch(cluster, server, js, stream, tmp_path):
    make(js, stream.name + "IN", 6000)
    options = options_of("atomic", server, stream)
    cluster.call(copy, options=options, name=stream.name, directory=str(tmp_path))
    assert payloads(stream) == list(range(6000))
    assert (tmp_path / "flag").exists()


# Copies of slow tasks


def speculate(spark, options, name):
    """The first task stops, until the copy that Spark then makes of it has written more than it.

    Then both go on. The copy stops in its turn, until the first one has written all (dedup), or has
    been refused (atomic).
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
        ended = writing.done()
        gate.open()
        writing.result()
    return ended


def failed_tasks(spark):
    tracker = spark.sparkContext.statusTracker()
    infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return sum(info.numFailedTasks for info in infos if info is not None)


def count_fenced(cluster):
    """How often the executors have told so."""
    return sum(path.read_text().count("WriterFenced") for path in cluster.directory.rglob("stderr"))


def test_two_copies_of_a_task_write_at_the_same_time(cluster, stream, exact):
    before = count_fenced(cluster)
    ended = cluster.call(speculate, options=exact, name=stream.name)
    assert payloads(stream) == list(range(12_000))
    if exact["delivery"] == "atomic":
        assert not ended
        assert count_fenced(cluster) > before
        markers = stream.info(subjects_filter=f"{stream.name}.mark.>").state.subjects
        assert list(markers.values()) == [1, 1]


# Files


def read_with_file(spark, options, path):
    spark.sparkContext.addFile(path)
    frame = spark.read.format("jetstream").options(**options, minPartitions="4").load()
    return sorted(row.sequence for row in frame.select("sequence").collect())


def test_credentials_that_come_with_the_job(cluster, tmp_path):
    """Each executor has a directory of its own for the files of a job."""
    path = tmp_path / "shipped.creds"
    path.write_text(jwts.creds(jwts.user_jwt(jwts.USER), jwts.USER))
    with Server(jetstream=True, config=jwts.server_config(jetstream=True)) as server:
        with connect(server.url, creds=str(path)) as client:
            make(JetStream(client), "S", 100)
        options = {"servers": server.url, "stream": "S", "credsFile": path.name}
        found = cluster.call(read_with_file, options=options, path=str(path))
        assert found == list(range(1, 101))
