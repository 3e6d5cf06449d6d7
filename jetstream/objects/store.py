"""ObjectStore: one bucket and its objects, of any size (ADR-20).

A bucket is a stream. An object consists of the chunks of its data, which are messages of one
subject, and of its info, a message that describes it. The object exists when its info exists, so
the chunks are stored first, and chunks without an info are purged.
"""

from __future__ import annotations

from jetstream.errors import (
    BucketNotFound,
    LinkUnreadable,
    NoStreamResponse,
    ObjectAlreadyExists,
    ObjectNotFound,
)
from jetstream.errors.api import StreamNotFound
from jetstream.kv.bucket import check_there
from jetstream.kv.options import WatchOptions
from jetstream.kv.watch import open_watch
from jetstream.publish.source import source_of
from natsproto.errors import InvalidValue
from natsproto.hinting import lazy_hints
from natsproto.session import check_flag
from natsproto.wire.text import shorten
from natsproto.workers import NoLock

from .config import ObjectStoreStatus
from .files import get_file, put_file
from .info import ObjectInfo, ObjectLink, ObjectMeta, ObjectMetaOptions
from .meta import MetaStore, is_in_doubt
from .names import check_bucket, encode_name
from .orphans import OLDER_THAN, purge_orphans
from .put import CHUNK, Upload, send_all
from .read import ObjectReader, open_reader
from .watch import ObjectWatcher

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol, TypeAlias

    from jetstream.publish.source import ObjectData
    from jetstream.streams.stream import Stream
    from natsproto.durations import Seconds
    from natsproto.port import Lock, PathLike, Port
    from natsproto.wire.headers import HeadersLike

    from .manager import ObjectStoreManager

    Infos: TypeAlias = list[ObjectInfo]

    class HasBucket(Protocol):
        """An object store, blocking or not."""

        @property
        def bucket(self) -> str: ...


_CHANGEABLE = ("name", "description", "headers", "metadata")
_GIVEN = ("name", "description", "headers", "metadata", "options")
_MOST_LINKS = 8


