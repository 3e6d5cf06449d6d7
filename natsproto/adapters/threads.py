"""One background thread for each connection: `with connect(...) as client`, from any thread.

The thread does all I/O. Calls give it orders and wait for it; what many threads publish goes out
together. After `os.fork()` a client is of no use in the child, which has no such thread: connect
again there.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from natsproto.blocking import Client
from natsproto.errors import ConnectionClosed
from natsproto.port import run_sync
from natsproto.waitable import Waitable

from ._shared import make_connection, open_client, run_worker
from ._sockets import SocketCarrier, look_up, wait_for

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from natsproto.connection import Connection
    from natsproto.options import OptionsDict, ServersLike
    from natsproto.port import Lock

    from ._shared import Worker


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

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._mutex = threading.RLock()
        self.lock: Lock = self._mutex
        self._bell, self._button = socket.socketpair()
        self._bell.setblocking(False)
        self._button.setblocking(False)
        self._asleep = False
        self._running = False
        self._ended = Waitable()
        self._thread = threading.Thread(target=self._run, name="natsproto", daemon=True)

    def start(self) -> None:
        self._running = True
        self._thread.start()

    async def wait(self, waitable: Waitable) -> None:
        # The lock is held until the waiter is known, so no wake-up is lost.
        waiter = threading.Condition(self._mutex)
        waitable.waiters.append(waiter.notify)
        try:
            waiter.wait()
        finally:
            if waiter.notify in waitable.waiters:
                waitable.waiters.remove(waiter.notify)

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
            # The bell is silenced only when nothing else is to be done: it may be full of rings.
            # Then one more is needless, and to wait for room would be for ever: we have the lock.
            with suppress(BlockingIOError):
                self._button.send(b"!")
            self._asleep = False

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
        self._hang_up()
        self._bell.close()
        self._button.close()
        self.lock = Forked()

    def _run(self) -> None:
        try:
            ready = False
            while True:
                order = self._order
                addresses = [] if order is None else look_up(order)
                with self._mutex:
                    if order is not None:
                        self._begin(order, addresses)
                    self._step(ready)
                    self.carry_out()
                    if self.connection.closed:
                        return
                    wire = self._wire
                    timeout = self._timeout() if self._order is None else 0.0
                    self._asleep = True
                ready = wait_for(wire, self._bell, timeout)
                self._asleep = False  # no lock needed: the next round sees all orders
                if not ready:
                    self._silence_the_bell()
        finally:
            self._end()

    def _silence_the_bell(self) -> None:
        with suppress(BlockingIOError):
            self._bell.recv(4096)

    def _end(self) -> None:
        with self._mutex:
            self.connection.close(self.now())
            self.carry_out()
            self._running = False
            self._bell.close()
            self._button.close()
            for wake in self._ended.waiters:
                wake()

    def _arm(self, deadline: float) -> None:
        pass  # the thread asks for it


class Forked:
    """The lock of a client in a process that has not connected it."""

    def __enter__(self) -> None:
        raise ConnectionClosed("this client belongs to the process before the fork: connect again")

    def __exit__(self, *exc: object) -> None:
        pass
