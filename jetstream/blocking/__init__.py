"""JetStream without async and await, on a client of natsproto.adapters.blocking or .threads.

Names and semantics are those of the asynchronous API: each class is a facade of an asynchronous one
(see natsproto/port.py). `python -m tests.facades` writes the stubs of this package.
"""

from __future__ import annotations

from jetstream import context as _api
from jetstream.api.hints import JETSTREAM
from jetstream.streams import consumer as _consumer
from jetstream.streams import stream as _stream
from natsproto.blocking import Client
from natsproto.errors import InvalidValue
from natsproto.hinting import lazy_hints
from natsproto.hints import no_attribute
from natsproto.lazy import lazy_names
from natsproto.port import blocking, blocking_to, locked_to
from natsproto.wire.text import shorten

from .ordered import OrderedConsumer as OrderedConsumer
from .publish import AtomicBatch as AtomicBatch
from .publish import FastBatch as FastBatch
from .publish import Publication as Publication
from .publish import PublishWindow as PublishWindow
from .pull import Batch as Batch
from .pull import Fetch as Fetch
from .pull import JsMsg as JsMsg
from .pull import Messages as Messages
from .pull import PullEvents as PullEvents
from .pull import PullSubscription as PullSubscription
from .pull import facade_or_none
from .push import PushEvents as PushEvents
from .push import PushMessages as PushMessages
from .stored import StoredMsgs as StoredMsgs

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.advisories import api as _advisories
    from jetstream.dead_letters import api as _dead_letters
    from jetstream.kv import store as _kv
    from jetstream.objects import store as _objects
    from jetstream.schema.consumer_info import ConsumerInfo
    from jetstream.schema.stream_info import StreamInfo
    from jetstream.streams import snapshot as _backup
    from natsproto.durations import Seconds
    from natsproto.port import BlockingPort

    from .advisories import Advisories as Advisories
    from .backup import StreamSnapshot as StreamSnapshot
    from .dead_letters import DeadLetter as DeadLetter
    from .dead_letters import DeadLetters as DeadLetters
    from .endpoints import Endpoint as Endpoint
    from .endpoints import EndpointGroup as EndpointGroup
    from .endpoints import EndpointRequests as EndpointRequests
    from .endpoints import ServiceRequest as ServiceRequest
    from .groups import ConsumerGroups as ConsumerGroups
    from .groups import ElasticGroup as ElasticGroup
    from .groups import GroupMember as GroupMember
    from .groups import GroupMsg as GroupMsg
    from .groups import StaticGroup as StaticGroup
    from .kv import InitialEntries as InitialEntries
    from .kv import KeyLister as KeyLister
    from .kv import KeyValue as KeyValue
    from .kv import KeyWatcher as KeyWatcher
    from .objects import InitialObjects as InitialObjects
    from .objects import ObjectReader as ObjectReader
    from .objects import ObjectStore as ObjectStore
    from .objects import ObjectWatcher as ObjectWatcher
    from .services import Service as Service
    from .services import ServiceEvents as ServiceEvents
    from .services import Services as Services
    from .services import add_auth_callout as add_auth_callout
    from .services import add_service as add_service
else:
    _HOMES = """
        advisories: Advisories
        backup: StreamSnapshot
        dead_letters: DeadLetter DeadLetters
        endpoints: Endpoint EndpointGroup EndpointRequests ServiceRequest
        groups: ConsumerGroups ElasticGroup GroupMember GroupMsg StaticGroup
        kv: InitialEntries KeyLister KeyValue KeyWatcher
        objects: InitialObjects ObjectReader ObjectStore ObjectWatcher
        services: Service ServiceEvents Services add_auth_callout add_service
    """
    __getattr__ = lazy_names("jetstream.blocking", _HOMES, globals())

__all__ = [
    "Advisories",
    "AtomicBatch",
    "Batch",
    "BoundConsumer",
    "Consumer",
    "ConsumerGroups",
    "DeadLetter",
    "DeadLetters",
    "ElasticGroup",
    "Endpoint",
    "EndpointGroup",
    "EndpointRequests",
    "FastBatch",
    "Fetch",
    "GroupMember",
    "GroupMsg",
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
    "Service",
    "ServiceEvents",
    "ServiceRequest",
    "Services",
    "StaticGroup",
    "StoredMsgs",
    "Stream",
    "StreamSnapshot",
    "add_auth_callout",
    "add_service",
]


def __dir__() -> list[str]:
    return __all__


