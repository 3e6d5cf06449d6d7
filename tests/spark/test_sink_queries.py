"""Writing queries to streams: repeated micro-batches, and a Spark that is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jetstream.spark.compat import ARROW_QUERIES
from tests.core import ROOT
from tests.spark.sinks import SMALL, make_files, payloads, run_query, stored, wait_for_rows

# PySpark warns about pandas where rows pass through Python; that does not matter here.
pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.usefixtures("small_batches"),
]
# Rows of a query, and the batch in which Spark is killed. On 4.0 the sink is given rows, and sends
# them by 10,000.
COUNT, DEADLY = (6000, 5) if ARROW_QUERIES else (26_000, 45)


def test_a_query(spark, stream, exact, tmp_path):
    source = make_files(tmp_path / "in", 3)
    run_query(spark, source, exact, tmp_path / "checkpoint")
    assert payloads(stream) == list(range(3000))


def test_a_query_with_a_name(spark, stream, exact, tmp_path):
    """Spark adds the name to the options of the sink."""
    source = make_files(tmp_path / "in", 1, 10)
    query = run_query(spark, source, exact, tmp_path / "checkpoint", queryName="orders")
    assert query.name == "orders"
    assert payloads(stream) == list(range(10))


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
    """Copy a stream to another; if `deadly`, kill Spark in the middle of a micro-batch."""

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
from tests.spark.test_sink_queries import copy_stream

work, options, target, checkpoint = sys.argv[1:]
copy_stream(start_session(Path(work)), json.loads(options), target, checkpoint, deadly=True)
"""


@pytest.mark.skipif(not Path("/proc").exists(), reason="processes are found in /proc: Linux")
def test_spark_is_killed_and_a_new_session_continues(spark, js, server, stream, tmp_path):
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
    """Spark 4.0 calls this writer: it has no Arrow for queries."""
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
