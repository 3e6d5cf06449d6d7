"""TransportProtocol: one transport of asyncio or uvloop.

It is a BufferedProtocol, which reads into a buffer of its own. Compared to asyncio.Protocol, that
halves the cost of a round trip.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from .driver import READ_SIZE, disown_socket

if TYPE_CHECKING:
    from .asyncio import AsyncioPort


class TransportProtocol(asyncio.BufferedProtocol):
    """One transport. After `detach` it reports nothing more."""

    def __init__(self, port: AsyncioPort) -> None:
        self._port: AsyncioPort | None = port
        self.transport: asyncio.Transport | None = None
        self._buffer = memoryview(bytearray(READ_SIZE))
        self.writable: bool = False
        self.early: list[bytes] | None = None  # received while the TLS handshake is under way
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def detach(self) -> None:
        """Drop the transport at once."""
        self._port = None
        if self.transport is not None:
            self.transport.abort()

    def disown(self) -> None:
        """Release the transport in the child of a fork: it belongs to the parent."""
        self._port = None
        if self.transport is not None:
            disown_socket(self.transport.get_extra_info("socket").fileno())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Report the open transport."""
        self.transport = cast("asyncio.Transport", transport)
        self.writable = True
        # Not after create_connection returns, because uvloop has already read from the socket by
        # then.
        if self._port is not None:
            self._port.transport_made()
        else:
            self.transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer to read into, in the size that the port requests."""
        port = self._port
        if port is not None and port.read_size != len(self._buffer):
            self._buffer = memoryview(bytearray(port.read_size))
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Report the bytes that were read, or keep them during the TLS handshake."""
        data = bytes(self._buffer[:nbytes])
        if self.early is not None:
            self.early.append(data)
        else:
            self.receive(data)

    def receive(self, data: bytes) -> None:
        """Report data, unless the transport was dropped."""
        if self._port is not None:
            self._port.on_data(data)

    def pause(self) -> None:
        """Read nothing more in this turn of the loop."""
        assert self.transport is not None
        self.transport.pause_reading()
        asyncio.get_running_loop().call_soon(self._resume)

    def _resume(self) -> None:
        assert self.transport is not None
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the end of the transport."""
        if self.transport is not None:
            self.transport.abort()  # otherwise TLS of Python 3.10 warns that it was left open
        if not self.closed.done():
            self.closed.set_result(None)
        if self._port is not None:
            self._port.transport_lost(self, exc)

    def pause_writing(self) -> None:
        """Record that the transport has no room."""
        self.writable = False

    def resume_writing(self) -> None:
        """Write the data that was held back."""
        self.writable = True
        if self._port is not None:
            self._port.pump()
