"""Client and Events: the API, written once for every runtime.

The coroutines here await a Port and each other, nothing else: asyncio, uvloop and trio run them as
they are, `natsproto.blocking` runs them to their end without a loop.
"""

from __future__ import annotations

from .connection.states import CLOSED, CONNECTED
from .durations import check_patience, check_seconds
from .errors import ConnectionClosed, ConnectionLost, InvalidValue, MessagesUnconfirmed
from .session import Session, check_count, check_flag
from .subscription import Subscription
from .wire.text import cut_middle, shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Never

    from .connection.machine import Connection
    from .connection.outbound import Stats
    from .connection.waitable import MultiRequest
    from .durations import Seconds
    from .events import Event, Unread
    from .health import Health
    from .options import ServersLike
    from .paths.path import MessagePath
    from .port import Port
    from .replies import Replies
    from .wire.encode import BytesLike
    from .wire.frames import Info, Msg
    from .wire.headers import HeadersLike


class Client:
    """A connection to NATS. `connect()` of an adapter returns it."""

    def __init__(self, connection: Connection, port: Port) -> None:
        self._connection = connection
        self._port = port
        self._rtt: float | None = None
        #: For libraries built on top of Client: its connection and port.
        self.session: Session = Session(connection, port)
        #: The events of the connection: iterate, or call `next`.
        self.events: Events = Events(self.session)

    @property
    def info(self) -> Info | None:
        """The server's latest description of itself; None before the first connection."""
        return self._connection.info

    @property
    def state(self) -> str:
        """NEW, DIALING, OPENING, SECURING, SIGNING, GREETING, CONNECTED, WAITING or CLOSED."""
        return self._connection.state

    @property
    def stats(self) -> Stats:
        """Counts of messages and bytes in both directions, and of connections; never reset."""
        return self._connection.stats

    def health(self) -> Health:
        """Return the current state, without I/O, for health endpoints."""
        from .health import Health

        return Health(self._connection, self._rtt, self._port.now())

    @property
    def connected_url(self) -> str:
        """The currently connected server, without credentials; "" if there is none."""
        server = self._connection.pool.current
        if server is None or self._connection.state != CONNECTED:
            return ""
        return str(server.url)

    @property
    def servers(self) -> list[str]:
        """All known servers, without credentials; the next one to try is first."""
        return [str(url) for url in self._connection.pool.urls]

    def set_servers(self, servers: ServersLike) -> None:
        """Replace the servers to reconnect to, including discovered ones."""
        self._connection.pool.set_servers(servers)

    async def publish(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        reply: str = "",
        headers: HeadersLike | None = None,
    ) -> None:
        """Send a message. Blocks only while the send buffer is above its high-water mark.

        Without a connection the message is held for the next one; raises PendingBufferFull if more
        than `max_pending_out` bytes would be held. Raises a LocalError if the message is invalid;
        nothing is sent then.
        """
        if self._connection.publish(subject, data, reply, headers):
            await self.session.make_room()

    async def respond(
        self, msg: Msg, data: BytesLike = b"", *, headers: HeadersLike | None = None
    ) -> None:
        """Publish a response to a request that was received.

        Raises InvalidValue if the message has no reply subject: its publisher expects no response.
        """
        if not msg.raw_reply:
            text = "message on %s has no reply subject: its publisher expects no response"
            raise InvalidValue(text % shorten(msg.subject), "D-REQ-12")
        await self.publish(msg.reply, data, headers=headers)

    async def request(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        timeout: Seconds = 2.0,
        headers: HeadersLike | None = None,
    ) -> Msg:
        """Send a request and return the first response.

        Raises NoResponders if the subject has no subscribers, or TimeoutExpired.
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
        timeout: Seconds = 2.0,
        max_msgs: int = 0,
        max_bytes: int = 0,
        stall: Seconds = 0.0,
        sentinel: Callable[[Msg], bool] | None = None,
        headers: HeadersLike | None = None,
    ) -> list[Msg]:
        """Send a request and return all responses (ADR-47), in a list that may be empty.

        It returns after `max_msgs` responses, when none arrives for `stall` seconds after the last
        one, after a response for which `sentinel` is true (which is omitted), or at the timeout.

        Raises NoResponders if the subject has no subscribers. Raises TooManyReplies, which contains
        the responses so far, if more arrive than `max_bytes` or, without `max_msgs`, than the
        client's default for subscriptions allows; a `max_bytes` of 0 means that default.
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

    async def trace_message(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        deliver: bool = False,
        timeout: Seconds = 2.0,
        reply: str = "",
        headers: HeadersLike | None = None,
        traceparent: str = "",
        dest: str = "",
    ) -> MessagePath:
        """Send a message and return its path through the servers (ADR-41), as they report it.

        By default the message is only traced; `deliver=True` also delivers and stores it. The call
        returns when all servers on the path have reported, or at the timeout; `complete` of the
        path says which. Needs nats-server 2.11, and raises NotSupported on an older one.

        traceparent, dest: trace the message by a W3C trace context instead, in an account whose
            `msg_trace` sends the reports to the subject `dest`
        """
        from .paths.send import Traced, check_server

        deadline = self.session.answer_deadline(timeout)
        check_server(self.session)
        traced = Traced(self.session, headers)
        if traceparent or dest:
            traced.ask_account(dest, traceparent, check_flag("deliver", deliver))
        else:
            traced.ask_servers(check_flag("deliver", deliver))
        return await traced.send(subject, data, reply, deadline)

    def iter_request_many(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        timeout: Seconds | None = 2.0,
        max_msgs: int = 0,
        max_bytes: int = 0,
        stall: Seconds = 0.0,
        sentinel: Callable[[Msg], bool] | None = None,
        headers: HeadersLike | None = None,
    ) -> Replies:
        """Send a request and iterate over its responses: `async for` returns each on arrival.

        The parameters are those of `request_many`. With a timeout of None only the other limits
        end the iteration, and so does `break`. Responses that were taken do not count as kept, so
        there may be any number of them.
        """
        from .replies import Replies

        if timeout is not None:
            timeout = check_patience("timeout", timeout)
        check_count("max_msgs", max_msgs)
        check_count("max_bytes", max_bytes)
        pause = check_seconds("stall", stall)

        def start() -> MultiRequest:
            return self._connection.start_gather(
                subject,
                data,
                deadline=None if timeout is None else self.session.answer_deadline(timeout),
                headers=headers,
                max_msgs=max_msgs,
                stall=pause,
                max_bytes=max_bytes,
            )

        return Replies(self.session, start, sentinel)

    async def subscribe(
        self,
        subject: str,
        *,
        queue: str = "",
        max_msgs: int = 0,
        max_bytes: int = 0,
        **unknown: Never,
    ) -> Subscription:
        """Subscribe to a subject. With a queue, each message goes to one of its members.

        The subscription keeps at most `max_msgs` messages and `max_bytes` bytes, control lines
        included, until they are taken (0: the client's defaults). Messages that do not fit are
        dropped, counted in `dropped`, and reported by a SlowConsumer event.
        """
        for name in unknown:  # D-HINT-1
            from .hints import SUBSCRIBE, with_hint

            raise InvalidValue(with_hint("option does not exist: %s", name, SUBSCRIBE))
        self._port.now()  # D-CONN-33: refuses, before anything is noted, where it must not be used
        mailbox = self._connection.mailbox(
            check_count("max_msgs", max_msgs), check_count("max_bytes", max_bytes)
        )
        self._connection.subscribe(subject, mailbox, queue=queue)
        self._port.flush_soon()
        return Subscription(self.session, mailbox)

    async def flush(self, timeout: Seconds = 10.0) -> None:
        """Wait until the server has processed everything that was sent before."""
        deadline = self.session.answer_deadline(timeout)
        await self.session.settle(self._connection.start_flush(deadline))

    async def rtt(self, timeout: Seconds = 10.0) -> float:
        """Measure the round trip to the server: the seconds from a PING to its PONG.

        The PING follows everything that was published before. Raises ConnectionLost if there is no
        connection, or if it is lost in the meantime, and TimeoutExpired.
        """
        deadline = self.session.answer_deadline(timeout)
        connection = self._connection
        if not connection.online and not connection.closed:  # D-PING-6
            raise ConnectionLost("round trip cannot be measured without a connection (D-PING-6)")
        started = self._port.ticks()
        await self.session.settle(connection.start_flush(deadline))
        self._rtt = self._port.ticks() - started
        return self._rtt

    async def drain(self, timeout: Seconds = 30.0) -> None:
        """End gracefully: unsubscribe, wait until received messages are taken, flush, and close.

        Raises TimeoutExpired if that takes too long, or its subclass MessagesUnconfirmed if the
        server has not confirmed all published messages. The client is closed in any case.
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

    async def close(self, timeout: Seconds = 2.0) -> None:
        """Send pending publishes and close, within the timeout. Closing twice is allowed.

        Without a connection it waits for one if there is anything to send. Raises
        MessagesUnconfirmed, with their number, if the server has not confirmed all messages by
        then. The client is closed in any case. With a timeout of 0 it does not wait.
        """
        deadline = self.session.deadline(timeout)
        try:
            await self.session.settle(self._connection.start_close(deadline))
        finally:
            self._connection.close(self._port.now())
            self._port.flush_soon()
            await self._port.aclose()

    async def force_reconnect(self) -> None:
        """Leave this server and connect again, to another one if there is one."""
        self._connection.force_reconnect(self._port.now())
        self._port.flush_soon()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        await leave(self, kind)

    if not TYPE_CHECKING:  # a type checker would accept every name

        def __getattr__(self, name):
            from .hints import CLIENT, no_attribute

            raise no_attribute(self, name, CLIENT)

    def __repr__(self) -> str:
        return "<Client %s %s>" % (self.state, cut_middle(str(self.connected_url)))


async def leave(
    client: Client, kind: type[BaseException] | None, timeout: Seconds | None = None
) -> None:
    """Close the client at the end of a block that raised this type of exception, or none.

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

    async def next(self, timeout: Seconds | None = None) -> Event:
        """Return the next event; raise TimeoutExpired, or ConnectionClosed after the last one.

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
    """The events of a client's connection.

    Every loop has its own position, so several of them all see every event. Calls of `next` share
    one position. A loop, and the first `next`, starts with the first event that neither `next` nor
    a finished loop has returned.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._reader: EventReader | None = None

    async def next(self, timeout: Seconds | None = None) -> Event:
        """Return the next event; raise TimeoutExpired, or ConnectionClosed after the last one.

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
