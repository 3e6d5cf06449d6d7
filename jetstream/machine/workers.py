"""CallbackRunner: what Messages.run does. Workers take a message and call, until there is none.

    take      waits for the next message of the consume(); None: it has ended
    call      the user's callback, in which anything may happen, `stop` and `drain` of this very
              consume() included
    on_error  called with the message and the error when a callback raises; the worker continues
    stop      once, when a callback fails without `on_error`, or that or the consume() does: nobody
              starts another callback then

A worker does one after the other, so as many workers as there may be callbacks at once. On a loop
they are tasks, elsewhere threads: the port runs them together. Only `take` and `stop` touch the
core; where facades have a lock, it is held for these two and never during a callback.
"""

from __future__ import annotations

from jetstream.schema.types import MOST_COUNT
from natsproto.errors import InvalidValue, LocalError, NatsError
from natsproto.session import check_count, check_flag
from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Concatenate, ParamSpec, Protocol, TypeVar

    from jetstream.message import JsMsg
    from natsproto.port import Lock, Port

    from .iteration import Iteration

    P = ParamSpec("P")
    Facade = TypeVar("Facade")

    class Guard(Protocol):
        """Whose lock is held around what touches the core."""

        @property
        def lock(self) -> Lock: ...


_WRONG_KIND = "D-RUN-1"


class NoLock:
    """The lock of a client with one thread, which needs none."""

    @property
    def lock(self) -> NoLock:
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass


class CallbackRunner:
    """One call of `run`: its workers, and the first error."""

    __slots__ = ("_call", "_guard", "_messages", "_nak", "_on_error", "failure")

    def __init__(
        self,
        messages: Iteration,
        call: Callable[[JsMsg], Awaitable[object]],
        nak: bool,
        guard: Guard,
        on_error: Callable[[JsMsg, Exception], Awaitable[object]] | None = None,
    ) -> None:
        self._messages = messages
        self._call = call
        self._nak = check_flag("nak", nak) or messages.nak_on_exit
        self._guard = guard
        self._on_error = on_error
        self.failure: Exception | None = None

    async def run(self, port: Port, concurrency: int) -> None:
        """Run all workers to their end, and raise the first error."""
        check_count("concurrency", concurrency, 1, MOST_COUNT, "PULL-3")
        if concurrency == 1:
            await self.work()
        else:
            await self._work_together(port, concurrency)
        if self.failure is not None:
            raise self.failure  # RUN-5

    async def _work_together(self, port: Port, concurrency: int) -> None:
        try:
            await port.run_all([self.work for _ in range(concurrency)])  # RUN-2
        except LocalError:
            raise  # D-RUN-9: refused, and nothing was begun
        except BaseException:
            await self._stop()  # not all of them may have begun (D-RUN-6)
            raise

    async def work(self) -> None:
        """Run one worker, which raises only cancellation, Ctrl-C and the like."""
        try:
            while True:
                msg = await self._take()
                if msg is None:  # RUN-3
                    return
                await self._handle(msg)
        except Exception as error:
            if self.failure is None:
                self.failure = error
            await self._stop()  # D-RUN-4: those who wait for a message are woken by that
        except BaseException:
            await self._stop()
            raise

    async def _handle(self, msg: JsMsg) -> None:
        try:
            await self._call(msg)  # D-RUN-7
        except Exception as error:
            # D-RUN-10. A callback of the wrong kind would fail for each message: that ends it.
            if self._on_error is None or getattr(error, "rule", "") == _WRONG_KIND:
                raise
            await self._on_error(msg, error)  # D-RUN-11

    async def _take(self) -> JsMsg | None:
        with self._guard.lock:
            try:
                return await self._messages.__anext__()
            except StopAsyncIteration:
                return None

    async def _stop(self) -> None:
        try:
            with self._guard.lock:
                await self._messages.stop(nak=self._nak)
        except NatsError:
            pass  # nobody can be told any more; what was not given back comes again by itself


def check_callback(callback: object, name: str = "callback") -> None:
    """Raise InvalidValue unless the callback can be called."""
    if not callable(callback):
        raise InvalidValue("%s %s cannot be called" % (name, shorten(callback)), _WRONG_KIND)


def is_async(result: object) -> bool:
    """Return whether a result can be awaited; MicroPython's coroutines are generators."""
    return hasattr(result, "__await__") or hasattr(result, "send")


def async_call(
    callback: Callable[P, Awaitable[object]], name: str = "callback"
) -> Callable[P, Awaitable[object]]:
    """Return the callback, as a function that raises if the result cannot be awaited."""
    check_callback(callback, name)

    def call(*args: P.args, **kwargs: P.kwargs) -> Awaitable[object]:
        result = callback(*args, **kwargs)
        if not is_async(result):
            text = "%s %s is not async: this client is"
            raise InvalidValue(text % (name, shorten(callback)), _WRONG_KIND)
        return result

    return call


def sync_call(
    callback: Callable[Concatenate[Facade, P], object],
    make: Callable[[JsMsg], Facade],
    name: str = "callback",
) -> Callable[Concatenate[JsMsg, P], Awaitable[object]]:
    """Return an async function that calls a plain callback with a facade of the message."""
    check_callback(callback, name)

    async def call(__msg: JsMsg, *args: P.args, **kwargs: P.kwargs) -> None:
        result = callback(make(__msg), *args, **kwargs)
        if is_async(result):
            text = "%s %s is async: this client is not"
            raise InvalidValue(text % (name, shorten(callback)), _WRONG_KIND)

    return call
