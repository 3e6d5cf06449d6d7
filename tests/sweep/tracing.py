"""Notes when public coroutines begin and end, however they are called.

While `tracing()` is active, each public coroutine that runs within a `Traced` is noted, including
those that other public coroutines call. A blocking client has no coroutines: its view in the tests
is noted instead, under the same names.
"""

from __future__ import annotations

import functools
import inspect
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from jetstream.testing import blocking_view as jetstream_view
from natsproto.testing.blocking_view import View
from tests.sweep.coroutines import coroutines_of, public_classes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterator


class Record:
    """One run of a public coroutine; a method that classes inherit has several names."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.began = time.monotonic()
        self.ended: float | None = None


class _Current(threading.local):
    records: list[Record] | None = None


_current = _Current()


class Traced:
    """Awaits something, and appends the public coroutines that run meanwhile to `records`."""

    def __init__(self, work: Awaitable[Any], records: list[Record]) -> None:
        self._work = work
        self._records = records

    def __await__(self) -> Generator[Any, Any, Any]:
        steps: Any = self._work.__await__()
        resume: Callable[[], Any] = functools.partial(next, steps)
        while True:
            before, _current.records = _current.records, self._records
            try:
                trap = resume()
            except StopIteration as end:
                return end.value
            finally:
                _current.records = before
            try:
                value = yield trap
            except BaseException as error:
                resume = functools.partial(steps.throw, error)
            else:
                resume = functools.partial(steps.send, value)


async def note(names: tuple[str, ...], work: Awaitable[Any]) -> Any:
    """Await something that counts as a public coroutine of these names."""
    if _current.records is None:
        return await work
    record = Record(names)
    _current.records.append(record)
    try:
        return await work
    finally:
        record.ended = time.monotonic()


def _noted(function: Any, names: tuple[str, ...]) -> Any:
    if function.__name__ != "__await__":

        @functools.wraps(function)
        async def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            return await note(names, function(self, *args, **kwargs))

        return call

    def iterate(self: Any) -> Any:
        return note(names, _Awaits(function(self))).__await__()

    return iterate


class _Awaits:
    def __init__(self, steps: Any) -> None:
        self._steps = steps

    def __await__(self) -> Any:
        return self._steps


def _definitions() -> dict[tuple[type, str], tuple[str, ...]]:
    """Return the public names of each method, by the class that defines it."""
    found: dict[tuple[type, str], tuple[str, ...]] = {}
    for cls in public_classes():
        for full in coroutines_of(cls):
            name = full.split(".")[1]
            home = next(each for each in cls.__mro__ if name in vars(each))
            found[home, name] = (*found.get((home, name), ()), full)
    return found


@contextmanager
def tracing() -> Iterator[None]:
    """Note the public coroutines that run within a `Traced`, and the calls of blocking clients."""
    with pytest.MonkeyPatch.context() as patch:
        for (home, name), names in _definitions().items():
            patch.setattr(home, name, _noted(vars(home)[name], names))
        _trace_views(patch)
        yield


def _trace_views(patch: pytest.MonkeyPatch) -> None:
    look_up = View.__getattr__

    def attribute(self: View, name: str) -> Any:
        value = look_up(self, name)
        if not inspect.iscoroutinefunction(value):
            return value
        return functools.partial(_call_view, (f"{self._twin.__name__}.{name}",), value)

    patch.setattr(View, "__getattr__", attribute)
    for name in ("__aenter__", "__aexit__", "__anext__"):
        patch.setattr(View, name, _view_method(name, vars(View)[name]))
    fetch = jetstream_view._Fetch
    patch.setattr(fetch, "_batch", _noted(vars(fetch)["_batch"], ("Fetch.__await__",)))


async def _call_view(
    names: tuple[str, ...], value: Callable[..., Any], *args: Any, **kw: Any
) -> Any:
    return await note(names, value(*args, **kw))


def _view_method(name: str, function: Any) -> Any:
    async def call(self: View, *args: Any) -> Any:
        return await note((f"{self._twin.__name__}.{name}",), function(self, *args))

    return call
