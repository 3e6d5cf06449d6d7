"""A runner for the adapter `poll`: the owner of the loop."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Generic, TypeVar

from natsproto.adapters.poll import Loop

from .runner import CheckHung

if TYPE_CHECKING:
    from natsproto.adapters.poll import Task as PollTask
    from natsproto.options import OptionsDict, ServersLike

    from .runner import Connect, Opening, Task, Work

Result = TypeVar("Result")


class PollRunner:
    """Run checks in a loop that calls `poll` again and again, and waits in between."""

    shares_clients = True

    def __init__(self) -> None:
        self._loop = Loop()

    def run(self, main: Work[None], timeout: float) -> None:
        self._loop = loop = Loop()
        task = loop.start(main())
        deadline = time.monotonic() + timeout
        while not task.done:
            if time.monotonic() >= deadline:
                raise CheckHung(f"it did not end within {timeout} s")
            if not loop.poll() and not task.done:
                loop.wait(deadline - time.monotonic())
        task.result()

    def start(self, work: Work[Result]) -> Task[Result]:
        return _PollTask(self._loop.start(work()))

    def open(self, connect: Connect, servers: ServersLike, options: OptionsDict) -> Opening:
        opening: Opening = connect(servers, **options)
        return opening


class _PollTask(Generic[Result]):
    def __init__(self, task: PollTask[Result]) -> None:
        self._task = task

    async def result(self) -> Result:
        return await self._task

    async def stop(self) -> None:
        self._task.cancel()
        await self._task.ended()
