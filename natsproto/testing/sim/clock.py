"""Clock: simulated time, and everything that is going to happen, in order."""

from __future__ import annotations

import heapq

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: What happens first if several things happen at the same time: data arrives, timers fire, and
#: then the coroutines of the program run.
DATA, TIMER, TASK = 0, 1, 2


class Clock:
    """The time in seconds, and the calls that are scheduled."""

    def __init__(self) -> None:
        self.now: float = 0.0
        self._heap: list[tuple[float, int, int, Callable[[], object]]] = []
        self._serial = 0

    def at(self, time: float, call: Callable[[], object], kind: int = DATA) -> None:
        """Schedule a call; calls for the same time run by kind, then in the order given."""
        self._serial += 1
        heapq.heappush(self._heap, (time, kind, self._serial, call))

    @property
    def next_time(self) -> float | None:
        """The time of the next call; None if there is none."""
        return self._heap[0][0] if self._heap else None

    def step(self) -> bool:
        """Move the time to the next call and make it; return False if there is none."""
        if not self._heap:
            return False
        time, _, _, call = heapq.heappop(self._heap)
        self.now = max(self.now, time)
        call()
        return True

    def run_until(self, time: float) -> None:
        """Make all calls up to that time, and move the time there."""
        while self._heap and self._heap[0][0] <= time:
            self.step()
        self.now = max(self.now, time)
