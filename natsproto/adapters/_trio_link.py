"""Link: one transport of trio, with a task that reads and one that writes."""

from __future__ import annotations

from socket import SOCK_STREAM
from typing import TYPE_CHECKING, Any

import trio

from . import _shared as shared

if TYPE_CHECKING:
    from natsproto.connection.effects import Dial

    from .trio import TrioPort


class Link:
    """One transport and its two tasks. Once detached it reports nothing more."""

    _stream: trio.abc.Stream

    def __init__(self, port: TrioPort) -> None:
        self._port = port
        self._scope = trio.CancelScope(shield=True)
        self._socket: trio.socket.SocketType | None = None
        self._pieces: list[bytes] = []
        self._filled = trio.Event()
        self._broken: BaseException | None = None  # why nothing can be sent any more
        self.idle = False  # the writer has nothing to do
        self.hostname = ""  # with a name: TLS is wanted and not begun

    def detach(self) -> None:
        self._scope.cancel()
        self._close()

    def disown(self) -> None:
        """After a fork, in the child: the socket is the other process's."""
        if self._socket is not None and self._socket.fileno() >= 0:
            shared.part_from(self._socket.fileno())

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
                # What was read in the turn in which it was cancelled is returned all the same.
                if not data or self._scope.cancel_called:
                    return
                self._port.received(bytes(data))
        except trio.ClosedResourceError:
            pass  # detached while this task was about to run: too late to be cancelled
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
        if not self._scope.cancel_called:
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
        except trio.ClosedResourceError:
            pass  # as above
        except trio.BrokenResourceError as error:
            # The reader reports it: the server's last words may say more.
            self._broken = error.__cause__ or error
