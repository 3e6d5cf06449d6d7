"""SimPort: the port of simulated clients (natsproto.port.Port)."""

from __future__ import annotations

from .tasks import Cancelled, Suspend, Task

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from natsproto.connection.waitable import Waitable
    from natsproto.port import NewFile, OpenFile, PathLike

    from .world import World

NANO = 10**9
#: The simulated time 0.0, in nanoseconds since 1970: the first moment of 2026.
EPOCH = 1_767_225_600 * NANO


class SimPort:
    """Waits on the simulated clock, and carries out effects at once."""

    def __init__(self, world: World) -> None:
        self._world = world

    def now(self) -> float:
        """Return the simulated time."""
        return self._world.now

    def ticks(self) -> float:
        """Return the simulated time."""
        return self._world.now

    def utc_ns(self) -> int:
        """Return the simulated time as that of a simulation that began with the year 2026."""
        return EPOCH + int(self._world.now * NANO)

    async def wait(self, waitable: Waitable) -> None:
        """Suspend the coroutine until the waitable is ready."""
        task = self._world.current
        assert task is not None, "only coroutines of the simulation can wait: sim.run(...)"
        waitable.waiters.append(task.wake)
        try:
            await Suspend()
        finally:
            if task.wake in waitable.waiters:
                waitable.waiters.remove(task.wake)

    async def checkpoint(self) -> None:
        """Return at once: no other coroutine has waited for its turn."""

    async def run_all(self, workers: list[Callable[[], Coroutine[Any, Any, None]]]) -> None:
        """Run all workers at the same time, to their ends; if canceled, cancel them all."""
        world = self._world
        tasks = [Task(world, worker) for worker in workers]
        try:
            for task in tasks:
                await task.join()
        except Cancelled:
            for task in tasks:
                task.cancel()
            raise

    def flush_soon(self) -> None:
        """Carry out effects and send data."""
        self._world.carry_out()

    def run_soon(self, work: Callable[[], object]) -> None:
        """Call `work` in the next step."""

        def run() -> None:
            work()
            self._world.carry_out()

        self._world.at(self._world.now, run)

    def warn(self, text: str) -> None:
        """Report an object that was dropped while in use: the next step of the world raises it."""
        # Not now: finalizers call this, also after the end of a world.
        self._world.abandoned = text

    async def open_file(self, path: PathLike) -> OpenFile:
        """Raise OSError: there are no files in a simulation."""
        raise OSError("a simulation has no files: %s" % path)

    async def create_file(self, path: PathLike, token: str) -> NewFile:
        """Raise OSError: there are no files in a simulation."""
        raise OSError("a simulation has no files: %s" % path)

    async def aclose(self) -> None:
        """Do the remaining work."""
        self._world.carry_out()
