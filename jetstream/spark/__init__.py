"""JetStream in Spark: a source and a sink for PySpark 4, in pure Python, without a jar.

    spark.read.format("jetstream").option("stream", "ORDERS").load()

Spark finds the format where this package is installed (see pyspark_jetstream); elsewhere, call
`spark.dataSource.register(JetStreamDataSource)`. Needs the extra `spark`.
"""

from __future__ import annotations

from natsproto.errors import MissingExtra

try:
    from pyspark.sql import datasource as _  # noqa: F401
except ImportError:
    raise MissingExtra(
        "jetstream.spark needs PySpark 4: pip install 'natsproto[spark]'", "D-OPT-17"
    ) from None

from .datasource import JetStreamDataSource

__all__ = ["JetStreamDataSource"]
