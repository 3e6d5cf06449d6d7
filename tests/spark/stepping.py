"""Call the readers of queries without Spark, in the same order as Spark does."""

from __future__ import annotations

import json

import pytest

from jetstream.spark.compat import LIMITED
from tests.spark.support import make, query_reader, sequences

# For tests that call a reader with the start of a batch and a limit.
needs_limits = pytest.mark.skipif(not LIMITED, reason="needs PySpark 4.2")


class Query:
    """Calls a reader like Spark, with offsets as JSON; `start` is the last finished offset."""

    def __init__(self, reader, start=None):
        self.reader = reader
        self.start = start or self.call(reader.initialOffset())
        self.limit = reader.getDefaultReadLimit() if LIMITED else None

    def call(self, offset):
        return json.loads(json.dumps(offset))

    def plan(self, limit=None):
        if not LIMITED:
            return self.call(self.reader.latestOffset())
        return self.call(self.reader.latestOffset(self.start, limit or self.limit))

    def batch(self, limit=None):
        """Return the sequences of the next batch; None if there is none."""
        end = self.plan(limit)
        if end == self.start:
            return None
        found = sequences(self.reader, self.reader.partitions(self.start, end))
        self.start = end
        return found


def next_of(offset, name):
    return offset["streams"][name]["next"]


def started(server, js, name, **options):
    make(js, name, 10)
    query = Query(query_reader(server, stream=name, startingOffsets="earliest", **options))
    query.batch()
    return query
