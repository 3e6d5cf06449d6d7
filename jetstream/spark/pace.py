"""How many messages to request at a time, so that a read does not go far beyond its range.

Neither a pull nor a direct get has a last sequence. Where a range has a message for each sequence,
the right number is known. Otherwise the first request is small, and the following ones are made of
the share of sequences that had a message so far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .ranges import Range

_FIRST = 256  # for a range with filters or gaps
_GROWTH = 4  # from one request to the next
_SPARE = 1.1  # more than the estimate, which saves a request at the end
_LEAST = 32


class Pace:
    """The sizes of the requests of one range: `next` for each, and `got` for its answer."""

    def __init__(self, part: Range, start: int, most: int) -> None:
        self._part = part
        self._start = start
        self._most = most
        self._count = 0  # messages so far
        self._end = start  # the sequence after the last of them
        self._last = _FIRST // _GROWTH

    def next(self, start: int) -> int:
        """Return the number of messages to request from this sequence on."""
        most = max(1, min(self._most, self._part.end - start))
        if not self._part.sparse:
            return most
        wanted = self._last * _GROWTH
        if self._count:
            share = self._count / (self._end - self._start)
            wanted = min(wanted, int(share * (self._part.end - start) * _SPARE) + _LEAST)
        self._last = wanted
        return min(most, wanted)

    def got(self, count: int, end: int) -> None:
        """Count the messages of a response, which ends before this sequence."""
        self._count += count
        self._end = end
