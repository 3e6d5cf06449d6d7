"""A runner for adapters of anyio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import anyio

from .runner import CheckHung

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from natsproto.options import OptionsDict, ServersLike

    from .runner import Connect, Opening, Task, Work

Result = TypeVar("Result")


class AnyioRunner:
    """Run checks on anyio, with the backend `asyncio` or `trio`."""

    shares_clients = True

    def __init__(self, backend: str = "asyncio") -> None:
        self._backend = backend
        self._group: TaskGroup | None = None

    def run(self, main: Work[None], timeout: float) -> None:
        anyio.run(self._main, main, timeout, backend=self._backend)

    async def _main(self, main: Work[None], timeout: float) -> None:
        failure: Exception | None = None
        bound = anyio.move_on_after(timeout)
        async with anyio.create_task_group() as self._group:
            with bound:
                try:
                    await main()
                except Exception as error:  # a group would wrap it
                    failure = error
            self._group.cancel_scope.cancel()
        if bound.cancelled_caught:
            raise CheckHung(f"it did not end within {timeout} s")
        if failure is not None:
            raise failure

    def start(self, work: Work[Result]) -> Task[Result]:
        assert self._group is not None
        task: _AnyioTask[Result] = _AnyioTask()
        self._group.start_soon(task.run, work)
        return task

    def open(self, connect: Connect, servers: ServersLike, options: OptionsDict) -> Opening:
        opening: Opening = connect(servers, **options)
        return opening


class _AnyioTask(Generic[Result]):
    def __init__(self) -> None:
        self._scope = anyio.CancelScope()
        self._done = anyio.Event()
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
