"""Runs a connection in tasks of MicroPython's asyncio.

A link is one transport with two tasks: one opens it and reads, the other writes. One more task
sleeps until the next deadline.

Running out of memory is treated as the loss of the transport: its buffers are freed, and the client
connects again.
"""

from __future__ import annotations

import asyncio
import gc

from natsproto.adapters.driver import TRANSPORT_ERRORS, Driver
from natsproto.connection.states import CLOSED, NEW, WAITING

from .clock import Clock, ticks_us
from .transport import READ_SIZE

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from natsproto.adapters.driver import Worker
    from natsproto.connection import Connection
    from natsproto.connection.effects import Dial, StartTls
    from natsproto.connection.waitable import Reports, Waitable

    from .transport import Transport

# The longest sleep, in seconds: the counter of milliseconds wraps after 12 days on most boards, and
# half of that must not pass between two looks at it.
_LONGEST_SLEEP = 3600.0
_FAILURES = TRANSPORT_ERRORS + (MemoryError,)


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
        if self._fine_clock is None and ticks_us is not None:
            self._fine_clock = Clock(ticks_us, per_second=1_000_000)
        return super().ticks() if self._fine_clock is None else self._fine_clock.now()

    # Outputs

    def pump(self) -> None:
        """Apply the effects of the connection; without memory for them, drop the transport."""
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
        """Start TLS in the reader of the link, before it reads on."""
        assert self.link is not None
        self.link.tls_name = effect.hostname

    def hang_up(self) -> None:
        """Close the link, which reports nothing more."""
        link, self.link = self.link, None
        if link is not None:
            link.close()

    def send(self) -> None:
        """Pass pending data to the transport, if everything before it is written."""
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
        """Yield to other tasks when the turn is over."""
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
        """Apply the effects of the connection at once."""
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
