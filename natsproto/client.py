"""Client and Subscription: the API, written once for every runtime.

The coroutines here await a Port and each other, nothing else: asyncio, uvloop and trio run them as
they are, `natsproto.blocking` runs them to their end without a loop.
"""

from __future__ import annotations

from .errors import ConnectionClosed, InvalidState, InvalidValue, NatsError, TimeoutExpired
from .events import Closed
from .states import CLOSED, CONNECTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .commands import Stats
    from .connection import Connection
    from .encode import BytesLike
    from .events import Event
    from .frames import Info, Msg
    from .headers import HeadersLike
    from .options import ServersLike
    from .port import Port
    from .waitable import Mailbox, Request, Waitable

# How many messages an iterator gives without letting others run.
_TURN = 64


class Client:
    """A connection to NATS. Made by `connect()` of an adapter."""

    def __init__(self, connection: Connection, port: Port) -> None:
        self._connection = connection
        self._port = port
        #: What happens to the connection: iterate, or ask for the next one.
        self.events = Events(self)

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
        then OutBufferFull. LocalError: it cannot be sent, and was not.
        """
        connection = self._connection
        connection.publish(subject, data, reply=reply, headers=headers)
        self._port.flush_soon()
        while connection.congested:
            await self._port.wait(connection.writable)

    async def request(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        timeout: float = 2.0,
        headers: HeadersLike | None = None,
    ) -> Msg:
        """The first answer. NoResponders if nobody listens, TimeoutExpired if nobody answers."""
        deadline = self._deadline(timeout)
        reply = await self._settle(
            self._connection.start_request(subject, data, deadline=deadline, headers=headers)
        )
        assert reply is not None
        return reply

    async def request_many(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        timeout: float = 2.0,
        max_msgs: int = 0,
        stall: float = 0.0,
        sentinel: Callable[[Msg], bool] | None = None,
        headers: HeadersLike | None = None,
    ) -> list[Msg]:
        """Every answer (ADR-47), as a list that may be empty; NoResponders if nobody listens.

        It ends when `max_msgs` came, when none came for `stall` seconds after the last, when the
        sentinel is true for one (which is left out), or at the timeout.
        """
        _check_count("max_msgs", max_msgs)
        _check_seconds("stall", stall, 0.0)
        gather = self._connection.start_gather(
            subject,
            data,
            deadline=self._deadline(timeout),
            headers=headers,
            most=max_msgs,
            stall=stall,
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
        _check_count("max_msgs", max_msgs)
        _check_count("max_bytes", max_bytes)
        mailbox = self._connection.mailbox(max_msgs, max_bytes)
        self._connection.subscribe(subject, mailbox, queue=queue)
        self._port.flush_soon()
        return Subscription(self, mailbox)

    async def flush(self, timeout: float = 10.0) -> None:
        """Until the server has seen all that was sent before."""
        await self._settle(self._connection.start_flush(self._deadline(timeout)))

    async def drain(self, timeout: float = 30.0) -> None:
        """End gracefully: unsubscribe, wait until what arrived is taken, flush, close.

        TimeoutExpired if that takes too long; the client is closed then, too.
        """
        if self._connection.state != CLOSED:
            await self._settle(self._connection.start_drain(self._deadline(timeout)))
        await self._port.aclose()

    async def close(self, timeout: float = 2.0) -> None:
        """Send what is on its way, for at most the timeout, and close. Closing twice is fine."""
        try:
            if self._connection.state == CONNECTED:
                await self._settle(self._connection.start_flush(self._deadline(timeout)))
        except NatsError:
            pass  # it is lost or frozen: what could be sent was
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

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return "<Client %s %s>" % (self.state, self.connected_url)

    # For this module and jetstream

    def _deadline(self, timeout: float) -> float:
        return self._port.now() + _check_seconds("timeout", timeout, 0.0)

    async def _settle(self, request: Request) -> Msg | None:
        """Wait for it; the request is given up if the caller is cancelled."""
        self._port.flush_soon()
        try:
            while not request.done:
                await self._port.wait(request)
        except BaseException:
            self._connection.cancel(request)
            raise
        if request.error is not None:
            raise request.error
        return request.reply

    async def _wait(self, waitable: Waitable, deadline: float | None, what: str) -> None:
        """Wait for it to be ready, perhaps; TimeoutExpired after the deadline."""
        if deadline is not None:
            if self._port.now() >= deadline:
                raise TimeoutExpired("no %s in time" % what)
            self._connection.wake_at(waitable, deadline)
            self._port.flush_soon()
        await self._port.wait(waitable)


class Subscription:
    """Messages of one subject: iterate, or take one after the other with `next`.

    The iteration ends when the subscription does: by `unsubscribe`, `drain`, or the end of the
    client. It raises if the server refused it (PermissionDenied) or the connection failed for good.
    """

    def __init__(self, client: Client, mailbox: Mailbox) -> None:
        self._client = client
        self._mailbox = mailbox
        self._turn = _TURN

    @property
    def subject(self) -> str:
        return self._mailbox.subject.decode()

    @property
    def queue(self) -> str:
        return self._mailbox.queue.decode()

    @property
    def sid(self) -> int:
        return self._mailbox.sid

    @property
    def pending(self) -> int:
        """Messages that wait to be taken."""
        return self._mailbox.pending()

    @property
    def dropped(self) -> int:
        """Messages that did not fit, since the start."""
        return self._mailbox.dropped

    async def next(self, timeout: float | None = None) -> Msg:
        """The next message; TimeoutExpired, or InvalidState if the subscription has ended."""
        client = self._client
        deadline = None if timeout is None else client._deadline(timeout)
        mailbox = self._mailbox
        while not mailbox.pending():
            self._check_going()
            await client._wait(mailbox, deadline, "message on %r" % self.subject)
        return self._take()

    def _check_going(self) -> None:
        mailbox = self._mailbox
        if mailbox.error is not None:
            raise mailbox.error
        if mailbox.ended:
            raise InvalidState("the subscription to %r has ended" % self.subject)

    def _take(self) -> Msg:
        mailbox = self._mailbox
        msg = mailbox.pop()
        if mailbox.ended and not mailbox.pending():
            self._client._connection.consumed(self._client._port.now())
            self._client._port.flush_soon()
        return msg

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Msg:
        mailbox = self._mailbox
        while not mailbox.pending():
            if mailbox.error is not None:
                raise mailbox.error
            if mailbox.ended:
                raise StopAsyncIteration
            await self._client._port.wait(mailbox)
        self._turn -= 1
        if not self._turn:
            self._turn = _TURN
            await self._client._port.checkpoint()
        return self._take()

    async def unsubscribe(self, after: int = 0) -> None:
        """Stop now, or when `after` messages have come in all. What has come can still be taken."""
        self._client._connection.unsubscribe(self._mailbox.sid, after=after)
        self._client._port.flush_soon()

    async def drain(self, timeout: float = 10.0) -> None:
        """Stop, but get what is on its way: afterwards the iteration ends with the last of it."""
        client = self._client
        deadline = client._deadline(timeout)
        await client._settle(client._connection.start_drain_of([self._mailbox], deadline))

    async def __aenter__(self) -> Subscription:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.unsubscribe()

    def __repr__(self) -> str:
        return "<Subscription %d to %r, %d pending>" % (self.sid, self.subject, self.pending)


class Events:
    """What happens to a client's connection. The iteration ends with Closed.

    The newest 256 are kept until they are taken.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._closed = False

    async def next(self, timeout: float | None = None) -> Event:
        """The next event; TimeoutExpired, or ConnectionClosed after the last."""
        client = self._client
        deadline = None if timeout is None else client._deadline(timeout)
        while True:
            event = client._connection.events.pop()
            if event is not None:
                self._closed = isinstance(event, Closed)
                return event
            if self._closed:
                raise ConnectionClosed("there are no more events: the client is closed")
            await client._wait(client._connection.events, deadline, "event")

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> Event:
        if self._closed:
            raise StopAsyncIteration
        return await self.next()


def _check_seconds(name: str, value: float, least: float) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not value >= least:
        raise InvalidValue("%s %r is not a number of seconds from %g" % (name, value, least))
    return value


def _check_count(name: str, value: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidValue("%s %r is not a whole number from 0" % (name, value))
