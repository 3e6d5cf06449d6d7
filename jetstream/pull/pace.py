"""Pace and Pauses: growing intervals between reports, lookups and pulls."""

from __future__ import annotations

SHORTEST_PAUSE = 0.05
LONGEST_PAUSE = 10.0
# Until the consumer has a leader again.
LONGEST_ABSENCE = 2.0


class Pauses:
    """The pauses between pulls: no pull is sent before `ends_at`.

    `length` is that of the last pause; a message that arrives sets it to 0.
    """

    __slots__ = ("ends_at", "length")

    def __init__(self) -> None:
        self.ends_at: float = 0.0
        self.length: float = 0.0

    def restart(self, now: float) -> None:
        """Pause no longer."""
        self.length = 0.0
        self.ends_at = now

    def refused(self, now: float, absent: bool) -> None:  # D-CONSUME-7
        """Pause twice as long as the last time; `absent`: the consumer has no leader."""
        longest = LONGEST_ABSENCE if absent else LONGEST_PAUSE
        self.length = min(max(2 * self.length, SHORTEST_PAUSE), longest)
        self.ends_at = now + self.length

    def unproductive(self, pulled_at: float) -> None:
        """Pause for a moment after a pull that has ended without a message."""
        self.ends_at = max(self.ends_at, pulled_at + SHORTEST_PAUSE)


class Pace:
    """Due at once, then after `first` seconds, and after twice as long each time up to `longest`.

    `reset` makes it due at once again.
    """

    __slots__ = ("_at", "_first", "_interval", "_longest")

    def __init__(self, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self.reset()

    def reset(self) -> None:
        """Start over: the cause is gone, and the next one is new."""
        self._at: float | None = None
        self._interval = self._first

    def due(self, now: float) -> bool:
        """Return True if it is time, and count from now on to the next time."""
        if self._at is not None and now < self._at:
            return False
        self._at = now + self._interval
        self._interval = min(2 * self._interval, self._longest)
        return True


class Repeats:
    """A Pace for each cause, such as the text of an error."""

    __slots__ = ("_first", "_longest", "_paces")

    def __init__(self, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self._paces: dict[str, Pace] = {}

    def clear(self) -> None:
        """Forget all causes."""
        self._paces = {}

    def due(self, cause: str, now: float) -> bool:
        """Return True if this cause is new, or if it is time to report it again."""
        if cause not in self._paces:
            self._paces[cause] = Pace(self._first, self._longest)
        return self._paces[cause].due(now)
