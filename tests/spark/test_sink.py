"""Writing DataFrames and queries to streams: Spark, a real server, and what may go wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from jetstream.blocking import JetStream
from jetstream.spark.compat import ARROW_QUERIES
from natsproto.adapters.blocking import connect
from natsproto.testing import Server
from tests.core import ROOT

# Where rows pass through Python before they are written: it is no matter of ours.
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
SMALL = "spark.sql.execution.arrow.maxRecordsPerBatch"
# Rows of a query, and the batch in which Spark is killed. On 4.0 the sink is given rows, and sends
# them by 10,000.
COUNT, DEADLY = (6000, 5) if ARROW_QUERIES else (26_000, 45)


@pytest.fixture(scope="module", autouse=True)
def small_batches(spark):
    """So that a task has written something when it fails."""
    spark.conf.set(SMALL, "500")
    yield
    spark.conf.unset(SMALL)


@pytest.fixture
def stream(js, name):
    return js.create_stream(
        name=name, subjects=[f"{name}.>"], allow_direct=True, allow_atomic=True, allow_msg_ttl=True
    )


@pytest.fixture(params=["dedup", "atomic"])
def exact(request, server, stream):
    """The options of each delivery that stores every row once."""
    options = {"servers": server.url, "subject": f"{stream.name}.a", "delivery": request.param}
    if request.param == "atomic":
        options.update(stream=stream.name, markerSubject=f"{stream.name}.mark")
    return options


@pytest.fixture
def plain(server, stream):
    return {"servers": server.url, "subject": f"{stream.name}.a"}


def numbers(spark, count, partitions=2):
    # Wide enough to leave the buffers of the processes that rows pass through.
    data = F.lpad(F.col("id").cast("string"), 300, "0")
    return spark.range(0, count, 1, partitions).select(data.alias("data"))


def write(frame, options, **more):
    frame.write.format("jetstream").mode("append").options(**options, **more).save()


def stored(stream):
    """Every message but markers, in order."""
    found = []
    last = stream.info().state.last_seq
    while not found or found[-1].seq < last:
        found += stream.get_msgs(batch=1000, seq=found[-1].seq + 1 if found else 1)
    return [msg for msg in found if ".mark." not in msg.subject]


def payloads(stream):
    return sorted(int(msg.data) for msg in stored(stream))


def sabotage(frame, what, after=2):
    """The rows of the frame; in the first attempt at each task `what` happens amid them."""

    def rows(batches):
        first = TaskContext.get().attemptNumber() == 0
        for number, batch in enumerate(batches):
            if first and number == after:
                what()
            yield batch

    return frame.mapInArrow(rows, frame.schema)


def wait_for_rows(url, name, count):
    """In a task: until so many messages are stored."""
    with connect(url) as client:
        stream = JetStream(client).stream(name)
        while stream.info().state.messages < count:
            pass


def run_query(spark, source, options, checkpoint, **more):
    """A query over the files in the directory, until it has written all that there is."""
    files = spark.readStream.schema("data STRING").option("maxFilesPerTrigger", "1")
    query = (
        files.text(str(source))
        .writeStream.format("jetstream")
        .options(**options, **more)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query


def make_files(directory, count, rows=1000):
    directory.mkdir()
    for number in range(count):
        lines = [str(row) for row in range(number * rows, (number + 1) * rows)]
        (directory / f"{number}.txt").write_text("\n".join(lines) + "\n")
    return directory


# What is written


def test_every_row_once(spark, stream, exact):
    write(numbers(spark, 5000, 3), exact)
    assert payloads(stream) == list(range(5000))


def test_many_partitions_some_of_them_empty(spark, stream, exact):
    write(numbers(spark, 10, 12), exact)
    assert payloads(stream) == list(range(10))


def test_an_empty_frame(spark, stream, plain):
    write(numbers(spark, 0), plain)
    assert stream.info().state.messages == 0


def test_each_write_is_another_one(spark, stream, plain):
    for _ in range(2):
        write(numbers(spark, 10), plain)
    assert payloads(stream) == sorted([*range(10)] * 2)


def test_a_write_that_is_repeated_by_its_id(spark, stream, exact):
    for _ in range(2):
        write(numbers(spark, 2500), exact, writeId="monday")
    assert payloads(stream) == list(range(2500))


def test_old_markers_are_swept(spark, server, stream):
    options = {"servers": server.url, "subject": f"{stream.name}.a", "stream": stream.name}
    write(numbers(spark, 5000), options, delivery="atomic", markerSubject=f"{stream.name}.mark")
    assert stream.info().state.messages == 5002


@pytest.mark.parametrize(("kind", "data"), [("array<string>", "binary"), ("string", "string")])
def test_all_columns(spark, server, stream, kind, data):
    value = "array('1', '2')" if kind == "array<string>" else "'1'"
    frame = spark.sql(
        f"SELECT CAST('x' AS {data}) AS data, '{stream.name}.b' AS subject, 'mine' AS msg_id,"
        f" 3600 AS ttl, map('A', {value}) AS headers,"
        " CAST(0 AS BIGINT) AS expected_last_subject_sequence"
    )
    for _ in range(2):  # an id that is known counts more than an expectation that does not hold
        write(frame, {"servers": server.url})
    (msg,) = stored(stream)
    assert (msg.subject, msg.data) == (f"{stream.name}.b", b"x")
    assert msg.headers.get_all("A") == (["1", "2"] if kind == "array<string>" else ["1"])
    assert msg.headers["Nats-Msg-Id"] == "mine"
    assert msg.headers["Nats-TTL"] == "3600"


def test_at_least_once_has_no_ids(spark, stream, plain):
    write(numbers(spark, 3, 1), plain, delivery="atLeastOnce")
    assert [msg.headers for msg in stored(stream)] == [None] * 3


REFUSED = [
    ({}, {"mode": "overwrite"}, "a stream is appended to, never overwritten"),
    ({}, {"frame": "SELECT 'x' AS data, 1 AS extra"}, "column 'extra' is none that can be written"),
    ({"maxInFligt": "1"}, {}, "did you mean maxInFlight?"),
    ({"subject": "nobody.there"}, {}, "no stream takes subject 'nobody.there'"),
]


@pytest.mark.parametrize(("options", "how", "why"), REFUSED)
def test_refused_on_the_driver(spark, stream, plain, options, how, why):
    frame = spark.sql(how.get("frame", "SELECT 'x' AS data"))
    writer = frame.write.format("jetstream").mode(how.get("mode", "append"))
    with pytest.raises(PySparkException) as caught:
        writer.options(**{**plain, **options}).save()
    assert why in str(caught.value)
    assert stream.info().state.messages == 0


# What goes wrong


def test_a_stream_that_is_full(spark, js, name, server):
    js.create_stream(name=name, subjects=[f"{name}.>"], max_msgs=100, discard="new")
    options = {"servers": server.url, "subject": f"{name}.a"}
    with pytest.raises(PySparkException) as caught:
        write(numbers(spark, 500, 1), options)
    assert "row 100 to" in str(caught.value)
    assert "maximum messages exceeded (503, 10077)" in str(caught.value)


def test_secrets_stay_secret(spark, plain, stream):
    secrets = {"user": "joe-the-user", "password": "s3cret-word"}
    with Server(jetstream=True, config='authorization { user: "a", password: "b" }') as server:
        with pytest.raises(PySparkException) as caught:
            write(numbers(spark, 5), {**plain, **secrets, "servers": server.url})
        url = server.url.replace("nats://", "nats://joe-the-user:s3cret-word@")
        with pytest.raises(PySparkException) as other:
            write(numbers(spark, 5), {**plain, "servers": url})
    for error in (caught, other):
        assert "uthorization" in str(error.value)
        assert "s3cret-word" not in str(error.value)


def fail():
    raise RuntimeError("something else went wrong")


def test_tasks_that_fail_once(spark, stream, exact):
    write(sabotage(numbers(spark, 6000), fail), exact)
    assert payloads(stream) == list(range(6000))


def test_tasks_that_fail_once_without_ids(spark, stream, plain, server):
    url, name = server.url, stream.name

    def fail_when_something_is_stored():
        wait_for_rows(url, name, 1)
        fail()

    frame = sabotage(numbers(spark, 3000, 1), fail_when_something_is_stored)
    write(frame, plain, delivery="atLeastOnce")
    assert sorted(set(payloads(stream))) == list(range(3000))
    assert len(payloads(stream)) > 3000


def test_a_worker_that_is_killed(spark, stream, exact, server):
    url, name = server.url, stream.name

    def kill_the_others():
        wait_for_rows(url, name, 1)
        for path in Path("/proc").glob("[0-9]*"):
            pid = int(path.name)
            if pid != os.getpid() and parent_of(path) == os.getppid():
                os.kill(pid, signal.SIGKILL)

    def parent_of(path):
        try:
            return int(path.joinpath("stat").read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            return 0  # it has ended

    if not Path("/proc/self/stat").exists():
        pytest.skip("processes are found in /proc, which only Linux has")
    write(sabotage(numbers(spark, 6000, 1), kill_the_others, 4), exact)
    assert payloads(stream) == list(range(6000))


@pytest.mark.parametrize("delivery", ["dedup", "atomic"])
def test_a_server_that_restarts(spark, name, tmp_path, delivery):
    with Server(jetstream=True) as server, connect(server.url) as client:
        js = JetStream(client)
        js.create_stream(name=name, subjects=[f"{name}.>"], allow_direct=True, allow_atomic=True)
        url, reached, go_on = server.url, str(tmp_path / "reached"), str(tmp_path / "go_on")
        os.mkfifo(reached)
        os.mkfifo(go_on)

        def wait():
            wait_for_rows(url, name, 1)
            Path(reached).write_text("now")
            Path(go_on).read_text()

        def restart():
            Path(reached).read_text()
            server.kill()
            server.restart()
            Path(go_on).write_text("now")

        thread = threading.Thread(target=restart)
        thread.start()
        options = {"servers": url, "subject": f"{name}.a", "delivery": delivery}
        if delivery == "atomic":
            options.update(stream=name, markerSubject=f"{name}.mark")
        write(sabotage(numbers(spark, 6000, 1), wait, 4), options)
        thread.join()
        with connect(url) as client:
            assert payloads(JetStream(client).stream(name)) == list(range(6000))


# Queries


def test_a_query(spark, stream, exact, tmp_path):
    source = make_files(tmp_path / "in", 3)
    run_query(spark, source, exact, tmp_path / "checkpoint")
    assert payloads(stream) == list(range(3000))


def test_a_micro_batch_that_is_repeated(spark, stream, exact, tmp_path):
    source = make_files(tmp_path / "in", 2)
    run_query(spark, source, exact, tmp_path / "checkpoint")
    # As if the driver had died between the sink's commit and its own.
    (tmp_path / "checkpoint" / "commits" / "1").unlink()
    (tmp_path / "checkpoint" / "commits" / ".1.crc").unlink()
    run_query(spark, source, exact, tmp_path / "checkpoint")
    assert payloads(stream) == list(range(2000))


def test_another_query_is_another_write(spark, stream, plain, tmp_path):
    source = make_files(tmp_path / "in", 1, 10)
    for checkpoint in ("one", "two"):
        run_query(spark, source, plain, tmp_path / checkpoint)
    assert payloads(stream) == sorted([*range(10)] * 2)


def copy_stream(spark, options, target, checkpoint, deadly=False):
    """From stream to stream; if it is deadly, Spark is killed in the middle of a micro-batch."""

    def rows(batches):
        for number, batch in enumerate(batches):
            if deadly and number == DEADLY:
                wait_for_rows(options["servers"], target, 1)
                daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
                os.kill(int(daemon.rpartition(")")[2].split()[1]), signal.SIGKILL)
            yield batch

    spark.conf.set(SMALL, "500")
    reader = spark.readStream.format("jetstream").option("servers", options["servers"])
    reader = reader.options(stream=f"{target}_IN", startingOffsets="earliest", minPartitions="1")
    frame = reader.load().select("data").mapInArrow(rows, "data BINARY")
    writer = frame.writeStream.format("jetstream").options(**options)
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    writer.start().awaitTermination()


DRIVER = """
import json, sys
from pathlib import Path
from tests.spark.conftest import start_session
from tests.spark.test_sink import copy_stream

