"""Where to cut a range in which most sequences have no message: parts of equal numbers of messages.

The server counts the messages from a sequence on: a new consumer reports that number. The place of
a cut is estimated from the counts that are known, counted there, and estimated again, until the
parts differ by little; with evenly distributed messages, one count for each cut is enough. Where
messages are in clusters, estimates come closer only slowly, so each second place is a middle.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_PROBES = 24  # at most, for each cut
_TOLERANCE = 0.05  # of a part


def find_cuts(count_from: Callable[[int], int], start: int, end: int, parts: int) -> list[int]:
    """Return the first sequences of the second and later parts of [start, end).

    count_from  returns the number of messages from a sequence on
    """
    # Sequences in order, with the number of messages from `start` to each.
    whole = count_from(start)
    known = [(start, 0), (end, whole - count_from(end))]
    total = known[-1][1]
    cuts: list[int] = []
    for number in range(1, parts):
        wanted = total * number / parts
        for turn in range(_PROBES):
            place = _estimate(known, wanted, turn % 2 == 1)
            if place is None:
                break
            known.append((place, whole - count_from(place)))
            known.sort()
            if (
                abs(known[bisect_left(known, (place, -1))][1] - wanted)
                <= _TOLERANCE * total / parts
            ):
                break
        cuts.append(min(known, key=lambda each: (abs(each[1] - wanted), each))[0])
    return sorted({cut for cut in cuts if start < cut < end})


def _estimate(known: list[tuple[int, int]], wanted: float, middle: bool) -> int | None:
    """Return the place to count at next; None if the known places are next to each other."""
    after = next(i for i, (_, count) in enumerate(known) if count >= wanted)
    if after == 0:
        return None
    (low, fewer), (high, more) = known[after - 1], known[after]
    if high - low < 2:
        return None
    if middle:
        return (low + high) // 2
    place = low + round((high - low) * (wanted - fewer) / max(1, more - fewer))
    return min(max(place, low + 1), high - 1)
