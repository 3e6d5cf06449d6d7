"""An adapter for gevent: `with connect(...) as client`, for all greenlets of one thread.

It has the blocking API, where a call that waits lets other greenlets run. Nothing is patched.
docs/adapters.md explains it piece by piece; examples/gevent_runner.py runs the checks on it.
"""

from __future__ import annotations

import math
import time
from contextlib import nullcontext
from typing import Any

import gevent
from gevent import event, pool, socket

from natsproto.adapters import driver
from natsproto.adapters.tls import TlsFilter, tls_context
from natsproto.blocking import Client
from natsproto.connection import Connection
from natsproto.connection.effects import Dial, StartTls
from natsproto.connection.waitable import Waitable
from natsproto.port import run_sync


def connect(servers: str | list[str] = "nats://127.0.0.1:4222", **options: Any) -> Client:
    """Connect; the options are those of natsproto.options.Options, and `creds` is a path."""
    connection = driver.make_connection(servers, options)
    port = GeventPort(connection)
    return Client(run_sync(driver.open_client(connection, port)), port)


class GeventPort(driver.Driver):
    """Runs a connection with greenlets of the thread that it is made in."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.lock = nullcontext()  # greenlets switch only where they wait
        self.alone = False  # other greenlets may use the client, too
        self._transport: Transport | None = None  # the present one
        self._fires_at = math.inf
        self._earlier = event.Event()
        self.greenlets = pool.Group()
        self.greenlets.spawn(self._run_timer)

    def now(self) -> float:
        return time.monotonic()

    async def wait(self, waitable: Waitable) -> None:
        woken = event.Event()
        waitable.waiters.append(woken.set)
        try:
            woken.wait()
        finally:  # also after a gevent.Timeout or a kill
            if woken.set in waitable.waiters:
                waitable.waiters.remove(woken.set)

    async def checkpoint(self) -> None:
        if self.turn_is_over():
            gevent.sleep(0)

    async def run_all(self, workers: list[driver.Worker]) -> None:
        greenlets = [gevent.spawn(driver.run_worker, worker) for worker in workers]
        try:
            gevent.joinall(greenlets)
        finally:  # also after a gevent.Timeout or a kill
            gevent.killall(greenlets)

    def cork(self, token: object) -> None:
        pass  # publishes before the next switch are sent together anyway

    uncork = cork

    def set_timer(self, deadline: float) -> None:
        self._fires_at = deadline
        self._earlier.set()

    def _run_timer(self) -> None:
        while not self.connection.closed:
            left = self._fires_at - self.now()
            if left <= 0:
                self._fires_at = math.inf
                self.on_timer()
            else:
                self._earlier.wait(None if left == math.inf else left)
                self._earlier.clear()

    def dial(self, effect: Dial) -> None:
        self._transport = Transport(self, effect)

    def start_tls(self, effect: StartTls) -> None:
        assert self._transport is not None
        self._transport.hostname = effect.hostname

    def hang_up(self) -> None:
        if self._transport is not None:
            self._transport.greenlet.kill(block=False)
            self._transport = None

    def send(self) -> None:
        if self._transport is not None and self._transport.idle:
            self._transport.write(self.connection.data_to_send())

    def flush_soon(self) -> None:
        self.pump()

    def report(self, transport: Transport, on_input: Any, *args: Any) -> None:
        """Pass an input to the connection, unless its transport was dropped."""
        if transport is self._transport:
            on_input(*args)

    def transport_lost(self, error: BaseException | None) -> None:
        self._transport = None
        self.on_closed(error)

    async def aclose(self) -> None:
        self.pump()
        self.greenlets.kill()


class Transport:
    """One transport: a greenlet that dials and reads, and another one that writes."""

    _sock: Any = None
    _tls: TlsFilter | None = None
    _broken: BaseException | None = None  # why nothing more can be sent
    idle = False  # the writer has nothing to do
    hostname = ""  # if set, TLS is to be started

    def __init__(self, port: GeventPort, effect: Dial) -> None:
        self._port = port
        self._pieces: list[bytes] = []
        self._filled = event.Event()
        self.greenlet = port.greenlets.spawn(self._run, effect)

    def write(self, pieces: list[bytes]) -> None:
        if pieces:
            self._pieces = pieces
            self.idle = False
            self._filled.set()

    def _run(self, effect: Dial) -> None:
        writer = gevent.spawn(self._write)
        try:
            found = socket.getaddrinfo(effect.host, effect.port, type=socket.SOCK_STREAM)
            run_sync(driver.try_addresses(found, effect.shuffle, self._connect))
            self.idle = True
            self._port.report(self, self._port.on_opened)
            self._read()
        except driver.TRANSPORT_ERRORS as error:
            self._broken = self._broken or error
        finally:
            writer.kill(block=False)
            if self._sock is not None:
                self._sock.close()
        self._port.report(self, self._port.transport_lost, self._broken)

    async def _connect(self, address: Any) -> None:
        if self._sock is not None:
            self._sock.close()
        self._sock = socket.socket(*address[:3])
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sock.connect(address[4])

    def _read(self) -> None:
        while True:
            if self.hostname and self._tls is None:
                self._tls = TlsFilter(tls_context(self._port.connection.options), self.hostname)
                self._filled.set()  # the writer begins the handshake
            data = self._sock.recv(self._port.read_size)
            if not data:
                return
            if self._tls is not None:
                data = self._decrypt(self._tls, data)
            if data:
                self._port.report(self, self._port.on_data, data)
            gevent.sleep(0)  # recv does not switch while there is more: let readers take it

    def _decrypt(self, tls: TlsFilter, data: bytes) -> bytes:
        was_done = tls.handshake_done
        data = tls.receive_data(data)
        self._filled.set()  # the writer continues the handshake
        if tls.handshake_done and not was_done:
            self._port.report(self, self._port.on_tls)
        return data

    def _write(self) -> None:
        try:
            while True:
                self._filled.wait()
                self._filled.clear()
                pieces, self._pieces = self._pieces, []
                if self._tls is not None:
                    for piece in pieces:
                        self._tls.send(piece)
                    pieces = [self._tls.data_to_send()]
                for piece in pieces:
                    self._sock.sendall(piece)
                if not self._pieces:
                    self.idle = True
                    self._port.pump()
        except OSError as error:
            self._broken = error  # the reader reports it: the server's last words may say more
