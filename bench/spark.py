"""The source and the sink in a local Spark, against plain Python and against nats-py.

    python bench/spark.py [--quick] [--rounds N] [--markdown]

Messages have 128 B, and the stream, the server and Spark are on this machine. Each figure is a
slope: the difference per row between a large run and a small one, which excludes starting processes
and planning. CPU is that of Spark's workers, or of this process, and of the server, including
system time. Every scenario runs once per round; figures are medians, and ratios are per round.

"Rows from memory" and "rows are dropped" are a Python source and sink with nothing behind them: the
most that Spark allows. With such a source, the latency of a query is Spark's own (_spark_latency).
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from _spark_latency import latencies, show_latencies
from _tables import load, print_table, progress, versions

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
SIZE = 128
ROWS = 10_000  # of an Arrow batch
TICKS = os.sysconf("SC_CLK_TCK")
IDLE = 5.0  # seconds


class Cost(NamedTuple):
    """The cost of a run: seconds, and CPU seconds in Python and in the server."""

    wall: float
    python: float
    server: float


class Bench:
    """One session, one server, and a stream to read from."""

    def __init__(self, count: int) -> None:
        from pyspark.sql import SparkSession

        from jetstream.blocking import JetStream
        from natsproto.adapters.blocking import connect
        from natsproto.testing import Server

        self.count = count
        self.small = count // 5
        self.server = Server(jetstream=True)
        self.client = connect(self.server.url)
        self.js = JetStream(self.client)
        self.js.create_stream(name="IN", subjects=["in"], allow_direct=True)
        self.out = self.js.create_stream(
            name="OUT", subjects=["out", "m.>"], allow_atomic=True, allow_batched=True
        )
        with self.js.publisher(max_pending=4096) as publisher, self.client.corked():
            for _ in range(count):
                publisher.publish("in", bytes(SIZE))
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), str(HERE.parent)])
        builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.log.level", "ERROR")
        self.spark = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
        from _spark import Nothing

        self.spark.dataSource.register(Nothing)

    def close(self) -> None:
        self.spark.stop()
        self.client.close()
        self.server.stop()

    # Scenarios: each does it for so many rows

    def plain_arrow(self, count: int) -> None:
        """Read with the source's own reader, without Spark."""
        from _spark import SCHEMA
        from pyspark.sql.types import StructType

        from jetstream.spark.options import BATCH, read_options
        from jetstream.spark.source import BatchReader

        settings = read_options(self.reading(count), BATCH)
        reader = BatchReader(settings, StructType.fromDDL(SCHEMA))
        rows = 0
        for partition in reader.partitions():
            rows += sum(batch.num_rows for batch in reader.read(partition))
        assert rows == count

    def plain_api(self, count: int) -> None:
        from _spark import plain_read

        assert plain_read(self.server.url, "IN", count) == count

    def reading(self, count: int) -> dict[str, str]:
        options = {"servers": self.server.url, "stream": "IN", "minPartitions": "1"}
        return {**options, "maxRecordsPerPartition": "100000000", "endingOffsets": str(count + 1)}

    def spark_arrow(self, count: int) -> None:
        from _spark import SCHEMA

        frame = self.spark.read.format("jetstream").schema(SCHEMA).options(**self.reading(count))
        frame.load().write.format("noop").mode("overwrite").save()

    def spark_tuples(self, count: int) -> None:
        from _spark import Tuples

        self.spark.dataSource.register(Tuples)
        reader = self.spark.read.format("jetstream_tuples").option("servers", self.server.url)
        reader.option("count", count).load().write.format("noop").mode("overwrite").save()

    def spark_nats_py(self, count: int) -> None:
        from _spark import SCHEMA, nats_py

        frame = self.spark.range(0, 1, 1, 1).mapInArrow(nats_py(self.server.url, count), SCHEMA)
        frame.write.format("noop").mode("overwrite").save()

    def publish(self, count: int) -> None:
        with self.js.publisher(max_pending=4096) as publisher, self.client.corked():
            for _ in range(count):
                publisher.publish("out", bytes(SIZE))

    def publish_ids(self, count: int) -> None:
        run = os.urandom(4).hex()
        with self.js.publisher(max_pending=4096) as publisher, self.client.corked():
            for number in range(count):
                publisher.publish("out", bytes(SIZE), msg_id="%s.%d" % (run, number))

    def plain_sink(self, count: int, ids: str = "") -> None:
        """Write Arrow batches as a task of the sink does, without Spark."""
        import pyarrow as pa

        from jetstream.spark.connect import client, jetstream
        from jetstream.spark.encoder import Encoder
        from jetstream.spark.garbage import no_collection
        from jetstream.spark.options import WRITE, read_options
        from jetstream.spark.sending import Sender

        given = {"servers": self.server.url, "subject": "out", "stream": "OUT"}
        settings = read_options(given, WRITE)
        batch = pa.RecordBatch.from_pydict({"data": [bytes(SIZE)] * ROWS})
        encoder = Encoder(settings, ids)
        window = settings.number("maxInFlight")
        with (
            no_collection(),
            Sender(client(settings), jetstream(settings), window, 10.0) as sender,
        ):
            for start in range(0, count, ROWS):
                sender.send(encoder.encode(batch.slice(0, count - start)))
            sender.finish()
        assert sender.tally.rows == count
        self.out.purge()

    def plain_sink_dedup(self, count: int) -> None:
        self.plain_sink(count, os.urandom(4).hex())

    def sink(self, count: int, **options: str) -> None:
        from pyspark.sql import functions as F

        frame = self.spark.range(0, count, 1, 1).select(F.lit(bytes(SIZE)).alias("data"))
        writer = frame.write.format("jetstream").mode("append").options(**options)
        writer.options(servers=self.server.url, subject="out", stream="OUT").save()
        self.out.purge()

    def sink_dedup(self, count: int) -> None:
        self.sink(count)

    def sink_at_least_once(self, count: int) -> None:
        self.sink(count, delivery="atLeastOnce")

    def sink_atomic(self, count: int) -> None:
        self.sink(count, delivery="atomic", markerSubject="m")

    def sink_fast(self, count: int) -> None:
        self.sink(count, delivery="fast")

    def no_source(self, count: int) -> None:
        reader = self.spark.read.format("nothing").option("count", count)
        reader.load().write.format("noop").mode("overwrite").save()

    def no_sink(self, count: int) -> None:
        from pyspark.sql import functions as F

        frame = self.spark.range(0, count, 1, 1).select(F.lit(bytes(SIZE)).alias("data"))
        frame.write.format("nothing").mode("append").save()

    # Measuring

    def cost(self, scenario: Callable[[int], None], share: float = 1.0) -> Cost:
        """Return the cost per row, in microseconds."""
        large, small = int(self.count * share), int(self.small * share)
        more, less = [self._run(scenario, count) for count in (large, small)]
        return Cost(*[(a - b) / (large - small) * 1e6 for a, b in zip(more, less)])

    def _run(self, scenario: Callable[[int], None], count: int) -> Cost:
        python, server, start = python_times(), cpu_time(self.server.pid), time.perf_counter()
        scenario(count)
        wall = time.perf_counter() - start
        # Spark may have ended a daemon in the meantime: it is left out.
        more = sum(now - python.get(pid, 0.0) for pid, now in python_times().items())
        return Cost(wall, more, cpu_time(self.server.pid) - server)

    def idle_messages(self) -> float:
        """Return the messages per second that an idle query with the default trigger sends."""
        reader = self.spark.readStream.format("jetstream").options(servers=self.server.url)
        frame = reader.options(stream="IN", startingOffsets="latest").load()
        with tempfile.TemporaryDirectory() as directory:
            writer = frame.writeStream.format("noop").option("checkpointLocation", directory)
            query = writer.start()
            while query.lastProgress is None:
                time.sleep(0.1)
            before, start = self.server.monitor("/varz")["in_msgs"], time.perf_counter()
            time.sleep(IDLE)
            sent = self.server.monitor("/varz")["in_msgs"] - before
            seconds = time.perf_counter() - start
            query.stop()
        return sent / seconds


