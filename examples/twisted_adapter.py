"""An adapter for Twisted: `async with connect(...) as client`, or `client = await connect(...)`.

It has the asynchronous API, for coroutines that `Deferred.fromCoroutine` or `task.react` runs.
docs/adapters.md explains adapters; examples/twisted_runner.py runs the checks on this one.
"""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Any

from twisted.internet import defer, endpoints, error, protocol, reactor, task, threads

from natsproto.adapters import driver
from natsproto.adapters.tls import TlsFilter, tls_context
from natsproto.client import Client, leave

if TYPE_CHECKING:
    from collections.abc import Generator

    from twisted.python.failure import Failure

    from natsproto.connection import Connection
    from natsproto.connection.effects import Dial, StartTls
    from natsproto.connection.waitable import Waitable


class connect:
    """Connect; the options are those of natsproto.options.Options, and `creds` is a path."""

    def __init__(self, servers: str | list[str] = "nats://127.0.0.1:4222", **options: Any) -> None:
        self._connection = driver.make_connection(servers, options)

    def __await__(self) -> Generator[Any, Any, Client]:
        return driver.open_client(self._connection, TwistedPort(self._connection)).__await__()

    async def __aenter__(self) -> Client:
        self._client = await self
        return self._client

    async def __aexit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        canceled = kind is not None and issubclass(kind, defer.CancelledError)
        await leave(self._client, kind, driver.CANCEL_GRACE if canceled else None)


class TwistedPort(driver.Driver):
    """Runs a connection on the reactor."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._transport: Transport | None = None  # the present one
        self._opening: defer.Deferred[None] | None = None
        self._timer: Any = None
        self._closing: list[defer.Deferred[None]] = []

    def now(self) -> float:
        return time.monotonic()  # the reactor's own clock may go back

    async def wait(self, waitable: Waitable) -> None:
        woken: defer.Deferred[None] = defer.Deferred()

        def wake() -> None:  # not now: a callback would run the waiter within `pump`
            reactor.callLater(0, lambda: woken.called or woken.callback(None))

        waitable.waiters.append(wake)
        try:
            await woken
        finally:
            if wake in waitable.waiters:
                waitable.waiters.remove(wake)

    async def checkpoint(self) -> None:
        if self.turn_is_over():
            await task.deferLater(reactor, 0)

    async def run_all(self, workers: list[driver.Worker]) -> None:
        running = [defer.Deferred.fromCoroutine(worker()) for worker in workers]
        # Waits for all of them, also if it is canceled: then it cancels each.
        for succeeded, result in await defer.DeferredList(running, consumeErrors=True):
            if not succeeded:
                result.raiseException()

    def flush_soon(self) -> None:
        self.pump()

    def pump_soon(self) -> None:
        reactor.callFromThread(self.pump)

    async def aclose(self) -> None:
        self.pump()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._closing:
            await defer.DeferredList(self._closing)

    def set_timer(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = reactor.callLater(max(0.0, deadline - self.now()), self._fire)

    def _fire(self) -> None:
        self._timer = None
        self.on_timer()

    def dial(self, effect: Dial) -> None:
        self._transport = Transport(self)
        self._opening = defer.Deferred.fromCoroutine(self._open(self._transport, effect))

    async def _open(self, transport: Transport, effect: Dial) -> None:
        async def connect(address: Any) -> None:
            is_ipv6 = address[0] == socket.AF_INET6
            kind = endpoints.TCP6ClientEndpoint if is_ipv6 else endpoints.TCP4ClientEndpoint
            # The core has a timeout, and hangs up; this one must not be shorter.
            endpoint = kind(reactor, *address[4][:2], timeout=1e9)
            try:
                await endpoints.connectProtocol(endpoint, transport)
            except error.ConnectError as failure:
                raise OSError(str(failure)) from failure

        try:
            found = await _look_up(effect.host, effect.port)
            await driver.try_addresses(found, effect.shuffle, connect)
        except (defer.CancelledError, error.ConnectingCancelledError):
            pass  # hung up
        except driver.TRANSPORT_ERRORS as failure:
            self.transport_lost(transport, failure)

    def start_tls(self, effect: StartTls) -> None:
        assert self._transport is not None
        self._transport.start_tls(effect.hostname)

    def hang_up(self) -> None:
        transport, self._transport = self._transport, None
        self._closing = [each for each in self._closing if not each.called]
        if transport is not None and transport.detach():
            self._closing.append(transport.closed)
        elif self._opening is not None:
            self._opening.cancel()

    def send(self) -> None:
        if self._transport is not None and self._transport.writable:
            self._transport.write(self.connection.data_to_send())

    def transport_lost(self, transport: Transport, failure: BaseException | None) -> None:
        """Report that a transport is lost, if it is the present one."""
        if transport is self._transport:
            self._transport = None
            self.on_closed(failure)


async def _look_up(host: str, port: int) -> list[Any]:
    kind = socket.SOCK_STREAM
    try:  # an address needs no thread
        return socket.getaddrinfo(host, port, type=kind, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        return await threads.deferToThread(socket.getaddrinfo, host, port, type=kind)


class Transport(protocol.Protocol):
    """One transport, also the producer of what is written to it. A detached one reports nothing."""

    writable = False
    _tls: TlsFilter | None = None
    _failure: BaseException | None = None  # why this side has closed it

    def __init__(self, port: TwistedPort) -> None:
        self._port: TwistedPort | None = port
        self.closed: defer.Deferred[None] = defer.Deferred()

    def detach(self) -> bool:
        """Drop the transport; return whether it was open, and will call `closed`."""
        self._port = None
        if self.transport is not None:
            self.transport.abortConnection()
        return self.transport is not None and not self.closed.called

    def start_tls(self, hostname: str) -> None:
        assert self._port is not None
        try:
            self._tls = TlsFilter(tls_context(self._port.connection.options), hostname)
        except ValueError as failure:
            self._fail(failure)
        else:
            self.transport.write(self._tls.data_to_send())

    def write(self, pieces: list[bytes]) -> None:
        if pieces and self._tls is not None:
            for piece in pieces:
                self._tls.send(piece)
            pieces = [self._tls.data_to_send()]
        self.transport.writeSequence(pieces)

    def _fail(self, failure: BaseException) -> None:
        self._failure = failure
        self.transport.abortConnection()  # the reactor calls connectionLost, later

    def connectionMade(self) -> None:
        self.transport.setTcpNoDelay(True)
        self.transport.registerProducer(self, True)
        self.writable = True
        if self._port is None:
            self.transport.abortConnection()
        else:
            self._port.on_opened()

    def dataReceived(self, data: bytes) -> None:
        if self._tls is not None:
            data = self._decrypt(self._tls, data)
        if data and self._port is not None:
            self._port.on_data(data)

    def _decrypt(self, tls: TlsFilter, data: bytes) -> bytes:
        was_done = tls.handshake_done
        try:
            data = tls.receive_data(data)
        except OSError as failure:
            self._fail(failure)
            return b""
        self.transport.write(tls.data_to_send())
        if tls.handshake_done and not was_done and self._port is not None:
            self._port.on_tls()
        return data

    def connectionLost(self, reason: Failure) -> None:
        self.closed.callback(None)
        if self._port is not None:
            lost = None if reason.check(error.ConnectionDone) else reason.value
            self._port.transport_lost(self, self._failure or lost)

    def pauseProducing(self) -> None:
        self.writable = False

    def resumeProducing(self) -> None:
        self.writable = True
        if self._port is not None:
            self._port.pump()

    def stopProducing(self) -> None:
        self.writable = False
