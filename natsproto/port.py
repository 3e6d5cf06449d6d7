"""The Port: all that an adapter offers the API; and how coroutines run where nothing is async.

The API is written once, as coroutines that await nothing but a Port and each other. An event loop
runs them as they are. A blocking port never suspends: its `wait` returns when something happened,
so `run_sync` drives a coroutine from start to end in one step.

A facade is a blocking object that stands for an asynchronous one. Its class has `inner` and `port`,
is made as `Facade(inner, port)`, and gets its methods from those of the inner class:

    class Subscription:
        drain = blocking(AsyncSubscription.drain)
    class Client:
        subscribe = blocking_to(Subscription, AsyncClient.subscribe)
"""

from __future__ import annotations

from .errors import InvalidState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

    from .connection.waitable import Waitable

    P = ParamSpec("P")
    R = TypeVar("R")
    S = TypeVar("S")
    Inner = TypeVar("Inner")
    Inner_co = TypeVar("Inner_co", covariant=True)

    class Port(Protocol):
        """What the API needs of an adapter."""

        def now(self) -> float:
            """Seconds, from any origin, never going back.

            The API asks before it queues anything, so a port that is not for the caller's event
            loop or process can raise a NatsError here.
            """
            ...

        async def wait(self, waitable: Waitable) -> None:
            """Until the core reports it as ready. May return early: callers look again."""
            ...

        async def checkpoint(self) -> None:
            """Let others run for a moment; a place to be cancelled."""
            ...

        async def together(self, workers: list[Callable[[], Coroutine[Any, Any, None]]]) -> None:
            """Run all of them at the same time, to their ends; cancelled, cancel all of them."""
            ...

        def flush_soon(self) -> None:
            """Commands were given: carry out effects and send, at once or within this loop turn."""
            ...

        def run_soon(self, work: Callable[[], object]) -> None:
            """Call it where commands may be given, then carry out effects and send.

            Any thread may ask for that, at any moment, as in a finalizer. `work` itself waits for
            nothing and does not flush.
            """
            ...

        def warn(self, text: str) -> None:
            """Report that an object was dropped without being ended; from any thread."""
            ...

        async def aclose(self) -> None:
            """Give everything back: sockets, timers, tasks."""
            ...

    # Two underscores make a parameter positional-only for type checkers; MicroPython knows no `/`.

    class Lock(Protocol):
        """What a facade holds during every call."""

        def __enter__(self) -> object: ...
        def __exit__(self, __kind: Any, __error: Any, __trace: Any) -> object: ...

    class BlockingPort(Port, Protocol):
        """A port that never suspends, and what facades need besides."""

        @property
        def alone(self) -> bool:
            """Whether no other thread is at work here: what never waits needs no lock then."""
            ...

        @property
        def lock(self) -> Lock:
            """Around every call, whatever it waits for: one at a time."""
            ...

        def cork(self, token: object) -> None:
            """Send nothing but what somebody waits for, until `uncork` or the token's end."""
            ...

        def uncork(self, token: object) -> None:
            """Take the cork out; the last one lets everything go."""
            ...

    class Facade(Protocol[Inner_co]):
        """A blocking object: the asynchronous one that it stands for, and their port."""

        @property
        def inner(self) -> Inner_co: ...
        @property
        def port(self) -> BlockingPort: ...


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
    """The method of a facade that runs this coroutine method of its inner object."""

    def call(__self: Facade[Inner], *args: P.args, **kwargs: P.kwargs) -> R:
        with __self.port.lock:
            return run_sync(method(__self.inner, *args, **kwargs))

    return _dressed(call, method)


def blocking_to(
    make: Callable[[R, BlockingPort], S],
    method: Callable[Concatenate[Inner, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Facade[Inner], P], S]:
    """Likewise, where the result gets a facade of its own: `make(result, port)`."""

    def call(__self: Facade[Inner], *args: P.args, **kwargs: P.kwargs) -> S:
        with __self.port.lock:
            return make(run_sync(method(__self.inner, *args, **kwargs)), __self.port)

    return _dressed(call, method)


def blocking_unlocked(
    method: Callable[Concatenate[Inner, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Facade[Inner], P], R]:
    """Likewise, for a method that takes the lock by itself, since it also runs what is not ours."""

    def call(__self: Facade[Inner], *args: P.args, **kwargs: P.kwargs) -> R:
        return run_sync(method(__self.inner, *args, **kwargs))

    return _dressed(call, method)


def blocking_next(
    method: Callable[[Inner], Coroutine[Any, Any, R]],
) -> Callable[[Facade[Inner]], R]:
    """The `__next__` of a facade, for the `__anext__` of its inner object."""

    def call(__self: Facade[Inner]) -> R:
        try:
            with __self.port.lock:
                return run_sync(method(__self.inner))
        except StopAsyncIteration:
            raise StopIteration from None

    return _dressed(call, method)


def locked_to(
    make: Callable[[R, BlockingPort], S], method: Callable[Concatenate[Inner, P], R]
) -> Callable[Concatenate[Facade[Inner], P], S]:
    """Likewise, for a method that is no coroutine."""

    def call(__self: Facade[Inner], *args: P.args, **kwargs: P.kwargs) -> S:
        with __self.port.lock:
            return make(method(__self.inner, *args, **kwargs), __self.port)

    return _dressed(call, method)


def _dressed(call: R, method: object) -> R:
    """With the name and the docstring of the method, and for `help` its signature."""
    try:
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            setattr(call, name, getattr(method, name))
        call.__wrapped__ = method  # type: ignore[attr-defined]
    except AttributeError:
        pass  # MicroPython's functions have no attributes
    return call
