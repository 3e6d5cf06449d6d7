"""JetStreamDataSource: the format "jetstream" of Spark.

Spark creates one in a separate process for each read and write, and pickles it there. So it holds
the options only; readers and writers are imported on use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from .option_table import BATCH, STREAM, WRITE
from .options import read_options
from .schema import default_schema
from .stores import is_store

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType


class JetStreamDataSource(DataSource):
    """Streams of JetStream as tables: batch and streaming reads, batch and streaming writes."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "jetstream"

    def schema(self) -> str:
        """Return the schema for reads without one."""
        if is_store(self.options):
            from .stores import store_schema

            return store_schema(self.options)
        settings = read_options(self.options, None)
        return default_schema(settings.text("mode") == "consume")

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch."""
        if is_store(self.options):
            from .stores import batch_store

            return batch_store(self.options, schema)
        from .source import BatchReader

        return BatchReader(read_options(self.options, BATCH), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a streaming query."""
        if is_store(self.options):
            from .stores import stream_store

            return stream_store(self.options, schema)
        from .stream import stream_reader

        return stream_reader(read_options(self.options, STREAM), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch."""
        from .sink import batch_writer

        return batch_writer(read_options(self.options, WRITE), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return the writer of a streaming query."""
        from .sink import stream_writer

        return stream_writer(read_options(self.options, WRITE), schema, overwrite)
