"""Workers: the common part of every `run(callback)`. A worker takes messages and calls back.

A worker makes one call after the other, so there are as many workers as concurrent calls are
allowed. On a loop they are tasks, elsewhere threads: `Port.run_all` runs them.
"""

from __future__ import annotations

from .errors import InvalidValue, LocalError
from .session import check_count
from .wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from .port import Lock, Port

    class Guard(Protocol):
        """Holds the lock that protects the core; it is never held during a callback."""

        @property
        def lock(self) -> Lock: ...


_MOST = 2**63 - 1  # int64


class NoLock:
    """The lock of a client with one thread, which needs none."""

    @property
    def lock(self) -> NoLock:
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass


class Workers:
    """The workers of one call of `run`, and their first error."""

    __slots__ = ("_failure",)
    rule = ""  # the rule about callbacks and their number, for errors

    def __init__(self) -> None:
        self._failure: Exception | None = None

    async def call_all(self) -> None:
        """Call the callback for each message, until there are no more."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Start no other call, and wake the workers that wait for a message."""
        raise NotImplementedError

    async def run(self, port: Port, concurrency: int) -> None:
        """Run all workers until they end, and raise the first error (RUN-5)."""
        check_count("concurrency", concurrency, 1, _MOST, self.rule)
        if concurrency == 1:
            await self.work()
        else:
            try:
                await port.run_all([self.work for _ in range(concurrency)])  # RUN-2
            except LocalError:
                raise  # D-RUN-9: the port runs one at a time, and none has begun
            except BaseException:
                await self.stop()  # D-RUN-6: not all workers may have begun
                raise
        if self._failure is not None:
            raise self._failure

    async def work(self) -> None:
        """Run one worker, which raises only cancellation, Ctrl-C and the like."""
        try:
            await self.call_all()
        except Exception as error:
            if self._failure is None:
                self._failure = error
            await self.stop()  # D-SUB-11, D-RUN-4
        except BaseException:
            await self.stop()
            raise


def check_callback(callback: object, rule: str, name: str = "callback") -> None:
    """Raise InvalidValue unless the callback can be called."""
    if not callable(callback):
        raise InvalidValue("%s %s cannot be called" % (name, shorten(callback)), rule)


def is_async(result: object) -> bool:
    """Return whether a result can be awaited; MicroPython's coroutines are generators."""
    return hasattr(result, "__await__") or hasattr(result, "send")


def check_async(result: object, callback: object, rule: str, name: str = "callback") -> type:
    """Return the class of a callback's result; raise InvalidValue unless it can be awaited."""
    if not is_async(result):
        text = "%s %s is not async: this client is"
        raise InvalidValue(text % (name, shorten(callback)), rule)
    return type(result)


def check_sync(result: object, callback: object, rule: str, name: str = "callback") -> None:
    """Raise InvalidValue if the result of a callback would have to be awaited."""
    if is_async(result):
        close: Callable[[], object] = getattr(result, "close", object)
        close()  # otherwise Python warns that it was never awaited
        text = "%s %s is async: this client is not"
        raise InvalidValue(text % (name, shorten(callback)), rule)
