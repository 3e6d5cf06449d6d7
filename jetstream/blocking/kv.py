"""The key-value store without async and await, for the buckets of jetstream.blocking."""

from __future__ import annotations

from jetstream.kv import store as _kv
from jetstream.kv import watch as _watch
from natsproto.port import blocking, blocking_next, blocking_to, locked_to, run_sync

from .pull import PullEvents

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any, Protocol

    from typing_extensions import Self

    from jetstream.machine.iteration import MachineEvents
    from jetstream.schema.timestamp import Timestamp
    from natsproto.port import BlockingPort

    class Watching(Protocol):
        """A watcher of either kind."""

        @property
        def initialized(self) -> bool: ...
        @property
        def closed(self) -> bool: ...

        events: MachineEvents

        def stop(self) -> Coroutine[Any, Any, None]: ...


class Watcher:
    """What the watchers of keys and of objects share."""

    def __init__(self, watching: Watching, port: BlockingPort) -> None:
        self._watching = watching
        self.port = port
        #: What happened: ConsumerReset, StreamRecreated. Iterate, or call next.
        self.events = PullEvents(watching.events, port)

    @property
    def initialized(self) -> bool:
        """Whether all initial values were taken, or there were none."""
        return self._watching.initialized

    @property
    def closed(self) -> bool:
        """Whether nothing will come any more."""
        return self._watching.closed

    def stop(self) -> None:
        """End now."""
        with self.port.lock:
            run_sync(self._watching.stop())

    def __iter__(self) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return repr(self._watching)


class InitialEntries:
    """The initial values of a watch: iterate it."""

    def __init__(self, inner: _watch.InitialEntries, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    __next__ = blocking_next(_watch.InitialEntries.__anext__)

    def __iter__(self) -> Self:
        return self


class KeyWatcher(Watcher):
    """Entries as they come: iterate it. Made by KeyValue.watch; end it with `stop`.

    `initial` gives what is there now and ends; iterating the watcher gives all that was not taken
    by then, and each change, without end. It raises if the bucket is gone. Everything else is
    survived, and told by `events`.
    """

    def __init__(self, inner: _watch.KeyWatcher, port: BlockingPort) -> None:
        super().__init__(inner, port)
        self.inner = inner

    @property
    def began(self) -> Timestamp | None:
        """When it began, by the server's clock."""
        return self.inner.began

    next = blocking(_watch.KeyWatcher.next)
    next_initial = blocking(_watch.KeyWatcher.next_initial)
    initial = locked_to(InitialEntries, _watch.KeyWatcher.initial)
    __next__ = blocking_next(_watch.KeyWatcher.__anext__)


class KeyLister:
    """The keys of a bucket, as they come: iterate it. Made by KeyValue.list_keys.

    Nothing is collected, so a key that changes meanwhile may come twice.
    """

    def __init__(self, inner: _watch.KeyLister, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    stop = blocking(_watch.KeyLister.stop)
    __next__ = blocking_next(_watch.KeyLister.__anext__)

    def __iter__(self) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


class KeyValue:
    """A bucket. Made by the calls of JetStream.

    Reads are answered by any replica, and by mirrors: shortly after a write they may still give
    what was there before. What is written with an expectation is checked by the leader.
    """

    def __init__(self, inner: _kv.KeyValue, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    @property
    def bucket(self) -> str:
        return self.inner.bucket

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

    def __repr__(self) -> str:
        return repr(self.inner)