def python_times() -> dict[int, float]:
    """Return the CPU times of this process and of each Spark daemon with all its workers."""
    # Processes that only plan have names of their own. Workers are forks of their daemon, and named
    # like it; other sessions of Spark on this machine have other parents.
    parents: dict[int, int] = {}
    workers: set[int] = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            fields = (path / "stat").read_text()
            command = (path / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended
        parents[int(path.name)] = int(fields.rpartition(")")[2].split()[1])
        if b"pyspark.worker" in command:
            workers.add(int(path.name))
    ours = {os.getpid()}
    for _ in range(4):  # the JVM, perhaps through a shell; the daemon; the workers
        ours |= {pid for pid, parent in parents.items() if parent in ours}
    times = {os.getpid(): cpu_time(os.getpid())}
    for pid in ours & workers:
        daemon = parents[pid] if parents[pid] in workers else pid
        times[daemon] = times.get(daemon, 0.0) + cpu_time(pid, children=True)
    return times


def cpu_time(pid: int, children: bool = False) -> float:
    """Return the CPU seconds of a process and, on request, of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(field) for field in fields[11 : 15 if children else 13]) / TICKS


# Name, method of Bench, share of the rows
SCENARIOS = [
    ("read: the API, no Spark", "plain_api", 1.0),
    ("read: Arrow, no Spark", "plain_arrow", 1.0),
    ("read: Spark, Arrow", "spark_arrow", 1.0),
    ("read: Spark, rows from memory", "no_source", 5.0),
    ("read: Spark, tuples", "spark_tuples", 0.5),
    ("read: Spark, nats-py in mapInArrow", "spark_nats_py", 0.1),
    ("write: the API, no ids", "publish", 0.5),
    ("write: the API, ids", "publish_ids", 0.5),
    ("write: Arrow, no Spark, atLeastOnce", "plain_sink", 0.5),
    ("write: Arrow, no Spark, dedup", "plain_sink_dedup", 0.5),
    ("write: Spark, atLeastOnce", "sink_at_least_once", 0.5),
    ("write: Spark, dedup", "sink_dedup", 0.5),
    ("write: Spark, atomic", "sink_atomic", 0.5),
    ("write: Spark, fast", "sink_fast", 0.5),
    ("write: Spark, rows are dropped", "no_sink", 5.0),
]
# What is compared, of what, with what, the target
RATIOS: list[tuple[str, str, str, str, str]] = [
    ("Spark, Arrow / no Spark, Arrow", "python", "spark_arrow", "plain_arrow", "<= 1.15"),
    ("Spark, Arrow / tuples", "python", "spark_arrow", "spark_tuples", "<= 0.5"),
    ("nats-py / Spark, Arrow", "python", "spark_nats_py", "spark_arrow", ">= 15"),
    ("Spark, dedup / API, no ids", "python", "sink_dedup", "publish", "<= 1.5"),
    ("Spark, dedup / API, ids", "python", "sink_dedup", "publish_ids", ""),
    ("rate of atomic / dedup", "wall", "sink_dedup", "sink_atomic", ">= 0.5"),
    ("rate of fast / atLeastOnce", "wall", "sink_at_least_once", "sink_fast", ""),
    ("rate of reads / from memory", "wall", "no_source", "spark_arrow", ""),
    ("rate of dedup / rows are dropped", "wall", "no_sink", "sink_dedup", ""),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--count", type=int)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    try:
        import pyspark
    except ImportError:
        print("no PySpark: the benchmark of Spark is left out")
        return
    if shutil.which("java") is None or not Path("/proc/self/stat").exists():
        print("no Java or no /proc: the benchmark of Spark is left out")
        return
    rounds = options.rounds or (1 if options.quick else 3)
    bench = Bench(options.count or (100_000 if options.quick else 500_000))
    print(f"{versions()}, PySpark {pyspark.__version__}, {load()}\n", flush=True)
    try:
        results = run(bench, rounds)
        idle = bench.idle_messages()
        delays = latencies(bench.spark, bench.server.url, bench.js, 10 if options.quick else 40)
    finally:
        bench.close()
    show(results, idle, markdown=options.markdown)
    show_latencies(delays, markdown=options.markdown)
    print(load() + " at the end")


def run(bench: Bench, rounds: int) -> list[dict[str, Cost]]:
    for _, method, share in SCENARIOS:  # workers start, files are in the cache
        progress(f"warming up: {method}")
        getattr(bench, method)(int(bench.small * share * 0.5))
    results: list[dict[str, Cost]] = []
    for turn in range(rounds):
        found: dict[str, Cost] = {}
        for name, method, share in SCENARIOS:
            progress(f"round {turn + 1} of {rounds}: {name}")
            found[method] = bench.cost(getattr(bench, method), share)
        results.append(found)
    progress("")
    return results


def show(results: list[dict[str, Cost]], idle: float, *, markdown: bool) -> None:
    table = [["us per row", "Python CPU", "server CPU", "wall", "rows/s"]]
    for name, method, _ in SCENARIOS:
        wall, python, server = [
            statistics.median(getattr(each[method], field) for each in results)
            for field in ("wall", "python", "server")
        ]
        cells = [f"{number:.2f}" for number in (python, server, wall)]
        table.append([name, *cells, f"{1000 / wall:,.0f}k" if wall > 0 else "-"])
    print_table(table, markdown=markdown)
    table = [["ratio", "here", "target"]]
    for name, field, one, other, target in RATIOS:
        values: list[Any] = [
            getattr(each[one], field) / getattr(each[other], field) for each in results
        ]
        table.append([name, f"{statistics.median(values):.2f}", target])
    table.append(["idle query, messages to the server per second", f"{idle:.1f}", "<= 2"])
    print_table(table, markdown=markdown)


if __name__ == "__main__":
    main()
