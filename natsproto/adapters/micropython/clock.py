"""The time: seconds since the start of a client, by a counter that wraps."""

from __future__ import annotations

import time

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Clock:
    """The seconds since its creation, by a counter of milliseconds that wraps.

    The time starts at 0 for each client, because a float of 32 bits, as many boards have it,
    resolves 1/16 s after 12 days and 2 s after a year. `ticks_ms` may be another counter, with
    `per_second` ticks.
    """

    def __init__(
        self,
        ticks_ms: Callable[[], int] | None = None,
        ticks_diff: Callable[[int, int], int] | None = None,
        per_second: int = 1000,
    ) -> None:
        self._ticks_ms = _ticks_ms if ticks_ms is None else ticks_ms
        self._ticks_diff = _ticks_diff if ticks_diff is None else ticks_diff
        self._per_second = per_second
        self._last = self._ticks_ms()
        self._passed = 0  # milliseconds; an integer, which is exact on every board

    def now(self) -> float:
        """Return the time; to be called at least once in half a period of the counter."""
        ticks = self._ticks_ms()
        self._passed += self._ticks_diff(ticks, self._last)
        self._last = ticks
        return self._passed / self._per_second


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _difference(end: int, start: int) -> int:
    return end - start


# CPython, on which the conformance suite runs this adapter, has neither.
_ticks_ms: Callable[[], int] = getattr(time, "ticks_ms", _monotonic_ms)
_ticks_diff: Callable[[int, int], int] = getattr(time, "ticks_diff", _difference)
#: A counter of microseconds; None where there is none.
ticks_us: Callable[[], int] | None = getattr(time, "ticks_us", None)
