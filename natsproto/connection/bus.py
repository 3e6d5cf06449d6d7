"""Bus: the place where the parts of a connection report.

A part never sees the connection that owns it. It returns what the owner has to do, or it reports
here: an effect, a waitable that became ready, an event, a deadline. The lifecycle alone writes
`online` and `closed`; the other parts read them.
"""

from __future__ import annotations

from natsproto.errors import ConnectionClosed
from natsproto.events import EventQueue

from .timers import Timers

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.events import Event

    from .effects import Effect
    from .waitable import Waitable


class Bus:
    """The state that every part of one connection may use."""

    __slots__ = ("closed", "effects", "events", "online", "ready", "timers")

    def __init__(self) -> None:
        #: What the adapter has to do, in this order.
        self.effects: list[Effect] = []
        #: The waitables whose callers the adapter has to wake.
        self.ready: list[Waitable] = []
        self.events: EventQueue = EventQueue()
        self.timers: Timers = Timers()
        #: Whether SUB, UNSUB and PING can be sent.
        self.online: bool = False
        #: Why the connection is closed for good; "" while it is open.
        self.closed: str = ""

    def emit(self, event: Event) -> None:
        """Notify the readers of events."""
        self.events.add(event)
        self.ready.append(self.events)

    def check_open(self) -> None:
        """Raise ConnectionClosed if the connection is closed for good."""
        if self.closed:
            raise ConnectionClosed(self.closed)

    def wake_at(self, waitable: Waitable, deadline: float) -> None:
        """Make the waitable ready at that time, so that a caller with a timeout checks again."""
        if waitable.deadline is None or waitable.deadline > deadline:
            waitable.deadline = deadline
            self.timers.arm(waitable)
