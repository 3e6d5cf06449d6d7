"""One background thread for each connection: `with connect(...) as client`, from any thread.

The thread does all I/O. Calls give it orders and wait for it; what many threads publish goes out
together. Names are looked up in threads of their own, so that timeouts hold meanwhile. After
`os.fork()` a client is of no use in the child, which has no such thread: connect again there.

A client that is never closed is closed when the program ends. One that is dropped is closed, too,
with a ResourceWarning: while the thread sleeps, it holds no reference to its port.
"""

from __future__ import annotations

import atexit
import socket
import threading
import warnings
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING

from natsproto.blocking import Client
from natsproto.connection.waitable import Waitable
from natsproto.errors import ConnectionClosed, MessagesUnconfirmed
from natsproto.port import run_sync
from natsproto.session import Session

from ._lookup import Lookups
from ._mutex import Mutex
from ._shared import FORKED, make_connection, open_client, run_worker
from ._sockets import SocketCarrier, wait_for

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from natsproto.connection import Connection
    from natsproto.connection.effects import Dial
    from natsproto.connection.waitable import Request
    from natsproto.options import OptionsDict, ServersLike
    from natsproto.port import Lock

    from ._shared import Worker
    from ._sockets import Addresses, Wire


# How long it may take to close a client that nobody closes, as `Client.close` has it.
CLOSE = 2.0


def connect(
    servers: ServersLike = "nats://127.0.0.1:4222", **options: Unpack[OptionsDict]
) -> Client:
    """`with connect(...) as client`, or a plain call, and `close` in the end.

    The options are the keywords of natsproto.options.Options, whose help tells about each, but
    `creds` is the path of a file. ConnectFailed, AuthorizationFailed: no server took the client.
    """
    connection = make_connection(servers, dict(options))
    port = ThreadsPort(connection)
    with port.lock:
        port.start()
        return Client(run_sync(open_client(connection, port)), port)


