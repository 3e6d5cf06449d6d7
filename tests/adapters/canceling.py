"""Cancel a call at a chosen one of its suspensions, on every event loop."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

from natsproto.adapters import poll
from natsproto.errors import NatsError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from tests.adapters.runtimes import Runtime

PATIENCE = 10.0
# Longer than any test: a consumer that is left does not go away by itself.
FOR_GOOD = 300.0


async def until_empty(runtime: Runtime, look: Callable[[], Awaitable[object]]) -> None:
    """Wait until `look` finds nothing; a failure shows the last findings."""
    deadline = time.monotonic() + PATIENCE
    while left := await look():
        if time.monotonic() >= deadline:
            pytest.fail(f"left behind: {left}")
        await runtime.sleep(0.01)


class Canceler:
    """Cancels a call when it suspends for the `nth` time to wait for its client.

    before  cancel it as soon as it suspends; otherwise when it is about to continue

    How often a call suspends does not depend on timing if it sends each request after the response
    to the one before.
    """

    def __init__(self, runtime: Runtime, client: Any, nth: int, before: bool) -> None:
        self._trio = runtime.name == "trio"
        self._polls = runtime.name == "poll"
        self._port = client.session.port
        self._nth = nth
        self._before = before
        self._scope: Any = None
        self.suspensions = 0

    async def _cancel(self) -> None:
        if self._trio:
            import trio

            self._scope.cancel()
            await trio.lowlevel.checkpoint()
        elif self._polls:
            self._scope.cancel()
            await poll.sleep(0)
        else:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)

    async def _wait(self, waitable: Any) -> None:
        self.suspensions += 1
        chosen = self.suspensions == self._nth
        if chosen and self._before:
            await self._cancel()
        await type(self._port).wait(self._port, waitable)
        if chosen:
            await self._cancel()

    async def run(self, call: Coroutine[Any, Any, Any]) -> bool:
        """Return whether the call was canceled; errors of the client end it, too."""
        if self._trio:
            import trio

            with trio.CancelScope() as self._scope:
                await self._watched(call)
            return bool(self._scope.cancelled_caught)
        if self._polls:
            self._scope = self._port.loop.start(self._watched(call))
            try:
                await self._scope
            except poll.TaskCanceled:
                return True
            return False
        task = asyncio.ensure_future(self._watched(call))
        try:
            await task
        except asyncio.CancelledError:
            return True
        return False

    async def _watched(self, call: Coroutine[Any, Any, Any]) -> None:
        self._port.wait = self._wait
        try:
            await call
        except NatsError:
            pass
        finally:
            del self._port.wait
