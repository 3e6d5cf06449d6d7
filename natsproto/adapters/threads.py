"""One background thread for each connection: `with connect(...) as client`, from any thread.

The thread does nearly all I/O. Calls wake it and wait for it; messages that many threads publish
are sent together. Only a request that nothing else joins is sent by the thread that waits for it,
and after several of them in a row, that thread reads the responses as well.
Names are looked up in threads of their own, so that timeouts hold in the meantime. After
`os.fork()` a client cannot be used in the child, which has no such thread: connect again there.

A client that is still open when the program ends is closed. So is one that is garbage-collected,
with a ResourceWarning: while the thread waits, it holds no reference to its port.
"""

from __future__ import annotations

import atexit
import math
import socket
import threading
import warnings
import weakref
from contextlib import suppress
from functools import partial

from natsproto.blocking import Client
from natsproto.connection.waitable import Waitable
from natsproto.errors import ConnectionClosed, InvalidState, MessagesUnconfirmed
from natsproto.port import run_sync
from natsproto.session import Session

from ._interrupts import Interrupts
from ._lookup import Lookups
from ._mutex import Mutex
from ._sockets import OPEN, SocketDriver, wait_for
from .driver import FORKED, make_connection, open_client, run_worker

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Unpack

    from natsproto.connection import Connection
    from natsproto.connection.effects import Dial
    from natsproto.connection.waitable import Request
    from natsproto.options import OptionsDict, ServersLike
    from natsproto.port import Lock

    from ._sockets import Addresses, SocketTransport
    from .driver import Worker


# How long closing a client that was left open may take; the default of `Client.close`.
CLOSE = 2.0
# After so many requests in a row that nothing joins, the thread lends the socket to their callers.
_LONE = 4
# How long the thread then waits without the socket, in seconds; nothing waits for it meanwhile.
_LOAN = 0.05
# How long such a caller waits for a response before it leaves that to the thread.
_PATIENCE = 0.005


def connect(
    servers: ServersLike = "nats://127.0.0.1:4222", **options: Unpack[OptionsDict]
) -> Client:
    """Connect and return a client: use it in a `with` block, or `close` it at the end.

    The options are the keywords of natsproto.options.Options, which describes them, except that
    `creds` is the path of a file. Raises ConnectFailed if no server can be reached, and
    AuthorizationFailed if the credentials are rejected.
    """
    connection = make_connection(servers, dict(options))
    port = ThreadsPort(connection)
    with port.lock:
        port.start()
        return Client(run_sync(open_client(connection, port)), port)


