"""What differs between the versions of PySpark."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

    LIMITED: bool
else:
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
    except ImportError:

        class SupportsTriggerAvailableNow:
            """Nobody looks for it before 4.2."""

        #: Whether Spark hands a start and a limit to latestOffset: since 4.2.
        LIMITED = False
    else:
        LIMITED = True

__all__ = ["LIMITED", "SupportsTriggerAvailableNow"]
