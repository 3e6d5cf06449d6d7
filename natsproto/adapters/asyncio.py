"""asyncio, and uvloop unchanged: `async with connect(...) as client`, or `await connect(...)`.

Each transport is a TransportProtocol. There is one timer, and one task while dialing.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from socket import SOCK_STREAM
from threading import get_ident
from typing import TYPE_CHECKING, Any, cast

from natsproto.errors import ConnectionClosed, InvalidState

from ._connecting import Connecting
from .driver import (
    READ_SIZE,
    TRANSPORT_ERRORS,
    Driver,
    disown_socket,
    make_connection,
    try_addresses,
)
from .tls import tls_context

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator
    from contextvars import Context

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
    return Connecting(make_connection(servers, dict(options)), AsyncioPort)


class AsyncioPort(Driver):
    """Runs a connection on the event loop of the task that connects."""

    def __init__(self, connection: Connection) -> None:
        self._loop = asyncio.get_running_loop()
        super().__init__(connection, self._loop.time)
        self._thread = get_ident()
        self._protocol: TransportProtocol | None = None  # starting with the Dial effect
        self._task: asyncio.Task[None] | None = None  # during a dial or a TLS handshake
        self._timer: asyncio.TimerHandle | None = None
        self._corked = False  # something was sent, and nothing was received since
        self._uncorking = False  # a callback will send the rest
        self._reading = False  # data is being reported
        self._runnable: list[Waiter] = []  # the callers that it has woken
        self._woken = 0  # how many callers are to run in the next turn
        self._closing: list[asyncio.Future[None]] = []

    def now(self) -> float:
        """Return the time of the loop; raise InvalidState if called on another loop."""
        self._check_loop()
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

    def wait(self, waitable: Waitable) -> Waiter:
        """Return a future, which `wake` sets."""
        waiters: list[Any] = waitable.waiters
        waiter = Waiter(self._loop, waiters)
        waiters.append(waiter)
        return waiter

    def wake(self, waiters: list[Waiter]) -> None:
        """Run the waiting callers: after a read at once, otherwise in the next turn."""
        if self._reading:
            # Perhaps not the first ones: a logging handler that publishes pumps within a pump.
            self._runnable += waiters
        else:
            self._run_soon(waiters)

    def _run_soon(self, waiters: list[Waiter]) -> None:
        self._woken += len(waiters)
        for waiter in waiters:
            self._loop.call_soon(self._run, waiter)

    def _run(self, waiter: Waiter) -> None:
        self._woken -= 1
        waiter.run()

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
        """Report data, and run the callers that it wakes."""
        if self._woken and self._protocol is not None:
            # Let them run first: libuv reads up to 32 times, 2 MB, in one turn, which is more than
            # their queues hold.
            self._protocol.pause()
        self._corked = False
        stats = self.connection.stats
        before = stats.in_msgs
        self._reading = True
        try:
            super().on_data(data)
        finally:
            self._reading = False
        if self._runnable:
            self._run_waiters(several=stats.in_msgs > before + 1)

    def _run_waiters(self, *, several: bool) -> None:
        """Run the callers that a read has woken, within its callback: one turn of the loop less."""
        waiters, self._runnable = self._runnable, []
        # After several messages, what they send goes out together when they have run:
        # acknowledgments take one system call a read instead of two.
        corks = several and not self._uncorking
        if corks:
            self._corked = self._uncorking = True
        if asyncio.current_task(self._loop) is not None:
            # Data that arrived with the end of the TLS handshake: a task reports it.
            self._run_soon(waiters)
            if corks:
                self._loop.call_soon(self._uncork)
            return
        for waiter in waiters:
            try:
                waiter.run()
            except BaseException as error:  # noqa: PERF203
                # A KeyboardInterrupt or SystemExit of the task, which ends the loop. uvloop would
                # ignore it here, so a callback raises it again.
                self._loop.call_soon(_raise, error)
        if corks:
            self._uncork()

    async def aclose(self) -> None:
        """Run `pump`, cancel the timer, and wait for the end of transports."""
        self.pump()
        if self._timer is not None:
            self._timer.cancel()
        if self._closing:
            await asyncio.wait(self._closing)

    def set_timer(self, deadline: float) -> None:
        """Move the timer forward."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._fire)

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
        def connect(address: Any) -> Awaitable[object]:
            return self._loop.create_connection(lambda: protocol, *address[4][:2])

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