class ThreadsPort(SocketDriver):
    """Runs a connection in a background thread; a lock protects the core."""

    alone = False
    _running = False

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._mutex = Mutex()
        self.lock: Lock = self._mutex.lock
        self._wakeup_r, self._wakeup_w = socket.socketpair()
        self._wakeup_r.setblocking(False)
        self._wakeup_w.setblocking(False)
        self._polling = False  # the thread waits, or is about to
        self._polls_until = math.inf  # the deadline at which it would wake by itself
        self._torn = False  # a signal handler has interrupted a caller that did I/O
        self._interrupts = Interrupts()
        self._waiting = 0  # callers that wait for the thread
        # The loan of the socket, see `wait`
        self._lone = 0  # requests in a row that nothing joined
        self._lent = False  # the thread waits without the socket
        self._used = False  # a caller has read since the last turn of the thread
        self._reading = False  # a caller reads now
        self._read_until = 0.0  # when the caller of the last request leaves reading to the thread
        self._ended = Waitable()
        self._lookups = Lookups()
        self._dropped: list[ThreadsPort] = []  # this port, after its last other reference is gone
        self._goodbye: Request | None = None  # the close of a client that was dropped
        self._thread = threading.Thread(
            target=_serve,
            # The sockets, because collecting a cycle closes those without another reference.
            args=[weakref.ref(self), (self._wakeup_r, self._wakeup_w), self._dropped],
            name="natsproto",
            daemon=True,
        )

    @property
    def running(self) -> bool:
        """Return whether the thread is running in this process."""
        return self._running

    def start(self) -> None:
        """Start the thread."""
        self._running = True
        self._thread.start()
        _ports.add(self)

    def start_close(self) -> Request:
        """Begin to close the client, within CLOSE seconds."""
        with self._mutex.lock:
            closing = self.connection.start_close(self.now() + CLOSE)
            self.flush_soon()
            return closing

    async def wait(self, waitable: Waitable) -> None:
        """Release the lock until the waiter is called, or read what arrives."""
        # Without a loan, each response wakes the thread, which wakes the caller: that is a third of
        # the CPU time of a request. A lone caller reads its responses itself. The thread takes the
        # socket back as soon as anything else happens, or if nothing does.
        if self._lent and not self._reading:
            if self.now() < self._read_until and not self._waiting and self._can_lend():
                self._read()
                return
            self._call_back()
        # The lock is held until the waiter is on the list, so no wake-up is lost.
        woken = threading.Lock()
        woken.acquire()
        self._waiting += 1
        waitable.waiters.append(woken.release)
        try:
            self._mutex.sleep(woken)
        finally:
            if woken.release in waitable.waiters:
                waitable.waiters.remove(woken.release)
                self._waiting -= 1

    def wake(self, waiters: list[Callable[[], object]]) -> None:
        """Wake callers of `wait`."""
        self._waiting -= len(waiters)
        super().wake(waiters)

    def _read(self) -> None:
        """Wait for data in the thread of the caller, and handle it."""
        transport = self._transport
        timeout = min(self._read_until - self.now(), self._timeout())
        self._reading = self._used = True
        try:
            ready = self._mutex.leave(partial(wait_for, transport, None, timeout))
            if self._transport is transport:
                self._handle(ready)
        finally:
            self._reading = False
            self._interrupts.allow()  # again, as a signal may interrupt the first one
            # Others wait or have done something meanwhile, or the transport is lost.
            if self._waiting or not self._lone or self._torn or not self._can_lend():
                self._call_back()

    def _handle(self, ready: bool) -> None:
        """Do the work of a turn in the thread of the caller."""
        self._interrupts.defer()
        try:
            self._torn = True
            self._step(ready)
            self._torn = False
        finally:
            self._interrupts.allow()

    def _call_back(self) -> None:
        """Wake the thread, which takes the socket back."""
        self._lent = False
        self._lone = 0
        if self._polling:
            self._polling = False
            self.pump_soon()

    def _can_lend(self) -> bool:
        """Return whether the socket can be lent: it is open, and has nothing to send."""
        transport = self._transport
        return transport is not None and transport.stage is OPEN and not transport.unsent

    def _lend(self) -> bool:
        """Return whether the thread should wait without the socket from now on."""
        if self._reading and self.now() < self._read_until:
            return True  # for a bounded time: a signal handler may have interrupted the reader
        self._reading = False
        used, self._used = self._used, False
        lend = self._lone >= _LONE and not self._waiting and self._can_lend()
        if lend and self._lent and not used:
            self._lone = 0
            return False
        return lend

    async def checkpoint(self) -> None:
        """Return at once."""
        pass  # threads need not yield to others

    async def run_all(self, workers: list[Worker]) -> None:
        """Run the first worker here, and each other one in a new thread."""
        # Not daemons: callbacks that have begun run to their end, even if the program is ending.
        first, *others = workers
        threads = [threading.Thread(target=run_worker, args=[each]) for each in others]
        for thread in threads:
            thread.start()
        try:
            await first()  # in this thread, which Ctrl-C interrupts
        finally:
            for thread in threads:
                thread.join()

    def flush_soon(self) -> None:
        """Wake the thread, if it waits and this one cannot do its work."""
        if self._polling and not self._send_request():
            self._call_back()

    def _send_request(self) -> bool:
        """Send a request in the thread of its caller; False if there is anything else to do."""
        # The caller waits next, so no other message can join it. To wake the thread only for this
        # would be a quarter of the CPU time of a request.
        connection = self.connection
        frames = connection.outbound.frames
        if len(frames) != 1 or not connection.outbound.is_request(frames[0]):
            return False
        transport = self._transport
        if transport is None or transport.stage is not OPEN or transport.unsent:
            return False
        bus = connection.bus
        deadline = connection.next_deadline()
        if bus.effects or bus.ready or self._later or deadline is None:
            return False
        if deadline < self._polls_until:
            return False
        self._torn = True
        try:
            self.send()
        except BaseException:  # of a signal handler
            self._torn = bool(transport.unsent)  # or else it was sent, or it is still in the queue
            self.pump_soon()
            raise
        self._torn = False
        now = self.now()
        alone = not self._waiting and now < self._read_until  # the last one was a moment ago
        self._lone = self._lone + 1 if alone else 1
        self._read_until = now + _PATIENCE
        return not transport.unsent

    def pump_soon(self) -> None:
        """Wake the thread, from any thread."""
        # The socket is read only when there is nothing else to do, so it may be full. Another byte
        # is then unnecessary, and waiting for room would never end, because the caller holds the
        # lock.
        with suppress(OSError):  # full, or closed
            self._wakeup_w.send(b"!")

    def cork(self, token: object) -> None:
        """Ignore the cork."""
        pass  # the thread joins messages that are published while it is busy

    def uncork(self, token: object) -> None:
        """Ignore the cork."""

    async def aclose(self) -> None:
        """Wait until the thread has ended."""
        self.flush_soon()
        while self._running:
            await self.wait(self._ended)
        self._thread.join()

    def on_fork(self) -> None:
        """Close the sockets, and make every call raise."""
        self._running = False
        self.hang_up()
        self._wakeup_r.close()
        self._wakeup_w.close()
        self.lock = Forked()

    def __del__(self) -> None:
        if self._running:
            # D-CONN-31: the thread sends the published messages and closes.
            self._dropped.append(self)
            self.pump_soon()
            warnings.warn("a client was not closed", ResourceWarning, stacklevel=2, source=self)

    # Called by the thread

    def turn(self, ready: bool) -> tuple[SocketTransport | None, float] | None:
        """Run one turn; return what to wait for and how long, or None at the end."""
        self._polling = False  # needs no lock: all commands are handled below
        if not ready:
            with suppress(BlockingIOError):
                self._wakeup_r.recv(4096)
        with self._mutex.lock:
            if self._dropped and self._goodbye is None:
                self._goodbye = self.start_close()
            if self._torn:
                self._torn = False
                self.hang_up()
                with suppress(InvalidState):  # another call has dropped the transport meanwhile
                    self.on_closed(OSError("interrupted by a signal handler"))
            self._step(ready)
            self.pump()
            more = self._dialing is not None and self._find(self._dialing)
            if self.connection.closed:
                return None
            self._polling = True
            deadline = self.connection.next_deadline()
            self._polls_until = math.inf if deadline is None else deadline
            self._lent = self._lend()
            if self._lent:
                return None, min(_LOAN, self._timeout())
            return self._transport, 0.0 if more else self._timeout()

    def _find(self, effect: Dial) -> bool:
        """Look up the name; return True if that is done and there may be more to do."""
        addresses = self._lookups.start(effect, self._looked_up)  # D-CLOCK-3
        if addresses is None:
            return False
        self._begin(effect, addresses)
        return True

    def _looked_up(self, effect: Dial, addresses: Addresses) -> None:
        """Use the result of a lookup thread, even for a later Dial of the same name."""
        with self._mutex.lock:
            dialing = self._dialing
            if dialing is not None and (dialing.host, dialing.port) == (effect.host, effect.port):
                self._begin(dialing, addresses)
                self.flush_soon()

    def end(self) -> None:
        """Release everything, for whatever reason the thread ends."""
        with self._mutex.lock:
            self.connection.close(self.now())
            self.pump()
            self._running = False
            self._wakeup_r.close()
            self._wakeup_w.close()
            for wake in self._ended.waiters:
                wake()

    def report_loss(self) -> None:
        """Raise the error of closing a dropped client: no caller is left to receive it."""
        if self._goodbye is not None and self._goodbye.error is not None:
            raise self._goodbye.error


