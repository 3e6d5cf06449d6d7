"""Registers the format "jetstream": Spark looks for `DefaultSource` in modules named pyspark_*.

Every look-up of a data source imports all of those, so this is cheap and never raises: without
PySpark there is no DefaultSource, and nobody who would miss it. The work is in jetstream.spark.
"""

from __future__ import annotations

try:
    from jetstream.spark.datasource import JetStreamDataSource
except ImportError:  # PySpark is not there, or too old: then this is no source
    pass
else:
    DefaultSource = JetStreamDataSource
