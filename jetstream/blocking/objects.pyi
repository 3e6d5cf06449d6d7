# Written by `python -m tests.facades`. Do not edit.

from collections.abc import Callable

from typing_extensions import Self

from jetstream.blocking.kv import Watcher
from jetstream.objects import read as _read
from jetstream.objects import store as _store
from jetstream.objects import watch as _watch
from jetstream.objects.config import ObjectStoreStatus
from jetstream.objects.info import ObjectInfo, ObjectMeta
from jetstream.objects.store import HasBucket, Infos
from jetstream.publish.source import ObjectData
from natsproto.durations import Seconds
from natsproto.port import BlockingPort, PathLike
from natsproto.wire.headers import HeadersLike

class InitialObjects:
    """The objects at the start of a watch: iterate it."""

    inner: _watch.InitialObjects
    port: BlockingPort

    def __init__(self, inner: _watch.InitialObjects, port: BlockingPort) -> None: ...
    def __next__(self) -> ObjectInfo: ...
    def __iter__(self) -> Self: ...

class ObjectWatcher(Watcher):
    """A watch of objects: iterate it. Returned by ObjectStore.watch; end it with `stop`.

    `initial` yields the infos of the current objects and ends. Iterating the watcher yields those
    that were not taken before, and then each change. It raises if the bucket was deleted. It
    survives all other errors, and reports them as `events`.
    """

    inner: _watch.ObjectWatcher

    def __init__(self, inner: _watch.ObjectWatcher, port: BlockingPort) -> None: ...
    def next(self, timeout: Seconds | None = None) -> ObjectInfo:
        """Return the next item; raise TimeoutExpired, or InvalidState after `stop`."""
        ...

    def next_initial(self) -> ObjectInfo | None:
        """Return the next initial value, or None if there are no more.

        TimeoutExpired: no message arrived within the timeout of this JetStream. The watch itself
        continues.
        """
        ...

    def initial(self) -> InitialObjects:
        """Return an iterator over the initial objects that were not read yet."""
        ...

    def __next__(self) -> ObjectInfo: ...

class ObjectReader:
    """An object to read: iterate its chunks, or `read` it like a file. Returned by ObjectStore.get.

    The digest is verified before the last chunk is returned; ObjectCorrupt is raised if it differs.
    Use `with`, or `close` it, unless it is read to its end.
    """

    inner: _read.ObjectReader
    port: BlockingPort

    def __init__(self, inner: _read.ObjectReader, port: BlockingPort) -> None: ...
    @property
    def info(self) -> ObjectInfo:
        """The info of the object; for a link that was followed, of its target."""
        ...

    def read(self, size: int = -1) -> bytes:
        """Return `size` bytes, fewer only at the end; -1: all remaining bytes.

        TimeoutExpired: no chunk arrived within the timeout of this JetStream. After that, or after
        a cancellation, the next read begins with the bytes that have arrived.
        """
        ...

    def close(self) -> None:
        """Stop reading, and delete the consumer."""
        ...

    def __next__(self) -> bytes: ...
    def __iter__(self) -> Self: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
    def __repr__(self) -> str: ...

class ObjectStore:
    """A bucket of objects. Returned by methods of JetStream.

    Any replica may serve the info of an object, so it may be the previous one shortly after a put.
    """

    inner: _store.ObjectStore
    port: BlockingPort

    def __init__(self, inner: _store.ObjectStore, port: BlockingPort) -> None: ...
    @property
    def bucket(self) -> str:
        """The name of the bucket."""
        ...

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
        """Store data under this name, and replace the object that has it.

        The data is bytes, an object with a `read` method, or an iterable, asynchronous or not. Only
        a few chunks are held in memory. A put that fails or is canceled leaves no chunks.

        TimeoutExpired, PublishTimeout: no response arrived within the timeout of this JetStream;
        each response restarts it. Without a connection, the call waits for the next one.
        """
        ...

    def put_file(
        self,
        path: PathLike,
        meta: str | ObjectMeta | None = None,
        *,
        progress: Callable[[int], object] | None = None,
        description: str = "",
        headers: HeadersLike | None = None,
        metadata: dict[str, str] | None = None,
        chunk_size: int | None = None,
    ) -> ObjectInfo:
        """Store a file, under the last part of its path if no name is given.

        `progress` is called with the number of bytes that were read, after each piece; the other
        parameters are those of `put`. The file is read in pieces; with an event loop, in threads.
        Raises OSError if it cannot be read.
        """
        ...

    def get_file(
        self, name: str, path: PathLike, *, progress: Callable[[int], object] | None = None
    ) -> ObjectInfo:
        """Write an object to a file, and return its info.

        The file appears when it is complete and the digest is verified; an existing file of this
        name is replaced. Until then it has a temporary name in the same directory, and it is
        removed if the call fails or is canceled. `progress` is called with the number of bytes
        after each chunk.

        ObjectNotFound: it does not exist. OSError: the file cannot be written.
        """
        ...

    def get(self, name: str) -> ObjectReader:
        """Open an object: `async with` the result, and iterate or read it. Links are followed.

        ObjectNotFound: it does not exist. LinkUnreadable: it is a link to a bucket.
        """
        ...

    def get_bytes(self, name: str) -> bytes:
        """Return all bytes of an object; raise TimeoutExpired as ObjectReader.read does."""
        ...

    def get_info(self, name: str, show_deleted: bool = False) -> ObjectInfo:
        """Return the info of an object, or of a link itself; raise ObjectNotFound."""
        ...

    def watch(
        self,
        *,
        include_history: bool = False,
        ignore_deletes: bool = False,
        updates_only: bool = False,
    ) -> ObjectWatcher:
        """Watch objects: `async with` the result, and iterate over their infos and changes.

        include_history  start with all stored infos; current buckets keep only the latest
        ignore_deletes   omit deleted objects
        updates_only     start with the next change
        """
        ...

    def update_meta(
        self,
        name: str,
        meta: ObjectMeta | None = None,
        *,
        new_name: str = "",
        description: str | None = None,
        headers: HeadersLike | None = None,
        metadata: dict[str, str] | None = None,
    ) -> ObjectInfo:
        """Change the given fields: name, description, headers or metadata; or all those of `meta`.

        ObjectNotFound: it does not exist. ObjectAlreadyExists: another object has the new name.
        """
        ...

    def delete(self, name: str) -> None:
        """Delete an object and its data; raise ObjectNotFound if it never existed."""
        ...

    def purge_orphans(self, older_than: Seconds = ...) -> int:
        """Remove chunks without an object if the newest of them is older than `older_than` seconds.

        A program that ends during a put leaves such chunks, and so may a server that is killed. A
        put in progress is safe unless it stalls for that long. Return the number of removed chunks.
        """
        ...

    def add_link(self, name: str, info: ObjectInfo) -> ObjectInfo:
        """Add a link to an object in this bucket or another.

        ObjectAlreadyExists: an object has this name. A link of this name is replaced.
        """
        ...

    def add_bucket_link(self, name: str, store: HasBucket) -> ObjectInfo:
        """Add a link to a whole bucket; ObjectAlreadyExists as for `add_link`."""
        ...

    def seal(self) -> None:
        """Make the bucket read-only, forever."""
        ...

    def status(self) -> ObjectStoreStatus:
        """Return the configuration and the state of the bucket; raise BucketNotFound."""
        ...

    def list(self, show_deleted: bool = False) -> Infos:
        """Return the infos of all objects; an empty list if there are none."""
        ...

    def __repr__(self) -> str: ...
