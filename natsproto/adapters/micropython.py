"""MicroPython's asyncio: `async with connect(...) as client`, or `await connect(...)`.

A link is one transport with two tasks: one opens it and reads, the other writes. One more task
sleeps until the next deadline. docs/embedding.md says how to put all of this on a device.

The limits are those of a device (SMALL). Running out of memory is treated as the loss of the
transport: its buffers are freed, and the client connects again.

The bytes move through a transport, an object with the methods of SocketTransport. `connect` takes
another class for it, for example for the WebSocket of the host that runs MicroPython in a browser.
"""

from __future__ import annotations

import asyncio
import gc
import time

from natsproto.client import leave
from natsproto.connection.states import CLOSED, NEW, WAITING

from .driver import (
    CANCEL_GRACE,
    TRANSPORT_ERRORS,
    Driver,
    SystemRng,
    make_connection,
    open_client,
)

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Generator
    from typing import Any, Protocol

    from typing_extensions import Unpack

    from natsproto.client import Client
    from natsproto.connection import Connection
    from natsproto.connection.effects import Dial, StartTls
    from natsproto.connection.servers import Rng
    from natsproto.connection.waitable import Reports, Waitable
    from natsproto.options import OptionsDict, ServersLike

    from .driver import Worker

    class Transport(Protocol):
        """What `connect` needs of a transport; each attempt to connect makes a new one."""

        async def open(self, host: str, port: int) -> None:
            """Connect, or raise OSError or ValueError."""
            ...

        def start_tls(self, context: Any, hostname: str) -> None:
            """Continue with TLS, and check the certificate against this name."""
            ...

        async def read(self, size: int) -> bytes:
            """Wait for data and return at most about `size` bytes; b"" at the end."""
            ...

        async def write(self, data: bytes) -> None:
            """Write all the data."""
            ...

        def close(self) -> None:
            """Close at once; it may be open, closed, or not open yet."""
            ...


__all__ = ["READ_SIZE", "SMALL", "Clock", "SocketTransport", "connect", "tls_context"]

#: How many bytes to read at a time.
READ_SIZE = 1024
#: The options whose defaults differ from those of other adapters: a device has little memory, and
#: no operator who restarts it.
SMALL: dict[str, Any] = {
    "max_bytes": 16 * 1024,
    "max_msgs": 64,
    "max_pending_out": 8 * 1024,
    "max_reconnects": -1,
}

# The longest sleep, in seconds: the counter of milliseconds wraps after 12 days on most boards, and
# half of that must not pass between two looks at it.
_LONGEST_SLEEP = 3600.0
_IPPROTO_TCP = 6
_TCP_NODELAY = 1
_FAILURES = TRANSPORT_ERRORS + (MemoryError,)


def connect(
    servers: ServersLike = "nats://127.0.0.1:4222",
    *,
    transport: Callable[[], Transport] | None = None,
    rng: Rng | None = None,
    **options: Unpack[OptionsDict],
) -> Connecting:
    """Connect: `async with connect(...) as client`, or `client = await connect(...)`.

    The options are those of the other adapters, with the smaller defaults of SMALL. `tls` is an
    ssl.SSLContext, for example of `tls_context`.

    transport: a class to use instead of SocketTransport
    rng: random numbers, where the port of MicroPython has no os.urandom; see driver.SystemRng

    Raises ConnectFailed if no server can be reached, and AuthorizationFailed if the credentials are
    rejected.
    """
    chosen: dict[str, Any] = dict(SMALL)
    chosen.update(options)
    connection = make_connection(servers, chosen, rng=SystemRng() if rng is None else rng)
    return Connecting(connection, SocketTransport if transport is None else transport)


class Connecting:
    """The result of `connect`: await it, or use it as an asynchronous context manager."""

    def __init__(self, connection: Connection, transport: Callable[[], Transport]) -> None:
        self._connection = connection
        self._transport = transport

    async def _open(self) -> Client:
        port = MicroPythonPort(self._connection, self._transport)
        return await open_client(self._connection, port)

    def __await__(self) -> Generator[object, None, Client]:
        return self._open().__await__()

    def __iter__(self) -> Any:
        return self._open()  # MicroPython's `await` iterates; its coroutines are generators

    async def __aenter__(self) -> Client:
        self._client = await self._open()
        return self._client

    async def __aexit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        canceled = kind is not None and issubclass(kind, asyncio.CancelledError)
        await leave(self._client, kind, CANCEL_GRACE if canceled else None)


