"""Runners: how a check runs on asyncio, on trio, or without an event loop.

Checks are coroutines, written once. asyncio and trio run them as they are. Without an event loop a
check gets blocking clients behind an asynchronous interface (`blocking_view.py`), so that it runs
to its end without ever suspending. A check that needs a second thread of control calls `start`,
which starts a task or a thread.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import AbstractAsyncContextManager, ExitStack
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from natsproto.client import Client
from natsproto.port import run_sync

from .blocking_view import view_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import TypeAlias

    import trio

    from natsproto.options import OptionsDict, ServersLike

    #: A coroutine function without arguments.
    Work: TypeAlias = Callable[[], Coroutine[Any, Any, "Result"]]
    Connect: TypeAlias = Callable[..., Any]
    Opening: TypeAlias = AbstractAsyncContextManager[Client]

Result = TypeVar("Result")
Outcome = TypeVar("Outcome", covariant=True)


class CheckHung(AssertionError):
    """A check did not end in time."""


class Task(Protocol[Outcome]):
    """A second thread of control that a check has started."""

    async def result(self) -> Outcome:
        """Wait until the task ends and return its result, or raise its error."""
        ...

    async def stop(self) -> None:
        """Cancel the task if the runtime supports that, and wait until it has ended."""
        ...


class Runner(Protocol):
    """A way of running checks, one at a time."""

    #: Whether several threads of control may use one client at the same time.
    shares_clients: bool

    def run(self, main: Work[None], timeout: float) -> None:
        """Run `main` until it ends; raise CheckHung if that takes longer than `timeout`."""
        ...

    def start(self, work: Work[Result]) -> Task[Result]:
        """Run `work` next to the check."""
        ...

    def open(self, connect: Connect, servers: ServersLike, options: OptionsDict) -> Opening:
        """Return `connect(servers, **options)` as an asynchronous context manager."""
        ...


class AsyncioRunner:
    """Run checks on asyncio, or on the loop of another factory such as uvloop.new_event_loop."""

    shares_clients = True

    def __init__(
        self, new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    ) -> None:
        self._new_loop = new_loop

    def run(self, main: Work[None], timeout: float) -> None:
        loop = self._new_loop()
        # Exceptions that no task retrieves are reported here.
        failures: list[dict[str, Any]] = []
        loop.set_exception_handler(lambda _, failure: failures.append(failure))
        try:
            loop.run_until_complete(self._bounded(main, timeout))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()
        assert not failures, f"the loop reports {failures}"

    async def _bounded(self, main: Work[None], timeout: float) -> None:
        task = asyncio.ensure_future(main())
        done, _ = await asyncio.wait([task], timeout=timeout)
        if not done:
            task.cancel()
            await asyncio.wait([task], timeout=timeout)
            raise CheckHung(f"it did not end within {timeout} s")
        task.result()

    def start(self, work: Work[Result]) -> Task[Result]:
        return _AsyncioTask(asyncio.ensure_future(work()))

    def open(self, connect: Connect, servers: ServersLike, options: OptionsDict) -> Opening:
        opening: Opening = connect(servers, **options)
        return opening


class _AsyncioTask(Generic[Result]):
    def __init__(self, task: asyncio.Future[Result]) -> None:
        self._task = task

    async def result(self) -> Result:
        return await self._task

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])


class TrioRunner:
    """Run checks on trio."""

    shares_clients = True

    def __init__(self) -> None:
        self._nursery: trio.Nursery | None = None

    def run(self, main: Work[None], timeout: float) -> None:
        import trio

        trio.run(self._main, main, timeout)

    async def _main(self, main: Work[None], timeout: float) -> None:
        import trio

        failure: Exception | None = None
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            with trio.move_on_after(timeout) as bound:
                try:
                    await main()
                except Exception as error:  # a nursery would wrap it in a group
                    failure = error
            nursery.cancel_scope.cancel()
        if bound.cancelled_caught:
            raise CheckHung(f"it did not end within {timeout} s")
        if failure is not None:
            raise failure

    def start(self, work: Work[Result]) -> Task[Result]:
        import trio

        assert self._nursery is not None
        task: ScopedTask[Result] = ScopedTask(trio.CancelScope(), trio.Event())
        self._nursery.start_soon(task.run, work)
        return task

    def open(self, connect: Connect, servers: ServersLike, options: OptionsDict) -> Opening:
        opening: Opening = connect(servers, **options)
        return opening


class ScopedTask(Generic[Result]):
    """A task in a cancel scope of trio or anyio, with an event of the same library."""

    def __init__(self, scope: Any, done: Any) -> None:
        self._scope = scope
        self._done = done
        self._outcome: list[Result] = []
        self._error: Exception | None = None

    async def run(self, work: Work[Result]) -> None:
        with self._scope:
            try:
                self._outcome.append(await work())
            except Exception as error:
                self._error = error
        self._done.set()

    async def result(self) -> Result:
        await self._done.wait()
        if self._error is not None:
            raise self._error
        return self._outcome[0]

    async def stop(self) -> None:
        self._scope.cancel()
        await self._done.wait()


class BlockingRunner:
    """Run checks without an event loop: `connect` returns a blocking client, tasks are threads.

    shares_clients: whether several threads may use one client at the same time
    """

    def __init__(self, *, shares_clients: bool) -> None:
        self.shares_clients = shares_clients

    def run(self, main: Work[None], timeout: float) -> None:
        # A thread: there is no other way to abandon a call that does not return.
        thread = _Thread(main)
        thread.join(timeout)
        run_sync(thread.result())

    def start(self, work: Work[Result]) -> Task[Result]:
        return _Thread(work)

    def open(self, connect: Connect, servers: ServersLike, options: OptionsDict) -> Opening:
        return _BlockingOpening(connect, servers, options)


class _Thread(Generic[Result]):
    def __init__(self, work: Work[Result]) -> None:
        self._outcome: list[Result] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=[work], daemon=True)
        self._thread.start()

    def _run(self, work: Work[Result]) -> None:
        try:
            self._outcome.append(run_sync(work()))
        except BaseException as error:
            self._error = error

    def join(self, timeout: float) -> None:
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise CheckHung(f"it did not end within {timeout} s")

    async def result(self) -> Result:
        self.join(_LONGEST)
        if self._error is not None:
            raise self._error
        return self._outcome[0]

    async def stop(self) -> None:
        self.join(_LONGEST)


class _BlockingOpening(AbstractAsyncContextManager[Client]):
    def __init__(self, connect: Connect, servers: ServersLike, options: OptionsDict) -> None:
        self._connect = connect
        self._servers = servers
        self._options = options
        self._stack = ExitStack()

    async def __aenter__(self) -> Client:
        opening = self._connect(self._servers, **self._options)
        client: Client = view_of(self._stack.enter_context(opening))
        return client

    async def __aexit__(self, *exc: object) -> None:
        self._stack.close()


_LONGEST = 20.0  # for a thread of a check
