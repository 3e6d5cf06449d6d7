"""The events of a connection, as `client.events` reports them.

An event is data: a machine returns it, programs read it, and the adapter writes it to the log. So
each has a `level` for the log, and a `text` for people.
"""

from __future__ import annotations

from .connection.waitable import Reports, Waitable
from .wire.record import Record
from .wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from .errors import NatsError

# The levels of events in the log (D-LOG-1).
DEBUG = "debug"
INFO = "info"
WARNING = "warning"


class Event(Record):
    """Base class of events."""

    __slots__: tuple[str, ...] = ()

    @property
    def level(self) -> str:
        """The level in the log: "debug", "info" or "warning"."""
        return self._level()

    @property
    def text(self) -> str:
        """The event in words, without payloads and credentials."""
        return self._text()

    def _level(self) -> str:
        return WARNING

    def _text(self) -> str:
        return repr(self)


class Connected(Event):
    """The client is connected and subscribed. `again` is True after a reconnect."""

    __slots__ = ("again", "url")

    def __init__(self, url: str, again: bool) -> None:
        self.url: str = url
        self.again: bool = again

    def _level(self) -> str:
        return INFO

    def _text(self) -> str:
        return "%s to %s" % ("reconnected" if self.again else "connected", self.url)


class Disconnected(Event):
    """The connection to this server ended; `error` is None if the client ended it."""

    __slots__ = ("error", "url")

    def __init__(self, url: str, error: NatsError | None) -> None:
        self.url: str = url
        self.error: NatsError | None = error

    def _level(self) -> str:
        return INFO if self.error is None else WARNING

    def _text(self) -> str:
        reason = "by the client" if self.error is None else self.error
        return "disconnected from %s: %s" % (self.url, reason)


class AttemptFailed(Event):
    """A connection attempt failed; the client tries the next server."""

    __slots__ = ("error", "url")

    def __init__(self, url: str, error: NatsError) -> None:
        self.url: str = url
        self.error: NatsError = error

    def _text(self) -> str:
        return "could not connect to %s: %s" % (self.url, self.error)


class ServerChoiceFailed(Event):
    """The option `choose_server` failed with `error`; the client chose the server itself."""

    __slots__ = ("error",)

    def __init__(self, error: NatsError) -> None:
        self.error: NatsError = error


class Discovered(Event):
    """New cluster members were discovered."""

    __slots__ = ("urls",)

    def __init__(self, urls: list[str]) -> None:
        self.urls: list[str] = urls

    def _level(self) -> str:
        return DEBUG

    def _text(self) -> str:
        return "discovered servers: %s" % ", ".join(self.urls)


class LameDuck(Event):
    """The server is shutting down; the client moves to another server if it knows one."""

    __slots__ = ("url",)

    def __init__(self, url: str) -> None:
        self.url: str = url

    def _level(self) -> str:
        return INFO

    def _text(self) -> str:
        return "server %s is about to stop (lame duck mode)" % self.url


class ServerError(Event):
    """The server sent -ERR; a permissions violation is a PermissionDenied."""

    __slots__ = ("error",)

    def __init__(self, error: NatsError) -> None:
        self.error: NatsError = error

    def _text(self) -> str:
        return "server reported an error: %s" % self.error


class SlowConsumer(Event):
    """A subscription's queue was full: `dropped` messages were lost since the previous event.

    With an empty subject and sid 0, the event is the sum over several subscriptions, because more
    of them were slow than a reader keeps events for.
    """

    __slots__ = ("dropped", "sid", "subject")

    def __init__(self, subject: str, sid: int, dropped: int) -> None:
        self.subject: str = subject
        self.sid: int = sid
        self.dropped: int = dropped

    def _text(self) -> str:
        if not self.sid:
            return "several subscriptions dropped %d messages: queues full" % self.dropped
        place = (self.sid, shorten(self.subject), self.dropped)
        return "subscription %d to %s dropped %d messages: queue full" % place


class PublishDropped(Event):
    """A buffered message was dropped: it exceeds the max_payload of the new server."""

    __slots__ = ("size", "subject")

    def __init__(self, subject: str, size: int) -> None:
        self.subject: str = subject
        self.size: int = size

    def _text(self) -> str:
        text = "publish to %s dropped: its %d bytes exceed the max_payload of the new server"
        return text % (shorten(self.subject), self.size)


