"""LameDuck: leave a server that is about to stop, early enough and without losing messages.

    state       meaning                              input          next
    healthy     the server has announced nothing     INFO ldm       noticed, and an event
    noticed     there is no other server to go to    another one    scheduled
    scheduled   a random pause, so that not all      the timer      leaving, or noticed if the
                clients leave at the same moment                    reason to leave is gone
    leaving     publishes are held back, a PING is   its PONG, or   the connection hangs up and
                sent after the last one              its deadline   dials another server

There is one for each connection to a server; it is dropped with the connection.
"""

from __future__ import annotations

from natsproto.events import LameDuck as LameDuckEvent

from .waitable import Request, Waitable

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from .bus import Bus
    from .servers import Rng

# Clients of a lame duck leave within this time, each at a random moment of it.
_SPREAD = 1.0


class LameDuck:
    """The departure from one server, from its first notice to the hangup."""

    __slots__ = ("_bus", "_noticed", "_rng", "fence", "timer")

    def __init__(self, bus: Bus, rng: Rng) -> None:
        self._bus = bus
        self._rng = rng
        self._noticed = False
        #: When to leave.
        self.timer: Waitable = Waitable()
        #: The PING before leaving; None until then.
        self.fence: Request | None = None

    def notice(self, url: str, now: float, can_leave: bool) -> None:  # LDM-1
        """Report the server's notice once, and schedule the move if there is a place to go."""
        if not self._noticed:
            self._noticed = True
            self._bus.emit(LameDuckEvent(url))
        if self.timer.deadline is None and self.fence is None and can_leave:
            self.timer.deadline = now + self._rng.random() * _SPREAD  # LDM-2
            self._bus.timers.arm(self.timer)

    def leave(self, deadline: float) -> Request:
        """Return the request to send a PING for: when it is settled, the server can be left."""
        self.timer.deadline = None
        self.fence = Request("move", deadline)  # D-LDM-4
        self._bus.timers.arm(self.fence)
        return self.fence

    @property
    def is_over(self) -> bool:
        """Return whether it is time to hang up."""
        return self.fence is not None and self.fence.done

    def stop(self) -> None:
        """Disarm the timer: the connection is gone, or stays."""
        self.timer.deadline = None
