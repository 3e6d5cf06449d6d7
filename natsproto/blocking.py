"""Client, Subscription and Events without async and await: the same names, the same semantics.

Each is a facade of its asynchronous counterpart (see port.py). `connect` of
natsproto.adapters.blocking and of natsproto.adapters.threads returns a Client; only those of
`threads` may be shared by several threads.
"""

from __future__ import annotations

from . import client as _client
from . import subscription as _subscription
from .errors import ConnectionClosed, MessagesUnconfirmed
from .port import blocking, blocking_next, blocking_to, locked_to, run_sync

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from .connection.outbound import Stats
    from .options import ServersLike
    from .port import BlockingPort
    from .wire.encode import BytesLike
    from .wire.frames import Info, Msg
    from .wire.headers import HeadersLike


class Subscription:
    """Messages of one subject: iterate, or take one after the other with `next`.

    The iteration ends when the subscription does: by `unsubscribe`, `drain`, or the end of the
    client. It raises if the server refused it (PermissionDenied) or the connection failed for good.
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
        """Messages that wait to be taken."""
        return self.inner.pending

    @property
    def dropped(self) -> int:
        """Messages that did not fit, since the start."""
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

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *exc: object) -> None:
        self.unsubscribe()

    def __repr__(self) -> str:
        return repr(self.inner)


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
    """What happens to a client's connection.

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


class Client:
    """A connection to NATS. Made by `connect()` of an adapter; close it, or use `with`."""

    def __init__(self, inner: _client.Client, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port
        self._publish = inner.session.connection.publish
        #: What happens to the connection: iterate, or ask for the next one.
        self.events: Events = Events(inner.events, port)

    @property
    def info(self) -> Info | None:
        """What the server said about itself last; None before the first connection."""
        return self.inner.info

    @property
    def state(self) -> str:
        """NEW, DIALING, OPENING, SECURING, GREETING, CONNECTED, WAITING or CLOSED."""
        return self.inner.state

    @property
    def stats(self) -> Stats:
        """Messages and bytes in both directions, and how often it connected; it counts on."""
        return self.inner.stats

    @property
    def connected_url(self) -> str:
        """The server of this moment, without credentials; "" if there is none."""
        return self.inner.connected_url

    @property
    def servers(self) -> list[str]:
        """All known servers, without credentials, the next to try first."""
        with self.port.lock:
            return self.inner.servers

    def set_servers(self, servers: ServersLike) -> None:
        """Replace the servers to reconnect to, discovered ones included."""
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
        """Send a message. Waits only while too much is on its way out already.

        Without a connection the message waits for one, up to `max_pending_out` bytes in all;
        then PendingBufferFull. LocalError: it cannot be sent, and was not.
        """
        # Not blocking(...), which costs 1 us more.
        with self.port.lock:
            if self._publish(subject, data, reply, headers):
                run_sync(self.inner.session.make_room())

    request = blocking(_client.Client.request)
    request_many = blocking(_client.Client.request_many)
    subscribe = blocking_to(Subscription, _client.Client.subscribe)
    flush = blocking(_client.Client.flush)
    drain = blocking(_client.Client.drain)
    close = blocking(_client.Client.close)
    force_reconnect = blocking(_client.Client.force_reconnect)

    def corked(self) -> Cork:
        """Collect the publishes of a block and send them together: `with client.corked():`.

        They go out at the end of the block, when they are about 256 KiB, or before a call in it
        waits for anything. Many small messages then cost few system calls.
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
