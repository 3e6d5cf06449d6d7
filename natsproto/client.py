"""Client and Events: the API, written once for every runtime.

The coroutines here await a Port and each other, nothing else: asyncio, uvloop and trio run them as
they are, `natsproto.blocking` runs them to their end without a loop.
"""

from __future__ import annotations

from .connection.states import CLOSED, CONNECTED
from .errors import ConnectionClosed, MessagesUnconfirmed
from .session import Session, check_count, check_seconds
from .subscription import Subscription
from .wire.text import cut_middle

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .connection.machine import Connection
    from .connection.outbound import Stats
    from .events import Event, Unread
    from .options import ServersLike
    from .port import Port
    from .wire.encode import BytesLike
    from .wire.frames import Info, Msg
    from .wire.headers import HeadersLike


class Client:
    """A connection to NATS. Made by `connect()` of an adapter."""

    def __init__(self, connection: Connection, port: Port) -> None:
        self._connection = connection
        self._port = port
        #: For those who build on a client: its connection and port.
        self.session: Session = Session(connection, port)
        #: What happens to the connection: iterate, or ask for the next one.
        self.events: Events = Events(self.session)

    @property
    def info(self) -> Info | None:
        """What the server said about itself last; None before the first connection."""
        return self._connection.info

    @property
    def state(self) -> str:
        """NEW, DIALING, OPENING, SECURING, GREETING, CONNECTED, WAITING or CLOSED."""
        return self._connection.state

    @property
    def stats(self) -> Stats:
        """Messages and bytes in both directions, and how often it connected; it counts on."""
        return self._connection.stats

    @property
    def connected_url(self) -> str:
        """The server of this moment, without credentials; "" if there is none."""
        server = self._connection.pool.current
        if server is None or self._connection.state != CONNECTED:
            return ""
        return str(server.url)

    @property
    def servers(self) -> list[str]:
        """All known servers, without credentials, the next to try first."""
        return [str(url) for url in self._connection.pool.urls]

    def set_servers(self, servers: ServersLike) -> None:
        """Replace the servers to reconnect to, discovered ones included."""
        self._connection.pool.set_servers(servers)

    async def publish(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        reply: str = "",
        headers: HeadersLike | None = None,
    ) -> None:
        """Send a message. Waits only while too much is on its way out already.

        Without a connection the message waits for one, up to `max_pending_out` bytes in all;
        then PendingBufferFull. LocalError: it cannot be sent, and was not.
        """
        if self._connection.publish(subject, data, reply, headers):
            await self.session.make_room()

    async def request(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        timeout: float = 2.0,
        headers: HeadersLike | None = None,
    ) -> Msg:
        """Send a request and return the first response.

        Raises NoResponders if the subject has no subscribers, TimeoutExpired without a response.
        """
        deadline = self.session.answer_deadline(timeout)
        request = self._connection.start_request(subject, data, deadline=deadline, headers=headers)
        reply = await self.session.settle(request)
        assert reply is not None
        return reply

    async def request_many(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        timeout: float = 2.0,
        max_msgs: int = 0,
        max_bytes: int = 0,
        stall: float = 0.0,
        sentinel: Callable[[Msg], bool] | None = None,
        headers: HeadersLike | None = None,
    ) -> list[Msg]:
        """Send a request and return all responses (ADR-47), in a list that may be empty.

        Raises NoResponders if the subject has no subscribers.

        It ends when `max_msgs` came, when none came for `stall` seconds after the last, when the
        sentinel is true for one (which is left out), or at the timeout. TooManyReplies, which has
        what was kept: without `max_msgs` more came than the client's default for a subscription, or
        more than `max_bytes` (0: that default).
        """
        gather = self._connection.start_gather(
            subject,
            data,
            deadline=self.session.answer_deadline(timeout),
            headers=headers,
            max_msgs=check_count("max_msgs", max_msgs),
            stall=check_seconds("stall", stall),
            max_bytes=check_count("max_bytes", max_bytes),
        )
        self._port.flush_soon()
        seen = 0
        try:
            while True:
                for msg in gather.replies[seen:]:
                    if sentinel is not None and sentinel(msg):
                        return gather.replies[:seen]
                    seen += 1
                if gather.done:
                    break
                await self._port.wait(gather)
        finally:
            self._connection.cancel(gather)
        if gather.error is not None:
            raise gather.error
        return gather.replies

    async def subscribe(
        self, subject: str, *, queue: str = "", max_msgs: int = 0, max_bytes: int = 0
    ) -> Subscription:
        """Get messages of the subject. With a queue, each message goes to one of its members.

        The subscription keeps at most `max_msgs` messages and `max_bytes` bytes until they are
        taken (0: the client's defaults); what does not fit is dropped, counted in `dropped`, and
        told by a SlowConsumer event.
        """
        self._port.now()  # D-CONN-33: refuses, before anything is noted, where it must not be used
        mailbox = self._connection.mailbox(
            check_count("max_msgs", max_msgs), check_count("max_bytes", max_bytes)
        )
        self._connection.subscribe(subject, mailbox, queue=queue)
        self._port.flush_soon()
        return Subscription(self.session, mailbox)

    async def flush(self, timeout: float = 10.0) -> None:
        """Wait until the server has processed everything that was sent before."""
        deadline = self.session.answer_deadline(timeout)
        await self.session.settle(self._connection.start_flush(deadline))

    async def drain(self, timeout: float = 30.0) -> None:
        """End gracefully: unsubscribe, wait until what arrived is taken, flush, close.

        Raises TimeoutExpired if that takes too long, and MessagesUnconfirmed, which is one, if
        published messages are left. The client is closed in any case.
        """
        deadline = self.session.answer_deadline(timeout)
        connection = self._connection
        closed = connection.state == CLOSED
        start = connection.start_close if closed else connection.start_drain
        try:
            await self.session.settle(start(deadline))
        finally:
            if connection.closed:  # D-DRAIN-8: not if the caller was canceled
                await self._port.aclose()

    async def close(self, timeout: float = 2.0) -> None:
        """Send what was published and close, within the timeout. Closing twice is fine.

        Without a connection it waits for one if there is anything to send. Raises
        MessagesUnconfirmed, which counts them, if the server has not confirmed all messages by
        then. The client is closed in any case. With a timeout of 0 it waits for nothing.
        """
        deadline = self.session.deadline(timeout)
        try:
            await self.session.settle(self._connection.start_close(deadline))
        finally:
            self._connection.close(self._port.now())
            self._port.flush_soon()
            await self._port.aclose()

    async def force_reconnect(self) -> None:
        """Leave this server and connect again, to another one if there is any."""
        self._connection.force_reconnect(self._port.now())
        self._port.flush_soon()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        await leave(self, kind)

    def __repr__(self) -> str:
        return "<Client %s %s>" % (self.state, cut_middle(str(self.connected_url)))


