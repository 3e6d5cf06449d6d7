"""asyncio, and uvloop unchanged: `async with connect(...) as client`, or `await connect(...)`.

A BufferedProtocol for each transport, one timer, one task while dialling. Bytes are read into a
buffer of 64 KiB: that halves the cost of a round trip against asyncio.Protocol.
"""

from __future__ import annotations

import asyncio
from functools import partial
from socket import SOCK_STREAM
from typing import TYPE_CHECKING, Any, cast

from ._shared import FAILURES, RANDOM, READ_SIZE, Carrier, make_connection, open_client, tls_context

if TYPE_CHECKING:
    from collections.abc import Generator

    from typing_extensions import Unpack

    from natsproto.client import Client
    from natsproto.connection import Connection
    from natsproto.effects import Dial, StartTls
    from natsproto.options import OptionsDict, ServersLike
    from natsproto.waitable import Waitable


def connect(
    servers: ServersLike = "nats://127.0.0.1:4222", **options: Unpack[OptionsDict]
) -> Connecting:
    """A client; the options are those of natsproto.options.Options, and `creds` is a path."""
    return Connecting(make_connection(servers, dict(options)))


class Connecting:
    """What `connect` returns: await it, or use it as an asynchronous context manager."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._client: Client | None = None

    def __await__(self) -> Generator[object, None, Client]:
        return open_client(self._connection, AsyncioPort(self._connection)).__await__()

    async def __aenter__(self) -> Client:
        self._client = await self
        return self._client

    async def __aexit__(self, *exc: object) -> None:
        assert self._client is not None
        await self._client.close()


class AsyncioPort(Carrier):
    """Carries out what a Connection orders, on the running loop."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._loop = asyncio.get_running_loop()
        self._order: Dial | None = None  # while it is being carried out
        self._link: _Link | None = None
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = 0.0  # a timer of uvloop need not know
        self._corked = False
        self._closing: list[asyncio.Future[None]] = []

    def now(self) -> float:
        return self._loop.time()

    async def wait(self, waitable: Waitable) -> None:
        waiter: asyncio.Future[None] = self._loop.create_future()
        wake = partial(_wake, waiter)
        waitable.waiters.append(wake)
        try:
            await waiter
        finally:
            if wake in waitable.waiters:
                waitable.waiters.remove(wake)

    async def checkpoint(self) -> None:
        await asyncio.sleep(0)

    def flush_soon(self) -> None:
        # The first bytes of a loop turn go out at once, the rest of the turn together.
        if not self._corked:
            self._corked = True
            self._loop.call_soon(self._uncork)
            self.carry_out()

    def _uncork(self) -> None:
        self._corked = False
        self.carry_out()

    async def aclose(self) -> None:
        self.carry_out()
        if self._timer is not None:
            self._timer.cancel()
        for closing in self._closing:
            await asyncio.shield(closing)

    def _arm(self, deadline: float) -> None:
        if self._timer is None or deadline < self._rings_at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(deadline, self._ring)
            self._rings_at = deadline

    def _ring(self) -> None:
        self._timer = None
        self.ring()

    def _send(self) -> None:
        if self._link is not None and self._link.writable:
            for piece in self.connection.data_to_send():
                self._link.transport.write(piece)

    def _dial(self, order: Dial) -> None:
        self._order = order
        self._task = self._loop.create_task(self._open(order))

    def _start_tls(self, order: StartTls) -> None:
        self._task = self._loop.create_task(self._secure(order))

    def _hang_up(self) -> None:
        self._order = None
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self._link is not None:
            self._closing = [each for each in self._closing if not each.done()]
            self._closing.append(self._link.closed)
            self._link.detach()
            self._link = None

    async def _open(self, order: Dial) -> None:
        try:
            addresses = await self._loop.getaddrinfo(order.host, order.port, type=SOCK_STREAM)
            if order.shuffle:
                RANDOM.shuffle(addresses)
            await self._connect(order, [address[-1] for address in addresses])
        except FAILURES as error:
            self._task = self._order = None
            self.lost(error)

    async def _connect(self, order: Dial, addresses: list[Any]) -> None:
        """To the first address that answers; the last one's error if none does."""
        (host, port, *_), *others = addresses
        try:
            await self._loop.create_connection(lambda: _Link(self, order), host, port)
        except OSError:
            if not others:
                raise
            await self._connect(order, others)

    async def _secure(self, order: StartTls) -> None:
        link = self._link
        assert link is not None
        link.transport.pause_reading()  # or the first bytes of TLS are taken for NATS
        context = tls_context(self.connection.options)
        try:
            transport = await self._loop.start_tls(
                link.transport, link, context, server_hostname=order.hostname
            )
        except FAILURES as error:
            self._task = None
            self._hang_up()
            self.lost(error)
        else:
            self._task = None
            assert transport is not None
            link.transport = transport
            self.secured()

    def link_made(self, link: _Link) -> None:
        if link.order is self._order:
            self._task = self._order = None
            self._link = link
            self.opened()
        else:
            link.detach()  # hung up in the very moment

    def link_lost(self, link: _Link, error: Exception | None) -> None:
        if link is self._link:
            self._link = None
            self.lost(error)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class _Link(asyncio.BufferedProtocol):
    """One transport. Once detached it reports nothing more."""

    transport: asyncio.Transport

    def __init__(self, port: AsyncioPort, order: Dial) -> None:
        self._port: AsyncioPort | None = port
        self.order = order
        self._buffer = memoryview(bytearray(READ_SIZE))
        self.writable = True
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def detach(self) -> None:
        self._port = None
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        # Not when create_connection returns: uvloop has read from the socket by then.
        if self._port is not None:
            self._port.link_made(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._port is not None:
            self._port.received(bytes(self._buffer[:nbytes]))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)
        if self._port is not None:
            self._port.link_lost(self, exc)

    def pause_writing(self) -> None:
        self.writable = False

    def resume_writing(self) -> None:
        self.writable = True
        if self._port is not None:
            self._port.carry_out()
