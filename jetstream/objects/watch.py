"""ObjectWatcher: what happens to the objects of a bucket, as it happens.

It is a watch of the key-value store (kv/watch.py) whose keys are encoded names, and whose values
are what is told about objects.
"""

from __future__ import annotations

from jetstream.errors import InvalidResponse
from jetstream.kv.watch import WatchOptions, open_watch
from natsproto.session import check_flag

from .info import read_info

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Self

    from jetstream.kv.entry import KeyValueEntry
    from jetstream.kv.watch import KeyWatcher
    from jetstream.machine.iteration import MachineEvents

    from .info import ObjectInfo
    from .meta import MetaStore

_HISTORY = 1  # of what is told about an object: each replaces the one before


async def open_object_watch(
    metas: MetaStore, include_history: bool, ignore_deletes: bool, updates_only: bool
) -> ObjectWatcher:
    """The watcher, whose consumer is there."""
    check_flag("ignore_deletes", ignore_deletes)
    inner = await watch_infos(metas, include_history, updates_only)
    return ObjectWatcher(metas, inner, ignore_deletes)


async def watch_infos(
    metas: MetaStore, include_history: bool = False, updates_only: bool = False
) -> KeyWatcher:
    """The messages that tell about objects, unread."""
    options = WatchOptions(include_history=include_history, updates_only=updates_only)
    stream = metas.stream.name
    return await open_watch(metas.api, stream, metas.bucket, metas.infos, _HISTORY, options)


class ObjectWatcher:
    """Infos as they come: iterate it. Made by ObjectStore.watch; end it with `stop`.

    `initial` gives what is there now and ends; iterating the watcher gives all that was not taken
    by then, and each change, without end. It raises if the bucket is gone. Everything else is
    survived, and told by `events`.
    """

    def __init__(self, metas: MetaStore, watcher: KeyWatcher, ignore_deletes: bool) -> None:
        self._session = metas.api.session
        self._bucket = metas.bucket
        self._watcher = watcher
        self._ignore_deletes = ignore_deletes
        #: What happened: ConsumerReset, StreamRecreated. Iterate, or call next.
        self.events: MachineEvents = watcher.events

    @property
    def initialized(self) -> bool:
        """Whether all initial values were taken, or there were none."""
        return self._watcher.initialized

    @property
    def closed(self) -> bool:
        """Whether nothing will come any more."""
        return self._watcher.closed

    async def next(self, timeout: float | None = None) -> ObjectInfo:
        """The next info; TimeoutExpired, or InvalidState when it was stopped."""
        deadline = None if timeout is None else self._session.deadline(timeout)
        while True:
            left = None if deadline is None else max(0.0, deadline - self._session.port.now())
            info = self._read(await self._watcher.next(left))
            if info is not None:
                return info

    def initial(self) -> InitialObjects:
        """What was there, and was not taken yet: iterate it. It ends with the last one."""
        return InitialObjects(self)

    async def next_initial(self) -> ObjectInfo | None:
        """The next of those; None if there are no more."""
        while True:
            entry = await self._watcher.next_initial()
            info = None if entry is None else self._read(entry)
            if entry is None or info is not None:
                return info

    async def stop(self) -> None:
        """End now."""
        await self._watcher.stop()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ObjectInfo:
        while True:
            info = self._read(await self._watcher.__anext__())
            if info is not None:
                return info

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    def __repr__(self) -> str:
        return "<ObjectWatcher of %s>" % self._bucket

    def _read(self, entry: KeyValueEntry) -> ObjectInfo | None:
        """The info; None if it is not wanted, or none."""
        try:
            info = read_info(entry.value, entry.created)
        except InvalidResponse:
            return None  # OBJ-16
        return None if self._ignore_deletes and info.deleted else info


class InitialObjects:
    """What was there when a watch began: iterate it."""

    def __init__(self, watcher: ObjectWatcher) -> None:
        self._watcher = watcher

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ObjectInfo:
        info = await self._watcher.next_initial()
        if info is None:
            raise StopAsyncIteration
        return info
