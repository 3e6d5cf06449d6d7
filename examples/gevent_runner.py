"""The runner for the conformance checks of gevent_adapter.py.

    python -m jetstream.testing examples.gevent_adapter:connect \
        --runner examples.gevent_runner:GeventRunner
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gevent

from natsproto.port import run_sync
from natsproto.testing import BlockingRunner, CheckHung

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Work = Callable[[], Coroutine[Any, Any, Any]]


class GeventRunner(BlockingRunner):
    """Runs checks in greenlets; what a check starts is another one, and shares its clients."""

    def __init__(self) -> None:
        super().__init__(shares_clients=True)

    def run(self, main: Work, timeout: float) -> None:
        with gevent.Timeout(timeout, CheckHung(f"it did not end within {timeout} s")):
            run_sync(Task(main).result())

    def start(self, work: Work) -> Task:
        return Task(work)


class Task:
    """A greenlet that runs a coroutine to its end."""

    def __init__(self, work: Work) -> None:
        self._error: Exception | None = None
        self._greenlet = gevent.spawn(self._run, work)

    def _run(self, work: Work) -> Any:
        try:
            return run_sync(work())
        except Exception as error:  # gevent would print it
            self._error = error

    async def result(self) -> Any:
        outcome = self._greenlet.get()
        if self._error is not None:
            raise self._error
        return outcome

    async def stop(self) -> None:
        self._greenlet.kill()
