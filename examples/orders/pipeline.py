"""The Spark part: revenue by region and minute, to a stream and to Parquet, and read back."""

from __future__ import annotations

import os
import sys
import warnings
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from examples.orders.generator import Windows
from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

SOURCE, SINK = "ORDERS", "REVENUE"
WATERMARK = 30  # seconds that an order may be late
BATCH = 25_000  # orders of a micro-batch
# A short job does not pay for Java's best compiler: starting Spark takes twice the CPU with it.
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SCHEMA = "number BIGINT, region STRING, item STRING, cents BIGINT, ordered_at TIMESTAMP"


def start_session(log: Path) -> SparkSession:
    """Its Java process writes to `log` what it has to say."""
    os.environ["PYSPARK_PYTHON"] = sys.executable  # the workers need the same packages
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("orders")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.extraJavaOptions", QUICK)
    )
    errors = os.dup(2)
    with log.open("w") as file:
        os.dup2(file.fileno(), 2)  # which the process inherits
    try:
        return builder.getOrCreate()
    finally:
        os.dup2(errors, 2)
        os.close(errors)


class Pipeline:
    """Two queries over one stream of orders; each keeps its place in a checkpoint."""

    def __init__(self, spark: SparkSession, url: str, directory: Path) -> None:
        self._spark = spark
        self._url = url
        self._parquet = str(directory / "revenue.parquet")
        self._checkpoints = directory / "checkpoints"
        self._queries: dict[str, StreamingQuery] = {}

    def start(self) -> None:
        """Everything that is in the stream now, in micro-batches."""
        with connect(self._url) as client:
            JetStream(client).create_stream(name=SINK, subjects=["revenue.>"])
        to_stream = (
            self.as_messages(self.revenue())
            .writeStream.format("jetstream")
            .options(servers=self._url, stream=SINK)
            .option("checkpointLocation", str(self._checkpoints / "stream"))
            .trigger(availableNow=True)
        )
        to_parquet = (
            self.revenue()
            .writeStream.format("parquet")
            .option("path", self._parquet)
            .option("checkpointLocation", str(self._checkpoints / "parquet"))
            .trigger(availableNow=True)
        )
        self._queries = {"to a stream": to_stream.start(), "to Parquet": to_parquet.start()}

    def over(self, patience: float) -> bool:
        """Whether both queries are through; waits so long at most. Raises what ended a query."""
        return all(query.awaitTermination(patience) for query in self._queries.values())

    def progress(self) -> dict[str, tuple[int, float]]:
        """Of each query: orders that were read so far, and the seconds that its batches took."""
        found: dict[str, tuple[int, float]] = {}
        for name, query in self._queries.items():
            batches = query.recentProgress
            rows = sum(batch["numInputRows"] for batch in batches)
            spent = sum(batch["durationMs"]["triggerExecution"] for batch in batches)
            found[name] = rows, spent / 1000
        return found

    @property
    def rows(self) -> int:
        """Orders that were read, by both queries together."""
        return sum(rows for rows, _ in self.progress().values())

    def revenue(self) -> DataFrame:
        orders = (
            self._spark.readStream.format("jetstream")
            .options(servers=self._url, stream=SOURCE, startingOffsets="earliest")
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
        """Return a row a message; its id makes a row that is written twice one message."""
        return revenue.select(
            F.concat(F.lit("revenue."), "region").alias("subject"),
            F.to_json(F.struct("minute", "region", "cents", "orders")).alias("data"),
            F.concat_ws(".", "region", F.unix_timestamp("minute")).alias("msg_id"),
        )

    def stored_in_stream(self) -> Windows:
        fields = "minute TIMESTAMP, region STRING, cents BIGINT, orders BIGINT"
        stored = (
            self._spark.read.format("jetstream")
            .options(servers=self._url, stream=SINK)
            .load()
            .select(F.from_json(F.col("data").cast("string"), fields).alias("row"))
            .select("row.*")
        )
        return collect(stored)

    def stored_in_parquet(self) -> Windows:
        return collect(self._spark.read.parquet(self._parquet))


def collect(revenue: DataFrame) -> Windows:
    rows = revenue.select(F.unix_timestamp("minute").alias("minute"), "region", "cents").collect()
    windows: Windows = {}
    for row in rows:
        key = datetime.fromtimestamp(row["minute"], timezone.utc), row["region"]
        if key in windows:
            raise ValueError(f"{key} was written twice")
        windows[key] = row["cents"]
    return windows
