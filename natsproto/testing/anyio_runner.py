"""A runner for adapters of anyio."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import anyio

from .runner import CheckHung, ScopedTask

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
        task: ScopedTask[Result] = ScopedTask(anyio.CancelScope(), anyio.Event())
        self._group.start_soon(task.run, work)
        return task

    def open(self, connect: Connect, servers: ServersLike, options: OptionsDict) -> Opening:
        opening: Opening = connect(servers, **options)
        return opening
