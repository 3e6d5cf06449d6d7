"""ObjectWatcher: the changes of the objects of a bucket as they happen.

It is a watch (kv/watcher.py) whose keys are encoded names, and whose values are infos of objects.
"""

from __future__ import annotations

from jetstream.errors import InvalidResponse
from jetstream.kv.options import WatchOptions
from jetstream.kv.watch import KeyWatcher, open_watch
from jetstream.kv.watcher import Initial, Watcher

from .info import ObjectInfo, read_info

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.kv.entry import KeyValueEntry

    from .meta import MetaStore

    _ObjectWatcher = Watcher[ObjectInfo]
    _InitialObjects = Initial[ObjectInfo]
else:
    _ObjectWatcher = Watcher
    _InitialObjects = Initial


async def watch_infos(metas: MetaStore) -> KeyWatcher:  # OBJ-36
    """Watch the messages with the infos of objects, as entries that are not decoded."""
    return await open_watch(KeyWatcher, metas.target(metas.infos), WatchOptions())


class InitialObjects(_InitialObjects):
    """Iterate the objects that existed when a watch began. Returned by ObjectWatcher.initial."""


class ObjectWatcher(_ObjectWatcher):
    """Watch objects: iterate over their infos. Returned by ObjectStore.watch; end it with `stop`.

    `initial` returns the objects that exist now, and ends. Iterating the watcher returns the rest
    of them and then each change, without end. It raises BucketNotFound if the bucket is deleted;
    other failures are recovered from, and reported by `events`.
    """

    def initial(self) -> InitialObjects:
        """Return an iterator over the initial objects that were not read yet."""
        return InitialObjects(self)

    def _read(self, entry: KeyValueEntry) -> ObjectInfo | None:
        try:
            info = read_info(entry.value, entry.created)
        except InvalidResponse:
            return None  # OBJ-16
        return None if self._options.ignore_deletes and info.deleted else info
