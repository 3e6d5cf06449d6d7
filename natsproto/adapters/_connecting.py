"""Connecting: the result of `connect` on asyncio, to await or to use with `async with`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from natsproto.client import Client, leave
from natsproto.hints import not_entered

from .driver import CANCEL_GRACE, open_client

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from natsproto.connection import Connection
    from natsproto.port import Port


class Connecting:
    """The result of `connect`: await it, or use it as an asynchronous context manager."""

    def __init__(self, connection: Connection, make_port: Callable[[Connection], Port]) -> None:
        self._connection = connection
        self._make_port = make_port

    def __await__(self) -> Generator[object, None, Client]:
        # The port needs the running loop, so it is not made before.
        return open_client(self._connection, self._make_port(self._connection)).__await__()

    if not TYPE_CHECKING:  # a type checker would accept every name
        __getattr__ = not_entered

    async def __aenter__(self) -> Client:
        self._client = await self
        return self._client

    async def __aexit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        canceled = kind is not None and issubclass(kind, asyncio.CancelledError)
        await leave(self._client, kind, CANCEL_GRACE if canceled else None)
