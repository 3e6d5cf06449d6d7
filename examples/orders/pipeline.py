"""The Spark part: revenue by region and minute, to a stream and to Parquet, and read back."""

from __future__ import annotations

import os
import sys
import warnings
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from examples.orders.generator import Windows
from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

LOG = "spark.log"
SOURCE, SINK = "ORDERS", "REVENUE"
WATERMARK = 60  # seconds that an order may be late
BATCH = 60_000  # the most orders of a micro-batch: more are faster, fewer show more of the way
MOST_RESTARTS = 3  # of failed queries
# A short run does not pay for Java's best compiler: starting Spark takes twice the CPU with it.
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
LONG = "-XX:+UseSerialGC"
SCHEMA = "number BIGINT, region STRING, item STRING, cents BIGINT, ordered_at TIMESTAMP"


def lean_home(home: Path) -> Path:
    """Link Spark's directory without the zip of its Python code: processes use the installed one.

    Each Python process that Spark starts compiles code from a zip again, for about a second.
    """
    home.mkdir()
    for path in Path(pyspark.__file__).parent.iterdir():
        if path.name != "python":
            (home / path.name).symlink_to(path)
    return home


def start_session(directory: Path, *, quick: bool) -> SparkSession:
    """Start a local Spark with two cores; its Java process writes its messages to `spark.log`."""
    os.environ["PYSPARK_PYTHON"] = sys.executable  # the workers need the same packages
    if sys.platform != "win32":
        os.environ["SPARK_HOME"] = str(lean_home(directory / "spark-home"))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
    builder = (
        SparkSession.builder.master("local[2, 4]")  # a task may fail three times
        .appName("orders")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.streaming.numRecentProgressUpdates", "10000")
        .config("spark.driver.extraJavaOptions", QUICK if quick else LONG)
    )
    errors = os.dup(2)
    with (directory / LOG).open("w") as file:
        os.dup2(file.fileno(), 2)  # which the process inherits
    try:
        return builder.getOrCreate()
    finally:
        os.dup2(errors, 2)
        os.close(errors)


class MicroBatch(NamedTuple):
    """A finished micro-batch: when it began, its seconds, and its rows."""

    began: datetime
    seconds: float
    rows: int


