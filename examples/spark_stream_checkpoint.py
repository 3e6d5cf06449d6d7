"""A query that stops, and goes on where it was: its place is in the checkpoint.

python examples/spark_stream_checkpoint.py [nats://127.0.0.1:4222]
"""

import sys
import tempfile

from pyspark.sql import SparkSession

from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect


def publish(url, numbers):
    with connect(url) as client:
        js = JetStream(client)
        js.create_stream(name="CLICKS", subjects=["clicks"])
        for number in numbers:
            js.publish("clicks", b"click %d" % number)


def run(spark, url, directory):
    """Read what is new since the last time."""
    clicks = (
        spark.readStream.format("jetstream")
        .options(servers=url, stream="CLICKS", startingOffsets="earliest")
        .load()
    )
    query = (
        clicks.selectExpr("sequence", "CAST(data AS STRING) AS text")
        .writeStream.format("parquet")
        .option("checkpointLocation", f"{directory}/checkpoint")
        .trigger(availableNow=True)
        .start(f"{directory}/clicks")
    )
    query.awaitTermination()
    return sum(progress.numInputRows for progress in query.recentProgress)


def main(spark, url):
    with tempfile.TemporaryDirectory() as directory:
        publish(url, range(5))
        print("first run:", run(spark, url, directory), "messages")
        publish(url, range(5, 12))
        print("second run:", run(spark, url, directory), "messages")
        rows = spark.read.parquet(f"{directory}/clicks").orderBy("sequence").collect()
        print("in all:", [row.text for row in rows])


if __name__ == "__main__":
    main(SparkSession.builder.getOrCreate(), (sys.argv + ["nats://127.0.0.1:4222"])[1])
