"""anyio, on asyncio or trio: `async with connect(...) as client`.

The adapter of the running backend does the work. On asyncio a canceled scope of anyio cancels every
further await as well, so the end of the block is shielded there; it takes a bounded time.
"""

from __future__ import annotations

import asyncio as _asyncio
import sys
from typing import TYPE_CHECKING

from natsproto.client import Client, leave
from natsproto.errors import InvalidState, MissingExtra
from natsproto.hints import not_entered

try:
    import anyio
except ImportError:
    raise MissingExtra(
        "natsproto.adapters.anyio needs anyio: pip install 'natsproto[anyio]'", "D-OPT-17"
    ) from None

from .asyncio import AsyncioPort
from .driver import CANCEL_GRACE, make_connection, open_client

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from typing_extensions import Unpack

    from natsproto.connection import Connection
    from natsproto.options import OptionsDict, ServersLike

    from .driver import Worker


def connect(
    servers: ServersLike = "nats://127.0.0.1:4222", **options: Unpack[OptionsDict]
) -> AbstractAsyncContextManager[Client]:
    """Connect on the running backend: `async with connect(...) as client`.

    The options are the keywords of natsproto.options.Options, which describes them, except that
    `creds` is the path of a file. Raises ConnectFailed if no server can be reached, and
    AuthorizationFailed if the credentials are rejected.
    """
    if _runs_trio():
        from . import trio

        return trio.connect(servers, **options)
    if not _runs_asyncio():
        raise InvalidState("connect of natsproto.adapters.anyio must be called in a task")
    return _Connecting(make_connection(servers, dict(options)))


def _runs_trio() -> bool:
    trio = sys.modules.get("trio")
    return trio is not None and bool(trio.lowlevel.in_trio_task())


def _runs_asyncio() -> bool:
    try:
        return _asyncio.current_task() is not None
    except RuntimeError:
        return False


class _Connecting:
    """The result of `connect` on asyncio."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    if not TYPE_CHECKING:  # a type checker would accept every name
        __getattr__ = not_entered

    async def __aenter__(self) -> Client:
        self._client = await open_client(self._connection, AnyioPort(self._connection))
        return self._client

    async def __aexit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        canceled = kind is not None and issubclass(kind, _asyncio.CancelledError)
        with anyio.CancelScope(shield=True):
            await leave(self._client, kind, CANCEL_GRACE if canceled else None)


class AnyioPort(AsyncioPort):
    """Runs a connection on asyncio, for callers that anyio may cancel."""

    async def run_all(self, workers: list[Worker]) -> None:
        """Run each worker in a task of a group, which waits for their ends when it is canceled."""
        async with anyio.create_task_group() as group:
            for worker in workers:
                group.start_soon(worker)
