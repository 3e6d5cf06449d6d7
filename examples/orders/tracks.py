"""How far each part of the demo has come over time: for the view and for the report."""

from __future__ import annotations

import time
from collections import deque
from datetime import datetime, timezone
from itertools import pairwise
from typing import NamedTuple

RECENT = 3.0  # seconds that the rate of the view covers
BIN = 1.0  # seconds of a step in the report's chart of rates


class Sample(NamedTuple):
    at: float  # seconds since the clock started
    count: int
    lag: int


class Track:
    """One part: messages that it published or read, and how many are left."""

    def __init__(self, name: str, total: int, *, reads: bool = True) -> None:
        self.name = name
        self.total = total
        self.reads = reads  # whether it has a lag
        self.samples: list[Sample] = []
        self._recent: deque[Sample] = deque()

    @property
    def count(self) -> int:
        return self.samples[-1].count if self.samples else 0

    @property
    def lag(self) -> int:
        return self.samples[-1].lag if self.samples else 0

    def add(self, at: float, count: int, published: int) -> None:
        sample = Sample(at, count, max(0, published - count))
        self.samples.append(sample)
        self._recent.append(sample)
        while len(self._recent) > 2 and self._recent[1].at < at - RECENT:
            self._recent.popleft()

    def rate(self) -> float:
        """Return the messages per second of the last few seconds."""
        if len(self._recent) < 2:
            return 0.0
        first, last = self._recent[0], self._recent[-1]
        return (last.count - first.count) / max(last.at - first.at, 0.001)

    def rates(self, bin: float = BIN) -> list[tuple[float, float]]:
        """Return the rate over time, in steps."""
        marks: list[Sample] = []
        for sample in self.samples:
            if not marks or sample.at - marks[-1].at >= bin:
                marks.append(sample)
        return [
            (after.at, (after.count - before.count) / (after.at - before.at))
            for before, after in pairwise(marks)
        ]

    def lags(self) -> list[tuple[float, float]]:
        return [(sample.at, sample.lag) for sample in self.samples]


class Event(NamedTuple):
    """Something that happened to the parts, such as the kill of a process."""

    at: float
    text: str


class Clock:
    """Seconds since it was made, at the time `began`."""

    def __init__(self) -> None:
        self.began = datetime.now(timezone.utc)
        self._origin = time.monotonic()

    def __call__(self) -> float:
        return time.monotonic() - self._origin
