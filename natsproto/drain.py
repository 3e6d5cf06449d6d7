"""Drain: the graceful end of a client, in three steps.

    1  UNSUB everything and a fence: at its PONG all that was on its way has arrived
    2  the user takes what arrived, and may publish answers
    3  flush, then close

Without a connection step 1 is done at once, and step 3 waits for one if there is anything to send.
The deadline bounds all of it: then the client is closed, and the drain fails.
"""

from __future__ import annotations

from .errors import ConnectionLost, TimeoutExpired
from .waitable import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .commands import Commands


class Drain(Request):
    """Settled when the client is closed; `advance` finds out how far it is."""

    __slots__ = ("_again", "_commands", "_flush", "_receivers", "_seen")

    def __init__(self, commands: Commands, deadline: float) -> None:
        super().__init__("drain", deadline)
        self._commands = commands
        self._receivers = commands.start_drain_of_all()
        self._flush: Request | None = None
        self._seen = 0  # how many publishes the flush covers
        self._again = True  # whether later ones get a flush of their own

    def advance(self) -> bool:
        """True: all is delivered and flushed, the client is to be closed now."""
        if self.done:
            return True
        if not all(receiver.ended for receiver in self._receivers) or self.left():
            return False
        flush = self._flush
        if flush is None or isinstance(flush.error, ConnectionLost):
            return self._commands.idle or self._start_flush()
        if flush.done and self._again and self._seen != self._commands.stats.out_msgs:
            # DRAIN-6: the last message was taken before its answer was published. Once, because
            # somebody may be publishing all the time.
            self._again = False
            return self._start_flush()
        return flush.done

    def _start_flush(self) -> bool:
        self._seen = self._commands.stats.out_msgs
        self._flush = self._commands.start_flush(None)
        return self._flush.done

    def left(self) -> int:
        """How many messages the user has not taken yet."""
        return sum([receiver.pending() for receiver in self._receivers])

    def handle_timer(self, now: float) -> bool:
        return self.finish(
            error=TimeoutExpired("drain took too long, %d messages were not taken" % self.left())
        )