class ThreadsPort(SocketCarrier):
    """The core behind a lock; a thread that does its I/O."""

    alone = False
    _running = False

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._mutex = Mutex()
        self.lock: Lock = self._mutex.lock
        self._bell, self._button = socket.socketpair()
        self._bell.setblocking(False)
        self._button.setblocking(False)
        self._asleep = False
        self._ended = Waitable()
        self._lookups = Lookups()
        self._dropped: list[ThreadsPort] = []  # this port, when nobody else refers to it any more
        self._goodbye: Request | None = None  # the close of a client that was dropped
        self._thread = threading.Thread(
            target=_serve,
            # The sockets, because a collected cycle closes those that nobody else refers to.
            args=[weakref.ref(self), (self._bell, self._button), self._dropped],
            name="natsproto",
            daemon=True,
        )

    @property
    def running(self) -> bool:
        """Whether its thread is at work, in this process."""
        return self._running

    def start(self) -> None:
        self._running = True
        self._thread.start()
        _ports.add(self)

    def start_close(self) -> Request:
        """Begin to close, within CLOSE seconds."""
        with self._mutex.lock:
            closing = self.connection.start_close(self.now() + CLOSE)
            self.flush_soon()
            return closing

    async def wait(self, waitable: Waitable) -> None:
        # The lock is held until the waiter is known, so no wake-up is lost.
        woken = threading.Lock()
        woken.acquire()
        waitable.waiters.append(woken.release)
        try:
            self._mutex.sleep(woken)
        finally:
            if woken.release in waitable.waiters:
                waitable.waiters.remove(woken.release)

    async def checkpoint(self) -> None:
        pass  # the system lets others run

    async def together(self, workers: list[Worker]) -> None:
        # Not daemons: a callback that was begun is ended, also if this is the end of the process.
        first, *others = workers
        threads = [threading.Thread(target=run_worker, args=[each]) for each in others]
        for thread in threads:
            thread.start()
        try:
            await first()  # here, where Ctrl-C strikes
        finally:
            for thread in threads:
                thread.join()

    def flush_soon(self) -> None:
        if self._asleep:
            self._nudge()
            self._asleep = False

    def _nudge(self) -> None:
        # The bell is silenced only when nothing else is to be done: it may be full of rings. Then
        # one more is needless, and to wait for room would be forever: the caller has the lock.
        with suppress(OSError):  # full, or closed
            self._button.send(b"!")

    def cork(self, token: object) -> None:
        pass  # the thread collects what comes while it is at work

    def uncork(self, token: object) -> None:
        pass

    async def aclose(self) -> None:
        self.flush_soon()
        while self._running:
            await self.wait(self._ended)
        self._thread.join()

    def forked(self) -> None:
        self._running = False
        self._hang_up()
        self._bell.close()
        self._button.close()
        self.lock = Forked()

    def __del__(self) -> None:
        if self._running:
            # CONN-31: the thread sends what was published and closes.
            self._dropped.append(self)
            self._nudge()
            warnings.warn("a client was not closed", ResourceWarning, stacklevel=2, source=self)

    # What the thread does

    def turn(self, ready: bool) -> tuple[Wire | None, float] | None:
        """Do what can be done; return what to wait for and how long, or None at the end."""
        self._asleep = False  # no lock needed: all orders are seen below
        if not ready:
            with suppress(BlockingIOError):
                self._bell.recv(4096)
        with self._mutex.lock:
            if self._dropped and self._goodbye is None:
                self._goodbye = self.start_close()
            self._step(ready)
            self.carry_out()
            more = self._order is not None and self._find(self._order)
            if self.connection.closed:
                return None
            self._asleep = True
            return self._wire, 0.0 if more else self._timeout()

    def _find(self, order: Dial) -> bool:
        """Look the name up; True: it is known at once, and there may be more to do."""
        addresses = self._lookups.start(order, self._looked_up)
        if addresses is None:
            return False
        self._begin(order, addresses)
        return True

    def _looked_up(self, order: Dial, addresses: Addresses) -> None:
        """Use what a thread has found, also for a later order that has the same name."""
        with self._mutex.lock:
            wanted = self._order
            if wanted is not None and (wanted.host, wanted.port) == (order.host, order.port):
                self._begin(wanted, addresses)
                self.flush_soon()

    def end(self) -> None:
        """Give everything back, whatever was the reason to end."""
        with self._mutex.lock:
            self.connection.close(self.now())
            self.carry_out()
            self._running = False
            self._bell.close()
            self._button.close()
            for wake in self._ended.waiters:
                wake()

    def report_loss(self) -> None:
        """Raise what the close of a dropped client has to say: nobody else would learn of it."""
        if self._goodbye is not None and self._goodbye.error is not None:
            raise self._goodbye.error

    def _arm(self, deadline: float) -> None:
        pass  # the thread asks for it


def _serve(
    ref: weakref.ref[ThreadsPort],
    sockets: tuple[socket.socket, socket.socket],
    dropped: list[ThreadsPort],
) -> None:
    """Do the I/O of a port until it is closed, then give everything back."""
    bell, _ = sockets
    try:
        _take_turns(ref, bell, dropped)
    finally:
        port = ref() or _last(bell, dropped)
        port.end()
    port.report_loss()


def _take_turns(
    ref: weakref.ref[ThreadsPort], bell: socket.socket, dropped: list[ThreadsPort]
) -> None:
    ready = False
    while True:
        wanted = (ref() or _last(bell, dropped)).turn(ready)
        if wanted is None:
            return
        # Nothing here refers to the port now: if nobody else does, its __del__ rings the bell.
        ready = wait_for(wanted[0], bell, wanted[1])


def _last(bell: socket.socket, dropped: list[ThreadsPort]) -> ThreadsPort:
    """Return the port that was dropped; the garbage collector clears references before __del__."""
    while not dropped:
        wait_for(None, bell, 1.0)
    return dropped[0]


_ports: weakref.WeakSet[ThreadsPort] = weakref.WeakSet()


def _close_all() -> None:
    """CONN-30: close what is open at the end of the program, all at once, within CLOSE seconds.

    Threads that are daemons, as ours are, go on until this is done. A MessagesUnconfirmed shows on
    stderr.
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
    """The lock of a client in a process that has not connected it."""

    def __enter__(self) -> None:
        raise ConnectionClosed(FORKED)

    def __exit__(self, *exc: object) -> None:
        pass
