"""The lock of a client that is shared by threads, and a way to wait without holding it."""

from __future__ import annotations

import threading
from threading import get_ident

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Result = TypeVar("Result")


class Mutex:
    """A lock that the same thread may acquire again."""

    def __init__(self) -> None:
        self.lock = threading.RLock()

    def sleep(self, woken: threading.Lock) -> None:
        """Release the lock until `woken` is released, then acquire it again."""
        self.leave(woken.acquire)

    def leave(self, work: Callable[[], Result]) -> Result:
        """Release the lock while `work` runs, then acquire it again.

        An exception of a signal handler, such as KeyboardInterrupt, ends the wait and is raised
        unchanged. A threading.Condition cannot do that (D-CLOCK-4): interrupted between two of its
        steps it may return without the lock, and the caller's `with` block raises a RuntimeError.
        """
        lock: Any = self.lock
        state = (1, get_ident())  # the result of _release_save, in case a signal interrupts it
        try:
            try:
                state = lock._release_save()
                return work()
            finally:
                _regain(lock, state)
        finally:
            _regain(lock, state)  # a handler may raise right before the first one


def _regain(lock: Any, state: tuple[int, int]) -> None:
    """Acquire the lock again, then raise any exception that a signal handler raised."""
    raised: BaseException | None = None
    while not lock._is_owned():
        try:
            lock._acquire_restore(state)
        except BaseException as error:  # noqa: PERF203
            raised = error
    if raised is not None:
        raise raised
