"""The object store without async and await, for the buckets of jetstream.blocking."""

from __future__ import annotations

from natsproto.port import blocking, blocking_next, blocking_to, locked_to, run_sync

from . import object_put as _put
from . import object_read as _read
from . import object_store as _store
from . import object_watch as _watch
from .blocking_pull import PullEvents
from .object_source import source_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Self

    from natsproto.headers import HeadersLike
    from natsproto.port import BlockingPort

    from .object_info import ObjectInfo, ObjectMeta
    from .object_source import ObjectData


class InitialObjects:
    """What was there when a watch began: iterate it."""

    def __init__(self, inner: _watch.InitialObjects, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    __next__ = blocking_next(_watch.InitialObjects.__anext__)

    def __iter__(self) -> Self:
        return self


class ObjectWatcher:
    """Infos as they come: iterate it. Made by ObjectStore.watch; end it with `stop`.

    `initial` gives what is there now and ends; iterating the watcher gives all that was not taken
    by then, and each change, without end. It raises if the bucket is gone. Everything else is
    survived, and told by `events`.
    """

    def __init__(self, inner: _watch.ObjectWatcher, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port
        #: What happened to its consumer: ConsumerReset. Iterate, or ask for next.
        self.events = PullEvents(inner.events, port)

    @property
    def initialized(self) -> bool:
        """Whether all that was there at the beginning was taken."""
        return self.inner.initialized

    @property
    def closed(self) -> bool:
        """Whether nothing will come any more."""
        return self.inner.closed

    next = blocking(_watch.ObjectWatcher.next)
    next_initial = blocking(_watch.ObjectWatcher.next_initial)
    initial = locked_to(InitialObjects, _watch.ObjectWatcher.initial)
    stop = blocking(_watch.ObjectWatcher.stop)
    __next__ = blocking_next(_watch.ObjectWatcher.__anext__)

    def __iter__(self) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return repr(self.inner)


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


class _Upload:
    """A put, step by step."""

    def __init__(self, inner: _put.Upload, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    add = blocking(_put.Upload.add)
    finish = blocking(_put.Upload.finish)
    give_up = blocking(_put.Upload.give_up)
    abandon = locked_to(lambda _, __: None, _put.Upload.abandon)


class ObjectStore:
    """A bucket of objects. Made by the calls of JetStream.

    What is told about objects is answered by any replica: shortly after a put it may still be what
    was there before.
    """

    def __init__(self, inner: _store.ObjectStore, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    @property
    def bucket(self) -> str:
        return self.inner.bucket

    get = blocking_to(ObjectReader, _store.ObjectStore.get)
    get_bytes = blocking(_store.ObjectStore.get_bytes)
    get_info = blocking(_store.ObjectStore.get_info)
    watch = blocking_to(ObjectWatcher, _store.ObjectStore.watch)
    update_meta = blocking(_store.ObjectStore.update_meta)
    delete = blocking(_store.ObjectStore.delete)
    add_link = blocking(_store.ObjectStore.add_link)
    add_bucket_link = blocking(_store.ObjectStore.add_bucket_link)
    seal = blocking(_store.ObjectStore.seal)
    status = blocking(_store.ObjectStore.status)
    list = blocking(_store.ObjectStore.list)
    _upload = locked_to(_Upload, _store.ObjectStore._upload)  # pyright: ignore[reportPrivateUsage]

    def put(
        self,
        meta: str | ObjectMeta,
        data: ObjectData = b"",
        *,
        description: str = "",
        headers: HeadersLike | None = None,
        metadata: dict[str, str] | None = None,
        chunk_size: int | None = None,
    ) -> ObjectInfo:
        """Store the data under this name, in place of what was there.

        It is bytes, something with a `read`, such as a file, or something to iterate. Never more
        of it is held than a few chunks. A put that fails or is interrupted leaves nothing.
        """
        # Step by step: while the data is read, others may use the client; the data itself may.
        source = source_of(data, chunk_size or _put.CHUNK)
        upload = self._upload(meta, description, headers, metadata, chunk_size)
        try:
            while True:
                piece = run_sync(source.next())
                if piece is None:
                    return upload.finish()
                upload.add(piece)
        except Exception:
            upload.give_up()
            raise
        except BaseException:
            upload.abandon()
            raise

    def __repr__(self) -> str:
        return repr(self.inner)
