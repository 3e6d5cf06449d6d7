"""ConfigFeed: when to read the configuration of a group.

It is subscribed to the subject of the configuration's key, and is notified of a change when it is
published. That is only a hint: the change may not be stored yet, or may be rejected, and changes
that are published while the connection is lost are not noticed at all. The configuration is read
from the leader of the bucket's stream

    at the start, and after each reconnect      at once
    after a hint                                at once, and again after 0.1, 0.5 and 2 seconds
                                                until it has changed
    otherwise                                   at intervals (D-GROUP-13)
"""

from __future__ import annotations

from natsproto.connection.effects import Wake
from natsproto.connection.receiver import Receiver

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.connection.waitable import Waitable
    from natsproto.wire.frames import Msg

AGAIN = (0.1, 0.5, 2.0)
RETRY = 1.0  # after a read that failed


class ConfigFeed(Receiver):
    """The times at which the configuration has to be read.

    target: the waitable of the member, which a hint wakes instead of the feed
    """

    __slots__ = ("_again", "_interval", "next_at", "target")

    def __init__(self, interval: float, now: float) -> None:
        super().__init__()
        self._interval = interval
        self._again: list[float] = []
        #: When the configuration has to be read.
        self.next_at: float = now
        self.target: Waitable | None = None

    def receive(self, msg: Msg, now: float) -> bool:
        self._again = [now + each for each in AGAIN]
        return self._hint(now)

    def connected(self, now: float) -> None:
        self._hint(now)
        self.wake()

    def _hint(self, now: float) -> bool:
        self.next_at = now
        if self.target is not None:
            self.effects.append(Wake([self.target]))
        return True

    def was_read(self, changed: bool, now: float) -> None:
        """Record that the configuration was read, and whether it has changed."""
        if changed:
            self._again = []
        while self._again and self._again[0] <= now:
            self._again.pop(0)
        self.next_at = self._again.pop(0) if self._again else now + self._interval

    def failed(self, now: float) -> None:
        """Record that the configuration could not be read."""
        self.next_at = now + RETRY

    def pending(self) -> int:
        return 0
