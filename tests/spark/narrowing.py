"""A source that lets the filters of a query narrow the read: workers of Spark import it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = 20


class NarrowingDataSource(DataSource):
    """The numbers from 1 to 20, or those below the bound in a filter `number < bound`."""

    @classmethod
    def name(cls) -> str:
        return "narrowing"

    def schema(self) -> str:
        return "number BIGINT"

    def reader(self, schema: Any) -> DataSourceReader:
        return NarrowingReader()


class NarrowingReader(DataSourceReader):
    def __init__(self) -> None:
        self.end = ROWS + 1

    def pushFilters(self, filters: list[Any]) -> list[Any]:
        for each in filters:
            if type(each).__name__ == "LessThan":
                self.end = min(self.end, each.value)
        return filters

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(self.end)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        return ((number,) for number in range(1, partition.value))
