"""The writer of micro-batches by Arrow, which Spark has since 4.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamArrowWriter

from .sink import StreamWriter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.datasource import WriterCommitMessage


class StreamArrowWriter(StreamWriter, DataSourceStreamArrowWriter):
    """Writes micro-batches unchanged."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:  # of RecordBatch
        return self.write_micro_batch(iterator)
