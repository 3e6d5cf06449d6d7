"""The plan of a read: how its sequences are cut into partitions, and which subjects are read.

Rows that a sink stores are known by their partition and their position in it, so a micro-batch
that is replayed must be cut as it was the first time. Options, the number of cores, and the first
message of a stream may all have changed by then. That is why the plan of a micro-batch is part of
its end offset: Spark writes that to the checkpoint before any task runs, so the plan of a batch is
exactly as durable as its range. Changed options apply to batches that are planned after the change.

    {"filters": ["orders.*"], "workers": 4, "least": 2, "most": 5000, "first": {"ORDERS": 17}}

`workers` is the number of cores of the driver, `least` is minPartitions and `most` is
maxRecordsPerPartition, 0 if they were not given. `first` is where the range of each stream was cut
from; PySpark before 4.2 does not pass the start of a batch, so there it is missing. `cuts` has the
sequences at which streams with filters or many gaps are cut, so that parts have equal numbers of
messages (cuts.py): {"ORDERS": [4211, 9000]}. Offsets with cuts have version 2.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .options import Settings


class Plan:
    """The parameters of `split`."""

    def __init__(
        self, filters: list[str], workers: int, least: int, most: int, first: dict[str, int]
    ) -> None:
        self.cuts: dict[str, list[int]] = {}
        self.filters = filters
        self.workers = workers
        self.least = least
        self.most = most
        self.first = first

    def encode(self) -> dict[str, Any]:
        """Return the plan as JSON fields."""
        fields: dict[str, Any] = {"filters": self.filters, "workers": self.workers}
        fields.update({"least": self.least, "most": self.most})
        if self.first:
            fields["first"] = self.first
        if self.cuts:
            fields["cuts"] = self.cuts
        return fields


def new_plan(settings: Settings, first: dict[str, int] | None = None) -> Plan:
    """Return the plan of a read that is planned now."""
    return Plan(
        settings.filters,
        default_parallelism(),
        settings.number("minPartitions"),
        settings.number("maxRecordsPerPartition"),
        first or {},
    )


def read_plan(fields: Any) -> Plan:
    """Return the plan in an end offset; raise a built-in error such as ValueError if invalid."""
    filters = [str(each) for each in fields["filters"]]
    numbers = [fields["workers"], fields["least"], fields["most"]]
    first: dict[str, Any] = fields.get("first", {})
    if not all(type(each) is int and each >= 0 for each in [*numbers, *first.values()]):
        raise ValueError
    plan = Plan(filters, max(1, numbers[0]), numbers[1], numbers[2], first)
    cuts: dict[str, list[Any]] = fields.get("cuts", {})
    plan.cuts = {name: [int(cut) for cut in places] for name, places in cuts.items()}
    return plan


def default_parallelism() -> int:
    """Return the cores of the driver: Spark does not pass its own number to a Python source."""
    return os.cpu_count() or 1
