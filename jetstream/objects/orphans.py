"""Orphans: find and purge chunks that belong to no object.

A call that puts or deletes an object purges its obsolete chunks. But a program may end before it
does, and a server that is killed may restore messages that it had purged.

The subject of a chunk has the nuid that is also in the info of its object. The chunks are listed
before the infos, because an info is written after its chunks. A listing of infos may miss an object
that is renamed in the meantime, so there are two listings. Chunks without an info are then orphans,
or belong to a put in progress: the age of the newest chunk decides.
"""

from __future__ import annotations

from jetstream.api.stored import get_by_api
from jetstream.errors import BucketNotFound
from jetstream.errors.api import MessageNotFound, StreamNotFound
from jetstream.schema.timestamp import SECOND
from natsproto.durations import check_seconds

from .info import read_info
from .watch import watch_infos

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.durations import Seconds

    from .meta import MetaStore

OLDER_THAN = 3600.0
_LOOKS = 2


async def purge_orphans(metas: MetaStore, older_than: Seconds) -> int:
    """Purge orphans whose newest chunk is older than `older_than` seconds; count the chunks."""
    age = check_seconds("older_than", older_than)
    left = await _listed(metas)
    now = 0
    for _ in range(_LOOKS):
        if left:
            owned, now = await _owned(metas)
            left = [subject for subject in left if subject not in owned]
    limit = now - int(age * SECOND)
    removed = 0
    for subject in left:
        if await _is_old(metas, subject, limit):
            removed += await metas.stream.purge(subject=subject)
    return removed


async def _listed(metas: MetaStore) -> list[str]:
    """Return the subjects of all chunks."""
    try:
        info = await metas.stream.info(subjects_filter=metas.chunks + ">")
    except StreamNotFound:
        raise BucketNotFound(metas.bucket) from None
    return sorted(info.state.subjects)


async def _owned(metas: MetaStore) -> tuple[set[str], int]:
    """Return the subjects of chunks that belong to objects, and the time of the server.

    InvalidResponse: an info cannot be read, so its chunks are unknown (D-OBJ-38).
    """
    owned: set[str] = set()
    async with await watch_infos(metas) as watcher:
        async for entry in watcher.initial():
            info = read_info(entry.value, entry.created)
            if info.nuid and not info.deleted:
                owned.add(metas.chunks + info.nuid)
    assert watcher.began is not None
    return owned, watcher.began.ns


async def _is_old(metas: MetaStore, subject: str, limit: int) -> bool:
    """Return whether the newest chunk was stored at this time or earlier."""
    try:
        msg = await get_by_api(metas.api, metas.stream.name, {"last_by_subj": subject})
    except MessageNotFound:
        return False  # the chunks were purged in the meantime
    return msg.time.ns <= limit
