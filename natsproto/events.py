"""News for the user: what happened to the connection, as `client.events` gives it."""

from __future__ import annotations

from .connection.waitable import Waitable
from .wire.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .errors import NatsError


class Event(Record):
    """Base of all news."""

    __slots__: tuple[str, ...] = ()


class Connected(Event):
    """The handshake is done; subscriptions are in force. `again`: after a loss."""

    __slots__ = ("again", "url")

    def __init__(self, url: str, again: bool) -> None:
        self.url = url
        self.again = again


class Disconnected(Event):
    """The transport is lost, and why; None: it was given up on purpose."""

    __slots__ = ("error", "url")

    def __init__(self, url: str, error: NatsError | None) -> None:
        self.url = url
        self.error = error


class AttemptFailed(Event):
    """A server could not be reached or refused us; the next one is tried."""

    __slots__ = ("error", "url")

    def __init__(self, url: str, error: NatsError) -> None:
        self.url = url
        self.error = error


class Discovered(Event):
    """The cluster told of members that were not known."""

    __slots__ = ("urls",)

    def __init__(self, urls: list[str]) -> None:
        self.urls = urls


class LameDuck(Event):
    """The server is about to stop; the client moves to another one if it knows any."""

    __slots__ = ("url",)

    def __init__(self, url: str) -> None:
        self.url = url


class ServerError(Event):
    """The server said -ERR; a broken permission comes as PermissionDenied."""

    __slots__ = ("error",)

    def __init__(self, error: NatsError) -> None:
        self.error = error


class SlowConsumer(Event):
    """A subscription was full: `dropped` messages were lost since the last such event.

    Without a subject, and with sid 0, it is the sum over several subscriptions: more of them were
    slow than a reader keeps events for.
    """

    __slots__ = ("dropped", "sid", "subject")

    def __init__(self, subject: str, sid: int, dropped: int) -> None:
        self.subject = subject
        self.sid = sid
        self.dropped = dropped


class PublishDropped(Event):
    """A message that waited for a connection is above the new server's max_payload: not sent."""

    __slots__ = ("size", "subject")

    def __init__(self, subject: str, size: int) -> None:
        self.subject = subject
        self.size = size


class Closed(Event):
    """The last event: closed by the user (error is None) or for good by a failure.

    `unconfirmed` counts the published messages that the server may not have received.
    """

    __slots__ = ("error", "unconfirmed")

    def __init__(self, error: NatsError | None, unconfirmed: int = 0) -> None:
        self.error = error
        self.unconfirmed = unconfirmed


class Unread:
    """The events that one reader has not taken yet, `limit` of them at most.

    If there are more, the oldest goes that is not listed here; then, of these, from the top:

        SlowConsumer             the two oldest become one (EVENT-9: no drop goes unreported)
        Connected, Disconnected  the oldest goes
        Closed                   stays (EVENT-6)

    `position` counts the events up to the last one that was taken. `left`: the reader is gone.
    `leads`: later readers start after what this one has taken.
    """

    __slots__ = ("_count", "_events", "_limit", "leads", "left", "position")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0
        self._events: list[Event] = []
        self.position = 0
        self.leads = False
        self.left = False

    def copy(self) -> Unread:
        """Return another reader's list, which starts at the position of this one."""
        other = Unread(self._limit)
        other._events = list(self._events)
        other._count = self._count
        other.position = self.position
        return other

    def add(self, event: Event) -> None:
        self._count += 1
        if isinstance(event, SlowConsumer):
            event = self._merge(event, event.sid, event.subject)
        self._events.append(event)
        if len(self._events) > self._limit:
            self._make_room()

    def _merge(self, event: SlowConsumer, sid: int, subject: str) -> SlowConsumer:
        """Take the SlowConsumer of this sid out; returns an event that reports both."""
        for i, old in enumerate(self._events):
            if isinstance(old, SlowConsumer) and old.sid == sid:
                self._events[i : i + 1] = []
                # Not by changing the event: other readers have it, too.
                return SlowConsumer(subject, sid, old.dropped + event.dropped)
        return event

    def _make_room(self) -> None:
        slow: list[int] = []
        states: list[int] = []
        for i, event in enumerate(self._events):
            if isinstance(event, SlowConsumer):
                slow.append(i)
            elif isinstance(event, (Connected, Disconnected)):
                states.append(i)
            elif not isinstance(event, Closed):
                self._events[i : i + 1] = []
                return
        if len(slow) > 1:
            self._add_up(slow[0], slow[1])
        elif states:
            self._events[states[0] : states[0] + 1] = []

    def _add_up(self, first: int, second: int) -> None:
        a, b = self._events[first], self._events[second]
        assert isinstance(a, SlowConsumer)
        assert isinstance(b, SlowConsumer)
        self._events[second] = SlowConsumer("", 0, a.dropped + b.dropped)
        self._events[first : first + 1] = []

    def pop(self) -> Event | None:
        """The oldest event, None if there is none."""
        if not self._events:
            return None
        event = self._events.pop(0)
        self.position = self._count - len(self._events)
        return event


class EventQueue(Waitable):
    """What happened to the connection, for any number of readers, each with its own position.

    A new reader starts with the first event that was not returned by a reader that is gone or that
    leads, as `pop` does (EVENT-8). So consecutive loops see each event once, and simultaneous ones
    all see all of them.
    """

    __slots__ = ("_popped", "_readers", "_start")

    def __init__(self, limit: int = 256) -> None:  # EVENT-5
        super().__init__()
        self._start = Unread(limit)  # where the next reader begins
        self._readers: list[Unread] = []
        self._popped: Unread | None = None

    def add(self, event: Event) -> None:
        self._settle()
        for unread in self._readers:
            unread.add(event)
        if self._start not in self._readers:
            self._start.add(event)

    def reader(self, *, leads: bool = False) -> Unread:
        """Return the events of a new reader; it sets `left` when it is done."""
        self._settle()
        unread = self._start.copy()
        unread.leads = leads
        self._readers.append(unread)
        return unread

    def pop(self) -> Event | None:
        """The next event, None if there is none; for a caller that has no reader."""
        if self._popped is None:
            self._popped = self.reader(leads=True)
        return self._popped.pop()

    def _settle(self) -> None:
        """Dismiss the readers that are gone, and find out where the next one begins."""
        # A reader that is gone sets a flag and no more: a garbage collector may do it in any
        # thread.
        for unread in list(self._readers):
            if unread.left:
                self._readers.remove(unread)
            if (unread.left or unread.leads) and unread.position >= self._start.position:
                self._start = unread
