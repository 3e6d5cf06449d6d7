"""Plain sockets: a publisher that sends whatever it likes, and a server that only listens."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

from .server import HOST

if TYPE_CHECKING:
    from .server import Server

_TIMEOUT = 5.0


class RawPeer:
    """A connection to a server on which any bytes can be sent."""

    def __init__(self, server: Server) -> None:
        self._sock = socket.create_connection((server.host, server.port), _TIMEOUT)
        self.send(b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\n')
        self.flush()

    def send(self, data: bytes) -> None:
        self._sock.sendall(data)

    def hpub(self, subject: bytes, block: bytes, payload: bytes = b"") -> None:
        """A message with this header block, whatever it looks like."""
        sizes = (len(block), len(block) + len(payload))
        self.send(b"HPUB %s %d %d\r\n%s%s\r\n" % (subject, *sizes, block, payload))

    def flush(self) -> None:
        """Until the server has seen all of it."""
        self.send(b"PING\r\n")
        seen = b""
        while b"PONG\r\n" not in seen:
            data = self._sock.recv(65536)
            assert data, f"the server has hung up: {seen!r}"
            seen += data

    def __enter__(self) -> RawPeer:
        return self

    def __exit__(self, *exc: object) -> None:
        self._sock.close()


class Listener:
    """A server that says one thing to each client and notes what it hears, until that hangs up."""

    def __init__(self, greeting: bytes) -> None:
        self._greeting = greeting
        #: What the clients sent, one entry for each that has gone.
        self.heard: list[bytes] = []
        self._sock = socket.create_server((HOST, 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        port: int = self._sock.getsockname()[1]
        return port

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._sock.accept()
            except OSError:
                return  # closed
            with client:
                client.settimeout(_TIMEOUT)
                client.sendall(self._greeting)
                heard = b""
                try:
                    while data := client.recv(65536):
                        heard += data
                except OSError:
                    pass  # reset, or silent for too long
                self.heard.append(heard)

    def close(self) -> None:
        """After this `heard` is complete."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)  # or accept() would go on
        except OSError:
            pass  # closed before
        self._sock.close()
        self._thread.join(_TIMEOUT)

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
