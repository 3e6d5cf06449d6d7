"""trio: `async with connect(...) as client`.

Each connection has a nursery, with one task for the timer and two for each transport: one reads,
the other writes. A publish sends what the system accepts at once and hands the rest to the writer,
so canceling it never leaves half a frame on the wire. A caller that waits alone reads by itself.
The tasks are shielded: a cancellation from outside is meant for the block, and while the block ends
they still send what it has published.
"""

from __future__ import annotations

import math
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from natsproto.client import Client, leave
from natsproto.errors import InvalidState, MissingExtra
from natsproto.hints import ENTER, not_entered

try:
    import trio
except ImportError:
    raise MissingExtra(
        "natsproto.adapters.trio needs trio: pip install 'natsproto[trio]'", "D-OPT-17"
    ) from None

from ._trio_stream import TransportStream
from .driver import CANCEL_GRACE, Driver, make_connection, open_client

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager
    from typing import NoReturn

    from typing_extensions import Unpack

    from natsproto.connection import Connection
    from natsproto.connection.effects import Dial, StartTls
    from natsproto.connection.waitable import Waitable
    from natsproto.options import OptionsDict, ServersLike

    from .driver import Worker


def connect(
    servers: ServersLike = "nats://127.0.0.1:4222", **options: Unpack[OptionsDict]
) -> AbstractAsyncContextManager[Client]:
    """Connect: `async with connect(...) as client`.

    The options are the keywords of natsproto.options.Options, which describes them, except that
    `creds` is the path of a file. Raises ConnectFailed if no server can be reached, and
    AuthorizationFailed if the credentials are rejected.
    """
    return _Connecting(make_connection(servers, dict(options)))


