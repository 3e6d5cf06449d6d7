"""A source on a driver with so many cores; Spark's processes import it by name."""

from __future__ import annotations

from typing import Any

from jetstream.spark import JetStreamDataSource, plan, ranges


class CoresDataSource(JetStreamDataSource):
    """The option `cores` is its own."""

    @classmethod
    def name(cls) -> str:
        return "jetstream_on_cores"

    def schema(self) -> str:
        return self._without()[0].schema()

    def _without(self) -> tuple[JetStreamDataSource, int]:
        options = {key.lower(): value for key, value in self.options.items()}
        cores = int(options.pop("cores"))
        return JetStreamDataSource(options), cores

    def streamReader(self, schema: Any) -> Any:
        source, cores = self._without()
        plan.default_parallelism = lambda: cores
        ranges._LEAST = 1000  # so that not so many rows are needed for several partitions
        return source.streamReader(schema)
