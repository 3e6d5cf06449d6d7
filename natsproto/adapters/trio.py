"""trio: `async with connect(...) as client`.

A nursery for each connection, with a task for the time and two for each transport: one reads, the
other writes. Whoever publishes only leaves bytes to the writer, so cancelling a publish never
leaves half a frame on the wire. These tasks are shielded: a cancellation from outside is for what
is in the block, and while that ends they still send what it has published.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING

from natsproto.client import Client, leave
from natsproto.errors import InvalidState, MissingExtra

try:
    import trio
except ImportError:
    raise MissingExtra(
        "natsproto.adapters.trio needs trio: pip install natsproto[trio]", "OPT-17"
    ) from None

from . import _shared as shared
from ._trio_link import Link

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from typing_extensions import Unpack

    from natsproto.connection import Connection
    from natsproto.connection.effects import Dial, StartTls
    from natsproto.connection.waitable import Waitable
    from natsproto.options import OptionsDict, ServersLike


def connect(
    servers: ServersLike = "nats://127.0.0.1:4222", **options: Unpack[OptionsDict]
) -> AbstractAsyncContextManager[Client]:
    """`async with connect(...) as client`.

    The options are the keywords of natsproto.options.Options, whose help tells about each, but
    `creds` is the path of a file. ConnectFailed, AuthorizationFailed: no server took the client.
    """
    return _Connecting(shared.make_connection(servers, dict(options)))


class _Connecting:
    """The nursery is entered and left by hand, so that errors come out of it as they are."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def __aenter__(self) -> Client:
        if not trio.lowlevel.in_trio_task():
            raise InvalidState("natsproto.adapters.trio is for tasks of trio")
        self._manager = trio.open_nursery()
        self._nursery = await self._manager.__aenter__()
        self._port = TrioPort(self._connection, self._nursery)
        try:
            self._client = await shared.open_client(self._connection, self._port)
        except BaseException:
            await self._leave()
            raise
        return self._client

    async def __aexit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        # What follows takes a bounded time.
        self._nursery.cancel_scope.shield = True
        try:
            cancelled = kind is not None and issubclass(kind, trio.Cancelled)
            await leave(self._client, kind, shared.GOODBYE if cancelled else None)
        finally:
            await self._leave()

    async def _leave(self) -> None:
        self._nursery.cancel_scope.shield = True
        self._port.stop()
        await self._manager.__aexit__(None, None, None)


class TrioPort(shared.Carrier):
    """Carries out what a Connection orders, with tasks of this nursery."""

    def __init__(self, connection: Connection, nursery: trio.Nursery) -> None:
        super().__init__(connection)
        self._nursery = nursery
        self._token = trio.lowlevel.current_trio_token()
        self._link: Link | None = None
        self._alarm = math.inf
        self._earlier = trio.Event()
        self._watch = trio.CancelScope(shield=True)
        nursery.start_soon(self._watch_the_time)

    def now(self) -> float:
        return trio.current_time()

    async def wait(self, waitable: Waitable) -> None:
        event = trio.Event()
        waitable.waiters.append(event.set)
        try:
            await event.wait()
        finally:
            if event.set in waitable.waiters:
                waitable.waiters.remove(event.set)

    async def checkpoint(self) -> None:
        if self._turn_is_over():
            await trio.lowlevel.checkpoint()
        else:
            await trio.lowlevel.checkpoint_if_cancelled()

    async def together(self, workers: list[shared.Worker]) -> None:
        try:
            async with trio.open_nursery() as nursery:
                for worker in workers:
                    nursery.start_soon(worker)
        except BaseException:
            await trio.lowlevel.checkpoint_if_cancelled()  # one Cancelled, not a group of them
            raise

    def flush_soon(self) -> None:
        self.carry_out()

    def _nudge(self) -> None:
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self.carry_out)

    async def aclose(self) -> None:
        self.carry_out()
        self._earlier.set()

    def stop(self) -> None:
        """All tasks, at once."""
        self._watch.cancel()
        self._hang_up()

    async def _watch_the_time(self) -> None:
        with self._watch:
            while not self.connection.closed:
                with trio.move_on_at(self._alarm):
                    await self._earlier.wait()
                self._alarm = math.inf
                self.ring()
                self._earlier = trio.Event()

    def _arm(self, deadline: float) -> None:
        if deadline < self._alarm:
            self._alarm = deadline
            self._earlier.set()

    def _dial(self, order: Dial) -> None:
        self._link = Link(self)
        self._nursery.start_soon(self._link.run, order)

    def _start_tls(self, order: StartTls) -> None:
        assert self._link is not None
        self._link.hostname = order.hostname

    def _hang_up(self) -> None:
        if self._link is not None:
            self._link.detach()
            self._link = None

    def _send(self) -> None:
        link = self._link
        if link is not None and link.idle:
            link.write(self.connection.data_to_send())

    def forked(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.disown()
        super().forked()

    def link_lost(self, error: BaseException | None) -> None:
        self._link = None
        self.lost(error)
