"""Views of blocking clients, subscriptions and events that look like their async twins.

Methods that are coroutines in the async twin are coroutines in the view: they make the blocking
call and never suspend, so `natsproto.port.run_sync` can run them. Other packages add the twins of
their own blocking classes with `add_twins`.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from natsproto.client import Client, Events
from natsproto.port import run_sync
from natsproto.replies import Replies
from natsproto.subscription import Subscription

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


#: By the name that a blocking class shares with its twin: the twin, and the class of the view.
_twins: dict[str, tuple[type, type[View]]] = {}


def view_of(inner: Any) -> Any:
    """Return a view of the object, a list of views for a list, or the object if it has no twin."""
    if type(inner) is list:
        return [view_of(each) for each in inner]  # pyright: ignore[reportUnknownVariableType]
    known = _twins.get(type(inner).__name__)
    if known is None:
        return inner
    twin, view = known
    return view(inner, twin)


def _plain(argument: Any) -> Any:
    """Return a blocking callback for an async one, the object of a view, or the argument itself."""
    if isinstance(argument, View):
        return argument.inner
    if not inspect.iscoroutinefunction(argument):
        return argument

    def call(*args: Any) -> Any:
        return run_sync(argument(*[view_of(arg) for arg in args]))

    return call


def _plain_all(keywords: dict[str, Any]) -> dict[str, Any]:
    return {name: _plain(argument) for name, argument in keywords.items()}


def viewed(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a blocking method to take views and async callbacks and to return a view."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return view_of(method(*[_plain(arg) for arg in args], **_plain_all(kwargs)))

    return call


class View:
    """A blocking object with the methods of its async twin."""

    def __init__(self, inner: Any, twin: type) -> None:
        self.inner = inner
        self._twin = twin

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.inner, name)
        if not inspect.ismethod(value):
            return view_of(value)
        call = viewed(value)

        async def async_call(*args: Any, **kwargs: Any) -> Any:
            return call(*args, **kwargs)

        return async_call if inspect.iscoroutinefunction(getattr(self._twin, name)) else call

    async def __aenter__(self) -> Any:
        return view_of(self.inner.__enter__())

    async def __aexit__(self, *exc: object) -> None:
        self.inner.__exit__(*exc)

    def __aiter__(self) -> View:
        return type(self)(iter(self.inner), self._twin)

    async def __anext__(self) -> Any:
        for item in self.inner:
            return view_of(item)
        raise StopAsyncIteration

    def __iter__(self) -> Iterator[Any]:
        return iter([view_of(item) for item in self.inner])

    def __len__(self) -> int:
        return len(self.inner)

    def __getitem__(self, index: int) -> Any:
        return view_of(self.inner[index])

    def __repr__(self) -> str:
        return repr(self.inner)


def add_twins(twins: Iterable[type], view: type[View] = View) -> None:
    """Register async classes whose blocking namesakes are wrapped in this view class."""
    _twins.update({twin.__name__: (twin, view) for twin in twins})


add_twins([Client, Events, Replies, Subscription])
