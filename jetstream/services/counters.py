"""Counters: the statistics of one endpoint. The time is an argument."""

from __future__ import annotations

from natsproto.wire.text import cut_middle

_NANO = 10**9


class Counters:
    """Requests, errors, and the time that they took, since the start or the last reset.

    `begin` returns the number of resets so far, for `end`: a request that began before a reset
    changes nothing after it (D-SERVICE-20).
    """

    __slots__ = ("_resets", "last_error", "num_errors", "num_requests", "processing_ns")

    def __init__(self) -> None:
        self._resets = -1
        self.reset()

    def reset(self) -> None:
        """Set everything to zero (SERVICE-19)."""
        self._resets += 1
        self.num_requests: int = 0
        self.num_errors: int = 0
        self.last_error: str = ""
        self.processing_ns: int = 0

    @property
    def average_ns(self) -> int:
        """The average time of a request, in whole nanoseconds (SERVICE-16)."""
        return self.processing_ns // self.num_requests if self.num_requests else 0

    def begin(self) -> int:
        """Count a request."""
        self.num_requests += 1  # D-SERVICE-5
        return self._resets

    def fail(self, error: str, resets: int) -> None:
        """Count an error."""
        if resets == self._resets:
            self.num_errors += 1
            self.last_error = cut_middle(error)

    def end(self, seconds: float, resets: int) -> None:
        """Add the time that a request took."""
        if resets == self._resets:
            self.processing_ns += max(0, int(seconds * _NANO))

    def refuse(self, error: str) -> None:
        """Count a request that is answered with an error instead of being handled."""
        self.fail(error, self.begin())