class Pipeline:
    """Two queries over one stream of orders; each keeps its position in a checkpoint."""

    def __init__(
        self,
        spark: SparkSession,
        url: str,
        directory: Path,
        source: str = SOURCE,
        sink: str = SINK,
    ) -> None:
        self._spark = spark
        self._url = url
        self._source = source
        self._sink = sink
        self._parquet = str(directory / f"{sink}.parquet")
        self._checkpoints = directory / f"checkpoints-{sink}"
        self._writers: dict[str, DataStreamWriter] = {}
        self._queries: dict[str, StreamingQuery] = {}
        self._batches: dict[str, dict[int, MicroBatch]] = {}
        self._restarts = 0

    def start(self, *, follow: bool = False) -> None:
        """Start both queries; they end when they have read the stream, unless they follow it."""
        with connect(self._url) as client:
            JetStream(client).create_stream(name=self._sink, subjects=[f"{self._sink.lower()}.>"])
        trigger: dict[str, Any] = (
            {"processingTime": "0 seconds"} if follow else {"availableNow": True}
        )
        to_stream = (
            self.as_messages(self.revenue())
            .writeStream.format("jetstream")
            .queryName(f"{self._sink} to a stream")
            .options(servers=self._url, stream=self._sink)
            .option("checkpointLocation", str(self._checkpoints / "stream"))
            .trigger(**trigger)
        )
        to_parquet = (
            self.revenue()
            .writeStream.format("parquet")
            .queryName(f"{self._sink} to Parquet")
            .option("path", self._parquet)
            .option("checkpointLocation", str(self._checkpoints / "parquet"))
            .trigger(**trigger)
        )
        self._writers = {"to a stream": to_stream, "to Parquet": to_parquet}
        self._queries = {name: writer.start() for name, writer in self._writers.items()}
        self._batches = {name: {} for name in self._writers}

    @property
    def names(self) -> list[str]:
        return list(self._queries)

    def over(self, patience: float) -> bool:
        """Return whether both queries have ended; wait at most this long for each.

        Raises the error of a query that failed.
        """
        running = [each for each in self._queries.values() if not each.awaitTermination(patience)]
        return not running

    def restart_failed(self) -> list[str]:
        """Start queries that failed again, from their checkpoints, and return their names.

        On a busy machine Spark gives up a Python process that needs more than 10 s to start.
        """
        errors = {name: query.exception() for name, query in self._queries.items()}
        failed = {name: error for name, error in errors.items() if error is not None}
        for name, error in failed.items():
            self._restarts += 1
            if self._restarts > MOST_RESTARTS:
                raise error
            self._collect_progress()
            self._queries[name] = self._writers[name].start()
        return list(failed)

    @property
    def active(self) -> bool:
        return any(query.isActive for query in self._queries.values())

    def finish(self) -> None:
        """Stop queries that follow their stream, after everything in it was processed."""
        for query in self._queries.values():
            query.processAllAvailable()
            query.stop()

    def batches(self) -> dict[str, list[MicroBatch]]:
        """Return the finished micro-batches of each query that have rows."""
        self._collect_progress()
        return {name: list(batches.values()) for name, batches in self._batches.items()}

    def _collect_progress(self) -> None:
        for name, query in self._queries.items():
            self._batches[name].update(read_progress(query))

    def rows(self) -> dict[str, int]:
        """Return the orders that each query has read so far."""
        return {
            name: sum(batch.rows for batch in batches) for name, batches in self.batches().items()
        }

    def revenue(self) -> DataFrame:
        orders = (
            self._spark.readStream.format("jetstream")
            .options(servers=self._url, stream=self._source, startingOffsets="earliest")
            .option("maxMessagesPerTrigger", BATCH)
            .load()
            .select(F.from_json(F.col("data").cast("string"), SCHEMA).alias("order"))
            .select("order.*")
        )
        return (
            orders.withWatermark("ordered_at", f"{WATERMARK} seconds")
            .groupBy(F.window("ordered_at", "1 minute"), "region")
            .agg(F.sum("cents").alias("cents"), F.count("*").alias("orders"))
            .select(F.col("window.start").alias("minute"), "region", "cents", "orders")
        )

    def as_messages(self, revenue: DataFrame) -> DataFrame:
        """Return a row per message; by its id, a row that is written twice is stored once."""
        return revenue.select(
            F.concat(F.lit(f"{self._sink.lower()}."), "region").alias("subject"),
            F.to_json(F.struct("minute", "region", "cents", "orders")).alias("data"),
            F.concat_ws(".", "region", F.unix_timestamp("minute")).alias("msg_id"),
        )

    def count(self) -> tuple[int, int]:
        """Return the number of orders in the stream and the sum of their cents, by a batch read."""
        orders = self._spark.read.format("jetstream").options(
            servers=self._url, stream=self._source
        )
        cents = F.get_json_object(F.col("data").cast("string"), "$.cents").cast("bigint")
        row = orders.load().agg(F.count("*").alias("count"), F.sum(cents).alias("cents")).first()
        assert row is not None
        return row["count"], row["cents"]

    def stored_in_stream(self) -> Windows:
        fields = "minute TIMESTAMP, region STRING, cents BIGINT, orders BIGINT"
        stored = (
            self._spark.read.format("jetstream")
            .options(servers=self._url, stream=self._sink)
            .load()
            .select(F.from_json(F.col("data").cast("string"), fields).alias("row"))
            .select("row.*")
        )
        return collect(stored)

    def stored_in_parquet(self) -> Windows:
        return collect(self._spark.read.parquet(self._parquet))


def read_progress(query: StreamingQuery) -> dict[int, MicroBatch]:
    """Return the micro-batches of a query by their numbers."""
    found: dict[int, MicroBatch] = {}
    for each in query.recentProgress:
        if each["numInputRows"]:
            began = datetime.fromisoformat(each["timestamp"].replace("Z", "+00:00"))
            spent = each["durationMs"]["triggerExecution"] / 1000
            found[each["batchId"]] = MicroBatch(began, spent, each["numInputRows"])
    return found


def collect(revenue: DataFrame) -> Windows:
    rows = revenue.select(F.unix_timestamp("minute").alias("minute"), "region", "cents").collect()
    windows: Windows = {}
    for row in rows:
        key = datetime.fromtimestamp(row["minute"], timezone.utc), row["region"]
        if key in windows:
            raise ValueError(f"{key} was written twice")
        windows[key] = row["cents"]
    return windows
