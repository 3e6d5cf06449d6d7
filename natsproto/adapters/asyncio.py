"""asyncio, and uvloop unchanged: `async with connect(...) as client`, or `await connect(...)`.

A Link for each transport, one timer, one task while dialling.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from socket import SOCK_STREAM
from threading import get_ident
from typing import TYPE_CHECKING, Any

from natsproto.client import Client, leave
from natsproto.errors import ConnectionClosed, InvalidState

from . import _shared as shared
from ._asyncio_link import Link

if TYPE_CHECKING:
    from collections.abc import Generator

    from typing_extensions import Unpack

    from natsproto.connection import Connection
    from natsproto.connection.effects import Dial, StartTls
    from natsproto.connection.waitable import Waitable
    from natsproto.options import OptionsDict, ServersLike


def connect(
    servers: ServersLike = "nats://127.0.0.1:4222", **options: Unpack[OptionsDict]
) -> Connecting:
    """`async with connect(...) as client`, or `client = await connect(...)`.

    The options are the keywords of natsproto.options.Options, whose help tells about each, but
    `creds` is the path of a file. ConnectFailed, AuthorizationFailed: no server took the client.
    """
    return Connecting(shared.make_connection(servers, dict(options)))


class Connecting:
    """What `connect` returns: await it, or use it as an asynchronous context manager."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __await__(self) -> Generator[object, None, Client]:
        return shared.open_client(self._connection, AsyncioPort(self._connection)).__await__()

    async def __aenter__(self) -> Client:
        self._client = await self
        return self._client

    async def __aexit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        cancelled = kind is not None and issubclass(kind, asyncio.CancelledError)
        await leave(self._client, kind, shared.GOODBYE if cancelled else None)


class AsyncioPort(shared.Carrier):
    """Carries out what a Connection orders, on the running loop."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self._link: Link | None = None  # from the order to dial on
        self._task: asyncio.Task[None] | None = None  # while it dials or secures
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = 0.0  # a timer of uvloop need not know
        self._corked = False  # something was sent, and nothing has come since
        self._uncorking = False  # and a callback will send the rest
        self._woken = 0  # how many callers are about to run again
        self._closing: list[asyncio.Future[None]] = []

    def now(self) -> float:
        self._check_loop()
        return self._loop.time()

    def _time(self) -> float:
        return self._loop.time()

    def _check_loop(self) -> None:
        """CONN-33: another loop, perhaps of another thread, must not use this client."""
        # A thread runs one loop at a time. Before Python 3.12 get_running_loop makes a system call,
        # which would be a fifth of a publish in a window.
        if get_ident() == self._thread and self._loop.is_running():
            return
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False  # no loop runs here, as in the child after a fork
        if not here:
            if self._loop.is_closed():
                self.connection.abandon("its event loop is closed: connect again")
            if self.connection.closed:
                raise ConnectionClosed(self.connection.closed)
            raise InvalidState(
                "this client belongs to another event loop: connect on this one, or use"
                " asyncio.run_coroutine_threadsafe",
                "CONN-33",
            )
        self._thread = get_ident()

    def forked(self) -> None:
        self._thread = 0
        link, self._link, self._task, self._closing = self._link, None, None, []
        if link is not None:
            link.disown()
        super().forked()

    async def wait(self, waitable: Waitable) -> None:
        waiter: asyncio.Future[None] = self._loop.create_future()
        wake = partial(self._wake, waiter)
        waitable.waiters.append(wake)
        try:
            await waiter
        finally:
            if wake in waitable.waiters:
                waitable.waiters.remove(wake)
            elif not waiter.cancelled():
                self._woken -= 1

    def _wake(self, waiter: asyncio.Future[None]) -> None:
        if not waiter.done():
            waiter.set_result(None)
            self._woken += 1

    async def checkpoint(self) -> None:
        if self._turn_is_over():
            self._woken += 1
            try:
                await asyncio.sleep(0)
            finally:
                self._woken -= 1

    async def together(self, workers: list[shared.Worker]) -> None:
        tasks = [self._loop.create_task(worker()) for worker in workers]
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            raise
        for task in tasks:
            task.result()

    def flush_soon(self) -> None:
        # The first bytes since a read go out at once, what follows together, when it is much or at
        # the end of the turn. Only that takes a callback: without one a request costs 2 turns, not
        # 3 (-15 %).
        self._check_loop()
        if not self._corked or self.connection.congested:
            self._corked = True
            self.carry_out()
        elif not self._uncorking:
            self._uncorking = True
            self._loop.call_soon(self._uncork)

    def _nudge(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self.carry_out)

    def _uncork(self) -> None:
        self._corked = self._uncorking = False
        self.carry_out()

    def received(self, data: bytes) -> None:
        if self._woken and self._link is not None:
            # They should have run by now: libuv reads up to 32 times, 2 MB, in one turn, more than
            # the queues hold for them.
            self._link.pause()
        self._corked = False
        super().received(data)

    async def aclose(self) -> None:
        self.carry_out()
        if self._timer is not None:
            self._timer.cancel()
        if self._closing:
            await asyncio.wait(self._closing)

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
        if self._link is not None and self._link.writable and self._link.transport is not None:
            for piece in self.connection.data_to_send():
                self._link.transport.write(piece)

    def _dial(self, order: Dial) -> None:
        self._link = Link(self)
        self._task = self._loop.create_task(self._open(self._link, order))

    def _start_tls(self, order: StartTls) -> None:
        assert self._link is not None
        self._link.early = []
        self._task = self._loop.create_task(self._secure(self._link, order))

    def _hang_up(self) -> None:
        self._closing = [each for each in self._closing if not each.done()]
        if self._link is not None:
            self._link.detach()
            # While there is a task, the link is not told of its end.
            self._closing.append(self._task or self._link.closed)
        if self._task is not None:
            self._task.cancel()
        self._link = self._task = None

    async def _open(self, link: Link, order: Dial) -> None:
        async def connect(address: Any) -> None:
            await self._loop.create_connection(lambda: link, *address[4][:2])

        try:
            addresses = await self._loop.getaddrinfo(order.host, order.port, type=SOCK_STREAM)
            await shared.first_answer(addresses, order.shuffle, connect)
        except shared.FAILURES as error:
            self.link_lost(link, error)

    async def _secure(self, link: Link, order: StartTls) -> None:
        assert link.transport is not None
        link.early = []  # what came so far was in clear, and must not be taken for TLS
        try:
            link.transport = await self._loop.start_tls(
                link.transport,
                link,
                shared.tls_context(self.connection.options),
                server_hostname=order.hostname,
            )
        except shared.FAILURES as error:
            link.detach()
            self.link_lost(link, error)
            return
        if link is self._link:
            self._task = None
            early, link.early = link.early, None
            self.secured()
            for data in early:
                link.receive(data)

    def link_made(self) -> None:
        self._task = None
        self.opened()

    def link_lost(self, link: Link, error: Exception | None) -> None:
        if link is self._link:
            self._link = self._task = None
            self.lost(error)
