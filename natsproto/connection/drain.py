"""Drain and Ending: the graceful end of a client, in three steps.

    1  UNSUB everything and a fence: at its PONG all messages in flight have arrived
    2  the user takes the messages that arrived, and may publish answers
    3  flush, then close

A graceful close is step 3 alone. Without a connection step 1 completes at once, and step 3 waits
for a connection if there is anything to send. One deadline bounds all steps: when it passes, the
client is closed, and the error counts the messages that were left.
"""

from __future__ import annotations

from natsproto.errors import ConnectionClosed, ConnectionLost, TimeoutExpired

from .waitable import Request

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.errors import MessagesUnconfirmed, NatsError

    from .bus import Bus
    from .pings import Pings
    from .receiver import Receiver


class Drain(Request):
    """A drain in progress, settled when the client is closed; `advance` moves it forward.

    If `receivers` is None, it only closes the client and waits for no subscription.
    """

    __slots__ = ("_again", "_complete", "_expired", "_flush", "_pings", "_receivers", "_seen")

    def __init__(self, pings: Pings, deadline: float, receivers: list[Receiver] | None) -> None:
        super().__init__("close" if receivers is None else "drain", deadline)
        self._pings = pings
        self._receivers = receivers
        self._flush: Request | None = None
        self._seen = 0  # how many publishes the flush covers
        self._again = True  # whether later ones get a separate flush
        self._expired = False  # whether the deadline has passed (DRAIN-4)
        self._complete = False  # whether all steps are done

    def advance(self) -> bool:
        """Return True when the client must be closed: everything is done, or time is up."""
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
            # the user may be publishing all the time.
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
        """Settle the drain: the client is closed with this loss and for this reason.

        Return False if it was settled before.
        """
        error = loss  # D-DRAIN-10, D-CONN-28
        if error is None and self._receivers is not None:
            if self._expired:
                text = "drain timed out: %d messages were not taken"
                error = TimeoutExpired(text % self.left())
            elif not self._complete:
                error = ConnectionClosed(closed)  # DRAIN-7
        return self.finish(error=error)


class Ending:
    """The drain and the graceful close of one client, either of which may begin during the other.

    If neither has begun when the client is closed, the loss is kept until `report_loss`.
    """

    __slots__ = ("_bus", "_close", "_loss", "_pings", "drain", "has_begun")

    def __init__(self, bus: Bus, pings: Pings) -> None:
        self._bus = bus
        self._pings = pings
        #: The drain of the client; None before it begins.
        self.drain: Drain | None = None
        self._close: Drain | None = None
        self._loss: MessagesUnconfirmed | None = None
        #: Whether the client is about to be closed.
        self.has_begun: bool = False

    def start_drain(self, deadline: float, receivers: list[Receiver]) -> Drain:
        """Begin the drain; its fence was sent to these receivers."""
        self.drain = Drain(self._pings, deadline, receivers)
        return self._begin(self.drain)

    def start_close(self, deadline: float) -> Drain:
        """Begin the close, or move its deadline to an earlier time."""
        close = self._close
        if close is None:
            self._close = close = Drain(self._pings, deadline, None)
        elif close.deadline is not None and deadline < close.deadline:
            close.deadline = deadline  # a second caller has an earlier deadline
        return self._begin(close)

    def _begin(self, request: Drain) -> Drain:
        self.has_begun = True
        self._bus.timers.arm(request)
        return request

    def owns(self, request: Request) -> bool:
        """Return whether this is the drain or the close; canceling a caller does not end these."""
        return request is self.drain or request is self._close

    def is_due(self) -> bool:
        """Return whether the client must be closed now."""
        drain, close = self.drain, self._close
        return (drain is not None and drain.advance()) or (close is not None and close.advance())

    def closed(self, loss: MessagesUnconfirmed | None, reason: str) -> None:
        """Settle the drain or close in progress: the client is closed with this loss and reason."""
        self._loss = loss
        self.settle(reason)
        if self.has_begun:
            self._loss = None  # its callers are notified

    def settle(self, reason: str) -> None:
        """Settle the drain and the close, unless that was done before."""
        for request in (self.drain, self._close):
            if request is not None and request.settle(self._loss, reason):
                self._bus.ready.append(request)

    def report_loss(self) -> Request:
        """Return a settled close, with the loss if it was not reported before."""
        request = Request("close")
        request.finish(error=self._loss)
        self._loss = None
        return request
