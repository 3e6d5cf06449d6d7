"""Client: nats-py's client on a connection of natsproto."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from natsproto import errors as core
from natsproto.adapters.driver import make_connection, open_client
from natsproto.client import Client as CoreClient
from natsproto.compat.nats import errors
from natsproto.events import Closed, Connected

from .callbacks import NOT_A_COROUTINE, Callbacks, check_callbacks, is_coroutine_function
from .constants import *  # noqa: F403
from .constants import NO_RESPONDERS_STATUS as NO_RESPONDERS_STATUS
from .constants import __version__ as __version__
from .failures import of_request, of_transport, translate
from .headers import read_headers, write_headers
from .msg import Msg, build
from .options import (
    DEFAULT_CONNECT_TIMEOUT,
    DEFAULT_DRAIN_TIMEOUT,
    DEFAULT_FLUSH_TIMEOUT,
    DEFAULT_INBOX_PREFIX,
    DEFAULT_MAX_FLUSHER_QUEUE_SIZE,
    DEFAULT_MAX_OUTSTANDING_PINGS,
    DEFAULT_MAX_RECONNECT_ATTEMPTS,
    DEFAULT_PENDING_SIZE,
    DEFAULT_PING_INTERVAL,
    DEFAULT_RECONNECT_TIME_WAIT,
    core_options,
    server_urls,
)
from .options import Credentials as Credentials
from .options import RawCredentials as RawCredentials
from .pool import Choice, read_servers
from .pool import ReconnectToServerHandler as ReconnectToServerHandler
from .pool import Server as Server
from .pool import Srv as Srv
from .port import Port
from .state import ClientState
from .subscription import (
    DEFAULT_SUB_PENDING_BYTES_LIMIT,
    DEFAULT_SUB_PENDING_MSGS_LIMIT,
    Subscription,
)
from .versions import ServerVersion as ServerVersion

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from natsproto.compat.nats.js import JetStreamContext, JetStreamManager

_FOREVER = 1e9  # seconds
_CALLBACK_GRACE = 1.0  # how long `close` waits for a callback that began before it


class Client(ClientState):
    """A connection to NATS with the calls, callbacks, defaults and exceptions of nats-py."""

    #: The class of messages.
    msg_class: type[Msg] = Msg

    def __init__(self) -> None:
        super().__init__()
        self._events: asyncio.Task[None] | None = None
        self._causes: dict[str, BaseException] = {}
        self._tasks: set[asyncio.Task[None]] = set()  # those that call callbacks of subscriptions
        self._closers: set[asyncio.Task[Any] | None] = set()  # those that call `close`

    async def connect(
        self,
        servers: str | list[str] = "nats://localhost:4222",
        error_cb: Callable[[Exception], Awaitable[None]] | None = None,
        disconnected_cb: Callable[[], Awaitable[None]] | None = None,
        closed_cb: Callable[[], Awaitable[None]] | None = None,
        discovered_server_cb: Callable[[], Awaitable[None]] | None = None,
        reconnected_cb: Callable[[], Awaitable[None]] | None = None,
        name: str | None = None,
        pedantic: bool = False,
        verbose: bool = False,
        allow_reconnect: bool = True,
        connect_timeout: float = DEFAULT_CONNECT_TIMEOUT,
        reconnect_time_wait: float = DEFAULT_RECONNECT_TIME_WAIT,
        max_reconnect_attempts: int = DEFAULT_MAX_RECONNECT_ATTEMPTS,
        ping_interval: float = DEFAULT_PING_INTERVAL,
        max_outstanding_pings: int = DEFAULT_MAX_OUTSTANDING_PINGS,
        dont_randomize: bool = False,
        flusher_queue_size: int = DEFAULT_MAX_FLUSHER_QUEUE_SIZE,
        no_echo: bool = False,
        tls: ssl.SSLContext | None = None,
        tls_hostname: str | None = None,
        tls_handshake_first: bool = False,
        user: str | Callable[[], str] | None = None,
        password: str | Callable[[], str] | None = None,
        token: str | Callable[[], str] | None = None,
        drain_timeout: float = DEFAULT_DRAIN_TIMEOUT,
        signature_cb: Callable[[str], bytes] | None = None,
        user_jwt_cb: Callable[[], bytearray | bytes] | None = None,
        user_credentials: Credentials | None = None,
        nkeys_seed: str | None = None,
        nkeys_seed_str: str | None = None,
        inbox_prefix: str | bytes = DEFAULT_INBOX_PREFIX,
        pending_size: int = DEFAULT_PENDING_SIZE,
        flush_timeout: float | None = None,
        ws_connection_headers: dict[str, list[str]] | None = None,
        reconnect_to_server_handler: Any = None,
        lame_duck_mode_cb: Callable[[], Awaitable[None]] | None = None,
        skip_subject_validation: bool = False,
    ) -> None:
        """Connect, and return when there is a connection.

        With `allow_reconnect`, servers that cannot be reached are tried again, and NoServersError
        is raised after `max_reconnect_attempts` failures of each of them. Without it, the first
        error is raised.

        Three options have no effect: `flusher_queue_size` and `flush_timeout`, because the
        connection sends without a task of its own, and `skip_subject_validation`, because subjects
        are validated only once.
        """
        given = {key: value for key, value in locals().items() if key not in ("self", "__class__")}
        check_callbacks(given)
        pool = read_servers(servers)
        self.options.update(given)
        callbacks = Callbacks(self, given)
        clock = asyncio.get_running_loop().time
        choice = Choice(reconnect_time_wait, reconnect_to_server_handler, clock)
        urls = server_urls(pool, self.require_tls_of_urls)
        try:
            connection = make_connection(urls, core_options(given, choice))
        except core.NatsError as error:
            raise translate(error) from error
        self._connection, self._callbacks = connection, callbacks
        self._port = Port(connection, choice)
        self._causes = self._port.causes
        self._servers, self._subs, self._closers = pool, {}, set()
        self._opened = self._shut = False
        self._draining, self._err = 0, None
        await self._open(callbacks, allow_reconnect)

    async def _open(self, callbacks: Callbacks, retry: bool) -> None:
        assert self._connection is not None
        assert self._port is not None
        try:
            self._client = await open_client(self._connection, self._port)
        except core.NatsError as error:
            self._err = self._why(error)
            await callbacks.error(self._err)
            raise self._err from error
        events = self._client.events.__aiter__()
        try:
            while not self._opened:
                event = await events.__anext__()
                self._opened = isinstance(event, Connected)
                if isinstance(event, Closed):
                    if self._shut:
                        raise errors.ConnectionClosedError
                    self._err = errors.NoServersError(str(event.error))
                    raise self._err from event.error
                await callbacks.handle(event)
        except asyncio.CancelledError:
            await self._client.close(0.0)
            raise
        self._events = asyncio.get_running_loop().create_task(self._follow(events, callbacks))

    def _why(self, error: core.NatsError) -> Exception:
        """Return the error of the last attempt; nats-py does not collect those of all servers."""
        if isinstance(error, core.ConnectFailed) and error.errors:
            url, last = error.errors[-1]
            if isinstance(last, core.NatsError):
                return of_transport(last, self._causes.get(url))
        rejected = isinstance(error, core.AuthorizationFailed)
        return of_transport(error, None) if rejected else translate(error)

    async def _follow(self, events: Any, callbacks: Callbacks) -> None:
        async for event in events:
            await callbacks.handle(event)

    def _start_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start the task of a subscription, which ends at the latest when the client is closed."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _report(self, error: Exception) -> None:
        """Report an error that concerns no call."""
        self._err = error
        assert self._callbacks is not None
        await self._callbacks.error(error)

    async def _on_closed(self) -> None:
        """End what belongs to the connection."""
        for sub in list(self._subs.values()):
            sub._forget()
        for task in self._tasks - self._closers:
            task.cancel()

    async def close(self) -> None:
        """Send what was published, end all subscriptions, and close.

        If `connect` is still trying to connect, it raises ConnectionClosedError.
        """
        if self.is_closed:
            return
        client, events = self._client, self._events
        if client is None or not self._opened:
            self._shut = True
            if self._connection is not None and self._port is not None:
                self._connection.close(self._port.now())
                self._port.flush_soon()
            if self._callbacks is not None:
                await self._callbacks.never_connected()
            return
        self._closers.add(asyncio.current_task())
        try:
            await client.close()
        except core.MessagesUnconfirmed as error:
            await self._report(translate(error))
        except core.ConnectionClosed:
            pass
        if events is not None and events is not asyncio.current_task():
            await self._wait_for_callbacks(events)

    async def _wait_for_callbacks(self, events: asyncio.Task[None]) -> None:
        """Wait until `closed_cb` has returned; cancel an earlier callback that does not return."""
        await asyncio.wait([events], timeout=_CALLBACK_GRACE)
        if not events.done():
            assert self._callbacks is not None
            if self._callbacks.skip_to_end():
                events.cancel()
            await asyncio.wait([events])

    async def drain(self) -> None:
        """Unsubscribe, wait until all messages in flight were handled, flush, and close.

        If that takes longer than `drain_timeout`, DrainTimeoutError goes to `error_cb`.
        """
        if self.is_draining:
            return
        if self.is_closed:
            raise errors.ConnectionClosedError
        if not self.is_connected:
            raise errors.ConnectionReconnectingError
        self._draining = self.DRAINING_SUBS
        here = asyncio.current_task()
        drains = [sub._drain(here) for sub in list(self._subs.values())]
        try:
            await asyncio.wait_for(asyncio.gather(*drains), self.options["drain_timeout"])
        except asyncio.TimeoutError:
            await self._report(errors.DrainTimeoutError())
        finally:
            self._draining = self.DRAINING_PUBS
            await self.close()

    async def publish(
        self,
        subject: str,
        payload: bytes = b"",
        reply: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Send a message, or hold it for the next connection."""
        connection = self._connection
        if connection is None or self._draining == self.DRAINING_PUBS:
            self._check_open()
        assert connection is not None
        pairs = None if headers is None else write_headers(headers)
        try:
            if connection.publish(subject, payload, reply, pairs):
                await self._session.make_room()
        except core.NatsError as error:
            raise translate(error) from error
        self._out_bytes += len(payload)

    async def _acknowledge(self, reply: str, payload: bytes) -> None:
        """Publish to the reply subject of a message, as the server has sent it."""
        connection = self._connection
        if connection is None:
            raise errors.ConnectionClosedError
        try:
            if connection.respond(reply.encode("utf-8", "surrogateescape"), payload):
                await self._session.make_room()
        except core.NatsError as error:
            raise translate(error) from error
        self._out_bytes += len(payload)

    async def subscribe(
        self,
        subject: str,
        queue: str = "",
        cb: Callable[[Msg], Awaitable[None]] | None = None,
        future: asyncio.Future[Msg] | None = None,
        max_msgs: int = 0,
        pending_msgs_limit: int = DEFAULT_SUB_PENDING_MSGS_LIMIT,
        pending_bytes_limit: int = DEFAULT_SUB_PENDING_BYTES_LIMIT,
    ) -> Subscription:
        """Subscribe to a subject: for a callback, a future, an iterator or `next_msg`.

        max_msgs: end the subscription after this many messages
        pending_msgs_limit, pending_bytes_limit: drop messages if more than that wait
        """
        if cb is not None and not is_coroutine_function(cb):
            raise errors.Error(NOT_A_COROUTINE)
        self._check_open()
        if self.is_draining:
            raise errors.ConnectionDrainingError
        sub = Subscription(
            self,
            0,
            subject,
            queue,
            cb,
            future,
            max_msgs,
            pending_msgs_limit,
            pending_bytes_limit,
        )
        try:
            sub._start()
        except core.InvalidName as error:  # of the queue group
            raise errors.BadSubjectError from error
        except core.NatsError as error:
            raise translate(error) from error
        return sub

    async def request(
        self,
        subject: str,
        payload: bytes = b"",
        timeout: float | None = 0.5,
        old_style: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Msg:
        """Send a request and return the first response.

        Raises NoRespondersError or TimeoutError; a timeout of None waits forever. `old_style` has
        no effect: all requests share one subscription.
        """
        self._check_open()
        assert self._connection is not None
        session = self._session
        pairs = None if headers is None else write_headers(headers)
        try:
            deadline = session.port.now() + (_FOREVER if timeout is None else timeout)
            request = self._connection.start_request(
                subject, payload, deadline=deadline, headers=pairs
            )
            self._out_bytes += len(payload)
            raw = await session.settle(request)
        except core.NatsError as error:
            raise of_request(error) from error
        assert raw is not None
        self._in_bytes += len(raw.data)
        return build(self, raw, read_headers(raw.raw_headers))

    def new_inbox(self) -> str:
        """Return a unique subject for responses."""
        return f"{self._inbox_prefix.decode()}.{self._nuid.next().decode()}"

    async def flush(self, timeout: float = DEFAULT_FLUSH_TIMEOUT) -> None:
        """Wait until the server has processed everything that was published before."""
        client = self._core(timeout)
        try:
            await client.flush(timeout)
        except core.TimeoutExpired as error:
            raise errors.FlushTimeoutError from error
        except core.NatsError as error:
            raise translate(error) from error

    async def rtt(self, timeout: float = DEFAULT_FLUSH_TIMEOUT) -> float:
        """Return the seconds from a PING to its PONG."""
        client = self._core(timeout)
        try:
            return await client.rtt(timeout)
        except core.ConnectionLost as error:
            raise errors.ConnectionReconnectingError from error
        except core.NatsError as error:
            raise translate(error) from error

    async def force_reconnect(self) -> None:
        """Leave the server, and connect to another one if there is one."""
        client = self._core()
        if self.is_draining:
            raise errors.ConnectionDrainingError
        await client.force_reconnect()

    def jetstream(self, **opts: Any) -> JetStreamContext:
        """Return JetStream; the options are those of JetStreamContext."""
        from natsproto.compat.nats.js import JetStreamContext

        return JetStreamContext(self, **opts)

    def jsm(self, **opts: Any) -> JetStreamManager:
        """Return the management of JetStream; the options are those of JetStreamManager."""
        from natsproto.compat.nats.js import JetStreamManager

        return JetStreamManager(self, **opts)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    def _check_open(self) -> None:
        if self._client is None or self.is_closed:
            raise errors.ConnectionClosedError
        if self.is_draining_pubs:
            raise errors.ConnectionDrainingError

    def _core(self, timeout: float = 1.0) -> CoreClient:
        if timeout <= 0:
            raise errors.BadTimeoutError
        if self._client is None or self.is_closed:
            raise errors.ConnectionClosedError
        return self._client
