"""The Port, which is the API's view of an adapter, and the blocking facades of the API.

The API is written once, as coroutines that await nothing but a Port and each other. An event loop
runs them directly. A blocking port never suspends: its `wait` returns when something has happened,
so `run_sync` runs a coroutine from start to end in one step.

A facade is the blocking counterpart of an asynchronous object. Its class has `inner` and `port`, is
called as `Facade(inner, port)`, and derives its methods from those of the inner class:

    class Subscription:
        drain = blocking(AsyncSubscription.drain)
    class Client:
        subscribe = blocking_to(Subscription, AsyncClient.subscribe)
"""

from __future__ import annotations

from .errors import InvalidState, NatsError

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

    from .connection.waitable import Waitable

    class FsPath(Protocol):
        """The path of a file; pathlib.Path is one."""

        def __fspath__(self) -> str: ...

    PathLike: TypeAlias = str | FsPath

    P = ParamSpec("P")
    R = TypeVar("R")
    S = TypeVar("S")
    Inner = TypeVar("Inner")
    Inner_co = TypeVar("Inner_co", covariant=True)

    class OpenFile(Protocol):
        """A file that is read in pieces."""

        @property
        def name(self) -> str:
            """The last part of the path."""
            ...

        async def read(self, size: int) -> bytes:
            """Return at most `size` bytes; b"" at the end."""
            ...

        def close(self) -> None:
            """Close the file."""
            ...

    class NewFile(Protocol):
        """A file that appears under its name with `commit`."""

        async def write(self, data: bytes) -> None:
            """Append data."""
            ...

        async def commit(self) -> None:
            """Close the file, and give it its name."""
            ...

        def discard(self) -> None:
            """Close and remove the file."""
            ...

    class Port(Protocol):
        """The methods that the API needs from an adapter."""

        def now(self) -> float:
            """Return the time in seconds from any origin; it never decreases.

            The API calls this before it queues anything, so a port can raise a NatsError here if
            the caller is on another event loop or in another process.
            """
            ...

        def ticks(self) -> float:
            """Return seconds from any origin, with a resolution that suits short durations.

            `now` may have the resolution of an event loop, which is a millisecond for some loops.
            """
            ...

        def utc_ns(self) -> int:
            """Return the nanoseconds since 1970 in UTC, for display; the value may decrease."""
            ...

        def wait(self, waitable: Waitable) -> Awaitable[None]:
            """Wait until the core reports the waitable as ready; may return too early.

            The caller awaits the result at once.
            """
            ...

        async def checkpoint(self) -> None:
            """Let other tasks run if their turn has come. The caller can be canceled here."""
            ...

        async def run_all(self, workers: list[Callable[[], Coroutine[Any, Any, None]]]) -> None:
            """Run all workers concurrently until they end; if canceled, cancel all of them."""
            ...

        def flush_soon(self) -> None:
            """Apply effects and send data after commands, at once or within this loop turn."""
            ...

        def run_soon(self, work: Callable[[], object]) -> None:
            """Call `work` where commands are allowed, then apply effects and send data.

            May be called from any thread at any moment, even in a finalizer. `work` must not wait
            and must not flush.
            """
            ...

        def warn(self, text: str) -> None:
            """Report that an object was dropped without being closed; from any thread."""
            ...

        async def open_file(self, path: PathLike) -> OpenFile:
            """Open a file for reading, without blocking the event loop; raise OSError."""
            ...

        async def create_file(self, path: PathLike, token: str) -> NewFile:
            """Create a file, with the token in its name until it is complete; raise OSError."""
            ...

        async def aclose(self) -> None:
            """Release everything: sockets, timers, tasks."""
            ...

    # Two underscores make a parameter positional-only for type checkers; MicroPython lacks `/`.

    class Lock(Protocol):
        """The lock that a facade holds during every call."""

        def __enter__(self) -> object: ...
        def __exit__(self, __kind: Any, __error: Any, __trace: Any) -> object: ...

    class BlockingPort(Port, Protocol):
        """A port that never suspends, with the additional methods that facades need."""

        async def wait(self, waitable: Waitable) -> None:
            """Wait until the core reports the waitable as ready; may return too early."""
            ...

        @property
        def alone(self) -> bool:
            """Whether nothing else uses the client, so that calls that never wait need no lock."""
            ...

        @property
        def joins(self) -> bool:
            """Whether an acknowledgment is only queued by a cork, and needs no lock."""
            ...

        @property
        def lock(self) -> Lock:
            """The lock around every call: one call at a time."""
            ...

        def pump_soon(self) -> None:
            """Do what is left to do: a signal handler has raised, perhaps before `flush_soon`.

            D-CLOCK-4: later publishes join those that are queued, and do not flush again.
            """
            ...

        def cork(self, token: object) -> None:
            """Hold back publishes until a call waits, or until `uncork`."""
            ...

        def uncork(self, token: object) -> None:
            """Remove a cork; removing the last one sends everything."""
            ...

    class Facade(Protocol[Inner_co]):
        """A blocking object: its asynchronous counterpart, and their port."""

        @property
        def inner(self) -> Inner_co:
            """The asynchronous object."""
            ...

        @property
        def port(self) -> BlockingPort:
            """The port of both."""
            ...


