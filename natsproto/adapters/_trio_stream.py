"""TransportStream: one transport of trio, with a task that reads and one that writes."""

from __future__ import annotations

from socket import SOCK_STREAM
from typing import TYPE_CHECKING, Any

import trio

from .driver import READ_SIZE, TRANSPORT_ERRORS, disown_socket, try_addresses
from .tls import tls_context

if TYPE_CHECKING:
    from natsproto.connection.effects import Dial

    from .trio import TrioPort


class TransportStream:
    """One transport and its two tasks. After `detach` it reports nothing more."""

    _stream: trio.abc.Stream

    def __init__(self, port: TrioPort) -> None:
        self._port = port
        self._scope = trio.CancelScope(shield=True)
        self._socket: trio.socket.SocketType | None = None
        self._pieces: list[bytes] = []
        self._filled = trio.Event()
        self._broken: BaseException | None = None  # why nothing more can be sent
        self.idle = False  # the writer has nothing to do
        self.hostname = ""  # if set, TLS is to be started

    def detach(self) -> None:
        """Drop the transport at once."""
        self._scope.cancel()
        self._close()

    def disown(self) -> None:
        """Release the socket in the child of a fork: it belongs to the parent."""
        if self._socket is not None and self._socket.fileno() >= 0:
            disown_socket(self._socket.fileno())

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()

    def write(self, pieces: list[bytes]) -> None:
        """Pass data to the writer, which must be idle."""
        if pieces:
            self._pieces = pieces
            self.idle = False
            self._filled.set()

    async def run(self, effect: Dial) -> None:
        """Dial, then read and write until the transport ends or is dropped."""
        with self._scope:
            try:
                found = await trio.socket.getaddrinfo(effect.host, effect.port, type=SOCK_STREAM)
                await try_addresses(found, effect.shuffle, self._connect)
                async with trio.open_nursery() as nursery:
                    self.idle = True
                    self._port.on_opened()
                    nursery.start_soon(self._write)
                    await self._read()
                    nursery.cancel_scope.cancel()
            except TRANSPORT_ERRORS as error:
                self._broken = error
            finally:
                self._close()
            if not self._scope.cancel_called:
                self._port.transport_lost(self._broken)

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
                data = await self._stream.receive_some(READ_SIZE)
                # A read that succeeds in the turn in which it is canceled returns all the same.
                if not data or self._scope.cancel_called:
                    return
                self._port.on_data(bytes(data))
        except trio.ClosedResourceError:
            pass  # detached while this task was about to run: too late to be canceled
        except trio.BrokenResourceError as error:
            self._broken = error.__cause__ or error

    async def _start_tls(self) -> None:
        context = tls_context(self._port.connection.options)
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
            self._port.on_tls()

    async def _write(self) -> None:
        try:
            while True:
                await self._filled.wait()
                self._filled = trio.Event()
                for piece in self._pieces:
                    await self._stream.send_all(piece)
                self.idle = True
                self._port.pump()
        except trio.ClosedResourceError:
            pass  # as above
        except trio.BrokenResourceError as error:
            # The reader reports it: the server's last words may say more.
            self._broken = error.__cause__ or error
