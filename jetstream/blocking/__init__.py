"""JetStream without async and await, on a client of natsproto.adapters.blocking or .threads.

Names and semantics are those of the asynchronous API: each class is a facade of an asynchronous one
(see natsproto/port.py). `python -m tests.facades` writes the stubs of this package.
"""

from __future__ import annotations

from jetstream import consumer as _consumer
from jetstream import context as _api
from jetstream import stream as _stream
from jetstream.publish import atomic as _batch
from jetstream.publish import fast as _fast
from jetstream.publish import window as _window
from jetstream.publish import window_machine as _publisher
from natsproto.blocking import Client
from natsproto.errors import InvalidValue
from natsproto.lazy import lazy_names
from natsproto.port import blocking, blocking_to, locked_to
from natsproto.wire.text import shorten

from .ordered import OrderedConsumer as OrderedConsumer
from .pull import Batch as Batch
from .pull import Fetch as Fetch
from .pull import JsMsg as JsMsg
from .pull import Messages as Messages
from .pull import PullEvents as PullEvents
from .pull import PullSubscription as PullSubscription
from .pull import facade_or_none
from .push import PushEvents as PushEvents
from .push import PushMessages as PushMessages

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.events import Loss
    from jetstream.kv import store as _kv
    from jetstream.objects import store as _objects
    from jetstream.schema.info import ConsumerInfo, PubAck, StreamInfo
    from natsproto.errors import NatsError
    from natsproto.port import BlockingPort

    from .kv import InitialEntries as InitialEntries
    from .kv import KeyLister as KeyLister
    from .kv import KeyValue as KeyValue
    from .kv import KeyWatcher as KeyWatcher
    from .objects import InitialObjects as InitialObjects
    from .objects import ObjectReader as ObjectReader
    from .objects import ObjectStore as ObjectStore
    from .objects import ObjectWatcher as ObjectWatcher
else:
    _HOMES = {
        "InitialEntries": "kv",
        "InitialObjects": "objects",
        "KeyLister": "kv",
        "KeyValue": "kv",
        "KeyWatcher": "kv",
        "ObjectReader": "objects",
        "ObjectStore": "objects",
        "ObjectWatcher": "objects",
    }
    __getattr__ = lazy_names("jetstream.blocking", _HOMES, globals())

__all__ = [
    "AtomicBatch",
    "Batch",
    "BoundConsumer",
    "Consumer",
    "FastBatch",
    "Fetch",
    "InitialEntries",
    "InitialObjects",
    "JetStream",
    "JsMsg",
    "KeyLister",
    "KeyValue",
    "KeyWatcher",
    "Messages",
    "ObjectReader",
    "ObjectStore",
    "ObjectWatcher",
    "OrderedConsumer",
    "Publication",
    "PublishWindow",
    "PullEvents",
    "PullSubscription",
    "PushEvents",
    "PushMessages",
    "Stream",
]


def __dir__() -> list[str]:
    return __all__


