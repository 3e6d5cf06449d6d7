"""Orphans: chunks that belong to no object, found and purged.

Whoever puts or deletes an object purges the chunks that nobody needs any more. But a program may
end before it comes to that; and a server that is killed may bring back what it had purged.

Chunks have a nuid, and so has the info of the object that they belong to. First the chunks are
listed, then the infos, because an object is told of behind its chunks. An object that gets another
name meanwhile may be missed by one look at the infos: so there are two. What nothing tells about by
then is an orphan, or belongs to a put that is under way: that is told by the age of its last chunk.
"""

from __future__ import annotations

from jetstream.api.stored import get_by_api
from jetstream.errors import BucketNotFound
from jetstream.errors.api import MessageNotFound, StreamNotFound
from jetstream.schema.timestamp import SECOND
from natsproto.session import check_seconds

from .info import read_info
from .watch import watch_infos

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .meta import MetaStore

OLDER_THAN = 3600.0
_LOOKS = 2


async def purge_orphans(metas: MetaStore, older_than: float) -> int:
    """Purge those whose last chunk is older than so many seconds; how many chunks that were."""
    check_seconds("older_than", older_than)
    left = await _listed(metas)
    now = 0
    for _ in range(_LOOKS):
        if left:
            owned, now = await _owned(metas)
            left = [subject for subject in left if subject not in owned]
    limit = now - int(older_than * SECOND)
    removed = 0
    for subject in left:
        if await _is_old(metas, subject, limit):
            removed += await metas.stream.purge(subject=subject)
    return removed


async def _listed(metas: MetaStore) -> list[str]:
    """The subjects of all chunks."""
    try:
        info = await metas.stream.info(subjects_filter=metas.chunks + ">")
    except StreamNotFound:
        raise BucketNotFound(metas.bucket) from None
    return sorted(info.state.subjects)


async def _owned(metas: MetaStore) -> tuple[set[str], int]:
    """The subjects of chunks that objects have, and the time of the server.

    InvalidResponse if an info cannot be read: nobody knows which chunks are its own (OBJ-38).
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
    """Whether the last chunk came before that time."""
    try:
        msg = await get_by_api(metas.api, metas.stream.name, {"last_by_subj": subject})
    except MessageNotFound:
        return False  # there is none any more
    return msg.time.ns <= limit
