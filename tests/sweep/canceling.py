"""Cancel a coroutine at a chosen one of its suspensions, whatever it waits for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from natsproto.errors import NatsError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Generator, Iterable


class Watched:
    """Awaits something, and cancels it when it suspends for the `nth` time.

    before  cancel it while what it waits for has not happened; otherwise when that has happened,
            and the coroutine is about to continue
    """

    def __init__(self, work: Awaitable[Any], nth: int, before: bool, cancel: Any) -> None:
        self._work = work.__await__()
        self._nth = nth
        self._before = before
        self._cancel = cancel
        self.suspensions = 0

    def __await__(self) -> Generator[Any, Any, Any]:
        resume: Any = lambda: next(self._work)  # noqa: E731
        while True:
            try:
                trap = resume()
            except StopIteration as end:
                return end.value
            self.suspensions += 1
            chosen = self.suspensions == self._nth
            if chosen and self._before:
                self._cancel.soon()
            try:
                value = yield trap
                if chosen and not self._before:
                    yield from self._cancel.now()
            except BaseException as error:
                resume = lambda error=error: self._work.throw(error)  # noqa: E731
            else:
                resume = lambda value=value: self._work.send(value)  # noqa: E731


class AsyncioCancel:
    """Cancels a task of asyncio, as `task.cancel()` does."""

    def __init__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task = task

    def soon(self) -> None:
        # Before any callback of this turn's I/O, which the loop has not looked for yet.
        asyncio.get_running_loop().call_soon(self._task.cancel)

    def now(self) -> Iterable[Any]:
        self._task.cancel()
        return (None,)  # one more turn of the loop, which delivers it


class TrioCancel:
    """Cancels a scope of trio."""

    def __init__(self, scope: Any) -> None:
        self._scope = scope

    def soon(self) -> None:
        self._scope.cancel()

    def now(self) -> Iterable[Any]:
        # What the task waited for has happened: trio delivers this at its next checkpoint.
        self._scope.cancel()
        return ()


class Outcome(NamedTuple):
    """How a call ended, and how often it had suspended by then."""

    canceled: bool
    suspensions: int
    error: NatsError | None


async def cancel_at(trio_runs: bool, work: Awaitable[Any], nth: int, before: bool) -> Outcome:
    """Cancel something at its `nth` suspension, if it has so many."""
    if trio_runs:
        return await _on_trio(work, nth, before)
    return await asyncio.ensure_future(_on_asyncio(work, nth, before))


async def _on_asyncio(work: Awaitable[Any], nth: int, before: bool) -> Outcome:
    watched = Watched(work, nth, before, AsyncioCancel())
    failure = None
    try:
        await watched
        if watched.suspensions >= nth:
            await asyncio.sleep(0)  # canceled in its last step: that is delivered here
    except asyncio.CancelledError:
        return Outcome(True, watched.suspensions, None)
    except NatsError as error:
        failure = error
    return Outcome(False, watched.suspensions, failure)


async def _on_trio(work: Awaitable[Any], nth: int, before: bool) -> Outcome:
    import trio

    failure = None
    with trio.CancelScope() as scope:
        watched = Watched(work, nth, before, TrioCancel(scope))
        try:
            await watched
        except NatsError as error:
            failure = error
    return Outcome(scope.cancelled_caught, watched.suspensions, failure)
