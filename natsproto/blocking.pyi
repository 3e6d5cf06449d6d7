# Written by `python -m tests.facades`. Do not edit.

from collections.abc import Callable

from natsproto import client as _client
from natsproto import subscription as _subscription
from natsproto.connection.outbound import Stats
from natsproto.events import Event
from natsproto.options import ServersLike
from natsproto.port import BlockingPort
from natsproto.wire.encode import BytesLike
from natsproto.wire.frames import Info, Msg
from natsproto.wire.headers import HeadersLike

class Subscription:
    """Messages of one subject: iterate, or take one after the other with `next`.

    The iteration ends when the subscription does: by `unsubscribe`, `drain`, or the end of the
    client. It raises if the server refused it (PermissionDenied) or the connection failed for good.
    """

    inner: _subscription.Subscription
    port: BlockingPort

    def __init__(self, inner: _subscription.Subscription, port: BlockingPort) -> None: ...
    @property
    def subject(self) -> str:
        """The subject of the subscription."""
        ...

    @property
    def queue(self) -> str:
        """The queue group, or ""."""
        ...

    @property
    def sid(self) -> int:
        """The id of the subscription on its connection."""
        ...

    @property
    def pending(self) -> int:
        """Messages that wait to be taken."""
        ...

    @property
    def dropped(self) -> int:
        """Messages that did not fit, since the start."""
        ...

    def next(self, timeout: float | None = None) -> Msg:
        """Return the next message; raise TimeoutExpired, or InvalidState after the end.

        A timeout of 0 polls: it returns a message only if there is one.
        """
        ...

    def unsubscribe(self, after: int = 0) -> None:
        """Stop now, or when `after` messages have come in all. What has come can still be taken."""
        ...

    def drain(self, timeout: float = 10.0) -> None:
        """Stop, but get what is on its way: afterwards the iteration ends with the last of it."""
        ...

    def __iter__(self) -> Subscription: ...
    def __next__(self) -> Msg: ...
    def __enter__(self) -> Subscription: ...
    def __exit__(self, *exc: object) -> None: ...
    def __repr__(self) -> str: ...

class EventReader:
    """One reader of a client's events. The iteration ends after Closed.

    A reader keeps the newest 256 events until they are taken. A flood of events never displaces
    Connected, Disconnected and Closed, and never loses the number of dropped messages.
    """

    inner: _client.EventReader
    port: BlockingPort

    def __init__(self, inner: _client.EventReader, port: BlockingPort) -> None: ...
    def next(self, timeout: float | None = None) -> Event:
        """Return the next event; TimeoutExpired, or ConnectionClosed after the last one.

        A timeout of 0 polls: it returns an event only if there is one.
        """
        ...

    def __next__(self) -> Event: ...
    def __iter__(self) -> EventReader: ...

class Events:
    """What happens to a client's connection.

    Every loop has its own position, so several of them all see every event. Calls of `next` share
    one position. A loop, and the first `next`, starts with the first event that neither `next` nor
    a finished loop has returned.
    """

    inner: _client.Events
    port: BlockingPort

    def __init__(self, inner: _client.Events, port: BlockingPort) -> None: ...
    def next(self, timeout: float | None = None) -> Event:
        """Return the next event; TimeoutExpired, or ConnectionClosed after the last one.

        A timeout of 0 polls: it returns an event only if there is one.
        """
        ...

    def __next__(self) -> Event: ...
    def __iter__(self) -> EventReader: ...

class Client:
    """A connection to NATS. Made by `connect()` of an adapter; close it, or use `with`."""

    inner: _client.Client
    port: BlockingPort
    events: Events

    def __init__(self, inner: _client.Client, port: BlockingPort) -> None: ...
    @property
    def info(self) -> Info | None:
        """What the server said about itself last; None before the first connection."""
        ...

    @property
    def state(self) -> str:
        """NEW, DIALING, OPENING, SECURING, GREETING, CONNECTED, WAITING or CLOSED."""
        ...

    @property
    def stats(self) -> Stats:
        """Messages and bytes in both directions, and how often it connected; it counts on."""
        ...

    @property
    def connected_url(self) -> str:
        """The server of this moment, without credentials; "" if there is none."""
        ...

    @property
    def servers(self) -> list[str]:
        """All known servers, without credentials, the next to try first."""
        ...

    def set_servers(self, servers: ServersLike) -> None:
        """Replace the servers to reconnect to, discovered ones included."""
        ...

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
        ...

    def request(
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
        ...

    def request_many(
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
        ...

    def subscribe(
        self, subject: str, *, queue: str = "", max_msgs: int = 0, max_bytes: int = 0
    ) -> Subscription:
        """Get messages of the subject. With a queue, each message goes to one of its members.

        The subscription keeps at most `max_msgs` messages and `max_bytes` bytes until they are
        taken (0: the client's defaults); what does not fit is dropped, counted in `dropped`, and
        told by a SlowConsumer event.
        """
        ...

    def flush(self, timeout: float = 10.0) -> None:
        """Wait until the server has processed everything that was sent before."""
        ...

    def drain(self, timeout: float = 30.0) -> None:
        """End gracefully: unsubscribe, wait until what arrived is taken, flush, close.

        Raises TimeoutExpired if that takes too long, and MessagesUnconfirmed, which is one, if
        published messages are left. The client is closed in any case.
        """
        ...

    def close(self, timeout: float = 2.0) -> None:
        """Send what was published and close, within the timeout. Closing twice is fine.

        Without a connection it waits for one if there is anything to send. Raises
        MessagesUnconfirmed, which counts them, if the server has not confirmed all messages by
        then. The client is closed in any case. With a timeout of 0 it waits for nothing.
        """
        ...

    def force_reconnect(self) -> None:
        """Leave this server and connect again, to another one if there is any."""
        ...

    def corked(self) -> Cork:
        """Collect the publishes of a block and send them together: `with client.corked():`.

        They go out at the end of the block, when they are about 256 KiB, or before a call in it
        waits for anything. Many small messages then cost few system calls.
        """
        ...

    def __enter__(self) -> Client: ...
    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None: ...
    def __repr__(self) -> str: ...

class Cork:
    """The block of `Client.corked`."""

    def __init__(self, port: BlockingPort) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *exc: object) -> None: ...