class Clock:
    """The seconds since its creation, by a counter of milliseconds that wraps.

    The time starts at 0 for each client, because a float of 32 bits, as many boards have it,
    resolves 1/16 s after 12 days and 2 s after a year. `ticks_ms` may be another counter, with
    `per_second` ticks.
    """

    def __init__(
        self,
        ticks_ms: Callable[[], int] | None = None,
        ticks_diff: Callable[[int, int], int] | None = None,
        per_second: int = 1000,
    ) -> None:
        self._ticks_ms = _ticks_ms if ticks_ms is None else ticks_ms
        self._ticks_diff = _ticks_diff if ticks_diff is None else ticks_diff
        self._per_second = per_second
        self._last = self._ticks_ms()
        self._passed = 0  # milliseconds; an integer, which is exact on every board

    def now(self) -> float:
        """Return the time; to be called at least once in half a period of the counter."""
        ticks = self._ticks_ms()
        self._passed += self._ticks_diff(ticks, self._last)
        self._last = ticks
        return self._passed / self._per_second


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _difference(end: int, start: int) -> int:
    return end - start


# CPython, on which the conformance suite runs this adapter, has neither.
_ticks_ms: Callable[[], int] = getattr(time, "ticks_ms", _monotonic_ms)
_ticks_diff: Callable[[int, int], int] = getattr(time, "ticks_diff", _difference)
_ticks_us: Callable[[], int] | None = getattr(time, "ticks_us", None)


def tls_context(authority: bytes) -> ssl.SSLContext:
    """Return a context for `tls` that accepts only servers certified by this authority.

    `authority` is its certificate, as PEM or DER. A context that a program makes by itself does not
    verify anything on MicroPython until its `verify_mode` is set.
    """
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=authority)
    return context


