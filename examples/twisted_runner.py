"""The runner for the conformance checks of twisted_adapter.py.

    python -m jetstream.testing examples.twisted_adapter:connect \
        --runner examples.twisted_runner:TwistedRunner
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from twisted.internet import defer, reactor
from twisted.internet.threads import blockingCallFromThread

from natsproto.testing import CheckHung

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Work = Callable[[], Coroutine[Any, Any, Any]]


class TwistedRunner:
    """Runs checks on the reactor, which runs in a thread: a reactor cannot be started twice."""

    shares_clients = True

    def __enter__(self) -> TwistedRunner:
        self._thread = threading.Thread(target=reactor.run, args=[False])
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        reactor.callFromThread(reactor.stop)
        self._thread.join()

    def run(self, main: Work, timeout: float) -> None:
        blockingCallFromThread(reactor, self._bounded, main, timeout)

    def _bounded(self, main: Work, timeout: float) -> defer.Deferred[None]:
        running = defer.Deferred.fromCoroutine(main())
        return running.addTimeout(timeout, reactor, self._hung)

    def _hung(self, _: object, timeout: float) -> None:
        raise CheckHung(f"it did not end within {timeout} s")

    def start(self, work: Work) -> Task:
        return Task(work)

    def open(self, connect: Callable[..., Any], servers: Any, options: Any) -> Any:
        return connect(servers, **options)


class Task:
    """A second coroutine that a check has started."""

    def __init__(self, work: Work) -> None:
        self._running = defer.Deferred.fromCoroutine(work())
        self._outcome: list[Any] = []
        self._waiters: list[defer.Deferred[None]] = []
        self._running.addBoth(self._end)

    def _end(self, outcome: Any) -> None:
        self._outcome.append(outcome)
        for waiter in self._waiters:
            waiter.callback(None)

    async def _join(self) -> None:
        if not self._outcome:
            waiter: defer.Deferred[None] = defer.Deferred()
            self._waiters.append(waiter)
            await waiter

    async def result(self) -> Any:
        await self._join()
        [outcome] = self._outcome
        if hasattr(outcome, "raiseException"):
            outcome.raiseException()
        return outcome

    async def stop(self) -> None:
        self._running.cancel()
        await self._join()
