"""The driver: the common part of all adapters, and the base class to write one on.

A connection decides; an adapter does the I/O. `Driver` stands between them: its `on_...` methods
pass inputs to the connection, and `pump` reads the four outputs and calls the five methods that an
adapter implements. docs/adapters.md builds an adapter on it, step by step.

This module imports nothing that MicroPython lacks, so adapters for devices can use it as well.
"""

from __future__ import annotations

import os
import sys
import time

from natsproto.client import Client
from natsproto.connection import Connection
from natsproto.connection.effects import Dial, Sign, StartTls
from natsproto.errors import InvalidState

from ._options import read_options

try:
    import warnings
except ImportError:  # MicroPython
    warnings = None  # type: ignore[assignment]

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from typing import Any, TypeAlias
    from weakref import WeakSet

    from natsproto.connection.servers import Rng
    from natsproto.connection.waitable import Reports
    from natsproto.options import ServersLike
    from natsproto.port import PathLike, Port

    from ._files import FileReader, FileWriter
    from .logs import EventLogger

    Worker: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
    #: An entry of the list that socket.getaddrinfo returns.
    Address: TypeAlias = Any

__all__ = [
    "CANCEL_GRACE",
    "FORKED",
    "HUGE_READ_SIZE",
    "LARGE_READ_SIZE",
    "READ_SIZE",
    "TRANSPORT_ERRORS",
    "Driver",
    "SystemRng",
    "disown_socket",
    "make_connection",
    "open_client",
    "run_worker",
    "try_addresses",
]

#: How many bytes to read at a time: more is slower for small messages, which then do not fit into
#: the processor's cache until they are used.
READ_SIZE = 64 * 1024
#: How many while large messages arrive: fewer of them are cut in two, which costs a copy each.
LARGE_READ_SIZE = 256 * 1024
#: How many while messages of 8 KiB and more arrive: what a turn costs counts more than the cache.
HUGE_READ_SIZE = 512 * 1024
#: How long leaving a canceled block may take, in seconds: enough to send what it has published.
CANCEL_GRACE = 0.5
#: What dialing and TLS raise when they fail. A host name that cannot be encoded for DNS, or that no
#: certificate can have, is a ValueError.
TRANSPORT_ERRORS = (OSError, ValueError)
#: Why a client is closed in a child process.
FORKED = "this client belongs to the process before the fork: connect again"

# For how long an iterator that finds messages keeps the loop to itself, in seconds.
_TURN = 0.02
# The mean size from which on messages are large, in bytes on the wire.
_LARGE = 512
_HUGE = 8 * 1024
# MicroPython has no perf_counter.
_ticks: Callable[[], float] = getattr(time, "perf_counter", time.time)


class SystemRng:
    """Random numbers of the operating system, with the methods that a Connection needs.

    random.SystemRandom does the same, but MicroPython does not have it. Where `os.urandom` is
    missing, pass a function that returns the given number of unpredictable random bytes.
    """

    def __init__(self, urandom: Callable[[int], bytes] | None = None) -> None:
        system: Callable[[int], bytes] = getattr(os, "urandom", _no_urandom)
        self._urandom = system if urandom is None else urandom

    def random(self) -> float:
        """Return a number from 0.0 up to, but not including, 1.0."""
        return (int.from_bytes(self._urandom(7), "big") >> 3) / (1 << 53)

    def randrange(self, limit: int) -> int:
        """Return a number from 0 up to, but not including, `limit`."""
        # 128 bits more than needed make the bias of the remainder unmeasurable.
        size = len("%x" % limit) // 2 + 17
        return int.from_bytes(self._urandom(size), "big") % limit

    def shuffle(self, items: list[Any]) -> None:
        """Put the items into a random order."""
        for i in range(len(items) - 1, 0, -1):
            j = self.randrange(i + 1)
            items[i], items[j] = items[j], items[i]


def _no_urandom(size: int) -> bytes:
    raise InvalidState("random numbers are not available: pass an rng to make_connection")


_RNG = SystemRng()


def make_connection(
    servers: ServersLike,
    options: dict[str, Any],
    *,
    rng: Rng = _RNG,
    host: tuple[str, ...] = (),
) -> Connection:
    """Check the options and return a connection that has not begun to connect.

    `options` are the keywords of natsproto.options.Options, except that `creds` is the path of a
    file here, and that `tls` must be a bool, None or an ssl.SSLContext (D-OPT-16). An option that
    does not exist raises InvalidValue, with the name that was probably meant. `context` names a
    file with settings, see natsproto.adapters.contexts; True means the selected one. `trace` is a
    sink for every step of the connection, see natsproto.trace.

    `host` are those of the options host_websocket and host_signing that the adapter can honor; it
    sets them itself. A program that sets one of them elsewhere gets InvalidValue (D-OPT-20).
    """
    checked, sink = read_options(servers, options, host)
    if sink is not None:
        from natsproto.trace import TracedConnection

        return TracedConnection(checked, rng=rng, sink=sink)
    return Connection(checked, rng=rng)


