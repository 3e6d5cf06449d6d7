"""Two tables of a pipeline: the orders of a stream, and their totals by region.

Run it in the folder above with `spark-pipelines run`; NATS_URL names the server.
"""

from __future__ import annotations

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


@dp.table
def raw_orders() -> DataFrame:
    """Read the stream; the pipeline keeps the checkpoint."""
    return (
        SparkSession.active()
        .readStream.format("jetstream")
        .option("servers", os.environ.get("NATS_URL", "nats://127.0.0.1:4222"))
        .options(stream="ORDERS", startingOffsets="earliest")
        .load()
    )


@dp.materialized_view
def revenue() -> DataFrame:
    """Sum up the orders by region."""
    order = F.from_json(F.col("data").cast("string"), "region STRING, cents BIGINT")
    return (
        SparkSession.active()
        .table("raw_orders")
        .select(order.alias("order"))
        .groupBy("order.region")
        .agg(F.sum("order.cents").alias("cents"))
    )