async def leave(
    client: Client, kind: type[BaseException] | None, timeout: float | None = None
) -> None:
    """Close the client at the end of a block that raised an exception of this kind, or none.

    `timeout` is that of `close`, None for its default.
    D-CONN-29: an error of closing does not replace that exception. The Closed event has the count
    of unconfirmed messages.
    """
    try:
        await (client.close() if timeout is None else client.close(timeout))
    except ConnectionClosed:
        pass  # after a fork, in the child: there is nothing to close
    except MessagesUnconfirmed:
        if kind is None:
            raise


class EventReader:
    """One reader of a client's events. The iteration ends after Closed.

    A reader keeps the newest 256 events until they are taken. A flood of events never displaces
    Connected, Disconnected and Closed, and never loses the number of dropped messages.
    """

    def __init__(self, session: Session, unread: Unread) -> None:
        self._session = session
        self._queue = session.connection.events
        self._unread = unread

    def __del__(self) -> None:
        self._unread.left = True

    async def next(self, timeout: float | None = None) -> Event:
        """Return the next event; TimeoutExpired, or ConnectionClosed after the last one.

        A timeout of 0 polls: it returns an event only if there is one.
        """
        deadline = None if timeout is None else self._session.deadline(timeout)
        event = await self._next(deadline)
        if event is None:
            raise ConnectionClosed("there are no more events: the client is closed")
        return event

    async def _next(self, deadline: float | None) -> Event | None:
        unread = self._unread
        while True:
            event = unread.pop()
            # D-EVENT-10: after Closed there is no timer that could end a wait.
            if event is not None or self._session.connection.closed:
                unread.left = event is None
                return event
            await self._session.wait(self._queue, deadline, "event")

    def __aiter__(self) -> EventReader:
        return self

    async def __anext__(self) -> Event:
        event = await self._next(None)
        if event is None:
            raise StopAsyncIteration
        return event


class Events:
    """What happens to a client's connection.

    Every loop has its own position, so several of them all see every event. Calls of `next` share
    one position. A loop, and the first `next`, starts with the first event that neither `next` nor
    a finished loop has returned.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._reader: EventReader | None = None

    async def next(self, timeout: float | None = None) -> Event:
        """Return the next event; TimeoutExpired, or ConnectionClosed after the last one.

        A timeout of 0 polls: it returns an event only if there is one.
        """
        return await self._shared().next(timeout)

    def __aiter__(self) -> EventReader:
        return EventReader(self._session, self._session.connection.events.reader())

    async def __anext__(self) -> Event:
        return await self._shared().__anext__()

    def _shared(self) -> EventReader:
        if self._reader is None:
            unread = self._session.connection.events.reader(leads=True)
            self._reader = EventReader(self._session, unread)
        return self._reader
