"""Run the conformance checks of natsproto and jetstream on the adapter of twisted_adapter.py.

Runs all of them, or those that are named: `python examples/twisted_checks.py request drain_client`.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

from twisted.internet import defer, reactor
from twisted.internet.threads import blockingCallFromThread
from twisted_adapter import connect

from jetstream.testing import check_adapter
from natsproto.testing import CheckHung, ChecksFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Work = Callable[[], Coroutine[Any, Any, Any]]


class TwistedRunner:
    """Runs checks on the reactor, which runs in a thread: a reactor cannot be started twice."""

    shares_clients = True

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


def main(names: list[str]) -> None:
    loop = threading.Thread(target=reactor.run, args=[False])
    loop.start()
    try:
        report = check_adapter(connect, TwistedRunner(), checks=names or None)
    except ChecksFailed as failure:
        sys.exit(str(failure))
    finally:
        reactor.callFromThread(reactor.stop)
        loop.join()
    print(f"{len(report.passed)} checks passed, {len(report.skipped)} left out")
    for name, reason in report.skipped:
        print(f"  {name}: {reason}")


if __name__ == "__main__":
    main(sys.argv[1:])
