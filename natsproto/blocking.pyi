# Written by `python -m tests.facades`. Do not edit.

from collections.abc import Callable

from typing_extensions import Never

from natsproto import client as _client
from natsproto import replies as _replies
from natsproto import subscription as _subscription
from natsproto.connection.outbound import Stats
from natsproto.durations import Seconds
from natsproto.events import Event
from natsproto.health import Health
from natsproto.options import ServersLike
from natsproto.paths.path import MessagePath
from natsproto.port import BlockingPort
from natsproto.wire.encode import BytesLike
from natsproto.wire.frames import Info, Msg
from natsproto.wire.headers import HeadersLike

class Subscription:
    """The messages of one subject: iterate, or take one after the other with `next`.

    The iteration ends with the subscription: after `unsubscribe` or `drain`, or when the client is
    closed. It raises PermissionDenied if the server rejects the subscription, and the error of the
    connection if that fails for good.
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
        """The number of messages that wait to be taken."""
        ...

    @property
    def dropped(self) -> int:
        """The number of messages dropped because the queue was full, since the start."""
        ...

    def next(self, timeout: Seconds | None = None) -> Msg:
        """Return the next message; raise TimeoutExpired, or InvalidState after the end.

        A timeout of 0 polls: it returns a message only if there is one.
        """
        ...

    def unsubscribe(self, after: int = 0) -> None:
        """Stop now, or after `after` messages in total. Received messages can still be taken."""
        ...

    def drain(self, timeout: Seconds = 10.0) -> None:
        """Stop after the messages in flight: the iteration ends with the last of them."""
        ...

    def __iter__(self) -> Subscription: ...
    def __next__(self) -> Msg: ...
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
        ...

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
    def next(self, timeout: Seconds | None = None) -> Event:
        """Return the next event; raise TimeoutExpired, or ConnectionClosed after the last one.

        A timeout of 0 polls: it returns an event only if there is one.
        """
        ...

    def __next__(self) -> Event: ...
    def __iter__(self) -> EventReader: ...

class Events:
    """The events of a client's connection.

    Every loop has its own position, so several of them all see every event. Calls of `next` share
    one position. A loop, and the first `next`, starts with the first event that neither `next` nor
    a finished loop has returned.
    """

    inner: _client.Events
    port: BlockingPort

    def __init__(self, inner: _client.Events, port: BlockingPort) -> None: ...
    def next(self, timeout: Seconds | None = None) -> Event:
        """Return the next event; raise TimeoutExpired, or ConnectionClosed after the last one.

        A timeout of 0 polls: it returns an event only if there is one.
        """
        ...

    def __next__(self) -> Event: ...
    def __iter__(self) -> EventReader: ...

class Replies:
    """The responses to a request, one by one. Returned by Client.iter_request_many.

    The request is sent when the iteration starts. A loop may be left at any time; `close` ends the
    iteration without waiting for the garbage collector.
    """

    inner: _replies.Replies
    port: BlockingPort

    def __init__(self, inner: _replies.Replies, port: BlockingPort) -> None: ...
    def __iter__(self) -> Replies: ...
    def __next__(self) -> Msg: ...
    def close(self) -> None:
        """End the iteration: later responses are dropped."""
        ...

class Client:
    """A connection to NATS. `connect()` of an adapter returns it; close it, or use `with`."""

    inner: _client.Client
    port: BlockingPort
    events: Events

    def __init__(self, inner: _client.Client, port: BlockingPort) -> None: ...
    @property
    def info(self) -> Info | None:
        """The server's latest description of itself; None before the first connection."""
        ...

    @property
    def state(self) -> str:
        """NEW, DIALING, OPENING, SECURING, SIGNING, GREETING, CONNECTED, WAITING or CLOSED."""
        ...

    @property
    def stats(self) -> Stats:
        """Counts of messages and bytes in both directions, and of connections; never reset."""
        ...

    def health(self) -> Health:
        """Return the current state, without I/O, for health endpoints."""
        ...

    @property
    def connected_url(self) -> str:
        """The currently connected server, without credentials; "" if there is none."""
        ...

    @property
    def servers(self) -> list[str]:
        """All known servers, without credentials; the next one to try is first."""
        ...

    def set_servers(self, servers: ServersLike) -> None:
        """Replace the servers to reconnect to, including discovered ones."""
        ...

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
        ...

    def respond(
        self, msg: Msg, data: BytesLike = b"", *, headers: HeadersLike | None = None
    ) -> None:
        """Publish a response to a request that was received.

        Raises InvalidValue if the message has no reply subject: its publisher expects no response.
        """
        ...

    def request(
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
        ...

    def request_many(
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
        ...

    def trace_message(
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
        ...

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
        ...

    def subscribe(
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
        ...

    def flush(self, timeout: Seconds = 10.0) -> None:
        """Wait until the server has processed everything that was sent before."""
        ...

    def rtt(self, timeout: Seconds = 10.0) -> float:
        """Measure the round trip to the server: the seconds from a PING to its PONG.

        The PING follows everything that was published before. Raises ConnectionLost if there is no
        connection, or if it is lost in the meantime, and TimeoutExpired.
        """
        ...

    def drain(self, timeout: Seconds = 30.0) -> None:
        """End gracefully: unsubscribe, wait until received messages are taken, flush, and close.

        Raises TimeoutExpired if that takes too long, or its subclass MessagesUnconfirmed if the
        server has not confirmed all published messages. The client is closed in any case.
        """
        ...

    def close(self, timeout: Seconds = 2.0) -> None:
        """Send pending publishes and close, within the timeout. Closing twice is allowed.

        Without a connection it waits for one if there is anything to send. Raises
        MessagesUnconfirmed, with their number, if the server has not confirmed all messages by
        then. The client is closed in any case. With a timeout of 0 it does not wait.
        """
        ...

    def force_reconnect(self) -> None:
        """Leave this server and connect again, to another one if there is one."""
        ...

    def corked(self) -> Cork:
        """Collect the publishes of a block and send them together: `with client.corked():`.

        They are sent at the end of the block, when they reach about 256 KiB, or before a call in
        the block waits for anything. Many small messages then cost few system calls.
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