def _serve(
    ref: weakref.ref[ThreadsPort],
    sockets: tuple[socket.socket, socket.socket],
    dropped: list[ThreadsPort],
) -> None:
    """Do the I/O of a port until it is closed, then release everything."""
    wakeup, _ = sockets
    try:
        _take_turns(ref, wakeup, dropped)
    finally:
        port = ref() or _last(wakeup, dropped)
        port.end()
    port.report_loss()


def _take_turns(
    ref: weakref.ref[ThreadsPort], wakeup: socket.socket, dropped: list[ThreadsPort]
) -> None:
    ready = False
    while True:
        wanted = (ref() or _last(wakeup, dropped)).turn(ready)
        if wanted is None:
            return
        # Nothing here refers to the port now: if it is collected, its __del__ wakes this thread.
        ready = wait_for(wanted[0], wakeup, wanted[1])


def _last(wakeup: socket.socket, dropped: list[ThreadsPort]) -> ThreadsPort:
    """Return the dropped port; the garbage collector clears weak references before __del__."""
    while not dropped:
        wait_for(None, wakeup, 1.0)
    return dropped[0]


_ports: weakref.WeakSet[ThreadsPort] = weakref.WeakSet()


def _close_all() -> None:
    """Close the clients that are open at the end of the program, all at once (D-CONN-30).

    It takes CLOSE seconds at most. The threads are daemons and run until this is done. A
    MessagesUnconfirmed is printed to stderr.
    """
    closing = [(port, port.start_close()) for port in list(_ports) if port.running]
    for port, request in closing:
        with port.lock, suppress(MessagesUnconfirmed):
            run_sync(Session(port.connection, port).settle(request))
            run_sync(port.aclose())
    for _, request in closing:
        if request.error is not None:
            raise request.error


atexit.register(_close_all)


class Forked:
    """The lock of a client in the child of a fork."""

    def __enter__(self) -> None:
        raise ConnectionClosed(FORKED)

    def __exit__(self, *exc: object) -> None:
        pass
