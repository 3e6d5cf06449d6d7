"""Room: how much a consume() may buffer, no matter how much a server sends.

Open pulls never request more than the limit. But the server may still serve pulls that were
abandoned after silence or a lost connection: their messages are kept, too. Beyond that, and some
slack for errors in counting, no pull has requested the message.
"""

from __future__ import annotations

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from .ledger import Ledger

SLACK = 64  # messages; in bytes the limit again is enough
MOST_LATE = 64  # so many times the limit is kept from abandoned pulls
# How long after its end an abandoned pull may still deliver messages.
LATEST = 60.0


class Room:
    """In messages, or in bytes if `by_bytes`. Up to `most` always fits."""

    __slots__ = ("_by_bytes", "_ledger", "_limit", "most")

    def __init__(self, limit: int, by_bytes: bool, ledger: Ledger) -> None:
        self._limit = limit
        self._by_bytes = by_bytes
        self._ledger = ledger
        self.most: int = 2 * limit + (0 if by_bytes else SLACK)

    def takes(self, buffered: int) -> bool:
        """Return True if so much may be buffered (D-CONSUME-27)."""
        if buffered <= self.most:
            return True
        late = self._ledger.late_bytes if self._by_bytes else self._ledger.late
        return buffered <= self.most + min(late, MOST_LATE * self._limit)

    def pulled(self, now: float) -> None:
        """Note a pull, and forget those abandoned too long ago to deliver anything."""
        if self._ledger.late:
            self._ledger.forget_abandoned(now - LATEST)
