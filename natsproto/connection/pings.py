"""Pings: PINGs in flight, and what their PONGs confirm.

The server answers PINGs in order and after everything that was sent before them. A PONG therefore
settles the oldest PING, and confirms the messages that were sent before it.

    a PING is sent      its PONG
    to keep alive       proves that the server is alive; without enough of them it is given up
    for a flush         settles the flush
    as a fence          settles a drain: no message is in flight to its subscriptions anymore
    for a lame duck     says that the server can be left

    input               PINGs that wait                   flushes without a connection
    start_flush         one more, or, without a           one more
                        connection:
    pong                the oldest is settled             -
    connected           one for each flush                all become PINGs
    disconnected        all fail with ConnectionLost      -
    close               all fail with ConnectionClosed    all fail with ConnectionClosed
"""

from __future__ import annotations

from natsproto.errors import ConnectionClosed, ConnectionLost, MessagesUnconfirmed
from natsproto.wire import encode

from .waitable import Request

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.errors import NatsError

    from .bus import Bus
    from .outbound import Outbound
    from .receiver import Receiver

PING = encode.ping()
PONG = encode.pong()


class Fence(Request):
    """A PING sent after UNSUBs: at its PONG, no message is in flight to these receivers."""

    __slots__ = ("receivers",)

    def __init__(self, what: str, deadline: float | None, receivers: list[Receiver]) -> None:
        super().__init__(what, deadline)
        self.receivers: list[Receiver] = receivers


class Pings:
    """The PINGs of one connection, and the count of messages that the server has confirmed."""

    __slots__ = (
        "_bus",
        "_confirmed",
        "_flushes",
        "_in_doubt",
        "_outbound",
        "_waiting",
        "last_pong",
    )

    def __init__(self, bus: Bus, outbound: Outbound) -> None:
        self._bus = bus
        self._outbound = outbound
        # The oldest first: the request that a PONG settles, if any, and the messages it confirms.
        self._waiting: list[tuple[Request | None, int]] = []
        self._flushes: list[Request] = []  # flushes that wait for a connection
        self._confirmed = 0  # messages that the server has received, or that were lost before
        self._in_doubt = 0  # messages that were lost with their transport during a close
        #: When the server last answered a PING; None: never.
        self.last_pong: float | None = None

    def ping(self, request: Request | None = None) -> None:
        """Send a PING; its PONG settles the request. Without a request, it is a keep-alive PING."""
        self._outbound.add(PING)
        self._waiting.append((request, self._outbound.passed))

    def pong(self) -> Request | None:
        """Return the request that a PONG answers, or None; the caller settles it."""
        if not self._waiting:
            return None
        request, self._confirmed = self._waiting.pop(0)  # PING-4
        return request

    @property
    def unanswered(self) -> int:
        """The number of keep-alive PINGs without a PONG."""
        return len([request for request, _ in self._waiting if request is None])

    @property
    def fenced(self) -> bool:
        """Whether a drain waits for its PONG."""
        return any(isinstance(request, Fence) for request, _ in self._waiting)

    @property
    def published(self) -> int:
        """The number of messages that were sent or wait to be sent."""
        return self._outbound.stats.out_msgs

    @property
    def idle(self) -> bool:
        """Whether there is no connection, and no message waits for one."""
        return not self._bus.online and not self._outbound.waits

    def start_flush(self, deadline: float | None) -> Request:
        """Send a PING; its PONG shows that the server has processed everything sent before."""
        request = Request("flush", deadline)
        if self._bus.closed:
            request.finish(error=ConnectionClosed(self._bus.closed))
        elif self._outbound.holding:
            self._flushes.append(request)
        else:
            self.ping(request)
        self._bus.timers.arm(request)
        return request

    def forget(self, request: Request) -> None:
        """Forget a settled flush; a PING that was sent still waits for its PONG."""
        if request in self._flushes:
            self._flushes.remove(request)

    def connected(self) -> None:
        """Send the flushes that waited for a connection."""
        for request in self._flushes:
            self.ping(request)
        self._flushes = []

    def disconnected(self, closing: bool) -> None:  # D-RECON-10
        """Fail everything that waits for a PONG, because none will arrive."""
        waiting, self._waiting = self._waiting, []
        for request, _ in waiting:
            if request is not None:
                text = "connection lost before the %s was complete" % request.what
                self._fail(request, ConnectionLost(text))
        passed = self._outbound.passed
        if closing:
            self._in_doubt += passed - self._confirmed
        self._confirmed = passed

    def disclaim(self) -> None:
        """Count everything that was published as confirmed: another process sends it."""
        self._confirmed = self._outbound.accepted

    def close(self, reason: str) -> MessagesUnconfirmed | None:
        """Fail everything; return the loss, if the server may not have received all (D-CONN-28)."""
        for request in [request for request, _ in self._waiting] + self._flushes:
            if request is not None:
                self._fail(request, ConnectionClosed(reason))
        self._waiting = []
        self._flushes = []
        unsent = self._outbound.count_unsent()
        in_doubt = self._outbound.accepted - self._confirmed - unsent + self._in_doubt
        return MessagesUnconfirmed(unsent, in_doubt) if unsent or in_doubt else None

    def _fail(self, request: Request, error: NatsError) -> None:
        if request.finish(error=error):
            self._bus.ready.append(request)
