"""The lock of a client with threads, and how to wait without it."""

from __future__ import annotations

import threading
from threading import get_ident
from typing import Any


class Mutex:
    """A lock that the same thread may take again."""

    def __init__(self) -> None:
        self.lock = threading.RLock()

    def sleep(self, woken: threading.Lock) -> None:
        """Give the lock to others until `woken` is released, and take it again.

        An exception of a signal handler, such as KeyboardInterrupt, ends it and comes out as it is.
        A threading.Condition is not enough for that (CLOCK-4): interrupted between two of its steps
        it may return without the lock, and the caller's `with` block fails with a RuntimeError.
        """
        lock: Any = self.lock
        state = (1, get_ident())  # as _release_save has it, should we be interrupted in it
        try:
            try:
                state = lock._release_save()
                woken.acquire()
            finally:
                _regain(lock, state)
        finally:
            _regain(lock, state)  # a handler may raise right before the first one


def _regain(lock: Any, state: tuple[int, int]) -> None:
    """Take the lock again, then raise what a handler raised meanwhile."""
    raised: BaseException | None = None
    while not lock._is_owned():
        try:
            lock._acquire_restore(state)
        except BaseException as error:  # noqa: PERF203
            raised = error
    if raised is not None:
        raise raised
