"""Deadlines: a lazy heap.

A Waitable with a deadline writes it to its own attribute `deadline`, which is cheap and happens
often: a message that postpones a heartbeat alarm does not touch the heap. The heap holds at most
one
live entry for each waitable, `armed`, which may be too early. When that time comes and the deadline
is later, the entry is put back; if there is no deadline anymore, the entry is dropped.
"""

from __future__ import annotations

import heapq

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from .waitable import Waitable

_FEW = 64


class Timers:
    """The deadlines of one connection."""

    def __init__(self) -> None:
        # (time, serial number, whose): the serial keeps the heap from comparing waitables.
        self.heap: list[tuple[float, int, Waitable]] = []
        self._serial = 0
        self._sweep_at = _FEW

    def arm(self, waitable: Waitable) -> None:
        """Update the heap after `waitable.deadline` was set; not needed if it moved later."""
        deadline = waitable.deadline
        if deadline is None or (waitable.armed is not None and waitable.armed <= deadline):
            return
        waitable.armed = deadline
        self._serial += 1
        heapq.heappush(self.heap, (deadline, self._serial, waitable))
        if len(self.heap) >= self._sweep_at:
            self._sweep()

    def next_deadline(self) -> float | None:
        """Return the earliest entry, which is at or before the earliest deadline."""
        return self.heap[0][0] if self.heap else None

    def pop_due(self, now: float) -> list[Waitable]:  # D-CLOCK-1
        """Return waitables whose deadline has passed, earliest first; each must be armed again."""
        due: list[Waitable] = []
        heap = self.heap
        while heap and heap[0][0] <= now:
            time, _, waitable = heapq.heappop(heap)
            if waitable.armed != time:
                continue  # this entry was replaced by an earlier one
            waitable.armed = None
            if waitable.deadline is not None and waitable.deadline <= now:
                due.append(waitable)
            else:
                self.arm(waitable)
        return due

    def clear(self) -> list[Waitable]:
        """Remove all waitables; return those that had a deadline."""
        waiting = [entry[2] for entry in self.heap if entry[2].armed == entry[0]]
        for waitable in waiting:
            waitable.armed = None
            waitable.deadline = None
        self.heap = []
        return waiting

    def _sweep(self) -> None:  # CLOCK-2
        """Drop entries without a deadline: most requests end long before their timeout."""
        live: list[tuple[float, int, Waitable]] = []
        for entry in self.heap:
            waitable = entry[2]
            if waitable.armed == entry[0]:
                if waitable.deadline is None:
                    waitable.armed = None
                else:
                    live.append(entry)
        heapq.heapify(live)
        self.heap = live
        self._sweep_at = max(_FEW, 2 * len(live))  # so that sweeping costs O(1) for each entry