class ObjectStore:
    """A bucket of objects. Returned by methods of JetStream.

    Any replica may return the info of an object, so shortly after a put it may still be the
    previous one.
    """

    def __init__(self, manager: ObjectStoreManager, stream: Stream) -> None:
        self._manager = manager
        self._metas = MetaStore(manager.publisher, manager.api, stream)
        self.bucket: str = self._metas.bucket
        #: For facades: `put` holds it, but not while it reads data, which may use the client.
        self.lock: Lock = NoLock()

    # Reading

    async def get(self, name: str) -> ObjectReader:
        """Open an object: `async with` the result, and iterate or read it. Links are followed.

        ObjectNotFound: it does not exist. LinkUnreadable: it is a link to a bucket.
        """
        streams = self._manager.streams.bounded()  # D-CALL-18
        metas = self._metas.through(streams.calls)
        info = await metas.get(name)
        links = 0
        while info.link is not None:
            links += 1
            link = info.link
            if not link.name:
                why = "it is a link to the whole bucket %s" % shorten(link.bucket)
                raise LinkUnreadable(self.bucket, name, why)
            if links > _MOST_LINKS:
                # OBJ-31
                raise LinkUnreadable(self.bucket, name, "its chain of links is too long")
            if link.bucket != metas.bucket:
                store = await self._manager.find(link.bucket, streams)
                metas = store._metas.through(streams.calls)
            info = await metas.get(link.name)
        return await open_reader(metas.through(self._metas.api), info, streams.calls)

    async def get_bytes(self, name: str) -> bytes:
        """Return all bytes of an object; raise TimeoutExpired as ObjectReader.read does."""
        async with await self.get(name) as reader:
            return await reader.read()

    async def get_info(self, name: str, show_deleted: bool = False) -> ObjectInfo:
        """Return the info of an object, or of a link itself; raise ObjectNotFound."""
        return await self._metas.get(name, show_deleted)

    async def watch(
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
        options = WatchOptions(
            include_history=include_history,
            ignore_deletes=ignore_deletes,
            updates_only=updates_only,
        )
        return await open_watch(ObjectWatcher, self._metas.target(self._metas.infos), options)

    # Writing

    async def put(
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
        source = source_of(data, chunk_size or CHUNK)
        with self.lock:
            upload = self._upload(meta, description, headers, metadata, chunk_size)
        try:
            return await send_all(source, upload, self.lock)
        except NoStreamResponse:
            with self.lock:
                await check_there(self._metas.stream, self.bucket)  # D-OBJ-44
            raise

    async def put_file(
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
        options = {
            "description": description,
            "headers": headers,
            "metadata": metadata,
            "chunk_size": chunk_size,
        }
        return await put_file(self, self._port, path, meta, progress, options)

    async def get_file(
        self, name: str, path: PathLike, *, progress: Callable[[int], object] | None = None
    ) -> ObjectInfo:
        """Write an object to a file, and return its info.

        The file appears when it is complete and the digest is verified; an existing file of this
        name is replaced. Until then it has a temporary name in the same directory, and it is
        removed if the call fails or is canceled. `progress` is called with the number of bytes
        after each chunk.

        ObjectNotFound: it does not exist. OSError: the file cannot be written.
        """
        token = self._manager.api.session.connection.new_token()
        return await get_file(self, self._port, name, path, progress, token)

    @property
    def _port(self) -> Port:
        return self._manager.api.session.port

    async def update_meta(
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
        given = _changes(meta, new_name, description, headers, metadata)
        new = given.get("name") or name
        encode_name(new)
        metas = self._bounded()
        if new == name:
            _, info, seq = await metas.replace(name, lambda found: self._change(found, name, given))
        else:
            before = await metas.find(name)
            changed = self._change(None if before is None else before.info, name, given)
            assert before is not None
            _, info, seq = await metas.replace(new, lambda found: self._rename(found, changed))
            await metas.purge_info(name, before.seq)  # not one that was put there since
        assert info is not None
        return await metas.dated(info, seq)

    async def delete(self, name: str) -> None:
        """Delete an object and its data; raise ObjectNotFound if it never existed."""
        metas = self._bounded()
        there: list[ObjectInfo] = []

        def change(found: ObjectInfo | None) -> ObjectInfo | None:
            if found is None:
                raise ObjectNotFound(self.bucket, name)
            there.append(found)
            return None if found.deleted else _deleted(found)

        try:
            before, _, _ = await metas.replace(name, change)
        except BaseException as error:
            if there and is_in_doubt(error):
                metas.purge_if_deleted(there[-1])  # OBJ-34
            raise
        assert before is not None
        await metas.purge_chunks(before)

    async def add_link(self, name: str, info: ObjectInfo) -> ObjectInfo:
        """Add a link to an object in this bucket or another.

        ObjectAlreadyExists: an object has this name. A link of this name is replaced.
        """
        if not isinstance(info, ObjectInfo) or not info.name or not info.bucket:
            raise InvalidValue(
                "info is not the ObjectInfo of an object: %s" % shorten(info), "OBJ-35"
            )
        if info.deleted or info.link is not None:
            what = "is deleted" if info.deleted else "is a link"
            text = "object %s %s: a link cannot point to it"
            raise InvalidValue(text % (shorten(info.name), what), "OBJ-35")
        return await self._link(name, ObjectLink(bucket=info.bucket, name=info.name))

    async def add_bucket_link(self, name: str, store: HasBucket) -> ObjectInfo:
        """Add a link to a whole bucket; ObjectAlreadyExists as for `add_link`."""
        bucket = getattr(store, "bucket", None)
        if not isinstance(bucket, str):
            raise InvalidValue("store is not an object store: %s" % shorten(store), "OBJ-35")
        return await self._link(name, ObjectLink(bucket=check_bucket(bucket)))

    async def purge_orphans(self, older_than: Seconds = OLDER_THAN) -> int:
        """Remove chunks without an object if the newest of them is older than `older_than` seconds.

        A program that ends during a put leaves such chunks, and so may a server that is killed. A
        put in progress is safe unless it stalls for that long. Return the number of removed chunks.
        """
        return await purge_orphans(self._metas, older_than)

    # The bucket

    async def seal(self) -> None:
        """Make the bucket read-only, forever."""
        streams = self._manager.streams.bounded()  # D-CALL-18
        config = (await self._status(self._metas.through(streams.calls))).stream_info.config
        await streams.update_stream(config, sealed=True)  # OBJ-9

    async def status(self) -> ObjectStoreStatus:
        """Return the configuration and the state of the bucket; raise BucketNotFound."""
        return await self._status(self._metas)

    async def list(self, show_deleted: bool = False) -> Infos:  # OBJ-37
        """Return the infos of all objects; an empty list if there are none."""
        check_flag("show_deleted", show_deleted)
        found: dict[str, ObjectInfo] = {}
        async with await self.watch() as watcher:
            async for info in watcher.initial():
                found[info.name] = info  # again, if it changes in the meantime
        infos = [found[name] for name in sorted(found)]
        return [info for info in infos if show_deleted or not info.deleted]

    if not TYPE_CHECKING:  # a type checker would accept every name
        __getattr__ = lazy_hints("jetstream.api.attributes", "OBJECT_STORE")

    def __repr__(self) -> str:
        return "<ObjectStore %s>" % self.bucket

    # How it works

    def _bounded(self) -> MetaStore:
        """Return the infos for one call, whose requests share its timeout."""
        return self._metas.through(self._metas.api.bounded())  # D-CALL-18

    async def _status(self, metas: MetaStore) -> ObjectStoreStatus:
        try:
            return ObjectStoreStatus(await metas.stream.info())
        except StreamNotFound:
            raise BucketNotFound(self.bucket) from None

    def _upload(
        self,
        meta: str | ObjectMeta,
        description: str,
        headers: HeadersLike | None,
        metadata: dict[str, str] | None,
        chunk_size: int | None,
    ) -> Upload:
        """Return an upload that has sent nothing yet."""
        if isinstance(meta, ObjectMeta):
            made = ObjectMeta.from_json({})
            for name in _GIVEN:
                if getattr(meta, name):
                    setattr(made, name, getattr(meta, name))
        else:
            made = ObjectMeta(name=meta)
        given: dict[str, Any] = {
            "description": description,
            "headers": headers,
            "metadata": metadata,
        }
        for name in given:
            if given[name]:
                setattr(made, name, given[name])
        encode_name(made.name)
        if made.options is not None and made.options.link is not None:
            text = "object %s is a link; use add_link or add_bucket_link"
            raise InvalidValue(text % shorten(made.name), "OBJ-26")
        return Upload(self._metas, made, chunk_size)

    def _change(self, found: ObjectInfo | None, name: str, given: dict[str, Any]) -> ObjectInfo:
        if found is None or found.deleted:
            raise ObjectNotFound(self.bucket, name)  # OBJ-32
        info = found.copy()
        for field in given:
            setattr(info, field, given[field])
        return info

    def _rename(self, found: ObjectInfo | None, info: ObjectInfo) -> ObjectInfo:
        same = found is None or (found.nuid == info.nuid and found.link == info.link)
        if found is not None and not found.deleted and not same:
            raise ObjectAlreadyExists(self.bucket, info.name)  # OBJ-33
        return info

    async def _link(self, name: str, link: ObjectLink) -> ObjectInfo:
        encode_name(name)
        nuid = self._metas.api.session.connection.new_token()

        def make(found: ObjectInfo | None) -> ObjectInfo:
            if found is not None and not found.deleted and found.link is None:
                raise ObjectAlreadyExists(self.bucket, name)  # OBJ-35
            info = ObjectInfo(name=name, options=ObjectMetaOptions(link=link))
            info.bucket = self.bucket
            info.nuid = nuid
            return info

        metas = self._bounded()
        _, info, seq = await metas.replace(name, make)
        assert info is not None
        return await metas.dated(info, seq)


def _deleted(info: ObjectInfo) -> ObjectInfo:
    """Return the info of the deleted object (OBJ-34)."""
    gone = info.copy()
    gone.deleted = True
    gone.size = gone.chunks = 0
    gone.digest = ""
    return gone


def _changes(
    meta: ObjectMeta | None,
    name: str,
    description: str | None,
    headers: HeadersLike | None,
    metadata: dict[str, str] | None,
) -> dict[str, Any]:
    """Return the fields to change."""
    if meta is not None and not isinstance(meta, ObjectMeta):
        raise InvalidValue("%s is not an ObjectMeta" % shorten(meta), "OBJ-32")
    given: dict[str, Any] = {}
    if meta is not None:
        given = {field: getattr(meta, field) for field in _CHANGEABLE}
    fields: dict[str, Any] = {
        "name": name or None,
        "description": description,
        "headers": headers,
        "metadata": metadata,
    }
    for field in fields:
        if fields[field] is not None:
            given[field] = fields[field]
    if not given.get("name"):
        given.pop("name", None)  # unchanged
    ObjectMeta.of(None, given)  # InvalidValue, before anything is sent
    return given
