"""A source for a driver with a given number of cores; Spark's processes import it by name."""

from __future__ import annotations

from typing import Any

from jetstream.spark import JetStreamDataSource, plan, ranges


class CoresDataSource(JetStreamDataSource):
    """The source with an additional option `cores`."""

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
        ranges._LEAST = 1000  # so that fewer rows are enough for several partitions
        return source.streamReader(schema)
