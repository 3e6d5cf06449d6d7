"""An adapter for gevent: `with connect(...) as client`, for all greenlets of one thread.

The blocking API, where a call that waits lets other greenlets run. Nothing has to be patched.
docs/adapters.md explains it piece by piece; examples/gevent_checks.py proves it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import gevent
from gevent import event, pool, socket, ssl

from natsproto.adapters import _shared
from natsproto.blocking import Client
from natsproto.connection import Connection
from natsproto.connection.effects import Dial, StartTls
from natsproto.connection.waitable import Waitable
from natsproto.port import run_sync


def connect(servers: str | list[str] = "nats://127.0.0.1:4222", **options: Any) -> Client:
    """A client; the options are those of natsproto.options.Options, and `creds` is a path."""
    connection = _shared.make_connection(servers, options)
    port = GeventPort(connection)
    return Client(run_sync(_shared.open_client(connection, port)), port)


class GeventPort(_shared.Carrier):
    """Carries out what a Connection orders, with greenlets of the thread that it is made in."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.lock = nullcontext()  # greenlets switch only where they wait
        self.alone = True
        self._link: Link | None = None  # the one in use
        self._alarm = math.inf
        self._earlier = event.Event()
        self.greenlets = pool.Group()
        self.greenlets.spawn(self._watch_the_time)

    def now(self) -> float:
        return time.monotonic()

    async def wait(self, waitable: Waitable) -> None:
        woken = event.Event()
        waitable.waiters.append(woken.set)
        try:
            woken.wait()
        finally:  # after a gevent.Timeout or a kill, too
            if woken.set in waitable.waiters:
                waitable.waiters.remove(woken.set)

    async def checkpoint(self) -> None:
        if self._turn_is_over():
            gevent.sleep(0)

    async def together(self, workers: list[_shared.Worker]) -> None:
        greenlets = [gevent.spawn(_shared.run_worker, worker) for worker in workers]
        try:
            gevent.joinall(greenlets)
        finally:  # after a gevent.Timeout or a kill, too
            gevent.killall(greenlets)

    def cork(self, token: object) -> None:
        pass  # what is published before the next switch goes out together anyway

    uncork = cork

    def _arm(self, deadline: float) -> None:
        if deadline < self._alarm:
            self._alarm = deadline
            self._earlier.set()

    def _watch_the_time(self) -> None:
        while not self.connection.closed:
            left = self._alarm - self.now()
            if left <= 0:
                self._alarm = math.inf
                self.ring()
            else:
                self._earlier.wait(None if left == math.inf else left)
                self._earlier.clear()

    def _dial(self, order: Dial) -> None:
        self._link = Link(self, order)

    def _start_tls(self, order: StartTls) -> None:
        assert self._link is not None
        self._link.hostname = order.hostname

    def _hang_up(self) -> None:
        if self._link is not None:
            self._link.greenlet.kill(block=False)
            self._link = None

    def _send(self) -> None:
        link = self._link
        if link is not None and link.idle:
            link.pieces = self.connection.data_to_send()
            if link.pieces:
                link.idle = False
                link.filled.set()

    def flush_soon(self) -> None:
        self.carry_out()

    def tell(self, link: Link, happened: Callable[..., None], *args: Any) -> None:
        """Pass an input on, unless its transport has been given up."""
        if link is self._link:
            happened(*args)

    def link_lost(self, error: BaseException | None) -> None:
        self._link = None
        self.lost(error)

    async def aclose(self) -> None:
        self.carry_out()
        self.greenlets.kill()


class Link:
    """One transport: a greenlet that dials and reads, another that writes."""

    _sock: Any = None
    _broken: BaseException | None = None
    idle = False  # the writer has nothing to do
    hostname = ""  # with a name: TLS is wanted and not begun

    def __init__(self, port: GeventPort, order: Dial) -> None:
        self._port = port
        self.pieces: list[bytes] = []
        self.filled = event.Event()
        self.greenlet = port.greenlets.spawn(self._run, order)

    def _run(self, order: Dial) -> None:
        writer = gevent.spawn(self._write)
        try:
            self._open(order)
            self.idle = True
            self._port.tell(self, self._port.opened)
            self._read()
        except _shared.FAILURES as error:
            self._broken = self._broken or error
        finally:
            writer.kill(block=False)
            if self._sock is not None:
                self._sock.close()
        self._port.tell(self, self._port.link_lost, self._broken)

    def _open(self, order: Dial) -> None:
        addresses = socket.getaddrinfo(order.host, order.port, type=socket.SOCK_STREAM)
        run_sync(_shared.first_answer(addresses, order.shuffle, self._connect))

    async def _connect(self, address: Any) -> None:
        if self._sock is not None:
            self._sock.close()
        self._sock = socket.socket(*address[:3])
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sock.connect(address[4])

    def _read(self) -> None:
        while True:
            if self.hostname:
                self._secure()
                self._port.tell(self, self._port.secured)
            data = self._sock.recv(_shared.READ_SIZE)
            if not data:
                return
            self._port.tell(self, self._port.received, data)
            gevent.sleep(0)  # recv does not switch while there is more: let it be taken

    def _secure(self) -> None:
        self._sock = ssl.SSLSocket(
            self._sock,
            server_hostname=self.hostname,
            do_handshake_on_connect=False,  # first it must be ours, to be closed
            _context=_shared.tls_context(self._port.connection.options),
        )
        self.hostname = ""
        self._sock.do_handshake()

    def _write(self) -> None:
        try:
            while True:
                self.filled.wait()
                self.filled.clear()
                for piece in self.pieces:
                    self._sock.sendall(piece)
                self.idle = True
                self._port.carry_out()
        except OSError as error:
            self._broken = error  # the reader tells: the server's last words may say more
