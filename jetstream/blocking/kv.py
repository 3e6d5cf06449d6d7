"""The key-value store without async and await, for the buckets of jetstream.blocking."""

from __future__ import annotations

from jetstream.kv import store as _kv
from jetstream.kv import watch as _watch
from natsproto.hinting import lazy_hints
from natsproto.port import blocking, blocking_next, blocking_to, locked_to, run_sync

from .loops import StoppableLoop
from .pull import PullEvents

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence
    from typing import Any, Protocol

    from typing_extensions import Self

    from jetstream.kv.codecs import KeyCodec, ValueCodec
    from jetstream.kv.entry import KeyValueEntry
    from jetstream.machine.iteration import MachineEvents
    from jetstream.schema.timestamp import Timestamp
    from natsproto.port import BlockingPort

    class Watching(Protocol):
        """A watcher of keys or of objects."""

        @property
        def initialized(self) -> bool:
            """Whether all initial values were taken."""
            ...

        @property
        def closed(self) -> bool:
            """Whether the watch has ended."""
            ...

        events: MachineEvents

        def stop(self) -> Coroutine[Any, Any, None]:
            """End the watch."""
            ...


class Watcher(StoppableLoop):
    """The common part of the watchers of keys and of objects."""

    def __init__(self, watching: Watching, port: BlockingPort) -> None:
        self._watching = watching
        self.port = port
        #: ConsumerReset, StreamRecreated. Iterate, or call next.
        self.events: PullEvents = PullEvents(watching.events, port)

    @property
    def initialized(self) -> bool:
        """Whether all initial values were taken, or there were none."""
        return self._watching.initialized

    @property
    def closed(self) -> bool:
        """Whether the watch has ended."""
        return self._watching.closed

    def stop(self) -> None:
        """End the watch now."""
        with self.port.lock:
            run_sync(self._watching.stop())

    def __repr__(self) -> str:
        return repr(self._watching)


class InitialEntries:
    """The initial entries of a watch: iterate it."""

    def __init__(self, inner: _watch.InitialEntries, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    _next = blocking_next(_watch.InitialEntries.__anext__)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> KeyValueEntry:
        # Nearly every value is at hand: without a coroutine and the lock that takes 1.5 us less.
        entry = self.inner.poll() if self.port.alone else None
        return self._next() if entry is None else entry


class KeyWatcher(Watcher):
    """A watch of keys: iterate it. Returned by KeyValue.watch; end it with `stop`.

    `initial` yields the current entries and ends. Iterating the watcher yields the entries that
    were not taken before, and then each change. It raises if the bucket was deleted. It survives
    all other errors, and reports them as `events`.
    """

    def __init__(self, inner: _watch.KeyWatcher, port: BlockingPort) -> None:
        super().__init__(inner, port)
        self.inner = inner

    @property
    def began(self) -> Timestamp | None:
        """The start of the watch, by the server's clock."""
        return self.inner.began

    next = blocking(_watch.KeyWatcher.next)
    next_initial = blocking(_watch.KeyWatcher.next_initial)
    initial = locked_to(InitialEntries, _watch.KeyWatcher.initial)
    __next__ = blocking_next(_watch.KeyWatcher.__anext__)


class KeyLister(StoppableLoop):
    """The keys of a bucket as they arrive: iterate it. Returned by KeyValue.list_keys.

    Keys are not collected first, so a key that changes in the meantime may be returned twice.
    """

    def __init__(self, inner: _watch.KeyLister, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    stop = blocking(_watch.KeyLister.stop)
    __next__ = blocking_next(_watch.KeyLister.__anext__)


class KeyValue:
    """A key-value bucket. Returned by methods of JetStream.

    Any replica or mirror may serve a read, so it may return the previous value shortly after a
    write. The leader checks the expectations of writes.
    """

    def __init__(self, inner: _kv.KeyValue, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    @property
    def bucket(self) -> str:
        """The name of the bucket."""
        return self.inner.bucket

    def with_codecs(
        self,
        *,
        keys: KeyCodec | Sequence[KeyCodec] | None = None,
        values: ValueCodec | Sequence[ValueCodec] | None = None,
    ) -> KeyValue:
        """Return the same bucket with codecs of its keys and values (ADR-54).

        keys    one codec of keys or several, such as [PathCodec(), Base64Codec()]: the first one
                gets the key, and the last one returns the key that is stored
        values  one codec of values or several, such as AesGcmCodec(secret)

        They replace those that this object has. All calls take and return decoded keys and values;
        CodecError: a stored key or value cannot be decoded.
        """
        return KeyValue(self.inner.with_codecs(keys=keys, values=values), self.port)

    get = blocking(_kv.KeyValue.get)
    history = blocking(_kv.KeyValue.history)
    keys = blocking(_kv.KeyValue.keys)
    list_keys = blocking_to(KeyLister, _kv.KeyValue.list_keys)
    watch = blocking_to(KeyWatcher, _kv.KeyValue.watch)
    watch_all = blocking_to(KeyWatcher, _kv.KeyValue.watch_all)
    put = blocking(_kv.KeyValue.put)
    create = blocking(_kv.KeyValue.create)
    update = blocking(_kv.KeyValue.update)
    delete = blocking(_kv.KeyValue.delete)
    purge = blocking(_kv.KeyValue.purge)
    purge_deletes = blocking(_kv.KeyValue.purge_deletes)
    status = blocking(_kv.KeyValue.status)
    info = blocking(_kv.KeyValue.info)

    if not TYPE_CHECKING:  # a type checker would accept every name
        __getattr__ = lazy_hints("jetstream.api.attributes", "KEY_VALUE")

    def __repr__(self) -> str:
        return repr(self.inner)
