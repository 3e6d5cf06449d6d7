"""asyncio, and uvloop unchanged: `async with connect(...) as client`, or `await connect(...)`.

Each transport is a TransportProtocol. There is one timer, and one task while dialing.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from socket import SOCK_STREAM
from threading import get_ident
from typing import TYPE_CHECKING, Any

from natsproto.client import Client, leave
from natsproto.errors import ConnectionClosed, InvalidState

from ._asyncio_protocol import TransportProtocol
from .driver import (
    CANCEL_GRACE,
    TRANSPORT_ERRORS,
    Driver,
    make_connection,
    open_client,
    try_addresses,
)
from .tls import tls_context

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from typing_extensions import Unpack

    from natsproto.connection import Connection
    from natsproto.connection.effects import Dial, StartTls
    from natsproto.connection.waitable import Waitable
    from natsproto.options import OptionsDict, ServersLike

    from .driver import Worker


def connect(
    servers: ServersLike = "nats://127.0.0.1:4222", **options: Unpack[OptionsDict]
) -> Connecting:
    """Connect: `async with connect(...) as client`, or `client = await connect(...)`.

    The options are the keywords of natsproto.options.Options, which describes them, except that
    `creds` is the path of a file. Raises ConnectFailed if no server can be reached, and
    AuthorizationFailed if the credentials are rejected.
    """
    return Connecting(make_connection(servers, dict(options)))


class Connecting:
    """The result of `connect`: await it, or use it as an asynchronous context manager."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __await__(self) -> Generator[object, None, Client]:
        return open_client(self._connection, AsyncioPort(self._connection)).__await__()

    async def __aenter__(self) -> Client:
        self._client = await self
        return self._client

    async def __aexit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        canceled = kind is not None and issubclass(kind, asyncio.CancelledError)
        await leave(self._client, kind, CANCEL_GRACE if canceled else None)


