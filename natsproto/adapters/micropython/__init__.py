"""MicroPython's asyncio: `async with connect(...) as client`, or `await connect(...)`.

docs/embedding.md says how to put all of this on a device. The limits are those of a device (SMALL).

    clock.py        the time, by a counter of milliseconds that wraps
    transport.py    what moves the bytes: sockets and TLS, or a class of the program
    port.py         runs a connection in tasks
"""

from __future__ import annotations

import asyncio

from natsproto.adapters.driver import CANCEL_GRACE, SystemRng, make_connection, open_client
from natsproto.client import leave

from .clock import Clock
from .port import MicroPythonPort
from .transport import READ_SIZE, SocketTransport, tls_context

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    from typing_extensions import Unpack

    from natsproto.client import Client
    from natsproto.connection import Connection
    from natsproto.connection.servers import Rng
    from natsproto.options import OptionsDict, ServersLike

    from .transport import Transport

__all__ = [
    "READ_SIZE",
    "SMALL",
    "Clock",
    "MicroPythonPort",
    "SocketTransport",
    "connect",
    "tls_context",
]

#: The options whose defaults differ from those of other adapters: a device has little memory, and
#: no operator who restarts it.
SMALL: dict[str, Any] = {
    "max_bytes": 16 * 1024,
    "max_msgs": 64,
    "max_pending_out": 8 * 1024,
    "max_reconnects": -1,
}


def connect(
    servers: ServersLike = "nats://127.0.0.1:4222",
    *,
    transport: Callable[[], Transport] | None = None,
    rng: Rng | None = None,
    **options: Unpack[OptionsDict],
) -> Connecting:
    """Connect: `async with connect(...) as client`, or `client = await connect(...)`.

    The options are those of the other adapters, with the smaller defaults of SMALL. `tls` is an
    ssl.SSLContext, for example of `tls_context`.

    transport: a class to use instead of SocketTransport
    rng: random numbers, where the port of MicroPython has no os.urandom; see driver.SystemRng

    Raises ConnectFailed if no server can be reached, and AuthorizationFailed if the credentials are
    rejected.
    """
    chosen: dict[str, Any] = dict(SMALL)
    chosen.update(options)
    connection = make_connection(servers, chosen, rng=SystemRng() if rng is None else rng)
    return Connecting(connection, SocketTransport if transport is None else transport)


class Connecting:
    """The result of `connect`: await it, or use it as an asynchronous context manager."""

    def __init__(self, connection: Connection, transport: Callable[[], Transport]) -> None:
        self._connection = connection
        self._transport = transport

    async def _open(self) -> Client:
        port = MicroPythonPort(self._connection, self._transport)
        return await open_client(self._connection, port)

    def __await__(self) -> Generator[object, None, Client]:
        return self._open().__await__()

    def __iter__(self) -> Any:
        return self._open()  # MicroPython's `await` iterates; its coroutines are generators

    async def __aenter__(self) -> Client:
        self._client = await self._open()
        return self._client

    async def __aexit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        canceled = kind is not None and issubclass(kind, asyncio.CancelledError)
        await leave(self._client, kind, CANCEL_GRACE if canceled else None)
