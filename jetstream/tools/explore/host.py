"""A transport for natsproto.adapters.micropython: the WebSocket of the host, in a page or in Node.

Bytes handed over as values would cross the border between JavaScript and Python one by one, so they
go through the file system of MicroPython, which is in memory. page/host.mjs has the other side.
It works on Pyodide as well.
"""

from __future__ import annotations

import asyncio
import binascii

import js

from natsproto.adapters.driver import SystemRng

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _callback(function: Callable[..., object]) -> Any:
    """Return what the host can call later."""
    try:
        from pyodide.ffi import create_proxy
    except ImportError:
        return function  # MicroPython keeps what the host has got
    return create_proxy(function)


class WebSocketTransport:
    """A WebSocket: the host frames the data, and secures wss URLs."""

    #: The scheme of the URLs: ws, or wss.
    scheme: str = "ws"
    #: The transports that are open, so that a visitor can cut one.
    opened: list[Any] = []  # noqa: RUF012 - of the page, which has one client

    def __init__(self) -> None:
        self._socket: Any = None
        self._changed = asyncio.Event()
        self._chunks: list[bytes] = []
        self._closed = False

    async def open(self, host: str, port: int) -> None:
        """Open a WebSocket; raise OSError."""
        url = "%s://%s:%d" % (self.scheme, host, port)
        callbacks = [_callback(each) for each in (self._changed.set, self._receive, self._end)]
        self._socket = js.host_open(url, *callbacks)
        await self._changed.wait()
        if self._closed:
            raise OSError("no WebSocket at %s" % url)
        self.opened.append(self)

    def start_tls(self, context: Any, hostname: str) -> None:
        """Refuse: the host does TLS, for wss URLs."""
        raise ValueError("TLS is done by the host: use a wss URL")

    async def read(self, size: int) -> bytes:
        """Wait for a message of the WebSocket and return its data."""
        while not self._chunks and not self._closed:
            self._changed.clear()
            await self._changed.wait()
        return self._chunks.pop(0) if self._chunks else b""

    async def write(self, data: bytes) -> None:
        """Send data as one message."""
        path = "/out%d" % self._socket
        with open(path, "wb") as file:
            file.write(data)
        js.host_send(self._socket, path)

    def close(self) -> None:
        """Close the WebSocket."""
        if self._socket is not None:
            js.host_close(self._socket)
        if self in self.opened:
            self.opened.remove(self)

    def _receive(self, path: str) -> None:
        with open(path, "rb") as file:
            self._chunks.append(file.read())
        self._changed.set()

    def _end(self) -> None:
        self._closed = True
        self._changed.set()


def random_bytes(size: int) -> bytes:
    """Return random bytes of the host."""
    return binascii.unhexlify(js.host_random(size))


#: Random numbers of the host: this port of MicroPython has no os.urandom.
RNG: SystemRng = SystemRng(random_bytes)