class AsyncioPort(Driver):
    """Runs a connection on the event loop of the task that connects."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self._protocol: TransportProtocol | None = None  # starting with the Dial effect
        self._task: asyncio.Task[None] | None = None  # during a dial or a TLS handshake
        self._timer: asyncio.TimerHandle | None = None
        self._fires_at = 0.0  # uvloop timers do not expose it
        self._corked = False  # data was sent, and nothing was received since then
        self._uncorking = False  # a callback will send the rest
        self._woken = 0  # how many woken callers have yet to run
        self._closing: list[asyncio.Future[None]] = []

    def now(self) -> float:
        """Return the time of the loop; raise InvalidState if called on another loop."""
        self._check_loop()
        return self._loop.time()

    def _time(self) -> float:
        return self._loop.time()

    def _check_loop(self) -> None:
        """Raise InvalidState if called on another loop, perhaps in another thread (D-CONN-33)."""
        # A thread runs one loop at a time. Before Python 3.12 get_running_loop makes a system call,
        # which would be a fifth of a publish in a window.
        if get_ident() == self._thread and self._loop.is_running():
            return
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False  # no loop runs here, as in the child after a fork
        if not here:
            if self._loop.is_closed():
                self.connection.abandon("event loop of this client is closed: connect again")
            if self.connection.closed:
                raise ConnectionClosed(self.connection.closed)
            raise InvalidState(
                "this client belongs to another event loop: connect on this one, or use"
                " asyncio.run_coroutine_threadsafe",
                "D-CONN-33",
            )
        self._thread = get_ident()

    def on_fork(self) -> None:
        """Release the socket of the parent, and close the connection."""
        self._thread = 0
        protocol, self._protocol = self._protocol, None
        self._task, self._closing = None, []
        if protocol is not None:
            protocol.disown()
        super().on_fork()

    async def wait(self, waitable: Waitable) -> None:
        """Wait for a future, which `wake` sets."""
        waiter: Any = self._loop.create_future()
        waitable.waiters.append(waiter)
        try:
            await waiter
        except BaseException:  # canceled, before or after it was woken
            if waiter in waitable.waiters:
                waitable.waiters.remove(waiter)
            elif not waiter.cancelled():
                self._woken -= 1
            raise
        self._woken -= 1

    def wake(self, waiters: list[asyncio.Future[None]]) -> None:
        """Set the futures of the waiting callers."""
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
                self._woken += 1

    async def checkpoint(self) -> None:
        """Yield to the loop when the turn is over."""
        if self.turn_is_over():
            self._woken += 1
            try:
                await asyncio.sleep(0)
            finally:
                self._woken -= 1

    async def run_blocking(self, work: Callable[[], Any]) -> Any:
        """Call a function in a thread of the loop's executor."""
        return await self._loop.run_in_executor(None, work)

    async def run_all(self, workers: list[Worker]) -> None:
        """Run each worker in a task."""
        tasks = [self._loop.create_task(worker()) for worker in workers]
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            raise
        for task in tasks:
            task.result()

    def flush_soon(self) -> None:
        """Run `pump` at once, or at the end of this turn if data was already sent in it."""
        # The first bytes after a read are sent at once. Further ones are joined and sent at the end
        # of the turn, or earlier if they are many. Only those take a callback: without one a
        # request costs 2 turns instead of 3 (-15 %).
        if not self._corked or self.connection.congested:
            self._check_loop()
            self._corked = True
            self.pump()
        elif not self._uncorking:
            self._check_loop()
            self._uncorking = True
            self._loop.call_soon(self._uncork)

    def pump_soon(self) -> None:
        """Schedule `pump`, from any thread."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self.pump)

    def _uncork(self) -> None:
        self._corked = self._uncorking = False
        self.pump()

    def on_data(self, data: bytes) -> None:
        """Report data; pause reading until the woken callers have run."""
        if self._woken and self._protocol is not None:
            # Let them run first: libuv reads up to 32 times, 2 MB, in one turn, which is more than
            # their queues hold.
            self._protocol.pause()
        self._corked = False
        super().on_data(data)

    async def aclose(self) -> None:
        """Run `pump`, cancel the timer, and wait for the end of transports."""
        self.pump()
        if self._timer is not None:
            self._timer.cancel()
        if self._closing:
            await asyncio.wait(self._closing)

    def set_timer(self, deadline: float) -> None:
        """Move the timer forward, if the deadline is earlier."""
        if self._timer is None or deadline < self._fires_at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(deadline, self._fire)
            self._fires_at = deadline

    def _fire(self) -> None:
        self._timer = None
        self.on_timer()

    def send(self) -> None:
        """Write to the transport, if it has room."""
        protocol = self._protocol
        if protocol is not None and protocol.writable and protocol.transport is not None:
            for piece in self.connection.data_to_send():
                protocol.transport.write(piece)

    def dial(self, effect: Dial) -> None:
        """Start a task that connects."""
        self._protocol = TransportProtocol(self)
        self._task = self._loop.create_task(self._open(self._protocol, effect))

    def start_tls(self, effect: StartTls) -> None:
        """Start a task that upgrades the transport."""
        assert self._protocol is not None
        self._protocol.early = []
        self._task = self._loop.create_task(self._secure(self._protocol, effect))

    def hang_up(self) -> None:
        """Drop the transport, and cancel the task."""
        self._closing = [each for each in self._closing if not each.done()]
        if self._protocol is not None:
            self._protocol.detach()
            # While there is a task, asyncio does not call connection_lost.
            self._closing.append(self._task or self._protocol.closed)
        if self._task is not None:
            self._task.cancel()
        self._protocol = self._task = None

    async def _open(self, protocol: TransportProtocol, effect: Dial) -> None:
        async def connect(address: Any) -> None:
            await self._loop.create_connection(lambda: protocol, *address[4][:2])

        try:
            addresses = await self._loop.getaddrinfo(effect.host, effect.port, type=SOCK_STREAM)
            await try_addresses(addresses, effect.shuffle, connect)
        except TRANSPORT_ERRORS as error:
            self.transport_lost(protocol, error)

    async def _secure(self, protocol: TransportProtocol, effect: StartTls) -> None:
        assert protocol.transport is not None
        protocol.early = []  # data received so far is cleartext, and must not be taken for TLS data
        try:
            protocol.transport = await self._loop.start_tls(
                protocol.transport,
                protocol,
                tls_context(self.connection.options),
                server_hostname=effect.hostname,
            )
        except TRANSPORT_ERRORS as error:
            protocol.detach()
            self.transport_lost(protocol, error)
            return
        if protocol is self._protocol:
            self._task = None
            early, protocol.early = protocol.early, None
            self.on_tls()
            for data in early:
                protocol.receive(data)

    def transport_made(self) -> None:
        """Report that the current transport is open."""
        self._task = None
        self.on_opened()

    def transport_lost(self, protocol: TransportProtocol, error: Exception | None) -> None:
        """Report that a transport is lost, if it is the current one."""
        if protocol is self._protocol:
            self._protocol = self._task = None
            self.on_closed(error)