class _Connecting:
    """The result of `connect`.

    The nursery is entered and left by hand, so that it does not wrap errors in groups.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __await__(self) -> NoReturn:  # for users of asyncio's connect
        raise InvalidState("connect of natsproto.adapters.trio cannot be awaited; %s" % ENTER)

    if not TYPE_CHECKING:  # a type checker would accept every name
        __getattr__ = not_entered

    async def __aenter__(self) -> Client:
        if not trio.lowlevel.in_trio_task():
            raise InvalidState("connect of natsproto.adapters.trio must be called in a trio task")
        self._manager = trio.open_nursery()
        self._nursery = await self._manager.__aenter__()
        self._port = TrioPort(self._connection, self._nursery)
        try:
            self._client = await open_client(self._connection, self._port)
        except BaseException:
            await self._leave()
            raise
        return self._client

    async def __aexit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        # The following takes a bounded time.
        self._nursery.cancel_scope.shield = True
        try:
            canceled = kind is not None and issubclass(kind, trio.Cancelled)
            await leave(self._client, kind, CANCEL_GRACE if canceled else None)
        finally:
            await self._leave()

    async def _leave(self) -> None:
        self._nursery.cancel_scope.shield = True
        self._port.stop()
        await self._manager.__aexit__(None, None, None)


class TrioPort(Driver):
    """Runs a connection with tasks of a nursery."""

    def __init__(self, connection: Connection, nursery: trio.Nursery) -> None:
        super().__init__(connection)
        self._nursery = nursery
        self._token = trio.lowlevel.current_trio_token()
        self._stream: TransportStream | None = None
        self._corked = False  # data was sent, and nothing was received since then
        self._uncorking = False  # the writer will send the rest
        #: How many tasks wait.
        self.waiting: int = 0
        #: How many times in a row only one did.
        self.lone: int = 0
        self._fires_at = math.inf
        self._earlier = trio.Event()  # the timer was moved forward
        self._timer = trio.CancelScope(shield=True)
        nursery.start_soon(self._run_timer)

    def now(self) -> float:
        """Return trio's time."""
        return trio.current_time()

    @trio.lowlevel.enable_ki_protection  # no Ctrl-C between adding to the list and sleeping
    async def wait(self, waitable: Waitable) -> None:
        """Sleep until the waiter reschedules this task, or read what arrives."""
        stream = self._stream
        if stream is not None and stream.lent:
            await stream.borrow(waitable.waiters)
            return
        self.lone = 0 if self.waiting else self.lone + 1
        self.waiting += 1
        # Without an Event, which needs a set of its own, a request takes 3 us less.
        wake = partial(trio.lowlevel.reschedule, trio.lowlevel.current_task())
        waitable.waiters.append(wake)

        def abort(_: object) -> trio.lowlevel.Abort:
            # Not called once `wake` was: that takes it off the list, and ends the sleep.
            waitable.waiters.remove(wake)
            self.waiting -= 1
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    def wake(self, waiters: list[Any]) -> None:
        """Wake the callers of `wait`, some of which may be reading."""
        self.waiting -= len(waiters)
        super().wake(waiters)

    async def checkpoint(self) -> None:
        """Run a checkpoint; let other tasks run only when the turn is over."""
        if self.turn_is_over():
            await trio.lowlevel.checkpoint()
        else:
            await trio.lowlevel.checkpoint_if_cancelled()

    async def run_blocking(self, work: Callable[[], Any]) -> Any:
        """Call a function in a thread; a cancellation takes effect after it."""
        return await trio.to_thread.run_sync(work)

    async def run_all(self, workers: list[Worker]) -> None:
        """Run each worker in a task."""
        try:
            async with trio.open_nursery() as nursery:
                for worker in workers:
                    nursery.start_soon(worker)
        except BaseException:
            await trio.lowlevel.checkpoint_if_cancelled()  # one Cancelled, not a group of them
            raise

    def flush_soon(self) -> None:
        """Run `pump` at once, or in the writer if data was already sent in this turn."""
        # The first bytes after a read are sent at once. Later ones are joined, and the writer sends
        # them in its turn, or the caller does if there are many. If the writer is busy or there is
        # none, there may still be effects, waiters, and a timer to handle.
        if self._uncorking and not self.connection.congested:
            return
        stream = self._stream
        if self._corked and not self.connection.congested and stream is not None:
            self._uncorking = stream.wake_writer()
            if self._uncorking:
                return
        self._corked = True
        self.pump()

    def uncork(self) -> None:
        """Run `pump`, in the writer; the next bytes are sent at once again."""
        self._corked = self._uncorking = False
        self.pump()

    def on_data(self, data: bytes) -> None:
        """Report data; responses to it are sent at once."""
        self._corked = False
        super().on_data(data)

    def pump_soon(self) -> None:
        """Schedule `pump`, from any thread."""
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self.pump)

    async def aclose(self) -> None:
        """Run `pump`, and end the timer task."""
        self.pump()
        self._earlier.set()

    def stop(self) -> None:
        """Cancel all tasks at once."""
        self._timer.cancel()
        self.hang_up()

    async def _run_timer(self) -> None:
        with self._timer:
            while not self.connection.closed:
                with trio.move_on_at(self._fires_at):
                    await self._earlier.wait()
                self._fires_at = math.inf
                self.on_timer()
                self._earlier = trio.Event()

    def set_timer(self, deadline: float) -> None:
        """Wake the timer task, if the deadline is earlier."""
        self._fires_at = deadline
        self._earlier.set()

    def dial(self, effect: Dial) -> None:
        """Start the task of a new transport."""
        self._stream = TransportStream(self)
        self._nursery.start_soon(self._stream.run, effect)

    def start_tls(self, effect: StartTls) -> None:
        """Request TLS; the reader starts it."""
        assert self._stream is not None
        self._stream.hostname = effect.hostname

    def hang_up(self) -> None:
        """Drop the transport and its tasks."""
        if self._stream is not None:
            self._stream.detach()
            self._stream = None

    def send(self) -> None:
        """Send data, if all earlier data was sent."""
        stream = self._stream
        if stream is not None and stream.idle:
            stream.write(self.connection.data_to_send())

    def on_fork(self) -> None:
        """Release the socket of the parent, and close the connection."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.disown()
        super().on_fork()

    def transport_lost(self, error: BaseException | None) -> None:
        """Report that the current transport is lost."""
        self._stream = None
        self.on_closed(error)
