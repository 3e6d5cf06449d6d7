"""Ranges of sequences: how reads are split, and how each part is read.

A task reads the messages of one range by an ephemeral consumer, or by direct get. Every read of a
range returns the same rows, as long as the stream keeps its messages. Gaps are normal. But an end
before the end of the range is accepted only if the stream's leader confirms that nothing is left,
because a consumer may be on a replica that lags behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from natsproto.errors import InvalidValue, TimeoutExpired

from .arrow import Rows
from .direct import read_direct
from .offsets import describe_gap, report_data_loss
from .pull import read_pull
from .queries import StreamQueries
from .retry import RETRYABLE_READS, Backoff

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .options import Settings
    from .plan import Plan

# Fewer than this are not worth a task of their own, unless the user says so.
_LEAST = 10_000
# More tasks than this take longer to plan than to run.
_MOST_PARTS = 100_000


class Range(InputPartition):
    """Sequences `start` to `end` - 1 of the stream that was created then."""

    def __init__(self, stream: str, start: int, end: int, filters: list[str], created: str) -> None:
        super().__init__(None)
        self.stream = stream
        self.start = start
        self.end = end
        self.filters = filters
        self.created = created


def split(whole: list[Range], plan: Plan) -> list[Range]:
    """Return the parts for the tasks, in order; at least minPartitions, if possible.

    A replayed batch must be split as before (plan.py). So a change of this function, or of _LEAST,
    needs a version of plans, and the old way for those that are in checkpoints.
    """
    total = sum(each.end - each.start for each in whole)
    wanted = plan.least or max(1, min(plan.workers, total // _LEAST))
    size = max(1, -(-total // wanted))
    if plan.most:
        size = min(size, plan.most)
        if total // size > _MOST_PARTS:
            text = "option maxRecordsPerPartition %d cuts %d sequences into more than %d tasks"
            raise InvalidValue(text % (size, total, _MOST_PARTS))
    parts: list[Range] = []
    for each in whole:
        # Equal parts, and as many as the share of this stream requires.
        length = each.end - each.start
        count = -(-length // size)
        for i in range(count):
            start = each.start + length * i // count
            end = each.start + length * (i + 1) // count
            parts.append(Range(each.stream, start, end, each.filters, each.created))
    return parts


def read_range(part: Range, settings: Settings, bare: bool) -> Iterator[Rows]:
    """Yield the rows of a range, in order; if `bare`, without payloads."""
    read = read_direct if settings.text("fetchMode") == "direct" else read_pull
    position = part.start
    missing = part.start  # the first sequence that did not arrive
    backoff = Backoff()
    queries = StreamQueries(settings, part.stream)
    while position < part.end:
        try:
            for rows in read(queries, part, position, settings, bare):
                missing = _first_missing(missing, rows)
                position = rows.sequences[-1].as_py() + 1
                backoff.reset()
                yield rows
            if position >= part.end or not queries.is_left(position, part.end, part.filters):
                break
            error: Exception = TimeoutExpired(
                "stream %s did not deliver messages from sequence %d on" % (part.stream, position)
            )
        except RETRYABLE_READS as caught:
            error = caught
        backoff.failed(error)
    if missing < part.end:
        _check_loss(queries, part, missing, settings)


def _first_missing(missing: int, rows: Rows) -> int:
    """Return the sequence after the last one that arrived without a gap."""
    first: int = rows.sequences[0].as_py()
    last: int = rows.sequences[-1].as_py()
    if first == missing and last - first + 1 == len(rows):
        return last + 1
    if first == missing:
        for seq in rows.sequences.to_pylist():
            if seq != missing:
                break
            missing += 1
    return missing


def _check_loss(queries: StreamQueries, part: Range, missing: int, settings: Settings) -> None:
    """Report lost messages. Gaps are normal, unless the stream now starts after them."""
    snapshot = queries.snapshot()
    fail = settings.flag("failOnDataLoss")
    if snapshot.created != part.created:
        report_data_loss("stream %s was recreated during the read" % part.stream, fail)
    elif snapshot.next < part.end:
        text = "stream %s ends before sequence %d, and the read ends at %d"
        report_data_loss(text % (part.stream, snapshot.next, part.end - 1), fail)
    elif snapshot.first > missing:
        report_data_loss(
            describe_gap(missing, min(snapshot.first, part.end) - 1, part.stream), fail
        )
