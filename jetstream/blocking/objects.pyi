# Written by `python -m tests.facades`. Do not edit.

from typing_extensions import Self

from jetstream.blocking.kv import Watcher
from jetstream.objects import read as _read
from jetstream.objects import store as _store
from jetstream.objects import watch as _watch
from jetstream.objects.config import ObjectStoreStatus
from jetstream.objects.info import ObjectInfo, ObjectMeta
from jetstream.objects.source import ObjectData
from jetstream.objects.store import HasBucket, Infos
from natsproto.port import BlockingPort
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
    def next(self, timeout: float | None = None) -> ObjectInfo:
        """The next info; TimeoutExpired, or InvalidState when it was stopped."""
        ...

    def next_initial(self) -> ObjectInfo | None:
        """The next of those; None if there are no more."""
        ...

    def initial(self) -> InitialObjects:
        """What was there, and was not taken yet: iterate it. It ends with the last one."""
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
        """So many bytes, fewer only at the end; -1: all that are left.

        TimeoutExpired if no chunk arrives for as long as a call of this JetStream may take. Then,
        or if it is canceled, the next read begins with what has arrived.
        """
        ...

    def close(self) -> None:
        """Read no more of it."""
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
        """Store the data under this name, in place of what was there.

        It is bytes, something with a `read`, or something to iterate, asynchronous or not. Never
        more of it is held than a few chunks. A put that fails or is cancelled leaves nothing.
        """
        ...

    def get(self, name: str) -> ObjectReader:
        """The object, to be iterated or read: `async with` it. A link is followed.

        ObjectNotFound; LinkUnreadable if the link is to a bucket.
        """
        ...

    def get_bytes(self, name: str) -> bytes:
        """All of its bytes at once."""
        ...

    def get_info(self, name: str, show_deleted: bool = False) -> ObjectInfo:
        """What is told about it; ObjectNotFound. Of a link, about the link."""
        ...

    def watch(
        self,
        *,
        include_history: bool = False,
        ignore_deletes: bool = False,
        updates_only: bool = False,
    ) -> ObjectWatcher:
        """What is there, and what happens to it: `async with` it, and iterate.

        updates_only    begin with what happens from now on
        include_history begin with all that was told; buckets of today keep the latest alone
        ignore_deletes  nothing about deleted objects
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
        """Change name, description, headers or metadata: those given, or all to those of `meta`.

        ObjectNotFound; ObjectAlreadyExists if there is one of the new name.
        """
        ...

    def delete(self, name: str) -> None:
        """Delete it, and its data; ObjectNotFound if there never was one."""
        ...

    def purge_orphans(self, older_than: float = ...) -> int:
        """Remove chunks that belong to no object, if the last of them is older, in seconds.

        A program that ends amid a put leaves such, and so may a server that is killed. What is put
        at this moment has none, unless it stands still for so long. Returns how many were removed.
        """
        ...

    def add_link(self, name: str, info: ObjectInfo) -> ObjectInfo:
        """Have a link to that object, of this bucket or another.

        ObjectAlreadyExists if there is an object of this name; a link is replaced.
        """
        ...

    def add_bucket_link(self, name: str, store: HasBucket) -> ObjectInfo:
        """Have a link to a whole bucket; ObjectAlreadyExists as above."""
        ...

    def seal(self) -> None:
        """From now on nothing goes in or out. There is no way back."""
        ...

    def status(self) -> ObjectStoreStatus:
        """Its configuration and what it holds; BucketNotFound."""
        ...

    def list(self, show_deleted: bool = False) -> Infos:
        """What is told about all objects; an empty list if there are none."""
        ...

    def __repr__(self) -> str: ...
