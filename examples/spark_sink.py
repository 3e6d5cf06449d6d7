"""Any DataFrame to a stream: with ids, and in atomic batches.

python examples/spark_sink.py [nats://127.0.0.1:4222]
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect


def main(spark, url):
    with connect(url) as client:
        js = JetStream(client)
        stream = js.create_stream(
            name="PEOPLE", subjects=["people.>", "people-markers.>"], allow_atomic=True
        )
        people = spark.createDataFrame(
            [(1, "Ada", "uk"), (2, "Grace", "us"), (3, "Barbara", "us")],
            "id INT, name STRING, c STRING",
        )
        messages = people.select(
            F.concat(F.lit("people."), "c").alias("subject"),
            F.to_json(F.struct("id", "name")).alias("data"),
            F.col("id").cast("string").alias("msg_id"),
            F.create_map(F.lit("Country"), "c").alias("headers"),
        )

        # Twice: what the stream has by its id it does not take again.
        for _ in range(2):
            messages.write.format("jetstream").mode("append").option("servers", url).save()
        print(stream.info().state.messages, "messages by ids")

        # Twice: a write that is known by its id is skipped as far as it got, however long ago.
        options = {"delivery": "atomic", "stream": "PEOPLE", "markerSubject": "people-markers"}
        for _ in range(2):
            writer = messages.drop("msg_id").write.format("jetstream").mode("append")
            writer.options(servers=url, writeId="import-7", **options).save()
        subjects = js.stream("PEOPLE").info(subjects_filter="people.>").state.subjects
        print(sum(subjects.values()), "messages with those of atomic batches")


if __name__ == "__main__":
    main(SparkSession.builder.getOrCreate(), (sys.argv + ["nats://127.0.0.1:4222"])[1])
