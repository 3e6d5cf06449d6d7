"""A blocking client, subscription or event list, or a blocking JetStream, seen as its async twin.

The methods that are coroutines there are coroutines here as well, which do the blocking call and
never suspend. `natsproto.port.run_sync` is enough to run what awaits them.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from natsproto.client import Client, Events
from natsproto.port import run_sync
from natsproto.subscription import Subscription

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from jetstream import JetStream


@functools.cache
def _twins() -> dict[str, type]:
    # Imported here: natsproto does without JetStream.
    import jetstream
    from jetstream import kv
    from jetstream import objects as object_store
    from jetstream.kv import watch as kv_watch
    from jetstream.objects import watch as object_watch
    from jetstream.pull import batch as fetching
    from jetstream.pull import messages as consuming
    from jetstream.push import api as pushing
    from jetstream.subscribe import pull as pull_subscribe

    twins = [
        *(Client, Events, Subscription),
        *(jetstream.JetStream, jetstream.Stream, jetstream.Consumer, jetstream.JsMsg),
        *(jetstream.BoundConsumer, fetching.Fetch),
        jetstream.OrderedConsumer,
        *(jetstream.PublishWindow, jetstream.Publication),
        *(jetstream.AtomicBatch, jetstream.FastBatch),
        *(consuming.Batch, consuming.Messages, consuming.PullEvents),
        *(pushing.PushMessages, pushing.PushEvents, pull_subscribe.PullSubscription),
        *(kv.KeyValue, kv.KeyWatcher, kv.KeyLister, kv_watch.InitialEntries),
        *(object_store.ObjectStore, object_store.ObjectReader, object_store.ObjectWatcher),
        object_watch.InitialObjects,
    ]
    return {twin.__name__: twin for twin in twins}


def view_of(inner: Any) -> Any:
    """The view, if it is one of those objects, or a list of them; else the object itself."""
    if type(inner) is list:
        return [view_of(each) for each in inner]  # pyright: ignore[reportUnknownVariableType]
    twin = _twins().get(type(inner).__name__)
    return inner if twin is None else _View(inner, twin)


def jetstream_of(client: Client, **options: Any) -> JetStream:
    """JetStream on this client; for the view of a blocking client the view of a blocking one."""
    import jetstream
    import jetstream.blocking

    if isinstance(client, _View):
        js: JetStream = view_of(jetstream.blocking.JetStream(client.inner, **options))
        return js
    return jetstream.JetStream(client, **options)


def _plain(argument: Any) -> Any:
    """A callback of a check, which is async, as a blocking object wants it; a view's object."""
    if isinstance(argument, _View):
        return argument.inner
    if not inspect.iscoroutinefunction(argument):
        return argument

    def call(*args: Any) -> Any:
        return run_sync(argument(*[view_of(arg) for arg in args]))

    return call


def _plain_all(keywords: dict[str, Any]) -> dict[str, Any]:
    return {name: _plain(argument) for name, argument in keywords.items()}


class _Fetch:
    """What `fetch` returns where it is async: awaited it is a batch, and it can be iterated."""

    def __init__(
        self, fetch: Callable[..., Any], iterate: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> None:
        self._iterate = functools.partial(iterate, *args, **kwargs)
        self._fetch = functools.partial(fetch, *args, **kwargs)

    async def _batch(self) -> Any:
        return self._fetch()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._batch().__await__()

    def send(self, value: Any) -> Any:
        return self._batch().send(value)

    def __aiter__(self) -> Any:
        return self._iterate()


class _View:
    def __init__(self, inner: Any, twin: type) -> None:
        self.inner = inner
        self._twin = twin

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.inner, name)
        if not inspect.ismethod(value):
            return view_of(value)

        def call(*args: Any, **kwargs: Any) -> Any:
            return view_of(value(*[_plain(arg) for arg in args], **_plain_all(kwargs)))

        if name == "fetch" and hasattr(self.inner, "iter_fetch"):
            return functools.partial(_Fetch, call, self.iter_fetch)

        async def async_call(*args: Any, **kwargs: Any) -> Any:
            return call(*args, **kwargs)

        return async_call if inspect.iscoroutinefunction(getattr(self._twin, name)) else call

    async def __aenter__(self) -> Any:
        return view_of(self.inner.__enter__())

    async def __aexit__(self, *exc: object) -> None:
        self.inner.__exit__(*exc)

    def __aiter__(self) -> _View:
        return _View(iter(self.inner), self._twin)

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
