"""Views of the blocking JetStream and the objects that it returns, like their async twins.

Importing this module adds them to the twins that natsproto.testing knows.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jetstream
import jetstream.blocking
from jetstream import kv
from jetstream import objects as object_store
from jetstream.kv import watch as kv_watch
from jetstream.objects import watch as object_watch
from jetstream.pull import batch as fetching
from jetstream.pull import messages as consuming
from jetstream.push import api as pushing
from jetstream.subscribe import pull as pull_subscribe
from natsproto.testing.blocking_view import View, add_twins, view_of, viewed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from jetstream import ConsumerGroups, JetStream
    from natsproto.client import Client


class _Fetch:
    """The result of an async `fetch`: await it for a batch, or iterate over it."""

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


class _JetStreamView(View):
    def __getattr__(self, name: str) -> Any:
        if name == "fetch" and hasattr(self.inner, "iter_fetch"):
            return functools.partial(_Fetch, viewed(self.inner.fetch), self.iter_fetch)
        return super().__getattr__(name)


add_twins(
    [
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
        jetstream.Advisories,
        *(jetstream.DeadLetters, jetstream.DeadLetter),
        jetstream.StreamSnapshot,
        jetstream.StoredMsgs,
        *(jetstream.ConsumerGroups, jetstream.StaticGroup, jetstream.ElasticGroup),
        *(jetstream.GroupMember, jetstream.GroupMsg),
    ],
    _JetStreamView,
)


def jetstream_of(client: Client, **options: Any) -> JetStream:
    """Return JetStream on the client of a check, with the options of jetstream.JetStream.

    For the view of a blocking client, return the view of a blocking JetStream.
    """
    if isinstance(client, View):
        js: JetStream = view_of(jetstream.blocking.JetStream(client.inner, **options))
        return js
    return jetstream.JetStream(client, **options)


def groups_of(js: JetStream) -> ConsumerGroups:
    """Return the consumer groups of the JetStream of a check, which may be a view."""
    if isinstance(js, View):
        groups: ConsumerGroups = view_of(jetstream.blocking.ConsumerGroups(js.inner))
        return groups
    return jetstream.ConsumerGroups(js)
