"""Drain: the graceful end of a client, in three steps.

    1  UNSUB everything and a fence: at its PONG all that was on its way has arrived
    2  the user takes what arrived, and may publish answers
    3  flush, then close

To close a client gracefully is step 3 alone. Without a connection step 1 is done at once, and
step 3 waits for one if there is anything to send. The deadline bounds all of it: then the client is
closed, and the error counts what was left.
"""

from __future__ import annotations

from natsproto.errors import ConnectionClosed, ConnectionLost, TimeoutExpired

from .waitable import Request

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.errors import NatsError

    from .pings import Pings
    from .waitable import Receiver


class Drain(Request):
    """Settled when the client is closed; `advance` finds out how far it is.

    With `receivers` None it only closes: no subscription is waited for.
    """

    __slots__ = ("_again", "_complete", "_expired", "_flush", "_pings", "_receivers", "_seen")

    def __init__(self, pings: Pings, deadline: float, receivers: list[Receiver] | None) -> None:
        super().__init__("close" if receivers is None else "drain", deadline)
        self._pings = pings
        self._receivers = receivers
        self._flush: Request | None = None
        self._seen = 0  # how many publishes the flush covers
        self._again = True  # whether later ones get a flush of their own
        self._expired = False  # the deadline has come (DRAIN-4)
        self._complete = False  # all steps are done

    def advance(self) -> bool:
        """Return True when the client is to be closed: everything is done, or time is up."""
        if not self._expired and not self._complete:
            self._complete = self._taken() and self._flushed()
        return self._expired or self._complete

    def _taken(self) -> bool:
        receivers = self._receivers or []
        return all(receiver.ended for receiver in receivers) and not self.left()

    def _flushed(self) -> bool:
        flush = self._flush
        if flush is None or isinstance(flush.error, ConnectionLost):
            return self._pings.idle or self._start_flush()
        if flush.done and self._again and self._seen != self._pings.published:
            # D-DRAIN-6: the last message was taken before its answer was published. Once, because
            # somebody may be publishing all the time.
            self._again = False
            return self._start_flush()
        return flush.done

    def _start_flush(self) -> bool:
        self._seen = self._pings.published
        self._flush = self._pings.start_flush(None)
        return self._flush.done

    def left(self) -> int:
        """Count the messages that the user has not taken yet."""
        return sum([receiver.pending() for receiver in self._receivers or []])

    def handle_timer(self, now: float) -> bool:
        self._expired = True
        self.deadline: float | None = None
        return False  # the connection closes now, and settles it

    def settle(self, loss: NatsError | None, closed: str) -> bool:
        """The client is closed: with this loss, and for this reason; False if it was settled."""
        error = loss  # D-DRAIN-10, D-CONN-28
        if error is None and self._receivers is not None:
            if self._expired:
                text = "drain took too long, %d messages were not taken"
                error = TimeoutExpired(text % self.left())
            elif not self._complete:
                error = ConnectionClosed(closed)  # DRAIN-7
        return self.finish(error=error)
