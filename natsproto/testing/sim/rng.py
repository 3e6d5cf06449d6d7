"""Rng: random numbers from a seed, the same ones on every Python.

MicroPython has no random.Random, and that of CPython may change between versions. A seed that a
test has recorded must mean the same run everywhere.
"""

from __future__ import annotations

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeVar

    T = TypeVar("T")

_MASK = (1 << 64) - 1


class Rng:
    """The generator SplitMix64, with those methods of random.Random that a simulation needs."""

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def _next(self) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return mixed ^ (mixed >> 31)

    def random(self) -> float:
        """Return a number from 0.0 up to, but not including, 1.0."""
        return (self._next() >> 11) / (1 << 53)

    def randrange(self, limit: int) -> int:
        """Return a whole number from 0 up to, but not including, `limit`."""
        found, reach = self._next(), 1 << 64
        while reach < limit << 64:  # enough bits for the bias not to matter
            found, reach = found << 64 | self._next(), reach << 64
        return found % limit

    def uniform(self, low: float, high: float) -> float:
        """Return a number between these two."""
        return low + (high - low) * self.random()

    def choice(self, items: Sequence[T]) -> T:
        """Return one of the items."""
        return items[self.randrange(len(items))]

    def shuffle(self, items: list[T]) -> None:
        """Put the items into a random order."""
        for index in range(len(items) - 1, 0, -1):
            other = self.randrange(index + 1)
            items[index], items[other] = items[other], items[index]
