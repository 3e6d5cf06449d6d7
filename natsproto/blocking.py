"""Client, Subscription and Events without async and await: the same names, the same semantics.

Each is a facade of its asynchronous counterpart (see port.py). `connect` of
natsproto.adapters.blocking and of natsproto.adapters.threads returns a Client; only those of
`threads` may be shared by several threads.
"""

from __future__ import annotations

from . import client as _client
from . import replies as _replies
from . import subscription as _subscription
from .callbacks import WRONG_KIND, CallbackRunner
from .errors import ConnectionClosed, MessagesUnconfirmed
from .hints import CLIENT, SUBSCRIPTION, no_attribute
from .port import blocking, blocking_next, blocking_to, locked_to, run_sync
from .workers import check_sync

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .connection.outbound import Stats
    from .health import Health
    from .options import ServersLike
    from .port import BlockingPort
    from .wire.encode import BytesLike
    from .wire.frames import Info, Msg
    from .wire.headers import HeadersLike

# For how many seconds after a read another call need not read again.
_FRESH = 0.005


class Subscription:
    """The messages of one subject: iterate, or take one after the other with `next`.

    The iteration ends with the subscription: after `unsubscribe` or `drain`, or when the client is
    closed. It raises PermissionDenied if the server rejects the subscription, and the error of the
    connection if that fails for good.
    """

    def __init__(self, inner: _subscription.Subscription, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    @property
    def subject(self) -> str:
        """The subject of the subscription."""
        return self.inner.subject

    @property
    def queue(self) -> str:
        """The queue group, or ""."""
        return self.inner.queue

    @property
    def sid(self) -> int:
        """The id of the subscription on its connection."""
        return self.inner.sid

    @property
    def pending(self) -> int:
        """The number of messages that wait to be taken."""
        return self.inner.pending

    @property
    def dropped(self) -> int:
        """The number of messages dropped because the queue was full, since the start."""
        return self.inner.dropped

    next = blocking(_subscription.Subscription.next)
    unsubscribe = blocking(_subscription.Subscription.unsubscribe)
    drain = blocking(_subscription.Subscription.drain)
    _wait_for_next = blocking_next(_subscription.Subscription.__anext__)

    def __iter__(self) -> Subscription:
        return self

    def __next__(self) -> Msg:
        # Nearly every call finds a message: without a coroutine that takes 0.3 us instead of 2.
        port = self.port
        if port.alone:
            msg = _subscription.at_hand(self.inner)
        else:
            with port.lock:
                msg = _subscription.at_hand(self.inner)
        return self._wait_for_next() if msg is None else msg

    def run(
        self,
        callback: Callable[[Msg], object],
        *,
        concurrency: int = 1,
        on_error: Callable[[Msg, Exception], object] | None = None,
    ) -> None:
        """Call `callback(msg)` for each message, at most `concurrency` of them at once.

        Returns when the subscription has ended and all callbacks are done. When a callback raises,
        `on_error(msg, error)` is called, and the next message is handled. Without `on_error`, or if
        that raises, no other callback starts, the running ones finish, the subscription ends, and
        the error is raised. Canceling `run` ends the subscription as well.

        Concurrent callbacks run in tasks of an event loop, or in threads;
        natsproto.adapters.blocking has only one thread. The callback is async if the client is.
        """
        # Not blocking(...): the lock is free during callbacks.
        running = _CallbackRunner(self, callback, on_error)
        run_sync(running.run(self.port, concurrency))

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *exc: object) -> None:
        self.unsubscribe()

    if not TYPE_CHECKING:  # a type checker would accept every name

        def __getattr__(self, name):
            raise no_attribute(self, name, SUBSCRIPTION)

    def __repr__(self) -> str:
        return repr(self.inner)


class _CallbackRunner(CallbackRunner):
    """One call of `Subscription.run`, with plain callbacks; the lock is not held during them."""

    __slots__ = ("_facade",)

    def __init__(
        self,
        facade: Subscription,
        callback: Callable[[Msg], object],
        on_error: Callable[[Msg, Exception], object] | None,
    ) -> None:
        inner = facade.inner
        super().__init__(inner._session, inner._mailbox, callback, on_error)  # pyright: ignore[reportPrivateUsage]
        self._facade = facade

    async def call_all(self) -> None:
        port = self._facade.port
        while True:
            if port.alone:
                msg = self._at_hand()
            else:
                with port.lock:
                    msg = self._at_hand()
            if msg is None:
                with port.lock:
                    msg = await self.next()
                if msg is None:
                    return
            try:
                result = self._callback(msg)
                if result is not None:
                    check_sync(result, self._callback, WRONG_KIND)
            except Exception as error:
                check_sync(self.handle(msg, error), self._on_error, WRONG_KIND, "on_error")

    def _at_hand(self) -> Msg | None:
        return None if self._stopped else _subscription.at_hand(self._facade.inner)

    async def stop(self) -> None:
        with self._facade.port.lock:
            await super().stop()


