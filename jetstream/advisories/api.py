"""Advisories: iterate the events that JetStream servers publish."""

from __future__ import annotations

from natsproto.errors import InvalidState
from natsproto.wire.subjects import check_publish

from .feed import Feed, Source
from .kinds import EVENT_PREFIX, read_advisory, subjects_of

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self

    from jetstream.api.client import ApiClient
    from natsproto.durations import Seconds
    from natsproto.session import Session

    from .event import Advisory
    from .kinds import Kind

_TURN = 64  # events that an iteration returns before it lets other tasks run


def open_advisories(
    api: ApiClient,
    kinds: Sequence[Kind],
    stream: str | None,
    consumer: str | None,
    prefix: str = EVENT_PREFIX,
) -> Advisories:
    """Subscribe to events of these kinds, or of all kinds, of a stream or a consumer."""
    check_publish(prefix, "prefix of events")
    subjects = subjects_of(kinds, stream, consumer, prefix)  # ADVIS-2
    return Advisories(api.session, subjects, domain_of(api.prefix))


def domain_of(prefix: str) -> str:
    """Return the domain that the prefix of an API selects, "" for none."""
    parts = prefix.split(".")
    return parts[1] if len(parts) == 3 and (parts[0], parts[2]) == ("$JS", "API") else ""


class Advisories:
    """Events of JetStream servers: iterate them, or take one after the other with `next`.

    Servers publish events once and do not store them: an event is lost if no client is subscribed
    at that moment, such as during a reconnect. The iteration ends with `stop` or the end of the
    client. It raises PermissionDenied if the server refuses a subscription.
    """

    def __init__(self, session: Session, subjects: list[str], domain: str = "") -> None:
        self._session = session
        self._subjects = subjects
        self._domain = domain
        self._turn = _TURN
        connection = session.connection
        options = connection.options
        self._feed = Feed(options.max_msgs, options.max_bytes)
        for subject in subjects:
            connection.subscribe(subject, Source(self._feed))
        session.port.flush_soon()

    @property
    def subjects(self) -> list[str]:
        """The subjects that it is subscribed to."""
        return list(self._subjects)

    @property
    def pending(self) -> int:
        """Number of events that wait to be taken."""
        return self._feed.pending()

    @property
    def dropped(self) -> int:
        """Number of events that did not fit in the queue, since the start."""
        return self._feed.dropped

    @property
    def closed(self) -> bool:
        """Whether the iteration has ended and all events were taken."""
        return self._feed.ended and not self._feed.pending()

    async def next(self, timeout: Seconds | None = None) -> Advisory:
        """Return the next event; raise TimeoutExpired, or InvalidState after the end.

        A timeout of 0 polls: it returns an event only if there is one.
        """
        session = self._session
        deadline = None if timeout is None else session.deadline(timeout)
        while True:
            event = self._take()
            if event is not None:
                return event
            if self._feed.ended:
                raise self._feed.error or InvalidState("the subscription to advisories has ended")
            await session.wait(self._feed, deadline, "advisory")

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Advisory:
        self._turn -= 1
        if not self._turn:
            self._turn = _TURN
            await self._session.port.checkpoint()
        while True:
            event = self._take()
            if event is not None:
                return event
            if self._feed.ended:
                if self._feed.error is not None:
                    raise self._feed.error
                raise StopAsyncIteration
            await self._session.port.wait(self._feed)

    def _take(self) -> Advisory | None:
        """Return the next event of the domain, None if there is none now."""
        feed = self._feed
        while feed.pending():
            event = read_advisory(feed.pop())
            if self.closed:
                # Taking the last message may complete a drain.
                self._session.connection.consumed(self._session.port.now())
                self._session.port.flush_soon()
            if not self._domain or event.domain == self._domain:  # D-ADVIS-7
                return event
        return None

    async def stop(self) -> None:
        """End the subscription now; events that were not taken are discarded."""
        connection = self._session.connection
        self._feed.clear()
        for source in self._feed.sources:
            connection.unsubscribe(source.sid)
        connection.consumed(self._session.port.now())
        self._session.port.flush_soon()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    def __repr__(self) -> str:
        return "<Advisories of %s, %d pending>" % (", ".join(self._subjects), self.pending)
