"""Link: one transport of asyncio or uvloop.

A BufferedProtocol, which reads into a buffer of 64 KiB: that halves the cost of a round trip
against asyncio.Protocol.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from ._shared import READ_SIZE, part_from

if TYPE_CHECKING:
    from .asyncio import AsyncioPort


class Link(asyncio.BufferedProtocol):
    """One transport. Once detached it reports nothing more."""

    def __init__(self, port: AsyncioPort) -> None:
        self._port: AsyncioPort | None = port
        self.transport: asyncio.Transport | None = None
        self._buffer = memoryview(bytearray(READ_SIZE))
        self.writable = False
        self.early: list[bytes] | None = None  # what comes while TLS is started
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def detach(self) -> None:
        self._port = None
        if self.transport is not None:
            self.transport.abort()

    def disown(self) -> None:
        """After a fork, in the child: the transport is the other process's."""
        self._port = None
        if self.transport is not None:
            part_from(self.transport.get_extra_info("socket").fileno())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.writable = True
        # Not when create_connection returns: uvloop has read from the socket by then.
        if self._port is not None:
            self._port.link_made()
        else:
            self.transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(self._buffer[:nbytes])
        if self.early is not None:
            self.early.append(data)
        else:
            self.receive(data)

    def receive(self, data: bytes) -> None:
        if self._port is not None:
            self._port.received(data)

    def pause(self) -> None:
        """Read nothing more in this turn."""
        assert self.transport is not None
        self.transport.pause_reading()
        asyncio.get_running_loop().call_soon(self._resume)

    def _resume(self) -> None:
        assert self.transport is not None
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.transport is not None:
            self.transport.abort()  # TLS of Python 3.10 takes it for left open otherwise
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
