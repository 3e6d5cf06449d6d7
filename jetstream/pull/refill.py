"""Refill: when consume() sends its next pull, and how much that pull requests.

    requested  messages or bytes that the open pulls may still deliver (the ledger)
    buffered   messages or bytes that have arrived and were not taken yet
    level      both together
    limit      max_messages, or max_bytes

The level is never above the limit. As soon as it falls below the threshold, a pull requests
everything that is missing:

    the level is                               then
    at or above the threshold                  nothing: `spare` messages can be taken before a pull
    below it, and the missing bytes are few    nothing: the next message is known to be larger
    below it, and stop_after is covered        nothing: no more messages are needed
    below it, during a pause                   `waiting`: the pull is sent when the pause ends
    below it                                   a pull

Pauses (pace.py) keep pulls apart while the consumer refuses them: they double from 50 ms. Pulls
that end normally are also 50 ms apart if they bring no message at all.
"""

from __future__ import annotations

from jetstream.machine.status import ABSENT, LIMIT, SIZE, UNKNOWN

from .ledger import MANY
from .pace import Pauses

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from .ledger import Ledger

_REFUSALS = (LIMIT, ABSENT, SIZE, UNKNOWN)  # CONSUME-26


class Refill:
    """The limits of one consume(), and its pauses between pulls.

    `received` counts the messages that were kept. `spare` is how many messages can be taken from
    the buffer before `next_pull` has to be called again: the machine counts it down. `waiting`: a
    pull is needed, but there is a pause, which ends at `due`.
    """

    __slots__ = (
        "_by_bytes",
        "_ledger",
        "_pauses",
        "_progressed",
        "_pulled_at",
        "_stop_after",
        "_too_small",
        "limit",
        "received",
        "spare",
        "threshold",
        "waiting",
    )

    def __init__(
        self,
        ledger: Ledger,
        limit: int,
        threshold: int,
        *,
        by_bytes: bool = False,
        stop_after: int = 0,
    ) -> None:
        self.limit: int = limit
        self.threshold: int = threshold
        self._ledger = ledger
        self._by_bytes = by_bytes
        self._stop_after = stop_after  # 0: never
        self._pauses = Pauses()
        self._too_small = 0  # a pull of at most so many bytes would bring nothing
        self._progressed = False  # whether a message arrived since the last pull
        self._pulled_at = 0.0
        self.received: int = 0
        self.spare: int = 0
        self.waiting: bool = False

    @property
    def due(self) -> float | None:
        """When to call `next_pull` again; None unless a pull waits for the end of a pause."""
        return self._pauses.ends_at if self.waiting else None

    def level(self, buffered: int) -> int:
        """Return how much is buffered and requested; `buffered` in messages or bytes."""
        return buffered + (self._ledger.size if self._by_bytes else self._ledger.messages)

    def connected(self, now: float) -> None:
        """Start over without a pause."""
        self._pauses.restart(now)
        self._too_small = 0

    def cancel(self) -> None:
        """Neither wait for a pull nor leave messages to spare until `next_pull` is called."""
        self.waiting = False
        self.spare = 0

    def delivered(self, size: int) -> None:
        """Count a message that was kept; `size` is 0 unless bytes are counted."""
        self._ledger.delivered(size)
        self.received += 1
        self._progressed = True
        self._pauses.length = 0.0
        self._too_small = 0

    def delivered_all(self, count: int) -> None:
        """Count several messages that were kept, where bytes are not counted."""
        self._ledger.delivered_all(count)
        self.received += count
        self._progressed = True
        self._pauses.length = 0.0

    def skipped(self, size: int) -> None:
        """Count a message that a pull has brought, but that was not kept."""
        self._ledger.delivered(size)
        self._progressed = True

    def next_pull(self, buffered: int, now: float) -> tuple[int, int] | None:
        """Return how many messages and bytes to pull now, or None; 0 bytes: no limit in bytes."""
        self.waiting = False
        self.spare = 0
        ledger = self._ledger
        by_bytes = self._by_bytes
        stop_after = self._stop_after
        level = buffered + (ledger.size if by_bytes else ledger.messages)
        missing = self.limit - level  # CONSUME-1
        if level >= self.threshold or missing <= self._too_small:
            if not by_bytes:
                self.spare = level - self.threshold
                if stop_after:  # CONSUME-16: the last message ends the subscription
                    taken = self.received - buffered
                    self.spare = min(self.spare, stop_after - taken - 1)
            return None
        batch = MANY if by_bytes else missing
        if stop_after:
            batch = min(batch, stop_after - self.received - ledger.messages)
            if batch <= 0:
                return None
        if now < self._pauses.ends_at:
            self.waiting = True
            return None
        return batch, missing if by_bytes else 0

    def pulled(self, now: float) -> None:
        """Note that a pull is sent."""
        self._pulled_at = now
        self._progressed = False

    def fits_later(self, size: int) -> bool:
        """Note a message that was too large for its pull, which had `size` bytes left; 0: unknown.

        D-CONSUME-12: return True if the message may fit when the buffer has more room.
        """
        if (size or self.limit) >= self.limit:
            return False
        self._too_small = size
        return True

    def ended(self, meaning: str, now: float) -> None:
        """Note that a pull has ended, and pause before the next one if necessary."""
        if meaning in _REFUSALS:
            self._pauses.refused(now, meaning == ABSENT)
        elif not self._progressed:
            self._pauses.unproductive(self._pulled_at)
