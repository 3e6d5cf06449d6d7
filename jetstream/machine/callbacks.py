"""CallbackRunner: the workers of Messages.run.

    take      waits for the next message of the consume(); None: it has ended
    call      the user's callback, in which anything may happen, including `stop` and `drain` of
          this very consume()
    on_error  called with the message and the error when a callback raises; the worker continues
    stop      once, when a callback fails without `on_error`, or `on_error` or the consume() fails:
              no worker begins another call then

Only `take` and `stop` touch the core; where facades have a lock, it is held for these two.
"""

from __future__ import annotations

from natsproto.errors import NatsError
from natsproto.session import check_flag
from natsproto.workers import Workers, check_async, check_callback, check_sync

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Concatenate, ParamSpec, TypeVar

    from jetstream.message import JsMsg
    from natsproto.workers import Guard

    from .iteration import Iteration

    P = ParamSpec("P")
    Facade = TypeVar("Facade")

_WRONG_KIND = "D-RUN-1"


class CallbackRunner(Workers):
    """One call of `run`."""

    __slots__ = ("_call", "_guard", "_messages", "_nak", "_on_error")
    rule = _WRONG_KIND

    def __init__(
        self,
        messages: Iteration,
        call: Callable[[JsMsg], Awaitable[object]],
        nak: bool,
        guard: Guard,
        on_error: Callable[[JsMsg, Exception], Awaitable[object]] | None = None,
    ) -> None:
        super().__init__()
        self._messages = messages
        self._call = call
        self._nak = check_flag("nak", nak) or messages.nak_on_exit
        self._guard = guard
        self._on_error = on_error

    async def call_all(self) -> None:
        """Call the callback for each message, until the consume() has ended (RUN-3)."""
        while True:
            msg = await self._take()
            if msg is None:
                return
            await self._handle(msg)

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

    async def stop(self) -> None:
        """Start no other call, and end the consume()."""
        try:
            with self._guard.lock:
                await self._messages.stop(nak=self._nak)
        except NatsError:
            pass  # no caller is left to raise to; messages that were not returned are redelivered


def async_call(
    callback: Callable[P, Awaitable[object]], name: str = "callback"
) -> Callable[P, Awaitable[object]]:
    """Return a function that calls the callback, and raises if its result cannot be awaited."""
    check_callback(callback, _WRONG_KIND, name)

    def call(*args: P.args, **kwargs: P.kwargs) -> Awaitable[object]:
        result = callback(*args, **kwargs)
        check_async(result, callback, _WRONG_KIND, name)
        return result

    return call


def sync_call(
    callback: Callable[Concatenate[Facade, P], object],
    make: Callable[[JsMsg], Facade],
    name: str = "callback",
) -> Callable[Concatenate[JsMsg, P], Awaitable[object]]:
    """Return an async function that calls a plain callback with a facade of the message."""
    check_callback(callback, _WRONG_KIND, name)

    async def call(__msg: JsMsg, *args: P.args, **kwargs: P.kwargs) -> None:
        check_sync(callback(make(__msg), *args, **kwargs), callback, _WRONG_KIND, name)

    return call
