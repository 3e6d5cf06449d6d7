"""Ranges of sequences: how reads are split, and how each part is read.

A task reads the messages of one range by an ephemeral consumer, or by direct get. Every read of a
range returns the same rows, as long as the stream keeps its messages. Gaps are normal. But an end
before the end of the range is accepted only if the stream's leader confirms that nothing is left,
because a consumer may be on a replica that lags behind.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from jetstream.errors import ConsumerLimitReached
from natsproto.errors import InvalidValue, TimeoutExpired

from .arrow import Rows
from .cuts import find_cuts
from .direct import read_direct
from .loss import LossWatch
from .pull import read_pull
from .queries import StreamQueries
from .retry import RETRYABLE_READS, Backoff

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .options import Settings
    from .plan import Plan
    from .queries import StreamSnapshot

# Fewer than this are not worth a task of their own, unless the user says so.
_LEAST = 10_000
# Parts may differ by this share.
_TOLERANCE = 0.05
# More tasks than this take longer to plan than to run.
_MOST_PARTS = 100_000


class Range(InputPartition):
    """Sequences `start` to `end` - 1 of the stream that was created then.

    sparse    it may have fewer messages than sequences, because of filters or gaps
    volatile  the stream has limits, by which it removes its oldest messages
    shared    the stream limits the number of its consumers
    later     the range may be read long after it was planned
    gaps      how many sequences of the whole stream have no message
    """

    def __init__(self, stream: str, start: int, end: int, filters: list[str], created: str) -> None:
        super().__init__(None)
        self.stream = stream
        self.start = start
        self.end = end
        self.filters = filters
        self.created = created
        self.sparse: bool = bool(filters)
        self.volatile: bool = True
        self.shared: bool = False
        self.later: bool = False
        self.gaps: int = 0

    def part(self, start: int, end: int) -> Range:
        """Return a part of this range."""
        part = Range(self.stream, start, end, self.filters, self.created)
        part.sparse, part.volatile = self.sparse, self.volatile
        part.shared, part.later = self.shared, self.later
        return part

    def describe(self, snapshot: StreamSnapshot) -> None:
        """Note what is known about the stream."""
        self.sparse = bool(self.filters) or snapshot.has_gaps
        self.gaps = snapshot.next - snapshot.first - snapshot.messages
        self.volatile = snapshot.volatile
        self.shared = snapshot.limits_consumers


def whole_range(snapshot: StreamSnapshot, start: int, end: int, filters: list[str]) -> Range:
    """Return a range of a stream that exists."""
    whole = Range(snapshot.name, start, end, filters, snapshot.created)
    whole.describe(snapshot)
    return whole


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
        cuts = [cut for cut in plan.cuts.get(each.stream, []) if each.start < cut < each.end]
        if cuts:
            places = [each.start, *cuts, each.end]
            parts += [each.part(start, end) for start, end in pairwise(places)]
            continue
        # Equal parts, and as many as the share of this stream requires.
        length = each.end - each.start
        count = -(-length // size)
        for i in range(count):
            start = each.start + length * i // count
            end = each.start + length * (i + 1) // count
            parts.append(each.part(start, end))
    return parts


def cut_evenly(queries: StreamQueries, whole: Range, plan: Plan, at_once: int) -> None:
    """Add the cuts of a range to the plan, if many of its sequences may have no message.

    at_once  up to how many sequences they are read rather than counted, which takes one call
    """
    length = whole.end - whole.start
    few = whole.gaps < _TOLERANCE * length  # not worth a call
    if (not whole.filters and (few or not whole.sparse)) or whole.shared:
        return
    most = plan.least or min(plan.workers, length // _LEAST)
    if plan.most:
        most = max(most, -(-length // plan.most))
    if most < 2:
        return  # so few sequences, that they are one part whatever they contain
    if length <= at_once:
        found = queries.sequences(whole.start, whole.end, whole.filters)
        parts = _number_of_parts(plan, len(found))
        cuts = [found[len(found) * i // parts] for i in range(1, parts)]
    else:

        @cache
        def count_from(seq: int) -> int:
            return queries.count(seq, whole.filters)

        total = count_from(whole.start) - count_from(whole.end)
        parts = _number_of_parts(plan, total)
        cuts = find_cuts(count_from, whole.start, whole.end, parts) if parts > 1 else []
    if cuts:
        plan.cuts[whole.stream] = [*plan.cuts.get(whole.stream, []), *cuts]


def _number_of_parts(plan: Plan, total: int) -> int:
    parts = plan.least or min(plan.workers, total // _LEAST)
    if plan.most:
        parts = max(parts, -(-total // plan.most))
    return min(parts, _MOST_PARTS, total)


def read_range(part: Range, settings: Settings, bare: bool) -> Iterator[Rows]:
    """Yield the rows of a range, in order; if `bare`, without payloads."""
    read = read_direct if settings.text("fetchMode") == "direct" else read_pull
    position = part.start
    backoff = Backoff()
    queries = StreamQueries(settings, part.stream)
    watch = LossWatch(queries, part, settings)
    verify = part.later
    while position < part.end:
        try:
            if verify and not watch.is_same_stream():
                return
            for rows in read(queries, part, position, settings, bare, watch):
                position = rows.sequences[-1].as_py() + 1
                backoff.reset()
                yield rows
            if position >= part.end or not queries.is_left(position, part.end, part.filters):
                return
            error: Exception = TimeoutExpired(
                "stream %s did not deliver messages from sequence %d on" % (part.stream, position)
            )
        except ConsumerLimitReached as caught:
            backoff.wait_for_turn(caught)
            continue
        except RETRYABLE_READS as caught:
            error = caught
        verify = True
        backoff.failed(error)
