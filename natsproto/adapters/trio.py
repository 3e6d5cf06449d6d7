"""trio: `async with connect(...) as client`.

A nursery for each connection, with a task for the time and two for each transport: one reads, the
other writes. Whoever publishes only leaves bytes to the writer, so cancelling a publish never
leaves half a frame on the wire.
"""

from __future__ import annotations

import math
from socket import SOCK_STREAM
from typing import TYPE_CHECKING, Any

import trio

from . import _shared as shared

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from typing_extensions import Unpack

    from natsproto.client import Client
    from natsproto.connection import Connection
    from natsproto.effects import Dial, StartTls
    from natsproto.options import OptionsDict, ServersLike
    from natsproto.waitable import Waitable


def connect(
    servers: ServersLike = "nats://127.0.0.1:4222", **options: Unpack[OptionsDict]
) -> AbstractAsyncContextManager[Client]:
    """A client; the options are those of natsproto.options.Options, and `creds` is a path."""
    return _Connecting(shared.make_connection(servers, dict(options)))


class _Connecting:
    """The nursery is entered and left by hand, so that errors come out of it as they are."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._manager = trio.open_nursery()

    async def __aenter__(self) -> Client:
        self._nursery = await self._manager.__aenter__()
        port = TrioPort(self._connection, self._nursery)
        try:
            self._client = await shared.open_client(self._connection, port)
        except BaseException:
            await self._leave()
            raise
        return self._client

    async def __aexit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        # What follows takes a bounded time.
        self._nursery.cancel_scope.shield = True
        try:
            if kind is not None and issubclass(kind, trio.Cancelled):
                await self._client.close(shared.GOODBYE)
            else:
                await self._client.close()
        finally:
            await self._leave()

    async def _leave(self) -> None:
        self._nursery.cancel_scope.shield = True
        self._nursery.cancel_scope.cancel()
        await self._manager.__aexit__(None, None, None)


class TrioPort(shared.Carrier):
    """Carries out what a Connection orders, with tasks of this nursery."""

    def __init__(self, connection: Connection, nursery: trio.Nursery) -> None:
        super().__init__(connection)
        self._nursery = nursery
        self._link: _Link | None = None
        self._alarm = math.inf
        self._earlier = trio.Event()
        nursery.start_soon(self._watch_the_time)

    def now(self) -> float:
        return trio.current_time()

    async def wait(self, waitable: Waitable) -> None:
        event = trio.Event()
        waitable.waiters.append(event.set)
        try:
            await event.wait()
        finally:
            if event.set in waitable.waiters:
                waitable.waiters.remove(event.set)

    async def checkpoint(self) -> None:
        if self._turn_is_over():
            await trio.lowlevel.checkpoint()
        else:
            await trio.lowlevel.checkpoint_if_cancelled()

    async def together(self, workers: list[shared.Worker]) -> None:
        try:
            async with trio.open_nursery() as nursery:
                for worker in workers:
                    nursery.start_soon(worker)
        except BaseException:
            await trio.lowlevel.checkpoint_if_cancelled()  # one Cancelled, not a group of them
            raise

    def flush_soon(self) -> None:
        self.carry_out()

    async def aclose(self) -> None:
        self.carry_out()
        self._earlier.set()

    async def _watch_the_time(self) -> None:
        while not self.connection.closed:
            with trio.move_on_at(self._alarm):
                await self._earlier.wait()
            self._alarm = math.inf
            self.ring()
            self._earlier = trio.Event()

    def _arm(self, deadline: float) -> None:
        if deadline < self._alarm:
            self._alarm = deadline
            self._earlier.set()

    def _dial(self, order: Dial) -> None:
        self._link = _Link(self)
        self._nursery.start_soon(self._link.run, order)

    def _start_tls(self, order: StartTls) -> None:
        assert self._link is not None
        self._link.hostname = order.hostname

    def _hang_up(self) -> None:
        if self._link is not None:
            self._link.detach()
            self._link = None

    def _send(self) -> None:
        link = self._link
        if link is not None and link.idle:
            link.write(self.connection.data_to_send())

    def link_lost(self, error: BaseException | None) -> None:
        self._link = None
        self.lost(error)


class _Link:
    """One transport and its two tasks. Once detached it reports nothing more."""

    _stream: trio.abc.Stream

    def __init__(self, port: TrioPort) -> None:
        self._port = port
        self._scope = trio.CancelScope()
        self._socket: trio.socket.SocketType | None = None
        self._pieces: list[bytes] = []
        self._filled = trio.Event()
        self._broken: BaseException | None = None  # why nothing can be sent any more
        self.idle = False  # the writer has nothing to do
        self.hostname = ""  # with a name: TLS is wanted and not begun

    def detach(self) -> None:
        self._scope.cancel()
        self._close()

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()

    def write(self, pieces: list[bytes]) -> None:
        if pieces:
            self._pieces = pieces
            self.idle = False
            self._filled.set()

    async def run(self, order: Dial) -> None:
        with self._scope:
            try:
                addresses = await trio.socket.getaddrinfo(order.host, order.port, type=SOCK_STREAM)
                await shared.first_answer(addresses, order.shuffle, self._connect)
                async with trio.open_nursery() as nursery:
                    self.idle = True
                    self._port.opened()
                    nursery.start_soon(self._write)
                    await self._read()
                    nursery.cancel_scope.cancel()
            except shared.FAILURES as error:
                self._broken = error
            finally:
                self._close()
            if not self._scope.cancel_called:
                self._port.link_lost(self._broken)

    async def _connect(self, address: Any) -> None:
        self._close()
        self._socket = trio.socket.socket(*address[:3])
        await self._socket.connect(address[4])
        self._stream = trio.SocketStream(self._socket)

    async def _read(self) -> None:
        try:
            while True:
                if self.hostname:
                    await self._start_tls()
                data = await self._stream.receive_some(shared.READ_SIZE)
                if not data:
                    return
                self._port.received(bytes(data))
        except trio.BrokenResourceError as error:
            self._broken = error.__cause__ or error

    async def _start_tls(self) -> None:
        context = shared.tls_context(self._port.connection.options)
        try:
            stream = trio.SSLStream(
                self._stream, context, server_hostname=self.hostname, https_compatible=True
            )
        except ValueError as error:  # a name that no certificate can have
            raise trio.BrokenResourceError from error
        self.hostname = ""
        await stream.do_handshake()
        self._stream = stream
        self._port.secured()

    async def _write(self) -> None:
        try:
            while True:
                await self._filled.wait()
                self._filled = trio.Event()
                for piece in self._pieces:
                    await self._stream.send_all(piece)
                self.idle = True
                self._port.carry_out()
        except trio.BrokenResourceError as error:
            # The reader reports it: the server's last words may say more.
            self._broken = error.__cause__ or error
