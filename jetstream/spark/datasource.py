"""JetStreamDataSource: what Spark knows as the format "jetstream".

Spark makes one in a process of its own for each read and write, and pickles it from there. So
nothing is kept here but the options; readers and writers are imported when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from .options import BATCH, STREAM, WRITE, read_options
from .schema import default_schema

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
        return "jetstream"

    def schema(self) -> str:
        settings = read_options(self.options, None)
        return default_schema(settings.text("mode") == "consume")

    def reader(self, schema: StructType) -> DataSourceReader:
        from .source import batch_reader

        return batch_reader(read_options(self.options, BATCH), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from .stream import stream_reader

        return stream_reader(read_options(self.options, STREAM), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from .sink import batch_writer

        return batch_writer(read_options(self.options, WRITE), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from .sink import stream_writer

        return stream_writer(read_options(self.options, WRITE), schema, overwrite)
