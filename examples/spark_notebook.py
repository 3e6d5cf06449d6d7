"""For a notebook: look into a stream, in cells (`# %%`) that can be run again.

python examples/spark_notebook.py [nats://127.0.0.1:4222]
"""

# %% Once: a session, and some messages to look at
import sys

from pyspark.sql import SparkSession

from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect


def main(spark, url):
    with connect(url) as client:
        js = JetStream(client)
        js.create_stream(name="LOGS", subjects=["logs.*"])
        for number in range(30):
            level = ["info", "info", "error"][number % 3]
            js.publish(f"logs.{level}", b"line %d" % number)

    # %% A stream as a view for SQL; it stays as it is now, run this cell again for what is new
    reader = spark.read.format("jetstream").options(servers=url, stream="LOGS")
    reader.load().createOrReplaceTempView("logs")
    spark.sql("SELECT subject, count(*) AS messages FROM logs GROUP BY subject").show()

    # %% The last ones, as text
    spark.sql(
        "SELECT sequence, timestamp, CAST(data AS STRING) AS text FROM logs"
        " ORDER BY sequence DESC LIMIT 3"
    ).show(truncate=False)

    # %% Metadata alone: without data in the schema no payload leaves the server
    sizes = reader.schema("subject STRING, sequence BIGINT, timestamp TIMESTAMP").load()
    print(sizes.where("subject = 'logs.error'").count(), "errors")

    # %% A live table in memory: run the query, look at it as often as you like, stop it
    live = spark.readStream.format("jetstream").options(servers=url, stream="LOGS")
    query = (
        live.option("startingOffsets", "earliest")
        .load()
        .groupBy("subject")
        .count()
        .writeStream.format("memory")
        .queryName("live")
        .outputMode("complete")
        .trigger(availableNow=True)  # leave this line out in a notebook
        .start()
    )
    query.awaitTermination()
    spark.table("live").show()


if __name__ == "__main__":
    main(SparkSession.builder.getOrCreate(), (sys.argv + ["nats://127.0.0.1:4222"])[1])
