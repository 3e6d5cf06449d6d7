"""Tasks and the Loop that runs them in steps, for the adapter `poll`.

A task is a coroutine. It waits by `suspend`, and `Task.wake` makes the loop continue it. A wake-up
promises nothing: whoever is woken checks again, so waking too often is harmless.
"""

from __future__ import annotations

import heapq
import itertools
import selectors
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from natsproto.errors import InvalidState

from ._interrupts import Interrupts

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

Result = TypeVar("Result")

#: How long `poll` works if there is always more to do, in seconds: a third of a frame of a game.
LONGEST = 0.005
# How often to look for the end of calls in other threads, in seconds.
TICK = 0.005


class TaskCanceled(BaseException):
    """Raised inside a canceled task, where it waits. Not an Exception, which many catch."""


class _Suspend:
    def __await__(self) -> Generator[object, None, None]:
        yield _SUSPENDED


_SUSPENDED = object()
_here = threading.local()  # `task` is the one that runs in this thread


def current_task() -> Task[Any]:
    """Return the task that runs; raise InvalidState outside of one."""
    task: Task[Any] | None = getattr(_here, "task", None)
    if task is None:
        text = "this client waits only in coroutines that were passed to its `start`"
        raise InvalidState(text, "D-POLL-4")
    return task


def current_loop() -> Loop | None:
    """Return the loop of the task that runs, None outside of one."""
    task: Task[Any] | None = getattr(_here, "task", None)
    return None if task is None else task.loop


async def suspend() -> None:
    """Wait until the task is woken. May return early: callers check again."""
    await _Suspend()


async def sleep(seconds: float) -> None:
    """Wait for a time in a task; 0: until the next `poll`."""
    await current_task().loop.sleep(seconds)