def run_sync(coroutine: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine to its end; raise InvalidState if it suspends: blocking ports never do."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: R = stop.value
        return result
    coroutine.close()
    raise InvalidState("coroutine was suspended: its port is not a blocking one")


def blocking(
    method: Callable[Concatenate[Inner, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Facade[Inner], P], R]:
    """Return the method of a facade that runs this coroutine method of its inner object."""

    def call(__self: Facade[Inner], *args: P.args, **kwargs: P.kwargs) -> R:
        with __self.port.lock:
            try:
                return run_sync(method(__self.inner, *args, **kwargs))
            except NatsError:
                raise
            except BaseException:
                __self.port.pump_soon()
                raise

    return _copy_metadata(call, method)


def blocking_to(
    make: Callable[[R, BlockingPort], S],
    method: Callable[Concatenate[Inner, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Facade[Inner], P], S]:
    """Return a method like `blocking` does, whose result is a facade: `make(result, port)`."""

    def call(__self: Facade[Inner], *args: P.args, **kwargs: P.kwargs) -> S:
        with __self.port.lock:
            return make(run_sync(method(__self.inner, *args, **kwargs)), __self.port)

    return _copy_metadata(call, method)


def blocking_unlocked(
    method: Callable[Concatenate[Inner, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Facade[Inner], P], R]:
    """Return a method like `blocking` does, for methods that run user code and lock themselves."""

    def call(__self: Facade[Inner], *args: P.args, **kwargs: P.kwargs) -> R:
        return run_sync(method(__self.inner, *args, **kwargs))

    return _copy_metadata(call, method)


def blocking_next(
    method: Callable[[Inner], Coroutine[Any, Any, R]],
) -> Callable[[Facade[Inner]], R]:
    """Return the `__next__` of a facade for the `__anext__` of its inner object."""

    def call(__self: Facade[Inner]) -> R:
        try:
            with __self.port.lock:
                return run_sync(method(__self.inner))
        except StopAsyncIteration:
            raise StopIteration from None

    return _copy_metadata(call, method)


def blocking_next_to(
    make: Callable[[R, BlockingPort], S], method: Callable[[Inner], Coroutine[Any, Any, R]]
) -> Callable[[Facade[Inner]], S]:
    """Return a `__next__` like `blocking_next` does, whose result is a facade."""

    def call(__self: Facade[Inner]) -> S:
        try:
            with __self.port.lock:
                return make(run_sync(method(__self.inner)), __self.port)
        except StopAsyncIteration:
            raise StopIteration from None

    return _copy_metadata(call, method)


def locked_to(
    make: Callable[[R, BlockingPort], S], method: Callable[Concatenate[Inner, P], R]
) -> Callable[Concatenate[Facade[Inner], P], S]:
    """Return a method that wraps the result of an ordinary method, not of a coroutine."""

    def call(__self: Facade[Inner], *args: P.args, **kwargs: P.kwargs) -> S:
        with __self.port.lock:
            return make(method(__self.inner, *args, **kwargs), __self.port)

    return _copy_metadata(call, method)


def _copy_metadata(call: R, method: object) -> R:
    """Copy name and docstring of the method to `call`, and its signature for `help`."""
    try:
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            setattr(call, name, getattr(method, name))
        call.__wrapped__ = method  # type: ignore[attr-defined]
    except AttributeError:
        pass  # functions of MicroPython have no attributes
    return call
