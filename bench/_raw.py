"""A blocking socket with bytes encoded beforehand and no parsing: the upper bound for clients."""

from __future__ import annotations

import socket
from typing import Any

from _client import timed_plainly
from _contenders import SERVICE, SUBJECT, Contender

from natsproto.port import run_sync


class Raw(Contender):
    run = staticmethod(run_sync)

    async def open(self, url: str) -> None:
        self._socket, _ = dial(url)
        self._rest = b""

    async def publish(self, data: bytes, count: int) -> None:
        send_many(self._socket, pub(data), count)
        await self.flush()

    async def subscribe(self, subject: str = SUBJECT) -> Any:
        self._socket.sendall(b"SUB %s 1\r\n" % subject.encode())

    async def take(self, subscription: Any) -> int:
        """Count the bytes up to the empty message, and compute the number of messages."""
        end = b"MSG %s 1 0\r\n\r\n" % SUBJECT.encode()
        frame = total = 0
        tail = self._rest
        while True:
            data = self._socket.recv(64 * 1024)
            total += len(data)
            if not frame:
                head, _, _ = (tail + data).partition(b"\r\n")
                frame = len(head) + 2 + int(head.split(b" ")[-1]) + 2
            tail = (tail + data)[-len(end) :] if len(data) < len(end) else data[-len(end) :]
            if tail == end:
                return (total - len(end)) // frame

    async def request(self, data: bytes, count: int) -> list[float]:
        self._socket.sendall(b"SUB _INBOX.raw.* 9\r\n")
        question = pub(data, SERVICE.encode() + b" _INBOX.raw.1")
        answer = len(b"MSG _INBOX.raw.1 9 %d\r\n%s\r\n" % (len(data), data))

        def ask() -> None:
            self._socket.sendall(question)
            got = 0
            while got < answer:
                got += len(self._socket.recv(64 * 1024))

        return timed_plainly(ask, count=count)

    async def flush(self) -> None:
        self._socket.sendall(b"PING\r\n")
        data = b""
        while not data.endswith(b"PONG\r\n"):
            data += self._socket.recv(64 * 1024)

    async def close(self) -> None:
        self._socket.close()


def dial(url: str) -> tuple[socket.socket, bytes]:
    """Return a socket whose CONNECT has been answered, and the server's INFO."""
    host, _, port = url.rpartition("/")[2].partition(":")
    sock = socket.create_connection((host, int(port)))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    info = sock.recv(64 * 1024)
    sock.sendall(b'CONNECT {"verbose":false}\r\nPING\r\n')
    assert sock.recv(64 * 1024) == b"PONG\r\n"
    return sock, info


def pub(data: bytes, subject: bytes = SUBJECT.encode()) -> bytes:
    return b"PUB %s %d\r\n%s\r\n" % (subject, len(data), data)


def send_many(sock: socket.socket, frame: bytes, count: int) -> None:
    """Send the same frame this many times, in writes of about 64 KiB."""
    group = max(1, 64 * 1024 // len(frame))
    block = frame * group
    for _ in range(count // group):
        sock.sendall(block)
    sock.sendall(frame * (count % group))