async def open_client(connection: Connection, port: Port) -> Client:
    """Connect and return the client; if that fails or is canceled, release everything."""
    client = Client(connection, port)
    connection.connect(port.now())
    try:
        await client.session.settle(connection.opened)
    except BaseException:
        connection.close(port.now())
        port.flush_soon()
        await port.aclose()
        raise
    return client


def run_worker(worker: Worker) -> None:
    """Run one worker of `run_all` to its end, on a runtime without async."""
    from natsproto.port import run_sync

    run_sync(worker())


async def try_addresses(
    addresses: list[Address], shuffle: bool, connect: Callable[[Address], Awaitable[object]]
) -> None:
    """Connect to the first address that accepts; if none does, raise the error of the last one.

    `addresses` is a list as socket.getaddrinfo returns it, and `shuffle` that of the Dial effect.
    """
    if shuffle:
        _RNG.shuffle(addresses)
    for address in addresses[:-1]:
        try:
            await connect(address)
            return
        except OSError:  # noqa: PERF203
            pass
    await connect(addresses[-1])


class Driver:
    """Passes inputs to a connection and carries out its effects.

    A subclass implements `now`, `dial`, `start_tls`, `hang_up`, `send` and `set_timer`, calls the
    `on_...` methods when something happens to its transport, and adds the other methods of
    natsproto.port.Port: `wait`, `checkpoint`, `run_all`, `flush_soon` and `aclose`. One that sets
    the option `host_signing` implements `sign` as well.

    If `now` has to make sure that its caller may use the connection, `clock` is the same time
    without that check, for what the transport and the timer report.

    Nothing here may run in two threads at once, and none of it may be called from within `pump`.
    """

    def __init__(self, connection: Connection, clock: Callable[[], float] | None = None) -> None:
        self.connection = connection
        self._clock = clock
        #: How many bytes to read next; it follows the size of the messages.
        self.read_size: int = READ_SIZE
        self._turn_began = 0.0
        self._timer_at: float | None = None  # when `on_timer` is to be called, if at all
        self._later: list[Callable[[], object]] = []
        self._log: EventLogger | None = None  # until there is an event
        _track(self)

    # What an adapter implements

    def now(self) -> float:
        """Return the time in seconds, from any origin; it never goes back."""
        raise NotImplementedError

    def dial(self, effect: Dial) -> None:
        """Begin to open a transport; then call `on_opened` or `on_closed`, once."""
        raise NotImplementedError

    def start_tls(self, effect: StartTls) -> None:
        """Begin to upgrade the transport to TLS; then call `on_tls` or `on_closed`, once."""
        raise NotImplementedError

    def sign(self, effect: Sign) -> None:
        """Begin to sign a nonce; then call `on_signed`, once. Needed only with `host_signing`."""
        raise NotImplementedError

    def hang_up(self) -> None:
        """Drop the transport, or the attempt to open one, and report nothing more about it."""
        raise NotImplementedError

    def send(self) -> None:
        """Write `connection.data_to_send()`, if the transport is open and has room."""
        raise NotImplementedError

    def set_timer(self, deadline: float) -> None:
        """Schedule `on_timer` for that time instead of a later one, and only once."""
        raise NotImplementedError

    def wake(self, waiters: list[Any]) -> None:
        """Wake the callers that `wait` has put on the lists of waitables."""
        for wake in waiters:
            wake()

    def pump_soon(self) -> None:
        """Schedule `pump`; called from any thread and within any call.

        An adapter without this method still works, because the next `pump` does what is left to do.
        """

    # Outputs

    def pump(self) -> None:
        """Read the four outputs of the connection and act on them, in their order.

        Call it after every input and every command. The `on_...` methods do.
        """
        connection = self.connection
        bus = connection.bus
        while self._later:
            self._later.pop(0)()
        # Looked at before they are called for, because a request pumps twice with few outputs.
        for effect in connection.take_effects() if bus.effects else []:
            if isinstance(effect, Dial):
                self.dial(effect)
            elif isinstance(effect, StartTls):
                self.start_tls(effect)
            elif isinstance(effect, Sign):
                self.sign(effect)
            else:
                self.hang_up()
        self.send()
        ready = connection.take_ready() if bus.ready else []
        deadline = connection.next_deadline()
        waiters: list[Any] = []
        for waitable in ready:
            if waitable.waiters:
                waiters += waitable.waiters
                waitable.waiters.clear()
            if waitable.reports is not None and waitable.reports.events:
                self.log_events(waitable.reports)
        if waiters:
            self.wake(waiters)
        if deadline is not None and (self._timer_at is None or deadline < self._timer_at):
            self._timer_at = deadline
            self.set_timer(deadline)

    # Inputs

    def on_opened(self) -> None:
        """Report that the transport is open."""
        self.connection.transport_opened(self._time())
        self.pump()

    def on_tls(self) -> None:
        """Report that the TLS handshake is done and the certificate is valid."""
        self.connection.tls_started(self._time())
        self.pump()

    def on_signed(
        self, signature: bytes = b"", key: bytes = b"", error: BaseException | None = None
    ) -> None:
        """Report a signature, and the public key of the seed that made it; or the error."""
        self.connection.nonce_signed(self.now(), signature, key, error)
        self.pump()

    def on_data(self, data: bytes) -> None:
        """Report bytes that were received, in any pieces."""
        stats = self.connection.stats
        before = stats.in_msgs
        self._turn_began = now = self._time()
        self.connection.receive_data(data, now)
        if len(data) < READ_SIZE:
            self.read_size = READ_SIZE
        else:
            self._follow(len(data), stats.in_msgs - before)
        self.pump()

    def _follow(self, size: int, count: int) -> None:
        """Choose the size of the next read, after a full one.

        Reads become large after a full read with a mean message of 512 bytes or more, and huge with
        8 KiB or more; they become small again after a read that is not full, so that an idle
        connection keeps no large buffer, or after a mean below 256 bytes.
        """
        if size >= _HUGE * count:
            self.read_size = HUGE_READ_SIZE
        elif size >= _LARGE * count:
            self.read_size = LARGE_READ_SIZE
        elif size < _LARGE // 2 * count:
            self.read_size = READ_SIZE

    def on_closed(self, error: BaseException | None) -> None:
        """Report that the transport is lost or could not be opened; None: the server closed it."""
        if error is not None:
            # A frame that raised one of its own variables is part of a cycle, which would keep the
            # frames of all its callers alive: also a loop over events and its reader (D-EVENT-8).
            try:
                error.__traceback__ = None
            except AttributeError:
                pass  # MicroPython
        self.connection.transport_closed(self._time(), error)
        self.pump()

    def on_timer(self) -> None:
        """Report that the deadline has passed; calling it earlier is harmless."""
        self._timer_at = None
        self.connection.handle_timer(self._time())
        self.pump()

    def on_fork(self) -> None:
        """Close the connection in a child process: the transport belongs to the parent.

        An adapter whose event loop knows the socket calls `disown_socket` first.
        """
        self.connection.abandon(FORKED, copied=True)

    # For the port

    def run_soon(self, work: Callable[[], object]) -> None:
        """Call `work` before the next outputs are read; from any thread and within any call."""
        # No lock: the caller may be a finalizer that has interrupted the thread that holds it.
        self._later.append(work)
        self.pump_soon()

    async def run_blocking(self, work: Callable[[], Any]) -> Any:
        """Call a function that blocks, for example on a file; event loops do that in a thread."""
        return work()

    async def open_file(self, path: PathLike) -> FileReader:
        """Open a file for reading, see _files.py."""
        from ._files import open_file

        return await open_file(self.run_blocking, path)

    async def create_file(self, path: PathLike, token: str) -> FileWriter:
        """Create a file that appears when it is complete, see _files.py."""
        from ._files import create_file

        return await create_file(self.run_blocking, path, token)

    def ticks(self) -> float:
        """Return seconds from any origin, by the most precise clock of the system."""
        return _ticks()

    def utc_ns(self) -> int:
        """Return the nanoseconds since 1970 in UTC, by the clock of the system."""
        return time.time_ns()

    def warn(self, text: str) -> None:
        """Issue a ResourceWarning, unless the interpreter is about to end."""
        if warnings is not None and not sys.is_finalizing():
            warnings.warn(text, ResourceWarning, stacklevel=3)

    def log_events(self, reports: Reports) -> None:
        """Write new events to the log; natsproto.adapters.logs says how."""
        if self._log is None:
            from .logs import EventLogger

            self._log = EventLogger(self.connection.options.name)
        self._log.write(reports, self._time)

    @property
    def joins(self) -> bool:
        """Return False: for a blocking port, acknowledgments take the lock unless it says more."""
        return False

    def turn_is_over(self) -> bool:
        """Return whether `checkpoint` should let others run before the next message is returned."""
        # By time, not by count: a turn of the loop reads another 64 KiB. Iterators that paused
        # every 64 messages lost 890,000 of a million that came at once, to overflow.
        now = self._time()
        over = now - self._turn_began > _TURN
        if over:
            self._turn_began = now
        return over

    def _time(self) -> float:
        """Return the time of a report, whose caller is known to be in the right place."""
        clock = self._clock
        return self.now() if clock is None else clock()


def disown_socket(fd: int) -> None:
    """Make a socket that was copied by a fork lead nowhere; the parent's is not affected.

    The two processes share the selector of an event loop, so the child must not close or unregister
    the socket. Nor may it read or write, since that would be the parent's data.
    """
    import socket

    here, there = socket.socketpair()
    there.close()
    os.dup2(here.fileno(), fd, inheritable=False)
    here.close()


if hasattr(os, "register_at_fork"):
    from weakref import WeakSet

    _drivers: WeakSet[Driver] = WeakSet()
    _track = _drivers.add

    def _after_fork() -> None:
        for driver in list(_drivers):
            driver.on_fork()

    os.register_at_fork(after_in_child=_after_fork)
else:

    def _track(item: Driver) -> None:
        pass  # no fork, or no way to notice one