work, options, target, checkpoint = sys.argv[1:]
copy_stream(start_session(Path(work)), json.loads(options), target, checkpoint, deadly=True)
"""


@pytest.mark.skipif(not Path("/proc").exists(), reason="processes are found in /proc: Linux")
def test_spark_is_killed_and_another_one_goes_on(spark, js, server, stream, tmp_path):
    name = stream.name
    js.create_stream(name=f"{name}_IN", subjects=[f"{name}_IN"], allow_direct=True)
    with js.publisher() as publisher:
        for number in range(COUNT):
            publisher.publish(f"{name}_IN", b"%0300d" % number)
    options = {"servers": server.url, "subject": f"{name}.a"}
    work = tmp_path / "work"
    work.mkdir()
    command = [sys.executable, "-c", DRIVER, str(work), json.dumps(options), name]
    doomed = subprocess.run(
        [*command, str(tmp_path / "checkpoint")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert doomed.returncode != 0
    before = stream.info().state.messages
    assert 0 < before < COUNT, doomed.stderr
    copy_stream(spark, options, name, tmp_path / "checkpoint")
    assert payloads(stream) == list(range(COUNT))


def test_rows_instead_of_arrow(spark, stream, plain, tmp_path):
    """What Spark 4.0 calls, which has no Arrow for queries."""
    from jetstream.spark import JetStreamDataSource
    from jetstream.spark.options import WRITE, read_options
    from jetstream.spark.sink import StreamWriter

    class ByRows(JetStreamDataSource):
        @classmethod
        def name(cls):
            return "jetstream_by_rows"

        def streamWriter(self, schema, overwrite):
            return StreamWriter(read_options(self.options, WRITE), schema, overwrite)

    spark.dataSource.register(ByRows)
    source = make_files(tmp_path / "in", 2)
    frame = spark.readStream.text(str(source)).selectExpr(
        "CAST(value AS BINARY) AS data", "map('A', array(value)) AS headers"
    )
    writer = frame.writeStream.format("jetstream_by_rows").options(**plain)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert payloads(stream) == list(range(2000))
    assert all(msg.headers["A"].encode() == msg.data for msg in stored(stream))
