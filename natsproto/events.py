"""News for the user: what happened to the connection, as `client.events` gives it."""

from __future__ import annotations

from ._record import Record
from .waitable import Waitable

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
    """A subscription was full: `dropped` messages were lost since the last such event."""

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


class EventQueue(Waitable):
    """Events that the user has not taken yet: the newest `limit` of them.

    Drops are never lost: what a forgotten SlowConsumer event told is added to the next one of its
    subscription, and so are drops while one is still waiting to be read.
    """

    __slots__ = ("_events", "limit")

    def __init__(self, limit: int = 256) -> None:
        super().__init__()
        self.limit = limit
        self._events: list[Event] = []

    def add(self, event: Event) -> None:
        if isinstance(event, SlowConsumer):
            event.dropped += self._forget(event.sid)
        self._events.append(event)
        if len(self._events) > self.limit:
            self._make_room()

    def _forget(self, sid: int) -> int:
        """Take back the unread SlowConsumer of this subscription; returns what it told."""
        for i, event in enumerate(self._events):
            if isinstance(event, SlowConsumer) and event.sid == sid:
                self._events[i : i + 1] = []
                return event.dropped
        return 0

    def _make_room(self) -> None:
        """Drop the oldest event that is no SlowConsumer, or the oldest."""
        for i, event in enumerate(self._events):
            if not isinstance(event, SlowConsumer):
                self._events[i : i + 1] = []
                return
        self._events[:1] = []

    def pop(self) -> Event | None:
        """The oldest event, None if there is none."""
        if not self._events:
            return None
        return self._events.pop(0)
