"""A loop that the program owns, such as that of a game: `client.poll()` in every turn of it.

    client = connect("nats://127.0.0.1:4222")
    client.start(play(client))  # any coroutine that uses the API
    while running:
        client.poll()  # moves bytes and runs coroutines; never blocks
        draw()

The API is the asynchronous one. Its coroutines run inside `poll`, as tasks that `start` returns.
Several clients can share a Loop; a client that is made in a task belongs to the loop of that task.

`poll` does not wait for anything: connecting and TLS continue from call to call, and names are
looked up in threads. Between calls nothing happens, so timeouts and answers to PINGs are as precise
as the calls are frequent. An owner that waits with select uses `fileno`, `wants` and
`next_deadline`. A client and its loop are for one thread. After `os.fork()` a client cannot be used
in the child: connect again there.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

from natsproto.client import Client, leave

from ._lookup import Lookups
from ._sockets import READ, WRITE, SocketDriver, wait_for
from ._tasks import (
    LONGEST,
    TICK,
    Loop,
    Task,
    TaskCanceled,
    current_loop,
    current_task,
    sleep,
    suspend,
)
from .driver import CANCEL_GRACE, make_connection, open_client

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

    from typing_extensions import Unpack

    from natsproto.connection import Connection
    from natsproto.connection.effects import Dial
    from natsproto.connection.waitable import Waitable
    from natsproto.durations import Seconds
    from natsproto.options import OptionsDict, ServersLike

    from ._sockets import Addresses
    from .driver import Worker

__all__ = ["Loop", "PollClient", "PollPort", "Task", "TaskCanceled", "connect", "sleep"]

Result = TypeVar("Result")


def connect(
    servers: ServersLike = "nats://127.0.0.1:4222",
    *,
    loop: Loop | None = None,
    **options: Unpack[OptionsDict],
) -> PollClient:
    """Return a client at once, which connects in the next calls of `poll`.

    In a task: `async with connect(...) as client`, or `client = await connect(...)`, which wait for
    the connection. Elsewhere `client.opening` is a task that ends with it: its `result()` raises
    ConnectFailed if no server can be reached, and AuthorizationFailed if the credentials are
    rejected. The options are the keywords of natsproto.options.Options, which describes them,
    except that `creds` is the path of a file.

    loop: the loop to run in; by default that of the present task, or else a new one
    """
    connection = make_connection(servers, dict(options))
    return PollClient(connection, PollPort(connection, loop or current_loop() or Loop()))


class PollClient(Client):
    """A client whose owner calls `poll`; everything else is as in natsproto.client.Client."""

    def __init__(self, connection: Connection, port: PollPort) -> None:
        super().__init__(connection, port)
        self._poll_port = port
        #: The loop that runs this client; `poll`, `start` and `run` are those of the loop.
        self.loop: Loop = port.loop
        #: The task that connects.
        self.opening: Task[Client] = self.loop.start(open_client(connection, port))

    def poll(self, longest: float = LONGEST) -> bool:
        """Move bytes and run tasks until nothing is ready; never wait for anything.

        Returns after about `longest` seconds even if there is more to do, and then returns True.
        Code of tasks is not interrupted. Must not be called by a task.
        """
        return self.loop.poll(longest)

    def start(self, coroutine: Coroutine[Any, Any, Result]) -> Task[Result]:
        """Run a coroutine in the next calls of `poll`, next to the others."""
        return self.loop.start(coroutine)

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine to its end, and return its result. This blocks, unlike `poll`."""
        return self.loop.run(coroutine)

    def fileno(self) -> int:
        """Return the descriptor of the socket, -1 if there is none; it may change in `poll`."""
        return self._poll_port.fileno()

    def wants(self) -> tuple[bool, bool]:
        """Return whether to wait for the socket to be readable, and to be writable."""
        return self._poll_port.wants()

    def next_deadline(self) -> float | None:
        """Return when to call `poll` at the latest, by time.monotonic; None if nothing is due."""
        return self.loop.next_deadline()

    async def close(self, timeout: Seconds = 2.0) -> None:
        """Send pending publishes and close, within the timeout, as in natsproto.client.Client."""
        self.opening.ignore()  # if it is still under way, the caller has decided to end it
        await super().close(timeout)

    def __await__(self) -> Generator[Any, Any, PollClient]:
        return self._opened().__await__()

    async def __aenter__(self) -> PollClient:
        return await self._opened()

    async def _opened(self) -> PollClient:
        try:
            await self.opening
        except TaskCanceled:
            self.opening.cancel()
            await self.opening.ended()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        canceled = kind is not None and issubclass(kind, TaskCanceled)
        await leave(self, kind, CANCEL_GRACE if canceled else None)


