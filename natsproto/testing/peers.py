"""Plain sockets: a publisher that sends arbitrary bytes, and a scripted server."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

from .server import HOST

if TYPE_CHECKING:
    from .server import Server

_TIMEOUT = 5.0
#: The last pair of a script: listen until the client disconnects.
FOREVER = (b"\0 never said \0", b"")


class RawPeer:
    """A connection to a server that can send any bytes."""

    def __init__(self, server: Server) -> None:
        self._sock = socket.create_connection((server.host, server.port), _TIMEOUT)
        self.send(b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\n')
        self.flush()

    def send(self, data: bytes) -> None:
        """Send these bytes."""
        self._sock.sendall(data)

    def hpub(self, subject: bytes, block: bytes, payload: bytes = b"") -> None:
        """Publish a message with this header block, valid or not."""
        sizes = (len(block), len(block) + len(payload))
        self.send(b"HPUB %s %d %d\r\n%s%s\r\n" % (subject, *sizes, block, payload))

    def flush(self, timeout: float = _TIMEOUT) -> None:
        """Wait until the server has processed everything that was sent."""
        self._sock.settimeout(timeout)
        self.send(b"PING\r\n")
        seen = b""
        while b"PONG\r\n" not in seen:
            data = self._sock.recv(65536)
            assert data, f"the server closed the connection: {seen!r}"
            seen += data

    def __enter__(self) -> RawPeer:
        return self

    def __exit__(self, *exc: object) -> None:
        self._sock.close()


class Listener:
    """A server that follows a script and records what its clients send.

    It sends the greeting to each client. Then, for each pair of the script, it waits for the first
    item and sends the second; after the last pair it disconnects. Without a script it listens until
    the client disconnects.
    """

    def __init__(self, greeting: bytes, *script: tuple[bytes, bytes]) -> None:
        self._greeting = greeting
        self._script = script
        #: The bytes that clients sent, one entry for each connection that has ended.
        self.heard: list[bytes] = []
        self._sock = socket.create_server((HOST, 0))
        self.port: int = self._sock.getsockname()[1]
        self._last: object = None  # the address that close() connects from
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Return host and port."""
        return f"{HOST}:{self.port}"

    def _serve(self) -> None:
        while True:
            client, address = self._sock.accept()
            with client:
                if address == self._last:
                    return
                client.settimeout(_TIMEOUT)
                self.heard.append(self._talk(client))

    def _talk(self, client: socket.socket) -> bytes:
        heard = b""
        try:
            client.sendall(self._greeting)
            for expected, saying in self._script or [FOREVER]:
                while expected not in heard:
                    data = client.recv(65536)
                    if not data:
                        return heard
                    heard += data
                client.sendall(saying)
        except OSError:
            pass  # reset, or silent for too long
        return heard

    def close(self) -> None:
        """Serve every client that has connected, then stop; `heard` is complete afterwards.

        Connections are accepted in order, so a connection of our own marks the end of the queue.
        """
        if self._last is not None:
            return
        with socket.socket() as last:
            last.bind((HOST, 0))
            self._last = last.getsockname()
            last.settimeout(_TIMEOUT)
            last.connect((HOST, self.port))
            self._thread.join(2 * _TIMEOUT)
        self._sock.close()

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
