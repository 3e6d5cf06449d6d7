"""A stream as a table: how much was ordered in each region?

python examples/spark_batch_read.py [nats://127.0.0.1:4222]
"""

import json
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect


def main(spark, url):
    with connect(url) as client, JetStream(client).publisher() as publisher:
        JetStream(client).create_stream(name="SALES", subjects=["sales.>"])
        for number in range(1000):
            region = ["eu", "us", "asia"][number % 3]
            order = {"id": number, "amount": number / 10}
            publisher.publish(f"sales.{region}", json.dumps(order).encode())

    sales = spark.read.format("jetstream").options(servers=url, stream="SALES").load()
    order = F.from_json(F.col("data").cast("string"), "id INT, amount DOUBLE")
    by_region = (
        sales.select(F.split("subject", r"\.")[1].alias("region"), order.alias("order"))
        .groupBy("region")
        .agg(F.count("*").alias("orders"), F.round(F.sum("order.amount"), 1).alias("amount"))
        .orderBy("region")
    )
    by_region.show()

    # Any part of it is read by sequence: nothing before it is touched.
    last = spark.read.format("jetstream").options(servers=url, stream="SALES", startingOffsets=991)
    print(last.load().count(), "orders from sequence 991 on")


if __name__ == "__main__":
    main(SparkSession.builder.getOrCreate(), (sys.argv + ["nats://127.0.0.1:4222"])[1])
