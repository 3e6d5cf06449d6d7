"""Show the lag and the rates of a query after every micro-batch, with a StreamingQueryListener.

python examples/spark_listener.py [nats://127.0.0.1:4222]

The lag comes from the progress events: `latestOffset` is the end of each stream, `endOffset` the
position of the query. (Before PySpark 4.2 both are the position, and the lag is 0.) In production,
set a gauge of Prometheus or OpenTelemetry instead of printing.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQueryListener

from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )


def positions(offset: str | None) -> dict[str, int]:
    """Return the next sequence of each stream in an offset of a progress event."""
    found: dict[str, Any] = json.loads(offset or "null") or {}
    return {name: place["next"] for name, place in found.get("streams", {}).items()}


class Lag(StreamingQueryListener):
    """Prints a line per micro-batch and keeps the last lag of each stream."""

    def __init__(self) -> None:
        self.lag: dict[str, int] = {}
        self.ended = threading.Event()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        print(f"{event.name}: started")

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = event.progress
        for source in progress.sources:
            done = positions(source.endOffset)
            ends = positions(source.latestOffset)
            self.lag.update({name: end - done.get(name, end) for name, end in ends.items()})
        print(
            f"{progress.name}: batch {progress.batchId}, {progress.numInputRows} rows,"
            f" {progress.processedRowsPerSecond:,.0f} rows/s, lag {self.lag}"
        )

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        print(f"idle since {event.timestamp}")

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        print("failed" if event.exception else "ended")
        self.ended.set()


def main(spark: SparkSession, url: str) -> None:
    with connect(url) as client:
        js = JetStream(client)
        js.create_stream(name="METERS", subjects=["meters.>"])
        for number in range(100):
            js.publish("meters.a", b"%d" % number)
    listener = Lag()
    spark.streams.addListener(listener)
    try:
        query = (
            spark.readStream.format("jetstream")
            .options(servers=url, stream="METERS", startingOffsets="earliest")
            .option("maxMessagesPerTrigger", 40)
            .load()
            .writeStream.queryName("meters")
            .format("noop")
            .option("checkpointLocation", tempfile.mkdtemp())
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        listener.ended.wait(30)  # events arrive in the background
    finally:
        spark.streams.removeListener(listener)
    print(f"lag at the end: {listener.lag}")


if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = sys.executable
    main(SparkSession.builder.getOrCreate(), (sys.argv + ["nats://127.0.0.1:4222"])[1])