class Closed(Event):
    """The last event: the user closed the client (`error` is None), or it failed permanently.

    `unconfirmed` counts the published messages that the server may not have received.
    """

    __slots__ = ("error", "unconfirmed")

    def __init__(self, error: NatsError | None, unconfirmed: int = 0) -> None:
        self.error: NatsError | None = error
        self.unconfirmed: int = unconfirmed

    def _level(self) -> str:
        return INFO if self.error is None and not self.unconfirmed else WARNING

    def _text(self) -> str:
        text = "closed" if self.error is None else "closed: %s" % self.error
        if self.unconfirmed:
            text += " (%d messages are unconfirmed)" % self.unconfirmed
        return text


class Unread:
    """The events that one reader has not taken yet, at most `limit` of them.

    If there are more, the oldest event that is not listed here is discarded; if there is none, the
    first of these that applies:

        SlowConsumer             the two oldest become one (D-EVENT-9: no drop goes unreported)
        Connected, Disconnected  the oldest is discarded
        Closed                   is kept (D-EVENT-6)

    `position` counts the events up to the last one that was taken. `left` means that the reader is
    gone, and `leads` means that later readers start after the events that this one has taken.
    """

    __slots__ = ("_count", "_events", "_limit", "leads", "left", "position")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0
        self._events: list[Event] = []
        self.position: int = 0
        self.leads: bool = False
        self.left: bool = False

    def copy(self) -> Unread:
        """Return the list of another reader, which starts at the position of this one."""
        other = Unread(self._limit)
        other._events = list(self._events)
        other._count = self._count
        other.position = self.position
        return other

    def add(self, event: Event) -> None:
        """Append an event; if there are too many, discard or merge one."""
        self._count += 1
        if isinstance(event, SlowConsumer):
            event = self._merge(event, event.sid, event.subject)
        self._events.append(event)
        if len(self._events) > self._limit:
            self._make_room()

    def _merge(self, event: SlowConsumer, sid: int, subject: str) -> SlowConsumer:
        """Remove the SlowConsumer of this sid; return an event that reports both."""
        for i, old in enumerate(self._events):
            if isinstance(old, SlowConsumer) and old.sid == sid:
                self._events[i : i + 1] = []
                # A new event, because other readers have the old one.
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
        """Remove and return the oldest event; None if there is none."""
        if not self._events:
            return None
        event = self._events.pop(0)
        self.position = self._count - len(self._events)
        return event


class EventQueue(Waitable):
    """The events of a connection, for any number of readers, each with its own position.

    A new reader starts with the first event that was not returned by a reader that is gone or that
    leads, as `pop` does (D-EVENT-8). So consecutive loops see each event once, and each of several
    simultaneous loops sees all of them.
    """

    __slots__ = ("_log", "_popped", "_readers", "_start", "reports")

    def __init__(self, limit: int = 256) -> None:  # D-EVENT-5
        super().__init__()
        self._log = Reports()
        self.reports: Reports | None = self._log
        self._start = Unread(limit)  # where the next reader starts
        self._readers: list[Unread] = []
        self._popped: Unread | None = None

    def add(self, event: Event) -> None:
        """Add an event for all readers, and for the log."""
        self._settle()
        for unread in self._readers:
            unread.add(event)
        if self._start not in self._readers:
            self._start.add(event)
        self._log.add(event)

    def reader(self, *, leads: bool = False) -> Unread:
        """Return the events of a new reader, which sets `left` when it is done."""
        self._settle()
        unread = self._start.copy()
        unread.leads = leads
        self._readers.append(unread)
        return unread

    def pop(self) -> Event | None:
        """Remove and return the next event, or None, for a caller that has no reader."""
        if self._popped is None:
            self._popped = self.reader(leads=True)
        return self._popped.pop()

    def _settle(self) -> None:
        """Remove the readers that are gone, and update where the next one begins."""
        # A reader only sets a flag when it goes, because a garbage collector may do it in any
        # thread.
        for unread in list(self._readers):
            if unread.left:
                self._readers.remove(unread)
            if (unread.left or unread.leads) and unread.position >= self._start.position:
                self._start = unread
