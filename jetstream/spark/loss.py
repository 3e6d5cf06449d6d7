"""Detection of messages that a range has lost: removed before they were read.

Gaps are normal: a message may have been deleted, or a filter excludes it. A gap is a loss only if
the stream begins after it when it is pulled. Later does not count: messages that are removed while
rows wait for a slow query were read. So where gaps are expected, the first sequence of the stream
is requested together with the pull; otherwise when a pull has a gap.

Three observations make most of these lookups unnecessary. A new consumer reports where it begins,
which is later than requested if the stream begins later. A consumer counts its messages, and the
count is too small if some were removed. And a stream without limits loses messages only by a purge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .offsets import describe_gap, report_data_loss

if TYPE_CHECKING:
    from .options import Settings
    from .queries import SnapshotRequest, StreamQueries, StreamSnapshot
    from .ranges import Range


class LossWatch:
    """The checks of one range."""

    def __init__(self, queries: StreamQueries, part: Range, settings: Settings) -> None:
        self._queries = queries
        self._part = part
        self._fail = settings.flag("failOnDataLoss")

    def is_same_stream(self) -> bool:
        """Return whether the stream still exists; raise DataLost, or warn, if it is another one."""
        return self._is_same(self._queries.snapshot())

    def _is_same(self, snapshot: StreamSnapshot) -> bool:
        if snapshot.created == self._part.created:
            return True
        text = "stream %s was recreated at %s, after the read was planned"
        report_data_loss(text % (snapshot.name, snapshot.created), self._fail)
        return False

    def request(self) -> SnapshotRequest:
        """Request the state of the stream, for `look`."""
        return self._queries.request_snapshot()

    def look(self, first: int, last: int, request: SnapshotRequest | None = None) -> None:
        """Raise DataLost, or warn, if messages from `first` to `last` were lost."""
        part = self._part
        snapshot = self._queries.snapshot() if request is None else request.wait()
        if not self._is_same(snapshot):
            return
        if snapshot.next <= last:
            text = "stream %s ends before sequence %d, and the read ends at %d"
            report_data_loss(text % (part.stream, snapshot.next, part.end - 1), self._fail)
        elif snapshot.first > first:
            report_data_loss(
                describe_gap(first, min(snapshot.first - 1, last), part.stream), self._fail
            )


class PullWatch:
    """The checks of the pulls of one consumer, which starts at `start`."""

    def __init__(self, watch: LossWatch, part: Range, start: int, pending: int) -> None:
        self._watch = watch
        self._part = part
        self._next = start  # the first sequence that was not delivered or skipped
        self._pending = pending  # of the new consumer
        self._pulls = 0
        self._request: SnapshotRequest | None = None

    def began(self, first: int) -> None:
        """Check where a new consumer begins."""
        if first > self._next:
            self._watch.look(self._next, min(first, self._part.end) - 1)

    def requested(self) -> None:
        """Look at the stream as it is when the pull that was just requested is answered."""
        if self._part.sparse and (self._part.volatile or self._pulls):
            self._request = self._watch.request()

    def pulled(self, count: int, last: int, total: int, pending: int) -> None:
        """Check a pull of `count` messages up to sequence `last`.

        total    the number of messages that the consumer has delivered
        pending  the number of those that it has left
        """
        first, self._next = self._next, last + 1
        self._pulls += 1
        missed = total + pending < self._pending
        request, self._request = self._request, None
        if last - first + 1 > count and (missed or not self._is_sure()):
            self._watch.look(first, min(last, self._part.end - 1), request)
        elif request is not None:
            request.drop()

    def ended(self) -> None:
        """Check the rest of the range, of which the consumer has no messages."""
        if self._next < self._part.end and not self._is_sure():
            self._watch.look(self._next, self._part.end - 1)

    def _is_sure(self) -> bool:
        """Return whether a gap is normal: there is a filter, and nothing has removed messages."""
        return bool(self._part.filters) and not self._part.volatile and self._pulls <= 1
