"""Waiter: the place where a task of asyncio waits, and from which it continues without delay."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextvars import Context


class Waiter:
    """What one task waits for: as much of a future as a task needs.

    A future has its task continue in the next turn of the loop. `run` continues it at once, which
    is for callbacks of the loop, since no task can run within another one.
    """

    __slots__ = (
        "_asyncio_future_blocking",
        "_callback",
        "_canceled",
        "_context",
        "_loop",
        "_waiters",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, waiters: list[Any]) -> None:
        self._asyncio_future_blocking = True  # for the task: this is a future
        self._loop = loop
        self._waiters = waiters  # the list that this is in
        self._canceled: asyncio.CancelledError | None = None

    def __await__(self) -> Generator[Any, None, None]:
        # An iterator that yields this once, for the task; a generator would take 0.1 us more.
        return iter((self,))  # type: ignore[return-value]

    def run(self) -> None:
        """Continue the task, unless it is being canceled."""
        if self._canceled is None:
            self._context.run(self._callback, self)

    # For the task

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Return the loop of the task."""
        return self._loop

    def add_done_callback(self, callback: Callable[[Waiter], object], *, context: Context) -> None:
        """Keep the function that continues the task."""
        self._callback = callback
        self._context = context

    def result(self) -> None:
        """Return to the task, or cancel it."""
        if self._canceled is not None:
            raise self._canceled

    def cancel(self, msg: Any = None) -> bool:
        """Cancel the task in the next turn of the loop."""
        if self._canceled is not None:
            return False
        self._canceled = asyncio.CancelledError() if msg is None else asyncio.CancelledError(msg)
        if self in self._waiters:
            self._waiters.remove(self)
        self._loop.call_soon(self._callback, self, context=self._context)
        return True
