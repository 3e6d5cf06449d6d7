"""The object store without async and await, for the buckets of jetstream.blocking."""

from __future__ import annotations

from jetstream.objects import read as _read
from jetstream.objects import store as _store
from jetstream.objects import watch as _watch
from natsproto.hinting import lazy_hints
from natsproto.port import blocking, blocking_next, blocking_to, blocking_unlocked, locked_to

from .kv import Watcher

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing_extensions import Self

    from jetstream.objects.info import ObjectInfo
    from natsproto.port import BlockingPort


class InitialObjects:
    """The objects at the start of a watch: iterate it."""

    def __init__(self, inner: _watch.InitialObjects, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    __next__ = blocking_next(_watch.InitialObjects.__anext__)

    def __iter__(self) -> Self:
        return self


class ObjectWatcher(Watcher):
    """A watch of objects: iterate it. Returned by ObjectStore.watch; end it with `stop`.

    `initial` yields the infos of the current objects and ends. Iterating the watcher yields those
    that were not taken before, and then each change. It raises if the bucket was deleted. It
    survives all other errors, and reports them as `events`.
    """

    def __init__(self, inner: _watch.ObjectWatcher, port: BlockingPort) -> None:
        super().__init__(inner, port)
        self.inner = inner

    next = blocking(_watch.ObjectWatcher.next)
    next_initial = blocking(_watch.ObjectWatcher.next_initial)
    initial = locked_to(InitialObjects, _watch.ObjectWatcher.initial)
    __next__ = blocking_next(_watch.ObjectWatcher.__anext__)


class ObjectReader:
    """An object to read: iterate its chunks, or `read` it like a file. Returned by ObjectStore.get.

    The digest is verified before the last chunk is returned; ObjectCorrupt is raised if it differs.
    Use `with`, or `close` it, unless it is read to its end.
    """

    def __init__(self, inner: _read.ObjectReader, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    @property
    def info(self) -> ObjectInfo:
        """The info of the object; for a link that was followed, of its target."""
        return self.inner.info

    read = blocking(_read.ObjectReader.read)
    close = blocking(_read.ObjectReader.close)
    __next__ = blocking_next(_read.ObjectReader.__anext__)

    def __iter__(self) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return repr(self.inner)


class ObjectStore:
    """A bucket of objects. Returned by methods of JetStream.

    Any replica may serve the info of an object, so it may be the previous one shortly after a put.
    """

    def __init__(self, inner: _store.ObjectStore, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port
        inner.lock = port.lock

    @property
    def bucket(self) -> str:
        """The name of the bucket."""
        return self.inner.bucket

    put = blocking_unlocked(_store.ObjectStore.put)
    put_file = blocking_unlocked(_store.ObjectStore.put_file)
    get_file = blocking_unlocked(_store.ObjectStore.get_file)
    get = blocking_to(ObjectReader, _store.ObjectStore.get)
    get_bytes = blocking(_store.ObjectStore.get_bytes)
    get_info = blocking(_store.ObjectStore.get_info)
    watch = blocking_to(ObjectWatcher, _store.ObjectStore.watch)
    update_meta = blocking(_store.ObjectStore.update_meta)
    delete = blocking(_store.ObjectStore.delete)
    purge_orphans = blocking(_store.ObjectStore.purge_orphans)
    add_link = blocking(_store.ObjectStore.add_link)
    add_bucket_link = blocking(_store.ObjectStore.add_bucket_link)
    seal = blocking(_store.ObjectStore.seal)
    status = blocking(_store.ObjectStore.status)
    list = blocking(_store.ObjectStore.list)

    if not TYPE_CHECKING:  # a type checker would accept every name
        __getattr__ = lazy_hints("jetstream.api.attributes", "OBJECT_STORE")

    def __repr__(self) -> str:
        return repr(self.inner)