class EventReader:
    """One reader of a client's events. The iteration ends after Closed.

    A reader keeps the newest 256 events until they are taken. A flood of events never displaces
    Connected, Disconnected and Closed, and never loses the number of dropped messages.
    """

    def __init__(self, inner: _client.EventReader, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    next = blocking(_client.EventReader.next)
    __next__ = blocking_next(_client.EventReader.__anext__)

    def __iter__(self) -> EventReader:
        return self


class Events:
    """The events of a client's connection.

    Every loop has its own position, so several of them all see every event. Calls of `next` share
    one position. A loop, and the first `next`, starts with the first event that neither `next` nor
    a finished loop has returned.
    """

    def __init__(self, inner: _client.Events, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    next = blocking(_client.Events.next)
    __next__ = blocking_next(_client.Events.__anext__)
    __iter__ = locked_to(EventReader, _client.Events.__aiter__)


class Replies:
    """The responses to a request, one by one. Returned by Client.iter_request_many.

    The request is sent when the iteration starts. A loop may be left at any time; `close` ends the
    iteration without waiting for the garbage collector.
    """

    def __init__(self, inner: _replies.Replies, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    def __iter__(self) -> Replies:
        return self

    __next__ = blocking_next(_replies.Replies.__anext__)
    close = blocking(_replies.Replies.aclose)


class Client:
    """A connection to NATS. `connect()` of an adapter returns it; close it, or use `with`."""

    def __init__(self, inner: _client.Client, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port
        self._publish = inner.session.connection.publish
        self._outbound = inner.session.connection.outbound
        self._fresh_until = 0.0  # see `publish`
        #: The events of the connection: iterate, or call `next`.
        self.events: Events = Events(inner.events, port)

    @property
    def info(self) -> Info | None:
        """The server's latest description of itself; None before the first connection."""
        return self.inner.info

    @property
    def state(self) -> str:
        """NEW, DIALING, OPENING, SECURING, SIGNING, GREETING, CONNECTED, WAITING or CLOSED."""
        return self.inner.state

    @property
    def stats(self) -> Stats:
        """Counts of messages and bytes in both directions, and of connections; never reset."""
        return self.inner.stats

    def health(self) -> Health:
        """Return the current state, without I/O, for health endpoints."""
        with self.port.lock:
            return self.inner.health()

    @property
    def connected_url(self) -> str:
        """The currently connected server, without credentials; "" if there is none."""
        return self.inner.connected_url

    @property
    def servers(self) -> list[str]:
        """All known servers, without credentials; the next one to try is first."""
        with self.port.lock:
            return self.inner.servers

    def set_servers(self, servers: ServersLike) -> None:
        """Replace the servers to reconnect to, including discovered ones."""
        with self.port.lock:
            self.inner.set_servers(servers)

    def publish(
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
        port = self.port
        outbound = self._outbound
        # A message that joins others, which a cork holds back, needs no lock: 0.5 us instead of 1.
        # Every few milliseconds the lock is still taken, because that also reads (D-RECON-16).
        if port.alone and outbound.size and not outbound.holding and port.now() < self._fresh_until:
            if self._publish(subject, data, reply, headers):
                with port.lock:
                    run_sync(self.inner.session.make_room())
            return
        # Not blocking(...), which costs 1 us more.
        with port.lock:
            self._fresh_until = port.now() + _FRESH
            try:
                if self._publish(subject, data, reply, headers):
                    run_sync(self.inner.session.make_room())
            except BaseException:
                port.pump_soon()
                raise

    respond = blocking(_client.Client.respond)
    request = blocking(_client.Client.request)
    request_many = blocking(_client.Client.request_many)
    trace_message = blocking(_client.Client.trace_message)
    iter_request_many = locked_to(Replies, _client.Client.iter_request_many)
    subscribe = blocking_to(Subscription, _client.Client.subscribe)
    flush = blocking(_client.Client.flush)
    rtt = blocking(_client.Client.rtt)
    drain = blocking(_client.Client.drain)
    close = blocking(_client.Client.close)
    force_reconnect = blocking(_client.Client.force_reconnect)

    def corked(self) -> Cork:
        """Collect the publishes of a block and send them together: `with client.corked():`.

        They are sent at the end of the block, when they reach about 256 KiB, or before a call in
        the block waits for anything. Many small messages then cost few system calls.
        """
        return Cork(self.port)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        try:
            self.close()
        except ConnectionClosed:
            pass  # after a fork, in the child: there is nothing to close
        except MessagesUnconfirmed:
            if kind is None:  # D-CONN-29
                raise

    if not TYPE_CHECKING:  # a type checker would accept every name

        def __getattr__(self, name):
            raise no_attribute(self, name, CLIENT)

    def __repr__(self) -> str:
        return repr(self.inner)


class Cork:
    """The block of `Client.corked`."""

    def __init__(self, port: BlockingPort) -> None:
        self._port = port

    def __enter__(self) -> None:
        with self._port.lock:
            self._port.cork(self)

    def __exit__(self, *exc: object) -> None:
        with self._port.lock:
            self._port.uncork(self)
