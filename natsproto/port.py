"""The Port: all that an adapter offers the API; and how coroutines run where nothing is async.

The API is written once, as coroutines that await nothing but a Port and each other. An event loop
runs them as they are. A blocking port never suspends: its `wait` returns when something happened,
so `run_sync` drives a coroutine from start to end in one step.
"""

from __future__ import annotations

from .errors import InvalidState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

    from .waitable import Waitable

    P = ParamSpec("P")
    R = TypeVar("R")
    Inner = TypeVar("Inner")

    class Lock(Protocol):
        def __enter__(self) -> object: ...
        def __exit__(self, *exc: object) -> object: ...

    class Port(Protocol):
        """What the API needs of an adapter."""

        def now(self) -> float:
            """Seconds, from any origin, never going back."""
            ...

        async def wait(self, waitable: Waitable) -> None:
            """Until the core reports it as ready. May return early: callers look again."""
            ...

        async def checkpoint(self) -> None:
            """Let others run for a moment; a place to be cancelled."""
            ...

        def flush_soon(self) -> None:
            """Commands were given: carry out effects and send, at once or within this loop turn."""
            ...

        async def aclose(self) -> None:
            """Give everything back: sockets, timers, tasks."""
            ...

    class Facade(Protocol[Inner]):
        """A blocking object: the asynchronous one that it stands for, and the port's lock."""

        _inner: Inner
        _lock: Lock


def run_sync(coroutine: Coroutine[Any, Any, R]) -> R:
    """Run it to its end; InvalidState if it suspends, which a blocking port never does."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: R = stop.value
        return result
    coroutine.close()
    raise InvalidState("a coroutine suspended: its port is not a blocking one")


def blocking(
    method: Callable[Concatenate[Inner, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Facade[Inner], P], R]:
    """The method of a blocking facade that runs this coroutine method of its inner object."""

    # Two underscores make it positional-only for type checkers; MicroPython does not know `/`.
    def call(__self: Facade[Inner], *args: P.args, **kwargs: P.kwargs) -> R:
        with __self._lock:
            return run_sync(method(__self._inner, *args, **kwargs))

    call.__name__ = method.__name__
    call.__doc__ = method.__doc__
    return call
