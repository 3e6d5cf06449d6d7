"""Helpers for programs that run on nats-py and on natsproto.compat.nats."""

from __future__ import annotations

import asyncio
import socket
from typing import Any


def run(program: Any, *args: Any, limit: float = 30.0) -> Any:
    """Run a program, and return its result."""
    return asyncio.run(asyncio.wait_for(program(*args), limit))


async def processed(nc: Any) -> None:
    """Return when the server has processed everything that the client has sent.

    One flush of nats-py does not prove it: its PING overtakes subscriptions and messages that are
    still in its buffer. They are sent before the PONG arrives, so a second PING follows them.
    """
    await nc.flush()
    await nc.flush()


def connect_raw(port: int) -> socket.socket:
    """Return a connection that may publish what no client would."""
    raw = socket.create_connection(("127.0.0.1", port))
    raw.sendall(b'CONNECT {"verbose":false,"headers":true}\r\nPING\r\n')
    data = b""
    while b"PONG\r\n" not in data:
        data += raw.recv(4096)
    return raw