class BoundConsumer:
    """A consumer by its name, without a lookup. Returned by JetStream.bind_consumer."""

    def __init__(self, inner: _consumer.BoundConsumer, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    @property
    def name(self) -> str:
        """The name of the consumer."""
        return self.inner.name

    @property
    def stream(self) -> str:
        """The name of its stream."""
        return self.inner.stream

    @property
    def cached_info(self) -> ConsumerInfo | None:
        """The info that the last call returned; None before the first `info`."""
        return self.inner.cached_info

    info = blocking(_consumer.BoundConsumer.info)
    delete = blocking(_consumer.BoundConsumer.delete)
    fetch = blocking_to(Batch, _consumer.BoundConsumer.fetch)
    iter_fetch = locked_to(Fetch, _consumer.BoundConsumer.iter_fetch)
    next = blocking_to(facade_or_none, _consumer.BoundConsumer.next)
    consume = locked_to(Messages, _consumer.BoundConsumer.consume)

    def __repr__(self) -> str:
        return repr(self.inner)


class Consumer(BoundConsumer):
    """A consumer. Returned by methods of JetStream and Stream."""

    def __init__(self, inner: _consumer.Consumer, port: BlockingPort) -> None:
        super().__init__(inner, port)
        self._consumer = inner

    @property
    def cached_info(self) -> ConsumerInfo:
        """The info that the last call returned."""
        return self._consumer.cached_info


class Stream:
    """A stream. Returned by methods of JetStream."""

    def __init__(self, inner: _stream.Stream, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    @property
    def name(self) -> str:
        """The name of the stream."""
        return self.inner.name

    @property
    def cached_info(self) -> StreamInfo:
        """The info that the last call returned."""
        return self.inner.cached_info

    info = blocking(_stream.Stream.info)
    purge = blocking(_stream.Stream.purge)
    get_msg = blocking(_stream.Stream.get_msg)
    get_msgs = blocking(_stream.Stream.get_msgs)
    get_last_msgs = blocking(_stream.Stream.get_last_msgs)
    get_counter = blocking(_stream.Stream.get_counter)
    get_counters = blocking(_stream.Stream.get_counters)
    delete_msg = blocking(_stream.Stream.delete_msg)
    delete = blocking(_stream.Stream.delete)
    create_consumer = blocking_to(Consumer, _stream.Stream.create_consumer)
    update_consumer = blocking_to(Consumer, _stream.Stream.update_consumer)
    create_or_update_consumer = blocking_to(Consumer, _stream.Stream.create_or_update_consumer)
    consumer = blocking_to(Consumer, _stream.Stream.consumer)
    bind_consumer = locked_to(BoundConsumer, _stream.Stream.bind_consumer)
    ordered_consumer = blocking_to(OrderedConsumer, _stream.Stream.ordered_consumer)
    delete_consumer = blocking(_stream.Stream.delete_consumer)
    consumers = blocking(_stream.Stream.consumers)
    consumer_names = blocking(_stream.Stream.consumer_names)
    pause_consumer = blocking(_stream.Stream.pause_consumer)
    resume_consumer = blocking(_stream.Stream.resume_consumer)
    reset_consumer = blocking(_stream.Stream.reset_consumer)
    unpin_consumer = blocking(_stream.Stream.unpin_consumer)

    def __repr__(self) -> str:
        return repr(self.inner)


class Publication:
    """A publish in progress."""

    __slots__ = ("inner", "port")

    def __init__(self, inner: _publisher.Publication, port: BlockingPort) -> None:
        self.inner: _publisher.Publication = inner
        self.port: BlockingPort = port

    @property
    def subject(self) -> str:
        """The subject of the message."""
        return self.inner.subject

    @property
    def done(self) -> bool:
        """Whether the publish was acknowledged or has failed."""
        return self.inner.done

    @property
    def ack(self) -> PubAck | None:
        """The acknowledgment, once it is `done` without an `error`."""
        return self.inner.ack

    @property
    def error(self) -> NatsError | None:
        """The error, if it failed."""
        return self.inner.error

    result = blocking(_publisher.Publication.result)

    def __repr__(self) -> str:
        return repr(self.inner)


class PublishWindow:
    """Publishes that are acknowledged asynchronously. Returned by JetStream.publisher."""

    def __init__(self, inner: _window.PublishWindow, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    def __repr__(self) -> str:
        return repr(self.inner)

    @property
    def pending(self) -> int:
        """The number of publishes without an acknowledgment."""
        return self.inner.pending

    publish = blocking_to(Publication, _window.PublishWindow.publish)
    flush = blocking(_window.PublishWindow.flush)
    close = blocking(_window.PublishWindow.close)
    _exit = blocking(_window.PublishWindow.__aexit__)

    def abandon(self) -> None:
        """End the window without waiting; publishes without an acknowledgment fail."""
        with self.port.lock:
            self.inner.abandon()

    def __enter__(self) -> PublishWindow:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        self._exit(kind, *exc)


class AtomicBatch:
    """Messages that a stream stores all or none of. Returned by JetStream.atomic_batch."""

    def __init__(self, inner: _batch.AtomicBatch, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    def __repr__(self) -> str:
        return repr(self.inner)

    @property
    def size(self) -> int:
        """Number of messages that were added."""
        return self.inner.size

    add = blocking(_batch.AtomicBatch.add)
    commit = blocking(_batch.AtomicBatch.commit)


class FastBatch:
    """Messages that a stream stores in order as they arrive. Returned by JetStream.fast_batch."""

    def __init__(self, inner: _fast.FastBatch, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    @property
    def size(self) -> int:
        """Number of messages that were added."""
        return self.inner.size

    @property
    def stored(self) -> int:
        """Number of leading messages acknowledged as stored, minus those in `take_losses`."""
        return self.inner.stored

    @property
    def lost(self) -> int:
        """Number of messages that were lost or rejected, as far as the server has reported."""
        return self.inner.lost

    def take_losses(self) -> list[Loss]:
        """Return the losses that were reported since the last call."""
        with self.port.lock:
            return self.inner.take_losses()

    add = blocking(_fast.FastBatch.add)
    add_encoded = blocking(_fast.FastBatch.add_encoded)
    commit = blocking(_fast.FastBatch.commit)
    close = blocking(_fast.FastBatch.close)
    _exit = blocking(_fast.FastBatch.__aexit__)

    def __enter__(self) -> FastBatch:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        self._exit(kind, *exc)


def _bucket(inner: _kv.KeyValue, port: BlockingPort) -> KeyValue:
    # Imported on use: many programs have no buckets.
    from .kv import KeyValue

    return KeyValue(inner, port)


def _object_store(inner: _objects.ObjectStore, port: BlockingPort) -> ObjectStore:
    from .objects import ObjectStore

    return ObjectStore(inner, port)


class JetStream:  # D-CALL-14
    """JetStream in the account of a client, or in another one by `domain` or `prefix`."""

    def __init__(
        self, client: Client, *, domain: str = "", prefix: str = "$JS.API", timeout: float = 5.0
    ) -> None:
        if not isinstance(client, Client):
            raise InvalidValue(
                "%s is not a client of natsproto.adapters.blocking or .threads; for others, use"
                " jetstream.JetStream" % shorten(client)
            )
        self.inner: _api.JetStream = _api.JetStream(
            client.inner, domain=domain, prefix=prefix, timeout=timeout
        )
        self.port: BlockingPort = client.port

    def __repr__(self) -> str:
        return repr(self.inner)

    account_info = blocking(_api.JetStream.account_info)
    create_stream = blocking_to(Stream, _api.JetStream.create_stream)
    update_stream = blocking_to(Stream, _api.JetStream.update_stream)
    create_or_update_stream = blocking_to(Stream, _api.JetStream.create_or_update_stream)
    stream = blocking_to(Stream, _api.JetStream.stream)
    delete_stream = blocking(_api.JetStream.delete_stream)
    streams = blocking(_api.JetStream.streams)
    stream_names = blocking(_api.JetStream.stream_names)
    stream_name_by_subject = blocking(_api.JetStream.stream_name_by_subject)
    create_consumer = blocking_to(Consumer, _api.JetStream.create_consumer)
    update_consumer = blocking_to(Consumer, _api.JetStream.update_consumer)
    create_or_update_consumer = blocking_to(Consumer, _api.JetStream.create_or_update_consumer)
    consumer = blocking_to(Consumer, _api.JetStream.consumer)
    bind_consumer = locked_to(BoundConsumer, _api.JetStream.bind_consumer)
    delete_consumer = blocking(_api.JetStream.delete_consumer)
    consumers = blocking(_api.JetStream.consumers)
    consumer_names = blocking(_api.JetStream.consumer_names)
    pause_consumer = blocking(_api.JetStream.pause_consumer)
    resume_consumer = blocking(_api.JetStream.resume_consumer)
    reset_consumer = blocking(_api.JetStream.reset_consumer)
    unpin_consumer = blocking(_api.JetStream.unpin_consumer)
    create_key_value = blocking_to(_bucket, _api.JetStream.create_key_value)
    update_key_value = blocking_to(_bucket, _api.JetStream.update_key_value)
    create_or_update_key_value = blocking_to(_bucket, _api.JetStream.create_or_update_key_value)
    key_value = blocking_to(_bucket, _api.JetStream.key_value)
    delete_key_value = blocking(_api.JetStream.delete_key_value)
    key_value_names = blocking(_api.JetStream.key_value_names)
    key_values = blocking(_api.JetStream.key_values)
    create_object_store = blocking_to(_object_store, _api.JetStream.create_object_store)
    update_object_store = blocking_to(_object_store, _api.JetStream.update_object_store)
    create_or_update_object_store = blocking_to(
        _object_store, _api.JetStream.create_or_update_object_store
    )
    object_store = blocking_to(_object_store, _api.JetStream.object_store)
    delete_object_store = blocking(_api.JetStream.delete_object_store)
    object_store_names = blocking(_api.JetStream.object_store_names)
    object_stores = blocking(_api.JetStream.object_stores)
    subscribe = blocking_to(PushMessages, _api.JetStream.subscribe)
    pull_subscribe = blocking_to(PullSubscription, _api.JetStream.pull_subscribe)
    publish = blocking(_api.JetStream.publish)
    add_to_counter = blocking(_api.JetStream.add_to_counter)
    schedule = blocking(_api.JetStream.schedule)

    def publisher(
        self, *, max_pending: int = 1000, ack_timeout: float | None = None, retries: int = 2
    ) -> PublishWindow:
        """Return a window of publishes: `with js.publisher() as window`."""
        with self.port.lock:
            inner = self.inner.publisher(
                max_pending=max_pending, ack_timeout=ack_timeout, retries=retries
            )
            return PublishWindow(inner, self.port)

    def atomic_batch(self, *, timeout: float | None = None) -> AtomicBatch:
        """Return a batch of messages of which the stream stores all or none."""
        with self.port.lock:
            return AtomicBatch(self.inner.atomic_batch(timeout=timeout), self.port)

    def fast_batch(
        self,
        *,
        allow_gaps: bool = False,
        flow: int = 500,
        max_acks: int = 2,
        ack_timeout: float | None = None,
    ) -> FastBatch:
        """Return a batch for fast ingestion: `with js.fast_batch() as batch`."""
        with self.port.lock:
            inner = self.inner.fast_batch(
                allow_gaps=allow_gaps, flow=flow, max_acks=max_acks, ack_timeout=ack_timeout
            )
            return FastBatch(inner, self.port)
