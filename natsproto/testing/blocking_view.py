"""A blocking client, subscription or event list, seen as its asynchronous twin.

The methods that are coroutines there are coroutines here as well, which do the blocking call and
never suspend. `natsproto.port.run_sync` is enough to run what awaits them.
"""

from __future__ import annotations

import inspect
from typing import Any

from natsproto.client import Client, Events
from natsproto.subscription import Subscription

_TWINS: dict[str, type] = {"Client": Client, "Events": Events, "Subscription": Subscription}


def view_of(inner: Any) -> Any:
    """The view, if it is one of those objects; else the object itself."""
    twin = _TWINS.get(type(inner).__name__)
    return inner if twin is None or isinstance(inner, twin) else _View(inner, twin)


class _View:
    def __init__(self, inner: Any, twin: type) -> None:
        self._inner = inner
        self._twin = twin

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if not inspect.iscoroutinefunction(getattr(self._twin, name, None)):
            return view_of(value)

        async def call(*args: Any, **kwargs: Any) -> Any:
            return view_of(value(*args, **kwargs))

        return call

    async def __aenter__(self) -> Any:
        return view_of(self._inner.__enter__())

    async def __aexit__(self, *exc: object) -> None:
        self._inner.__exit__(*exc)

    def __aiter__(self) -> _View:
        return self

    async def __anext__(self) -> Any:
        for item in self._inner:
            return item
        raise StopAsyncIteration

    def __repr__(self) -> str:
        return repr(self._inner)