def _raise(error: BaseException) -> None:
    raise error


class Waiter:
    """What one task waits for: as much of a future as a task needs.

    A future has its task continue in the next turn of the loop. `run` continues it at once, which
    is for callbacks of the loop, since no task can run within another one.
    """

    __slots__ = (
        "_asyncio_future_blocking",
        "_callback",
        "_canceled",
        "_context",
        "_loop",
        "_waiters",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, waiters: list[Any]) -> None:
        self._asyncio_future_blocking = True  # for the task: this is a future
        self._loop = loop
        self._waiters = waiters  # the list that this is in
        self._canceled: asyncio.CancelledError | None = None

    def __await__(self) -> Generator[Any, None, None]:
        # An iterator that yields this once, for the task; a generator would take 0.1 us more.
        return iter((self,))  # type: ignore[return-value]

    def run(self) -> None:
        """Run the task again, unless it is being canceled."""
        if self._canceled is None:
            self._context.run(self._callback, self)

    # For the task

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Return the loop of the task."""
        return self._loop

    def add_done_callback(self, callback: Callable[[Waiter], object], *, context: Context) -> None:
        """Keep the function that continues the task."""
        self._callback = callback
        self._context = context

    def result(self) -> None:
        """Return to the task, or cancel it."""
        if self._canceled is not None:
            raise self._canceled

    def cancel(self, msg: Any = None) -> bool:
        """Cancel the task in the next turn of the loop."""
        if self._canceled is not None:
            return False
        self._canceled = asyncio.CancelledError() if msg is None else asyncio.CancelledError(msg)
        if self in self._waiters:
            self._waiters.remove(self)
        self._loop.call_soon(self._callback, self, context=self._context)
        return True


class TransportProtocol(asyncio.BufferedProtocol):
    """One transport of asyncio or uvloop. After `detach` it reports nothing more.

    A BufferedProtocol, which reads into a buffer of its own: that halves the cost of a round trip
    compared to asyncio.Protocol.
    """

    def __init__(self, port: AsyncioPort) -> None:
        self._port: AsyncioPort | None = port
        self.transport: asyncio.Transport | None = None
        self._buffer = memoryview(bytearray(READ_SIZE))
        self.writable: bool = False
        self.early: list[bytes] | None = None  # received while the TLS handshake is under way
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def detach(self) -> None:
        """Drop the transport at once."""
        self._port = None
        if self.transport is not None:
            self.transport.abort()

    def disown(self) -> None:
        """Release the transport in the child of a fork: it belongs to the parent."""
        self._port = None
        if self.transport is not None:
            disown_socket(self.transport.get_extra_info("socket").fileno())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Report the open transport."""
        self.transport = cast("asyncio.Transport", transport)
        self.writable = True
        # Not when create_connection returns: uvloop has read from the socket by then.
        if self._port is not None:
            self._port.transport_made()
        else:
            self.transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer to read into, of the size that the port asks for."""
        port = self._port
        if port is not None and port.read_size != len(self._buffer):
            self._buffer = memoryview(bytearray(port.read_size))
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Report what was read, or keep it during the TLS handshake."""
        data = bytes(self._buffer[:nbytes])
        if self.early is not None:
            self.early.append(data)
        elif self._port is not None:
            self._port.on_data(data)

    def receive(self, data: bytes) -> None:
        """Report data, unless the transport was dropped."""
        if self._port is not None:
            self._port.on_data(data)

    def pause(self) -> None:
        """Read nothing more in this turn of the loop."""
        assert self.transport is not None
        self.transport.pause_reading()
        asyncio.get_running_loop().call_soon(self._resume)

    def _resume(self) -> None:
        assert self.transport is not None
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the end of the transport."""
        if self.transport is not None:
            self.transport.abort()  # or else TLS of Python 3.10 warns that it was left open
        if not self.closed.done():
            self.closed.set_result(None)
        if self._port is not None:
            self._port.transport_lost(self, exc)

    def pause_writing(self) -> None:
        """Note that the transport has no room."""
        self.writable = False

    def resume_writing(self) -> None:
        """Write what was held back."""
        self.writable = True
        if self._port is not None:
            self._port.pump()
