"""From stream to stream: temperatures of each minute, each written once.

A watermark says when a minute is over. Each result has an id made of what it is about, so whatever
is repeated after a failure is dropped by the stream, in whatever order it comes.

python examples/spark_stream_to_stream.py [nats://127.0.0.1:4222]
"""

import json
import sys
import tempfile

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect


def publish(url):
    with connect(url) as client:
        js = JetStream(client)
        js.create_stream(name="SENSORS", subjects=["sensors.*"])
        js.create_stream(name="MINUTES", subjects=["minutes.*"], duplicate_window=3600)
        for second in range(0, 300, 5):
            for sensor in ("roof", "cellar"):
                time = f"2024-01-01T00:{second // 60:02}:{second % 60:02}Z"
                reading = {"time": time, "value": second / 10}
                js.publish(f"sensors.{sensor}", json.dumps(reading).encode())


def results(spark, url):
    sensors = (
        spark.readStream.format("jetstream")
        .options(servers=url, stream="SENSORS", startingOffsets="earliest")
        .load()
    )
    reading = F.from_json(F.col("data").cast("string"), "time TIMESTAMP, value DOUBLE")
    minutes = (
        sensors.select(F.split("subject", r"\.")[1].alias("sensor"), reading.alias("reading"))
        .select("sensor", "reading.*")
        .withWatermark("time", "10 seconds")
        .groupBy(F.window("time", "1 minute"), "sensor")
        .agg(F.avg("value").alias("mean"))
    )
    start = F.date_format("window.start", "HH:mm")
    return minutes.select(
        F.concat(F.lit("minutes."), "sensor").alias("subject"),
        F.to_json(F.struct(start.alias("minute"), "mean")).alias("data"),
        F.concat_ws(".", "sensor", F.col("window.start").cast("string")).alias("msg_id"),
    )


def main(spark, url):
    publish(url)
    with tempfile.TemporaryDirectory() as directory:
        query = (
            results(spark, url)
            .writeStream.format("jetstream")
            .options(servers=url, stream="MINUTES")
            .option("checkpointLocation", directory)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    with connect(url) as client:
        stream = JetStream(client).stream("MINUTES")
        for sequence in range(1, stream.info().state.last_seq + 1):
            msg = stream.get_msg(sequence)
            print(msg.subject, msg.data.decode())


if __name__ == "__main__":
    main(SparkSession.builder.getOrCreate(), (sys.argv + ["nats://127.0.0.1:4222"])[1])
