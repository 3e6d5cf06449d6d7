"""The object store without async and await, for the buckets of jetstream.blocking."""

from __future__ import annotations

from jetstream.objects import read as _read
from jetstream.objects import store as _store
from jetstream.objects import watch as _watch
from natsproto.port import blocking, blocking_next, blocking_to, blocking_unlocked, locked_to

from .kv import Watcher

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing_extensions import Self

    from jetstream.objects.info import ObjectInfo
    from natsproto.port import BlockingPort


class InitialObjects:
    """What was there when a watch began: iterate it."""

    def __init__(self, inner: _watch.InitialObjects, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    __next__ = blocking_next(_watch.InitialObjects.__anext__)

    def __iter__(self) -> Self:
        return self


class ObjectWatcher(Watcher):
    """Infos as they come: iterate it. Made by ObjectStore.watch; end it with `stop`.

    `initial` gives what is there now and ends; iterating the watcher gives all that was not taken
    by then, and each change, without end. It raises if the bucket is gone. Everything else is
    survived, and told by `events`.
    """

    def __init__(self, inner: _watch.ObjectWatcher, port: BlockingPort) -> None:
        super().__init__(inner, port)
        self.inner = inner

    next = blocking(_watch.ObjectWatcher.next)
    next_initial = blocking(_watch.ObjectWatcher.next_initial)
    initial = locked_to(InitialObjects, _watch.ObjectWatcher.initial)
    __next__ = blocking_next(_watch.ObjectWatcher.__anext__)


class ObjectReader:
    """An object to be read: iterate its chunks, or `read` it like a file. Made by ObjectStore.get.

    Before the last chunk is given out, all of it is compared with what was put: ObjectCorrupt.
    `with` it, or `close` it, unless it is read to its end.
    """

    def __init__(self, inner: _read.ObjectReader, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    @property
    def info(self) -> ObjectInfo:
        """What is told about it; of a link that was followed: about what it leads to."""
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
    """A bucket of objects. Made by the calls of JetStream.

    What is told about objects is answered by any replica: shortly after a put it may still be what
    was there before.
    """

    def __init__(self, inner: _store.ObjectStore, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port
        inner.lock = port.lock

    @property
    def bucket(self) -> str:
        return self.inner.bucket

    put = blocking_unlocked(_store.ObjectStore.put)
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

    def __repr__(self) -> str:
        return repr(self.inner)