class Task(Generic[Result]):
    """A coroutine that a Loop runs. Await it in another task, or look at `done` between polls.

    The error of a task whose result nothing takes is reported when the task is collected.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, Result], loop: Loop) -> None:
        self._coroutine = coroutine
        self.loop = loop
        #: Whether it has ended.
        self.done: bool = False
        self._scheduled = False
        self._canceled = False
        self._outcome: list[Result] = []
        self._error: BaseException | None = None
        self._taken = False
        self._watchers: list[Task[Any]] = []

    def result(self) -> Result:
        """Return the result, or raise the error; InvalidState if the task has not ended."""
        if not self.done:
            raise InvalidState("task has not ended")
        self._taken = True
        if self._error is not None:
            raise self._error
        return self._outcome[0]

    def ignore(self) -> None:
        """Report no error of this task: its owner does not need the result."""
        self._taken = True

    def cancel(self) -> None:
        """Raise TaskCanceled where the task waits, in the next `poll`."""
        if not self.done:
            self._canceled = True
            self.wake()

    async def ended(self) -> None:
        """Wait for the end, whatever the outcome."""
        while not self.done:
            self._watchers.append(current_task())
            await suspend()

    def __await__(self) -> Generator[Any, Any, Result]:
        yield from self.ended().__await__()
        return self.result()

    def wake(self) -> None:
        """Schedule the task, from any thread."""
        if not self._scheduled and not self.done:
            self._scheduled = True
            self.loop.schedule(self)

    def step(self) -> None:
        """Run the coroutine until it waits, or to its end."""
        self._scheduled = False
        if self.done:
            return
        outside, _here.task = getattr(_here, "task", None), self
        try:
            waits_for = self._continue()
            while waits_for is not _SUSPENDED:
                waits_for = self._coroutine.throw(
                    InvalidState("task awaits something of another event loop: %r" % (waits_for,))
                )
        except StopIteration as stop:
            self._outcome.append(stop.value)
            self._end()
        except (Exception, TaskCanceled) as error:
            self._error = error
            self._taken = self._taken or isinstance(error, TaskCanceled)
            self._end()
        except BaseException as error:  # Ctrl-C, for example: the caller of `poll` gets it
            self._error, self._taken = error, True
            self._end()
            raise
        finally:
            _here.task = outside

    def _continue(self) -> object:
        if self._canceled:
            self._canceled = False
            return self._coroutine.throw(TaskCanceled())
        return self._coroutine.send(None)

    def _end(self) -> None:
        self.done = True
        for task in self._watchers:
            task.wake()
        self._watchers = []

    def __del__(self) -> None:
        if self._error is not None and not self._taken:
            raise self._error  # D-POLL-3: Python prints it


class Stepper(Protocol):
    """The port of a client, which a Loop polls."""

    def step(self) -> bool:
        """Run all work that needs no waiting; return whether there was any."""
        ...

    def flush(self) -> None:
        """Carry out effects and send data after commands."""
        ...

    def fileno(self) -> int:
        """Return the file descriptor to wait for, -1 if there is none."""
        ...

    def wants(self) -> tuple[bool, bool]:
        """Return whether to wait for the descriptor to be readable, and to be writable."""
        ...

    def next_deadline(self) -> float | None:
        """Return when `step` must be called at the latest, by time.monotonic."""
        ...


class _Interrupts(Interrupts):
    """Holds Ctrl-C back until the end of a `poll`; a second one ends a task that never does."""

    def _handle(self, number: int, frame: object) -> None:
        self._welcome = self._came
        super()._handle(number, frame)


class Loop:
    """Runs tasks and the clients that they use, in the calls of `poll`, in one thread."""

    def __init__(self) -> None:
        #: The ports of clients that are open.
        self.ports: list[Stepper] = []
        self._runnable: deque[Task[Any]] = deque()
        self._sleeping: list[tuple[float, int, Task[Any]]] = []
        self._numbers = itertools.count()
        self._elsewhere = 0  # calls that run in threads
        self._polling = False
        self._ends_at = 0.0
        self._interrupts = _Interrupts()

    def start(self, coroutine: Coroutine[Any, Any, Result]) -> Task[Result]:
        """Run a coroutine in the next calls of `poll`, next to the others."""
        task = Task(coroutine, self)
        task.wake()
        return task

    def poll(self, longest: float = LONGEST) -> bool:
        """Move bytes and run tasks until nothing is ready; never wait for anything (D-POLL-1).

        Returns after about `longest` seconds even if there is more to do, and then returns True.
        Code of tasks is not interrupted. Must not be called by a task.
        """
        if self._polling:
            raise InvalidState("poll was called by a task, or by another thread at the same time")
        self._polling = True
        self._ends_at = time.monotonic() + longest
        try:
            self._interrupts.defer()
            return self._poll()
        finally:
            self._polling = False
            self._interrupts.allow()

    def _poll(self) -> bool:
        self._wake_sleepers()
        while True:
            worked = bool(self._runnable)
            if worked:
                self._run_tasks()
            # D-POLL-2: nothing more is read before tasks have handled what was, so that queues do
            # not overflow however short the calls are.
            if not self._runnable:
                for port in list(self.ports):
                    worked = port.step() or worked
            if not worked and not self._runnable:
                return False
            if self.time_is_up():
                return True

    def _run_tasks(self) -> None:
        """Continue every task that can run, once, and send their publishes."""
        for _ in range(len(self._runnable)):
            self._runnable.popleft().step()
        for port in list(self.ports):
            port.flush()

    def _wake_sleepers(self) -> None:
        now = time.monotonic()
        while self._sleeping and self._sleeping[0][0] <= now:
            heapq.heappop(self._sleeping)[2].wake()

    def schedule(self, task: Task[Any]) -> None:
        """Run a task in the next turn."""
        self._runnable.append(task)

    def time_is_up(self) -> bool:
        """Return whether this `poll` should end."""
        return time.monotonic() >= self._ends_at

    def next_deadline(self) -> float | None:
        """Return when to call `poll` at the latest, by time.monotonic; None if nothing is due."""
        now = time.monotonic()
        if self._runnable:
            return now
        times = [port.next_deadline() for port in self.ports]
        times.append(self._sleeping[0][0] if self._sleeping else None)
        times.append(now + TICK if self._elsewhere else None)
        return min((each for each in times if each is not None), default=None)

    def wait(self, longest: float | None = None) -> None:
        """Block until `poll` has something to do, or for `longest` seconds."""
        deadline = self.next_deadline()
        timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
        if longest is not None:
            timeout = longest if timeout is None else min(timeout, longest)
        with selectors.DefaultSelector() as selector:
            for port in self.ports:
                reads, writes = port.wants()
                if reads or writes:
                    events = selectors.EVENT_READ * reads | selectors.EVENT_WRITE * writes
                    selector.register(port.fileno(), events)
            if selector.get_map():
                selector.select(timeout)
            elif timeout is None:
                raise InvalidState("there is nothing to wait for: no client is open")
            else:
                time.sleep(timeout)

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine to its end, and return its result. This blocks, unlike `poll`."""
        task = self.start(coroutine)
        while not task.done:
            if not self.poll() and not task.done:
                self.wait()
        return task.result()

    async def sleep(self, seconds: float) -> None:
        """Wait for a time; 0: until the next `poll`."""
        deadline = time.monotonic() + seconds
        entry = (deadline, next(self._numbers), current_task())
        heapq.heappush(self._sleeping, entry)
        try:
            while entry in self._sleeping:
                await suspend()
        finally:
            if entry in self._sleeping:  # canceled
                self._sleeping.remove(entry)
                heapq.heapify(self._sleeping)

    async def run_in_thread(self, work: Callable[[], Any]) -> Any:
        """Call a function in a thread. A canceled caller does not wait for its end."""
        task = current_task()
        outcome: list[tuple[Any, BaseException | None]] = []

        def call() -> None:
            try:
                outcome.append((work(), None))
            except BaseException as error:
                outcome.append((None, error))
            task.wake()

        self._elsewhere += 1
        try:
            threading.Thread(target=call, name="natsproto-call", daemon=True).start()
            while not outcome:
                await suspend()
        finally:
            self._elsewhere -= 1
        [(result, error)] = outcome
        if error is not None:
            raise error
        return result