class PollPort(SocketDriver):
    """Runs a connection in the `poll` of a loop."""

    def __init__(self, connection: Connection, loop: Loop) -> None:
        super().__init__(connection)
        self.loop = loop
        self._due = False  # outputs of the connection have to be read
        self._lookups = Lookups()
        self._sought: Dial | None = None  # its name was looked up, or is being
        self._found: deque[tuple[Dial, Addresses]] = deque()  # by threads
        loop.ports.append(self)

    # For the loop

    def step(self) -> bool:
        """Run all work that needs no waiting; return whether there was any."""
        if self._dialing is not None and self._find(self._dialing):
            return True
        ready = self._transport is not None and wait_for(self._transport, None, 0.0)
        self._step(ready)
        due = self._due
        self.flush()
        return ready or due

    def flush(self) -> None:
        """Run `pump`, if there were commands."""
        if self._due:
            self.pump()

    def pump(self) -> None:
        """Read the outputs of the connection and act on them."""
        self._due = False
        super().pump()

    def fileno(self) -> int:
        """Return the file descriptor of the socket, -1 if there is none."""
        return -1 if self._transport is None else self._transport.fileno()

    def wants(self) -> tuple[bool, bool]:
        """Return whether to wait for the socket to be readable, and to be writable."""
        wants = 0 if self._transport is None else self._transport.wants()
        return bool(wants & READ), bool(wants & WRITE)

    def next_deadline(self) -> float | None:
        """Return when `step` must be called at the latest."""
        if self._due:
            return self.now()
        deadline = self.connection.next_deadline()
        if self._dialing is not None:  # a thread looks its name up
            tick = self.now() + TICK
            return tick if deadline is None else min(tick, deadline)
        return deadline

    def _find(self, effect: Dial) -> bool:
        """Look the name up; return whether that is done."""
        addresses: Addresses | None = None
        if effect is not self._sought:
            self._sought = effect
            self._found.clear()
            addresses = self._lookups.start(effect, self._looked_up)  # D-CLOCK-3
        while self._found and addresses is None:
            found, result = self._found.popleft()
            if (found.host, found.port) == (effect.host, effect.port):
                addresses = result
        if addresses is None:
            return False
        self._begin(effect, addresses)
        return True

    def _looked_up(self, effect: Dial, addresses: Addresses) -> None:
        self._found.append((effect, addresses))

    # For the API

    async def wait(self, waitable: Waitable) -> None:
        """Wait in the present task until it is woken."""
        wake = current_task().wake
        waitable.waiters.append(wake)
        try:
            await suspend()
        finally:
            if wake in waitable.waiters:
                waitable.waiters.remove(wake)

    async def checkpoint(self) -> None:
        """Yield to the owner of the loop, if the time of this `poll` is up."""
        if self.loop.time_is_up():
            current_task().wake()
            await suspend()

    async def run_all(self, workers: list[Worker]) -> None:
        """Run each worker in a task."""
        tasks = [self.loop.start(worker()) for worker in workers]
        try:
            for task in tasks:
                await task.ended()
        except TaskCanceled:
            for task in tasks:
                task.cancel()
            for task in tasks:
                await task.ended()
            raise
        for task in tasks:
            task.result()

    async def run_blocking(self, work: Callable[[], Any]) -> Any:
        """Call a function in a thread."""
        return await self.loop.run_in_thread(work)

    def flush_soon(self) -> None:
        """Run `pump` after the tasks of this turn, so that their publishes are sent together."""
        self._due = True
        if self.connection.congested:
            self.pump()

    def pump_soon(self) -> None:
        """Run `pump` in the next turn."""
        self._due = True

    async def aclose(self) -> None:
        """Run `pump`, and leave the loop."""
        self.pump()
        if self in self.loop.ports:
            self.loop.ports.remove(self)

    def on_fork(self) -> None:
        """Release the socket of the parent, and close the connection."""
        self.hang_up()
        super().on_fork()
        self._due = True