class SocketTransport:
    """A TCP connection, with TLS if need be, by MicroPython's asyncio."""

    def __init__(self) -> None:
        self._stream: Any = None
        self._early: bytes | None = None  # data that came while the TLS handshake began

    async def open(self, host: str, port: int) -> None:
        """Connect. MicroPython resolves names without letting other tasks run."""
        self._stream, _ = await asyncio.open_connection(host, port)
        # Otherwise a PUB waits for the acknowledgment of the SUB before it: 40 ms and more.
        self._stream.s.setsockopt(_IPPROTO_TCP, _TCP_NODELAY, 1)

    def start_tls(self, context: Any, hostname: str) -> None:
        """Wrap the socket, and begin the handshake; reads and writes complete it.

        Nothing that is written leaves the device before the certificate is verified.
        """
        if context is None or context is True:
            raise ValueError("no certificate authority is known: pass tls=tls_context(...)")
        sock = context.wrap_socket(
            self._stream.s, server_hostname=hostname, do_handshake_on_connect=False
        )
        sock.setblocking(False)
        streams: Any = asyncio  # on CPython, a reader has other arguments
        self._stream = streams.StreamReader(sock)
        # The stream would wait for the server, and the server waits for the client's hello.
        self._early = sock.read(READ_SIZE)

    async def read(self, size: int) -> bytes:
        """Wait for data; b"" at the end."""
        early, self._early = self._early, None
        if early is not None:
            return early
        data: bytes = await self._stream.read(size)
        return data

    async def write(self, data: bytes) -> None:
        """Write all the data."""
        self._stream.write(data)
        await self._stream.drain()

    def close(self) -> None:
        """Close the socket, if there is one."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.s.close()  # closing the stream does nothing


class Link:
    """One transport and its two tasks. The port knows the one in use, and ignores all others."""

    def __init__(self, port: MicroPythonPort, transport: Transport, effect: Dial) -> None:
        self._port = port
        self._transport = transport
        self._filled = asyncio.Event()
        self._pieces: list[bytes] = []
        #: Whether `write` may be called: the transport is open and has written everything.
        self.writable: bool = False
        #: The name for the certificate, from the StartTls effect until the reader has acted on it.
        self.tls_name: str | None = None
        self._writer = asyncio.create_task(self._write_all())
        self._reader = asyncio.create_task(self._run(effect))

    def write(self, pieces: list[bytes]) -> None:
        """Hand over the next bytes, once `writable`."""
        self.writable = False
        self._pieces = pieces
        self._filled.set()

    def close(self) -> None:
        """Close the transport, and end the tasks except the one that calls."""
        here = asyncio.current_task()
        for task in (self._reader, self._writer):
            if task is not here:
                task.cancel()
        self._pieces = []
        self.writable = False
        self._transport.close()

    async def _run(self, effect: Dial) -> None:
        port = self._port
        error: BaseException | None = None
        try:
            await self._transport.open(effect.host, effect.port)
            self.writable = True
            port.report(self, port.on_opened)
            while port.link is self:
                if self.tls_name is not None:
                    self._start_tls(self.tls_name)
                data = await self._transport.read(READ_SIZE)
                if not data:
                    break
                port.report(self, port.on_data, data)
        except _FAILURES as failure:
            error = failure
        port.lost(self, error)

    def _start_tls(self, name: str) -> None:
        self.tls_name = None
        self._transport.start_tls(self._port.connection.options.tls, name)
        self._port.report(self, self._port.on_tls)

    async def _write_all(self) -> None:
        port = self._port
        try:
            while True:
                await self._filled.wait()
                self._filled.clear()
                for piece in self._pieces:
                    await self._transport.write(piece)
                self._pieces = []
                self.writable = True
                port.report(self, port.pump)
        except MemoryError as failure:
            port.lost(self, failure)
        except TRANSPORT_ERRORS:
            pass  # the reader reports it, after what the server had to say


class MicroPythonPort(Driver):
    """Runs a connection in tasks of MicroPython's asyncio."""

    def __init__(self, connection: Connection, transport: Callable[[], Transport]) -> None:
        super().__init__(connection)
        self._make_transport = transport
        self._ticks_clock = Clock()
        self._fine_clock: Clock | None = None
        #: The link in use; None while there is none.
        self.link: Link | None = None
        self._timer: asyncio.Task[None] | None = None
        self._fires_at = 0.0

    def now(self) -> float:
        """Return the time since this client was created."""
        return self._ticks_clock.now()

    def ticks(self) -> float:
        """Return seconds from any origin, to measure short times with: in microseconds."""
        # time.time() of boards with 32-bit floats counts whole seconds.
        if self._fine_clock is None and _ticks_us is not None:
            self._fine_clock = Clock(_ticks_us, per_second=1_000_000)
        return super().ticks() if self._fine_clock is None else self._fine_clock.now()

    # Outputs

    def pump(self) -> None:
        """Carry out what the connection wants; without memory for it, drop the transport."""
        try:
            super().pump()
        except MemoryError as error:
            self._run_out(error)

    def _run_out(self, error: MemoryError) -> None:  # D-MPY-1
        """Free the buffers of the transport, and connect again."""
        self.hang_up()
        gc.collect()
        if self.connection.state not in (NEW, WAITING, CLOSED):
            self.connection.transport_closed(self.now(), error)
        super().pump()

    def dial(self, effect: Dial) -> None:
        """Start a link."""
        self.link = Link(self, self._make_transport(), effect)

    def start_tls(self, effect: StartTls) -> None:
        """Have the reader of the link start TLS before it reads on."""
        assert self.link is not None
        self.link.tls_name = effect.hostname

    def hang_up(self) -> None:
        """Close the link, which reports nothing more."""
        link, self.link = self.link, None
        if link is not None:
            link.close()

    def send(self) -> None:
        """Hand over what there is to send, if everything before it is written."""
        link = self.link
        if link is not None and link.writable:
            pieces = self.connection.data_to_send()
            if pieces:
                link.write(pieces)

    def set_timer(self, deadline: float) -> None:
        """Start the task that sleeps, if the deadline is earlier than that of the present one."""
        if self._timer is None or deadline < self._fires_at:
            if self._timer is not None:
                self._timer.cancel()
            self._fires_at = deadline
            self._timer = asyncio.create_task(self._sleep_until(deadline))

    async def _sleep_until(self, deadline: float) -> None:
        left = deadline - self.now()
        while left > 0:
            # A millisecond more: sleeping less than is left would only begin another round.
            await asyncio.sleep(min(left, _LONGEST_SLEEP) + 0.001)
            left = deadline - self.now()
        self._timer = None
        self.on_timer()

    def log_events(self, reports: Reports) -> None:
        """Drop the events: there is no log. Programs read client.events."""
        reports.take()

    # Inputs

    def report(self, link: Link, happened: Callable[..., None], *args: object) -> None:
        """Pass an input of a link on, if it is the one in use; a lack of memory ends it."""
        if link is self.link:
            try:
                happened(*args)
            except MemoryError as error:
                self._run_out(error)

    def lost(self, link: Link, error: BaseException | None) -> None:
        """Close a link that has failed, and report it if it is the one in use."""
        link.close()
        if link is self.link:
            self.link = None
            self.on_closed(error)

    # For the API

    async def wait(self, waitable: Waitable) -> None:
        """Wait for an event, which `wake` sets."""
        event = asyncio.Event()
        wake = event.set
        waitable.waiters.append(wake)
        try:
            await event.wait()
        finally:
            if wake in waitable.waiters:
                waitable.waiters.remove(wake)

    async def checkpoint(self) -> None:
        """Let other tasks run when the turn is over."""
        if self.turn_is_over():
            await asyncio.sleep(0)

    async def run_all(self, workers: list[Worker]) -> None:
        """Run each worker in a task."""
        tasks = [asyncio.create_task(worker()) for worker in workers]
        failure: Exception | None = None
        try:
            for task in tasks:
                error = await _end_of(task)
                failure = failure or error
        except BaseException:
            for task in tasks:
                task.cancel()
            for task in tasks:
                await _end_of(task)
            raise
        if failure is not None:
            raise failure

    def flush_soon(self) -> None:
        """Carry out what the connection wants, at once."""
        self.pump()

    async def aclose(self) -> None:
        """Release the timer; the link is closed by then."""
        self.pump()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


async def _end_of(task: asyncio.Task[None]) -> Exception | None:
    """Wait for a task, which may be canceled, and return its error."""
    try:
        await task
    except Exception as error:
        return error
    except asyncio.CancelledError:
        if not task.done():
            raise  # the caller is canceled, not the task
    return None
