"""Task: a coroutine that runs in steps on the simulated clock."""

from __future__ import annotations

from .clock import TASK

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator
    from typing import Any

    from .world import World


class Cancelled(BaseException):
    """Thrown into a coroutine that is canceled, as event loops do."""


class Suspend:
    """Awaitable: give the turn away until the task is woken."""

    def __await__(self) -> Generator[None, None, None]:
        yield None

    __iter__ = __await__  # for MicroPython


class Task:
    """A coroutine that is made at its first step: the simulation may end before.

    `catch` has the exceptions that belong to the task: they end it and are kept in `error`. Any
    other one leaves the call that runs the simulation.
    """

    def __init__(
        self,
        world: World,
        work: Callable[[], Coroutine[Any, Any, Any]],
        catch: tuple[type[BaseException], ...] = (),
    ) -> None:
        self._world = world
        self._work = work
        self._catch = catch
        self._coroutine: Coroutine[Any, Any, Any] | None = None
        self._scheduled = False
        self._waiters: list[Task] = []
        #: Whether it has ended: returned, failed, or been canceled.
        self.done: bool = False
        self.cancelled: bool = False
        #: Whether someone waits for the end by `join`.
        self.joined: bool = False
        self.error: Any = None
        #: What the coroutine returned.
        self.value: Any = None
        self.wake()

    def wake(self) -> None:
        """Schedule the next step, unless it is scheduled already."""
        if not self._scheduled and not self.done:
            self._scheduled = True
            self._world.at(self._world.now, self._step, TASK)

    def cancel(self) -> None:
        """Throw Cancelled into the coroutine, where it waits."""
        coroutine = self._coroutine
        if coroutine is None:
            self._work().close()
            self.cancelled = True
            self._end()
        else:
            self._advance(lambda: coroutine.throw(Cancelled()))

    async def join(self) -> Any:
        """Wait for the end; return what the coroutine returned, or raise its error."""
        self.joined = True
        while not self.done:
            current = self._world.current
            assert current is not None, "join is for coroutines of the simulation"
            self._waiters.append(current)
            await Suspend()
        if self.error is not None:
            raise self.error
        return self.value

    def _step(self) -> None:
        if self._world.stalled(self._step, TASK):
            return
        self._scheduled = False
        if not self.done:
            coroutine = self._coroutine = self._coroutine or self._work()
            self._advance(lambda: coroutine.send(None))

    def _advance(self, resume: Callable[[], object]) -> None:
        if self.done:
            return
        before, self._world.current = self._world.current, self
        try:
            resume()
        except StopIteration as stop:
            self.value = stop.value
            self._end()
        except Cancelled:
            self.cancelled = True
            self._end()
        except self._catch as error:
            self.error = error
            self._end()
        finally:
            self._world.current = before
        self._world.carry_out()

    def _end(self) -> None:
        self.done = True
        for waiter in self._waiters:
            waiter.wake()
        self._waiters = []
