"""ObjectStore: large objects in pieces."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import inspect
import io
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jetstream.errors import objects as core
from jetstream.errors.kv import BucketNotFound
from jetstream.objects.info import ObjectInfo as CoreInfo
from natsproto.compat.nats.errors import BadSubscriptionError
from natsproto.errors import InvalidName, InvalidState, InvalidValue, NatsError

from . import api, errors
from .constants import *  # noqa: F403
from .constants import OBJ_DEFAULT_CHUNK_SIZE
from .errors import BadObjectMetaError as BadObjectMetaError
from .errors import DigestMismatchError as DigestMismatchError
from .errors import LinkIsABucketError as LinkIsABucketError
from .errors import NotFoundError as NotFoundError
from .errors import ObjectAlreadyExists as ObjectAlreadyExists
from .errors import ObjectDeletedError as ObjectDeletedError
from .errors import ObjectNotFoundError as ObjectNotFoundError
from .failures import after_end, translate

if TYPE_CHECKING:
    from jetstream.objects.store import ObjectStore as CoreStore
    from jetstream.objects.watch import ObjectWatcher as CoreWatcher
    from natsproto.compat.nats.aio.client import Client

    from .client import JetStreamContext

_BYTES: Any = (bytes, bytearray, memoryview)


class ObjectStore:
    """An object store: a bucket of objects with names."""

    @dataclass
    class ObjectResult:
        """An object, and its data unless it was written elsewhere."""

        info: api.ObjectInfo
        data: bytes | None = b""

    @dataclass(frozen=True)
    class ObjectStoreStatus:
        """The state of an object store."""

        stream_info: api.StreamInfo
        bucket: str

        @property
        def description(self) -> str | None:
            """The description of the bucket."""
            return self.stream_info.config.description

        @property
        def ttl(self) -> float | None:
            """How long objects are kept, in seconds."""
            return self.stream_info.config.max_age

        @property
        def storage_type(self) -> api.StorageType | None:
            """Where objects are kept."""
            return self.stream_info.config.storage

        @property
        def replicas(self) -> int | None:
            """How many copies there are."""
            return self.stream_info.config.num_replicas

        @property
        def sealed(self) -> bool:
            """Whether objects can no longer be changed."""
            return self.stream_info.config.sealed

        @property
        def size(self) -> int:
            """The size of the bucket in bytes."""
            return self.stream_info.state.bytes

    def __init__(self, name: str, stream: str, js: JetStreamContext) -> None:
        self._name = name
        self._stream = stream
        self._js = js

    async def get_info(self, name: str, show_deleted: bool | None = False) -> api.ObjectInfo:
        """Return the description of an object; raise ObjectNotFoundError."""
        try:
            return _info(await (await self._core()).get_info(name, bool(show_deleted)))
        except NatsError as error:
            raise _translate(error) from error

    async def get(
        self, name: str, writeinto: Any = None, show_deleted: bool | None = False
    ) -> ObjectStore.ObjectResult:
        """Return an object with its data, or write the data into a file.

        show_deleted: return the description of an object that was deleted
        """
        try:
            store = await self._core()
            if show_deleted:
                found = await store.get_info(name, show_deleted=True)
                if found.deleted:
                    return ObjectStore.ObjectResult(_info(found))
            async with await store.get(name) as reader:
                info = _info(reader.info)
                if writeinto is None:
                    return ObjectStore.ObjectResult(info, await reader.read())
                target = getattr(writeinto, "buffer", writeinto)
                async for piece in reader:
                    await _call(target, "write", piece)
                return ObjectStore.ObjectResult(info)
        except NatsError as error:
            raise _translate(error) from error

    async def put(self, name: str, data: Any, meta: api.ObjectMeta | None = None) -> api.ObjectInfo:
        """Store an object: text, bytes, or what a file has; replaces one of the same name."""
        if not name:
            raise errors.InvalidObjectNameError(name)
        options: dict[str, Any] = {}
        if meta is not None:
            options = {"description": meta.description or "", "headers": meta.headers or None}
            if meta.options is not None:
                if meta.options.link is not None:
                    raise errors.BadObjectMetaError("link option must not be set when putting")
                options["chunk_size"] = meta.options.max_chunk_size
        try:
            return _info(await (await self._core()).put(name, _pieces(data), **options))
        except NatsError as error:
            raise _translate(error) from error

    async def status(self) -> ObjectStore.ObjectStoreStatus:
        """Return the state of the bucket."""
        info = await self._js.stream_info(self._stream)
        return ObjectStore.ObjectStoreStatus(stream_info=info, bucket=self._name)

    async def seal(self) -> None:
        """Forbid all further changes."""
        try:
            await (await self._core()).seal()
        except NatsError as error:
            raise _translate(error) from error

    async def update_meta(self, name: str, meta: api.ObjectMeta) -> None:
        """Change the name, the description or the headers of an object."""
        try:
            await (await self._core()).update_meta(
                name,
                new_name="" if meta.name in (None, name) else str(meta.name),
                description=meta.description or "",
                headers=meta.headers or {},
            )
        except core.ObjectNotFound as error:
            raise errors.ObjectDeletedError from error
        except NatsError as error:
            raise _translate(error) from error

    class ObjectWatcher:
        """The objects of a watch: iterate, or call `updates`. None ends the present ones."""

        def __init__(self, conn: Client, source: CoreWatcher, updates_only: bool) -> None:
            self._conn = conn
            self._source = source
            self._updates_only = updates_only
            self._initial = None if updates_only else source.initial()

        async def stop(self) -> None:
            """End the watch."""
            await self._source.stop()

        async def updates(self, timeout: float | None = 5.0) -> api.ObjectInfo | None:
            """Return the next change, None after the present objects; raise TimeoutError."""
            try:
                if self._initial is not None:
                    try:
                        return _info(await self._initial.__anext__())
                    except StopAsyncIteration:
                        self._initial = None
                        return None
                return _info(await self._source.next(timeout))
            except InvalidState:
                raise after_end(self._conn) from None
            except NatsError as error:
                raise _translate(error) from error

        def __aiter__(self) -> ObjectStore.ObjectWatcher:
            return self

        async def __anext__(self) -> api.ObjectInfo | None:
            try:
                return await self.updates(None)
            except BadSubscriptionError:  # `stop` was called
                raise StopAsyncIteration from None

    async def watch(
        self,
        ignore_deletes: bool = False,
        include_history: bool = False,
        meta_only: bool = False,
        updates_only: bool = False,
    ) -> ObjectStore.ObjectWatcher:
        """Watch the objects: those there are, then None, then each change."""
        try:
            source = await (await self._core()).watch(
                include_history=include_history,
                ignore_deletes=ignore_deletes,
                updates_only=updates_only,
            )
        except NatsError as error:
            raise _translate(error) from error
        return ObjectStore.ObjectWatcher(self._js._nc, source, updates_only)

    async def delete(self, name: str) -> ObjectStore.ObjectResult:
        """Delete an object."""
        try:
            store = await self._core()
            await store.delete(name)
            found = await store.get_info(name, show_deleted=True)
            return ObjectStore.ObjectResult(_info(found))
        except NatsError as error:
            raise _translate(error) from error

    async def list(self, ignore_deletes: bool = False) -> list[api.ObjectInfo]:
        """Return the objects, including deleted ones unless `ignore_deletes` is set."""
        try:
            found = await (await self._core()).list(show_deleted=not ignore_deletes)
        except NatsError as error:
            raise _translate(error) from error
        return [_info(each) for each in found]

    async def _core(self) -> CoreStore:
        return await self._js._core().object_store(self._name)


def _info(found: CoreInfo) -> api.ObjectInfo:
    options = found.options
    link = None if options is None else options.link
    made = None
    if options is not None:
        made = api.ObjectMetaOptions(
            link=None if link is None else api.ObjectLink(link.bucket, link.name or None),
            max_chunk_size=options.max_chunk_size or None,
        )
    headers = {name: values[0] for name, values in found.headers.items() if values}
    return api.ObjectInfo(
        name=found.name,
        bucket=found.bucket,
        nuid=found.nuid,
        size=found.size,
        mtime=None if found.mtime is None else str(found.mtime),
        chunks=found.chunks,
        digest=found.digest,
        deleted=found.deleted,
        description=found.description or None,
        headers=headers or None,
        options=made,
    )


def _pieces(data: Any) -> Any:
    """Return what jetstream stores: bytes, or an iterator over the pieces of a file."""
    if isinstance(data, str):
        return data.encode()
    if hasattr(data, "read"):
        return _read(getattr(data, "buffer", data))
    if not isinstance(data, _BYTES):
        raise TypeError("nats: invalid type for object store")
    return data


async def _read(file: Any) -> AsyncIterator[bytes]:
    while True:
        piece = await _call(file, "read", OBJ_DEFAULT_CHUNK_SIZE)
        if not piece:
            return
        yield piece.encode() if isinstance(piece, str) else piece


async def _call(file: Any, method: str, argument: object) -> Any:
    """Call a method of a file, in a thread unless it is a coroutine or the file is in memory."""
    function = getattr(file, method)
    if isinstance(file, io.BytesIO) or inspect.iscoroutinefunction(function):
        result = function(argument)
    else:
        loop = asyncio.get_running_loop()
        result = await loop.run_in_executor(None, function, argument)
    return await result if inspect.isawaitable(result) else result


def _translate(error: NatsError) -> Exception:
    for kind, made in (
        (core.ObjectNotFound, errors.ObjectNotFoundError),
        (core.ObjectAlreadyExists, errors.ObjectAlreadyExists),
        (core.ObjectCorrupt, errors.DigestMismatchError),
        (core.LinkUnreadable, errors.LinkIsABucketError),
        (BucketNotFound, errors.BucketNotFoundError),
        (InvalidName, errors.ObjectNotFoundError),
        (InvalidValue, errors.ObjectNotFoundError),
    ):
        if isinstance(error, kind):
            return made(description=str(error))
    return translate(error)
