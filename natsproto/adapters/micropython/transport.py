"""What moves the bytes: an object with the methods of SocketTransport, one for each connection.

`connect` takes another class for it, for example for the WebSocket of the host that runs
MicroPython in a browser.
"""

from __future__ import annotations

import asyncio

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    import ssl
    from typing import Any, Protocol

    class Transport(Protocol):
        """The methods of a transport; each attempt to connect makes a new one."""

        async def open(self, host: str, port: int) -> None:
            """Connect, or raise OSError or ValueError."""
            ...

        def start_tls(self, context: Any, hostname: str) -> None:
            """Continue with TLS, and check the certificate against this name."""
            ...

        async def read(self, size: int) -> bytes:
            """Wait for data and return at most about `size` bytes; b"" at the end."""
            ...

        async def write(self, data: bytes) -> None:
            """Write all the data."""
            ...

        def close(self) -> None:
            """Close at once; it may be open, closed, or not open yet."""
            ...


#: How many bytes to read at a time. Larger blocks are often not free on a small heap: with 1024,
#: the core needed up to 5 KiB more.
READ_SIZE = 512

_IPPROTO_TCP = 6
_TCP_NODELAY = 1


def tls_context(authority: bytes) -> ssl.SSLContext:
    """Return a context for `tls` that accepts only servers certified by this authority.

    `authority` is its certificate, as PEM or DER. A context that a program makes by itself does not
    verify anything on MicroPython until its `verify_mode` is set.
    """
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=authority)
    return context


class SocketTransport:
    """A TCP connection, with TLS if need be, by MicroPython's asyncio."""

    def __init__(self) -> None:
        self._stream: Any = None
        self._early: bytes | None = None  # data that came while the TLS handshake began

    async def open(self, host: str, port: int) -> None:
        """Connect. MicroPython resolves names without letting other tasks run."""
        self._stream, _ = await asyncio.open_connection(host, port)
        # Otherwise a PUB waits for the acknowledgment of the SUB before it: 40 ms and more.
        self._stream.s.setsockopt(_IPPROTO_TCP, _TCP_NODELAY, 1)

    def start_tls(self, context: Any, hostname: str) -> None:
        """Wrap the socket, and begin the handshake; reads and writes complete it.

        Nothing that is written leaves the device before the certificate is verified.
        """
        if context is None or context is True:
            raise ValueError("no certificate authority is known: pass tls=tls_context(...)")
        sock = context.wrap_socket(
            self._stream.s, server_hostname=hostname, do_handshake_on_connect=False
        )
        sock.setblocking(False)
        streams: Any = asyncio  # on CPython, a reader has other arguments
        self._stream = streams.StreamReader(sock)
        # The stream would wait for the server, and the server waits for the client's hello.
        self._early = sock.read(READ_SIZE)

    async def read(self, size: int) -> bytes:
        """Wait for data; b"" at the end."""
        early, self._early = self._early, None
        if early is not None:
            return early
        data: bytes = await self._stream.read(size)
        return data

    async def write(self, data: bytes) -> None:
        """Write all the data."""
        self._stream.write(data)
        await self._stream.drain()

    def close(self) -> None:
        """Close the socket, if there is one."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.s.close()  # closing the stream does nothing
