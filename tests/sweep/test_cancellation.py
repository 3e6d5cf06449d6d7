"""Every public coroutine is canceled at each of its suspensions, early and late.

Afterwards the connection is usable, nothing is left on the client or the server, and no message is
lost. "Early" is while what the coroutine waits for has not happened, "late" when it has.

A canceled call may clean up in the background for seconds, so several calls are swept at a time,
each in an account of its own.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from natsproto.testing import Server
from tests.adapters.runtimes import Runtime
from tests.soak.load import contents
from tests.sweep.canceling import Outcome, cancel_at
from tests.sweep.left import Left
from tests.sweep.stage import Stage, furnish
from tests.sweep.test_coroutines import CALLS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from natsproto.client import Client
    from natsproto.testing.runner import Task

TIMEOUT = 10.0  # nothing takes that long
MOST = 150  # suspensions
LANES = [f"LANE{number}" for number in range(8)]
LONGEST = 300.0
USERS = {
    name: {"jetstream": "enabled", "users": [{"user": name, "password": "pw"}]} for name in LANES
}


class CancelingStage(Stage):
    """Cancels the coroutine at a suspension."""

    def __init__(self, lane: Lane, client: Client, other: Client, folder: Path) -> None:
        super().__init__(client, other, folder, TIMEOUT)
        self._lane = lane
        self.stack = AsyncExitStack()
        self.nth = 0
        self.before = True
        self.outcome = Outcome(False, 0, None)

    async def __call__(self, work: Awaitable[Any]) -> Any:
        trio_runs = self._lane.runtime.name == "trio"
        self.outcome = await cancel_at(trio_runs, work, self.nth, self.before)

    def start(self, work: Callable[[], Any]) -> Task[Any]:
        return self._lane.runtime.start(work)

    async def new_client(self, **options: Any) -> Client:
        client: Client = await self.stack.enter_async_context(self._lane.connect(**options))
        return client

    def opening(self, **options: Any) -> AbstractAsyncContextManager[Client]:
        opened: AbstractAsyncContextManager[Client] = self._lane.connect(**options)
        return opened

    async def settled(self) -> None:
        deadline = time.monotonic() + TIMEOUT
        while contents(self.client)[0]:
            assert time.monotonic() < deadline, "the client does not settle"
            await self._lane.runtime.sleep(0.02)


class Lane:
    """Sweeps one call after the other, in an account of its own."""

    def __init__(self, runtime: Runtime, server: Server, account: str, folder: Path) -> None:
        self.runtime = runtime
        self._server = server
        self._account = account
        self._folder = folder
        folder.mkdir()
        #: The calls that failed, and why.
        self.failures: dict[str, str] = {}
        #: By call: how often it suspends, and how often it was canceled, early and late.
        self.points: dict[str, tuple[int, int]] = {}

    def connect(self, **options: Any) -> Any:
        url = self._server.url
        return self.runtime.connect(url, user=self._account, password="pw", **options)

    async def work(self, todo: list[str]) -> None:
        async with self.connect() as other:
            stage = Stage(other, other, self._folder, TIMEOUT)
            await furnish(stage.js)
            while todo:
                name = todo.pop()
                try:
                    await self._sweep(name, other)
                except Exception as error:
                    self.failures[name] = repr(error)

    async def _sweep(self, name: str, other: Client) -> None:
        async with self.connect() as client:
            stage = CancelingStage(self, client, other, self._folder)
            await stage.open()
            left = Left(stage, self._server, self._account)
            await left.note()
            canceled = 0
            for stage.before in (True, False):
                for stage.nth in range(1, MOST + 1):
                    stage.cleanups.clear()
                    async with stage.stack:
                        await CALLS[name].work(stage)
                    outcome = stage.outcome
                    canceled += outcome.canceled
                    over = outcome.suspensions < stage.nth
                    rest = await left.compare(self.runtime.sleep, at_last=over)
                    if rest:
                        moment = "early" if stage.before else "late"
                        text = f"canceled at suspension {stage.nth}, {moment}: {rest}"
                        raise AssertionError(text)
                    if over:
                        if outcome.error is not None and not CALLS[name].fails:
                            raise outcome.error
                        break
                else:
                    raise AssertionError(f"it suspends more than {MOST} times")
            self.points[name] = (outcome.suspensions, canceled)


def count_tasks(runtime: Runtime) -> int:
    if runtime.name == "trio":
        import trio

        return trio.lowlevel.current_statistics().tasks_living
    return len(asyncio.all_tasks())


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_nothing_is_left_of_a_canceled_call(loop, tmp_path):
    runtime = Runtime(loop)
    with Server(config={"jetstream": "enabled", "accounts": USERS}) as server:
        lanes = [Lane(runtime, server, name, tmp_path / name) for name in LANES]

        async def main() -> None:
            before = count_tasks(runtime)
            todo = list(CALLS)
            tasks = [runtime.start(lambda lane=lane: lane.work(todo)) for lane in lanes]
            for task in tasks:
                await task.result()
            assert count_tasks(runtime) == before

        runtime.run_for(main, LONGEST)
    failures = {name: each.failures[name] for each in lanes for name in each.failures}
    points = {name: each.points[name] for each in lanes for name in each.points}
    assert failures == {}
    assert set(points) == set(CALLS)
    # Calls that only send something need not suspend.
    still = [name for name, (count, _) in points.items() if not count and not CALLS[name].local]
    assert still == []
