"""A threaded relay that records all bytes in both directions, for tests of a proxy."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Relay:
    """Listens on a port of its own; `sent` and `received` are the bytes of all connections."""

    def __init__(self, port: int) -> None:
        self._to = port
        self.sent = bytearray()
        self.received = bytearray()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self._start(self._accept)

    def _start(self, target, *args) -> None:
        thread = threading.Thread(target=target, args=args)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._to))
                self._sockets += [client, server]
                self._start(self._copy, client, server, self.sent)
                self._start(self._copy, server, client, self.received)

    @staticmethod
    def _copy(source: socket.socket, target: socket.socket, record: bytearray) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                record += data
                target.sendall(data)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(30)
        for each in self._sockets:
            each.close()


@contextlib.contextmanager
def relay(port: int) -> Iterator[Relay]:
    """Run a relay to a port of this machine."""
    made = Relay(port)
    try:
        yield made
    finally:
        made.close()
