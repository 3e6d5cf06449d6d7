"""Detection of messages that a range has lost: removed before they were read.

Gaps are normal: a message may have been deleted, or a filter excludes it. A gap is a loss only if
the stream begins after it when it is pulled. So the state of the stream is requested as soon as a
pull with a gap has ended, but its rows do not wait for the response. The request must not be later:
messages that are removed while rows wait for a slow query were read. And it must not be earlier:
whatever is removed between the request and the end of the pull would not be noticed.

Messages that are removed just after the pull, but before the response, are reported as well, since
nothing shows that they were delivered. The consumer's own count of messages does not: during a
purge it still includes those that are gone.

Two observations make some requests unnecessary. A new consumer reports where it begins, which is
later than requested if the stream begins later. And a stream without limits loses messages only by
a purge, so the first pull of its consumer needs no request, unless the consumer finds, then or
later, that it has fewer messages than it had when it was created.
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
        self._first = start  # the first sequence that is not checked
        self._count = 0  # of messages from there on
        self._start: int | None = None  # that of a first pull without a request
        self._pending = pending  # of the new consumer
        self._pulls = 0
        self._last = 0  # the last sequence that the request is about
        self._request: SnapshotRequest | None = None

    def began(self, first: int) -> None:
        """Check where a new consumer begins."""
        if first > self._first:
            self._watch.look(self._first, min(first, self._part.end) - 1)

    def requested(self) -> None:
        """Count a pull that was requested."""
        self._pulls += 1

    def pulled(self, count: int, last: int, total: int, pending: int) -> None:
        """Check the pull before this one, and begin to check this one.

        count    its number of messages
        last     the sequence of the last of them
        total    the number of messages that the consumer has delivered
        pending  the number of those that it has left
        """
        self._settle()
        self._count += count
        if not pending:
            last = max(last, self._part.end - 1)  # the rest of the range has no messages
        missed = total + pending < self._pending
        if missed and self._start is not None:
            self._first, self._start = self._start, None
        if last - self._first + 1 == self._count:
            self._checked(last)
        elif missed or not self._is_sure():
            self._last = last
            self._request = self._watch.request()
        else:
            self._start = self._first
            self._checked(last)

    def ended(self) -> None:
        """Check the last pull, and the rest of the range, of which the consumer has no messages."""
        self._settle()
        if self._first < self._part.end and not self._is_sure():
            self._watch.look(self._first, self._part.end - 1)

    def _settle(self) -> None:
        if self._request is not None:
            request, self._request = self._request, None
            self._watch.look(self._first, min(self._last, self._part.end - 1), request)
            self._checked(self._last)

    def _checked(self, last: int) -> None:
        self._first = last + 1
        self._count = 0

    def _is_sure(self) -> bool:
        """Return whether a gap is normal: there is a filter, and nothing has removed messages."""
        return bool(self._part.filters) and not self._part.volatile and self._pulls <= 1