def _letters(inner: _dead_letters.DeadLetters, port: BlockingPort) -> DeadLetters:
    # Imported on use: most programs do not use dead letters.
    from .dead_letters import DeadLetters

    return DeadLetters(inner, port)


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
    step_down = blocking(_consumer.BoundConsumer.step_down)
    fetch = blocking_to(Batch, _consumer.BoundConsumer.fetch)
    iter_fetch = locked_to(Fetch, _consumer.BoundConsumer.iter_fetch)
    next = blocking_to(facade_or_none, _consumer.BoundConsumer.next)
    consume = locked_to(Messages, _consumer.BoundConsumer.consume)
    dead_letters = blocking_to(_letters, _consumer.BoundConsumer.dead_letters)

    if not TYPE_CHECKING:  # a type checker would accept every name
        __getattr__ = lazy_hints("jetstream.api.attributes", "CONSUMER")

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
    iter_get_msgs = locked_to(StoredMsgs, _stream.Stream.iter_get_msgs)
    get_last_msgs = blocking(_stream.Stream.get_last_msgs)
    iter_get_last_msgs = locked_to(StoredMsgs, _stream.Stream.iter_get_last_msgs)
    get_counter = blocking(_stream.Stream.get_counter)
    get_counters = blocking(_stream.Stream.get_counters)
    delete_msg = blocking(_stream.Stream.delete_msg)
    delete = blocking(_stream.Stream.delete)
    step_down = blocking(_stream.Stream.step_down)
    remove_peer = blocking(_stream.Stream.remove_peer)
    evacuate_peer = blocking(_stream.Stream.evacuate_peer)
    cancel_move = blocking(_stream.Stream.cancel_move)
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

    if not TYPE_CHECKING:  # a type checker would accept every name
        __getattr__ = lazy_hints("jetstream.api.attributes", "STREAM")

    def __repr__(self) -> str:
        return repr(self.inner)


def _bucket(inner: _kv.KeyValue, port: BlockingPort) -> KeyValue:
    # Imported on use: many programs do not use buckets.
    from .kv import KeyValue

    return KeyValue(inner, port)


def _snapshot(inner: _backup.StreamSnapshot, port: BlockingPort) -> StreamSnapshot:
    from .backup import StreamSnapshot

    return StreamSnapshot(inner, port)


def _events(inner: _advisories.Advisories, port: BlockingPort) -> Advisories:
    from .advisories import Advisories

    return Advisories(inner, port)


def _object_store(inner: _objects.ObjectStore, port: BlockingPort) -> ObjectStore:
    from .objects import ObjectStore

    return ObjectStore(inner, port)


class JetStream:  # D-CALL-14
    """JetStream of a client's account; `domain` or `prefix` select another one.

    `timeout`, in seconds, is for each call of the API, and the default of publishes.
    """

    def __init__(
        self, client: Client, *, domain: str = "", prefix: str = "$JS.API", timeout: Seconds = 5.0
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

    if not TYPE_CHECKING:  # a type checker would accept every name

        def __getattr__(self, name):
            raise no_attribute(self, name, JETSTREAM)

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
    snapshot_stream = blocking_to(_snapshot, _api.JetStream.snapshot_stream)
    restore_stream = blocking_to(Stream, _api.JetStream.restore_stream)
    advisories = locked_to(_events, _api.JetStream.advisories)
    publish = blocking(_api.JetStream.publish)
    add_to_counter = blocking(_api.JetStream.add_to_counter)
    schedule = blocking(_api.JetStream.schedule)
    cancel_schedule = blocking(_api.JetStream.cancel_schedule)

    def publisher(
        self, *, max_pending: int = 1000, ack_timeout: Seconds | None = None, retries: int = 2
    ) -> PublishWindow:
        """Return a window of publishes: `with js.publisher() as window`."""
        with self.port.lock:
            inner = self.inner.publisher(
                max_pending=max_pending, ack_timeout=ack_timeout, retries=retries
            )
            return PublishWindow(inner, self.port)

    def atomic_batch(self, *, timeout: Seconds | None = None) -> AtomicBatch:
        """Return a batch that a stream stores as a whole or not at all (needs allow_atomic)."""
        with self.port.lock:
            return AtomicBatch(self.inner.atomic_batch(timeout=timeout), self.port)

    def fast_batch(
        self,
        *,
        allow_gaps: bool = False,
        flow: int = 500,
        max_acks: int = 2,
        ack_timeout: Seconds | None = None,
    ) -> FastBatch:
        """Return a batch for fast ingestion: `with js.fast_batch() as batch`."""
        with self.port.lock:
            inner = self.inner.fast_batch(
                allow_gaps=allow_gaps, flow=flow, max_acks=max_acks, ack_timeout=ack_timeout
            )
            return FastBatch(inner, self.port)
