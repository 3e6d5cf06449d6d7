"""MetaStore: the infos of the objects of a bucket, read and replaced.

The info of an object is the last message of its subject. A change is a compare-and-set: the stream
stores it only if the info is still the one that was read. Otherwise it is read again, and the
change is applied to the new one (OBJ-13).
"""

from __future__ import annotations

from jetstream.api.stored import get_by_api
from jetstream.errors import BucketNotFound, NoStreamResponse, ObjectNotFound, PublishInDoubt
from jetstream.errors.api import ApiError, MessageNotFound, StreamNotFound, WrongLastSequence
from jetstream.kv.bucket import ROLLUP, read_message
from jetstream.kv.watch import WatchTarget
from jetstream.publish.headers import MSG_ID
from natsproto.errors import HeaderError, RemoteError, TimeoutExpired
from natsproto.session import check_flag

from .info import read_info
from .names import STREAM, chunks_of, encode_name, front_of, infos_of
from .sweep import ExpectedMeta, sweep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from jetstream.api.client import ApiClient
    from jetstream.api.stored import StoredMsg
    from jetstream.publish.request import Publisher
    from jetstream.schema.info import PubAck
    from jetstream.stream import Stream

    from .info import ObjectInfo

_TRIES = 50  # each of them was refused because somebody else had success


class MetaEntry:
    """The info of an object, the sequence of its message, and the message's id."""

    __slots__ = ("id", "info", "seq")

    def __init__(self, msg: StoredMsg) -> None:
        self.info = read_info(msg.data, msg.time)
        self.seq = msg.seq
        self.id = ""
        try:
            if msg.headers is not None:
                self.id = msg.headers.get(MSG_ID)
        except HeaderError:
            pass  # not ours


class MetaStore:
    """Those of one bucket."""

    def __init__(self, publisher: Publisher, api: ApiClient, stream: Stream) -> None:
        self.publisher = publisher
        self.api = api
        self.stream = stream
        self.bucket = stream.name[len(STREAM) :]
        #: What subjects start with: of infos, of chunks; and both where they are published to.
        self.infos = infos_of(self.bucket)
        self.chunks = chunks_of(self.bucket)
        self.front = front_of(api.prefix)

    def target(self, prefix: str) -> WatchTarget:
        """Return what to watch: infos or chunks, none of which has a history."""
        return WatchTarget(self.api, self.stream.name, self.bucket, prefix)

    async def find(self, name: str, *, leader: bool = False) -> MetaEntry | None:
        """What is told about it, deleted or not; None if nothing is."""
        subject = self.infos + encode_name(name)
        try:
            return MetaEntry(await self._read(subject, leader))
        except MessageNotFound:
            return None
        except StreamNotFound:
            raise BucketNotFound(self.bucket) from None

    async def get(self, name: str, show_deleted: bool = False) -> ObjectInfo:
        """The same; ObjectNotFound if there is none, or none that is not deleted."""
        check_flag("show_deleted", show_deleted)
        found = await self.find(name)
        if found is None or (found.info.deleted and not show_deleted):
            raise ObjectNotFound(self.bucket, name)
        return found.info

    async def replace(
        self, name: str, change: Callable[[ObjectInfo | None], ObjectInfo | None]
    ) -> tuple[ObjectInfo | None, ObjectInfo | None, int]:
        """Write what `change` makes of what there is; None: nothing is to be changed.

        Returns what there was, what there is now, and its sequence.
        """
        id = self.api.session.connection.new_token()
        found = await self._find_surely(name)
        refused: ObjectInfo | None = None  # what there was at the try before
        tries = 0
        while True:
            info = change(None if found is None else found.info)
            before = None if found is None else found.info
            if info is None:
                return before, None, 0
            try:
                ack = await self._write(info, id, 0 if found is None else found.seq)
            except WrongLastSequence:
                tries += 1
                if tries == _TRIES:
                    raise
                found = await self._find_surely(name, leader=True)
                if found is not None and found.id == id:
                    return before, found.info, found.seq  # OBJ-14
                refused = before
                continue
            if ack.duplicate and tries:
                before = refused  # OBJ-14: that try had success, and was replaced since
            return before, info, ack.seq

    async def dated(self, info: ObjectInfo, seq: int) -> ObjectInfo:
        """With the time that the stream has written it, by the leader, who has it."""
        try:
            info.mtime = (await get_by_api(self.api, self.stream.name, {"seq": seq})).time
        except RemoteError:
            pass  # replaced meanwhile, or nobody tells: it is stored all the same
        return info

    async def purge_chunks(self, info: ObjectInfo) -> None:
        """The object was replaced or deleted: its chunks belong to nobody any more.

        If it was deleted by somebody else, who may not have come so far, they go as well.
        """
        if info.nuid and (info.chunks or info.deleted):
            await self._purge(self.chunks + info.nuid)

    def purge_if_deleted(self, info: ObjectInfo) -> None:
        """Nobody says whether the object is deleted: if it is, its chunks go, in the background."""
        if not info.nuid:
            return  # OBJ-42
        chunks = self.chunks + info.nuid
        expected = ExpectedMeta(
            self.infos + encode_name(info.name), info.nuid, chunks, deleted=True
        )
        sweep(self.api, self.stream.name, "", expected=expected)

    async def purge_info(self, name: str, seq: int) -> None:
        """The object was renamed: what was told under this name, up to this sequence, goes."""
        await self._purge(self.infos + encode_name(name), seq + 1)

    async def _purge(self, subject: str, end: int = 0) -> None:
        try:
            await self.stream.purge(subject=subject, seq=end or None)
        except BaseException as error:
            # OBJ-24: what it belonged to is gone all the same, and nobody else will do it.
            sweep(self.api, self.stream.name, subject, end)
            if not isinstance(error, RemoteError):
                raise

    async def _find_surely(self, name: str, *, leader: bool = False) -> MetaEntry | None:
        """A lost connection takes a question along; after so much it is asked again."""
        try:
            return await self.find(name, leader=leader)
        except TimeoutExpired:
            return await self.find(name, leader=True)

    async def _read(self, subject: str, leader: bool) -> StoredMsg:
        direct = self.stream.cached_info.config.allow_direct and not leader
        return await read_message(self.api, self.stream.name, subject, direct=direct)

    async def _write(self, info: ObjectInfo, id: str, last: int) -> PubAck:
        subject = self.front + self.infos + encode_name(info.name)
        # By a window, which sends it again after a lost connection.
        async with self.publisher.window(max_pending=1) as window:
            publication = await window.publish(
                subject,
                info.encode(),
                headers={ROLLUP: "sub"},  # OBJ-12
                msg_id=id,
                expect_last_subject_seq=last,
            )
            try:
                return await publication.result()
            except WrongLastSequence:
                raise
            except ApiError as error:
                trouble = publication.trouble
                if trouble is not None and trouble.in_doubt:
                    # The second of two was refused. That says nothing about the first.
                    raise PublishInDoubt("%s: it may be stored or not" % error) from None
                raise


def is_in_doubt(error: BaseException) -> bool:
    """Whether an info may be written though `replace` has raised this."""
    return not isinstance(error, (ApiError, NoStreamResponse))
