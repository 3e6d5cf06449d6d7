"""Differences between the versions of PySpark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import datasource

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

    LIMITED: bool
else:
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
    except ImportError:

        class SupportsTriggerAvailableNow:
            """Placeholder: Spark uses it since 4.2."""

        #: Whether Spark passes a start and a limit to latestOffset: since 4.2.
        LIMITED = False
    else:
        LIMITED = True

#: Whether writers of queries get Arrow batches, not rows: since 4.1.
ARROW_QUERIES = hasattr(datasource, "DataSourceStreamArrowWriter")

__all__ = ["ARROW_QUERIES", "LIMITED", "SupportsTriggerAvailableNow"]
