"""MetaStore: the infos of the objects of a bucket, read and replaced.

The info of an object is the last message of its subject. A change is a compare-and-set: the stream
stores it only if the info is still the one that was read. Otherwise it is read again, and the
change is applied to the new one (D-OBJ-13).
"""

from __future__ import annotations

from jetstream.api.stored import get_by_api
from jetstream.errors import BucketNotFound, NoStreamResponse, ObjectNotFound, PublishInDoubt
from jetstream.errors.api import ApiError, MessageNotFound, StreamNotFound, WrongLastSequence
from jetstream.kv.bucket import ROLLUP, read_message
from jetstream.kv.options import WatchTarget
from jetstream.publish.headers import MSG_ID
from jetstream.streams.stream import stream_through
from natsproto.errors import HeaderError, RemoteError, TimeoutExpired
from natsproto.session import check_flag

from .info import read_info
from .names import STREAM, chunks_of, encode_name, front_of, infos_of
from .sweep import ExpectedMeta, sweep

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from jetstream.api.client import ApiClient
    from jetstream.api.stored import StoredMsg
    from jetstream.publish.request import Publisher
    from jetstream.schema.pub_ack import PubAck
    from jetstream.streams.stream import Stream

    from .info import ObjectInfo

_SHORTEST = 0.001
_TRIES = 50  # each attempt is rejected because another client's change was first


class MetaEntry:
    """The info of an object, the sequence of its message, and the message's id."""

    __slots__ = ("id", "info", "seq")

    def __init__(self, msg: StoredMsg) -> None:
        self.info: ObjectInfo = read_info(msg.data, msg.time)
        self.seq: int = msg.seq
        self.id: str = ""
        try:
            if msg.headers is not None:
                self.id = msg.headers.get(MSG_ID)
        except HeaderError:
            pass  # written by another client


class MetaStore:
    """Read and replace the infos of one bucket."""

    def __init__(self, publisher: Publisher, api: ApiClient, stream: Stream) -> None:
        self.publisher = publisher
        self.api = api
        self.stream = stream
        self.bucket: str = stream.name[len(STREAM) :]
        #: Prefixes of subjects: of infos, of chunks, and `front` of both to publish to them.
        self.infos: str = infos_of(self.bucket)
        self.chunks: str = chunks_of(self.bucket)
        self.front: str = front_of(api.prefix)

    def through(self, api: ApiClient) -> MetaStore:
        """Return the same store; its requests share the timeout of this client."""
        return MetaStore(self.publisher, api, stream_through(self.stream, api))

    def target(self, prefix: str) -> WatchTarget:
        """Return the target of a watch: infos or chunks, which have no history."""
        return WatchTarget(self.api, self.stream.name, self.bucket, prefix)

    async def find(self, name: str, *, leader: bool = False) -> MetaEntry | None:
        """Return the info of an object, deleted or not; None if there is none."""
        subject = self.infos + encode_name(name)
        try:
            return MetaEntry(await self._read(subject, leader))
        except MessageNotFound:
            return None
        except StreamNotFound:
            raise BucketNotFound(self.bucket) from None

    async def get(self, name: str, show_deleted: bool = False) -> ObjectInfo:
        """Return the info of an object; raise ObjectNotFound if it is missing or deleted."""
        check_flag("show_deleted", show_deleted)
        found = await self.find(name)
        if found is None or (found.info.deleted and not show_deleted):
            raise ObjectNotFound(self.bucket, name)
        return found.info

    async def replace(
        self, name: str, change: Callable[[ObjectInfo | None], ObjectInfo | None]
    ) -> tuple[ObjectInfo | None, ObjectInfo | None, int]:
        """Replace the info of an object by the one that `change` returns; None: keep it.

        `change` is called with the current info. Return the old info, the new one, and the sequence
        of the new one.
        """
        id = self.api.session.connection.new_token()
        found = await self._find_surely(name)
        refused: ObjectInfo | None = None  # the old info at the previous try
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
                    return before, found.info, found.seq  # D-OBJ-14
                refused = before
                continue
            if ack.duplicate and tries:
                before = refused  # D-OBJ-14: that attempt succeeded, and was replaced since
            return before, info, ack.seq

    async def dated(self, info: ObjectInfo, seq: int) -> ObjectInfo:
        """Set the time at which the stream stored this info, as read from the leader."""
        try:
            info.mtime = (await get_by_api(self.api, self.stream.name, {"seq": seq})).time
        except RemoteError:
            pass  # replaced in the meantime, or no response: it is stored in any case
        return info

    async def purge_chunks(self, info: ObjectInfo) -> None:
        """Purge the chunks of an object that was replaced or deleted.

        If another client deleted it, that client may not have purged them: purge them as well.
        """
        if info.nuid and (info.chunks or info.deleted):
            await self._purge(self.chunks + info.nuid)

    def purge_if_deleted(self, info: ObjectInfo) -> None:
        """Purge the chunks in the background if the object turns out to be deleted."""
        if not info.nuid:
            return  # OBJ-42
        chunks = self.chunks + info.nuid
        expected = ExpectedMeta(
            self.infos + encode_name(info.name), info.nuid, chunks, deleted=True
        )
        sweep(self.api, self.stream.name, "", expected=expected)

    async def purge_info(self, name: str, seq: int) -> None:
        """Purge the infos under the old name of a renamed object, up to this sequence."""
        await self._purge(self.infos + encode_name(name), seq + 1)

    async def _purge(self, subject: str, end: int = 0) -> None:
        try:
            await self.stream.purge(subject=subject, seq=end or None)
        except BaseException as error:
            # OBJ-24: their object is gone in any case, and no other client will purge them.
            sweep(self.api, self.stream.name, subject, end)
            if not isinstance(error, RemoteError):
                raise

    async def _find_surely(self, name: str, *, leader: bool = False) -> MetaEntry | None:
        """Find the info; retry once, because the request may be lost with a connection."""
        metas = self.through(self.api.bounded())
        try:
            return await metas.through(metas.api.first_try()).find(name, leader=leader)
        except TimeoutExpired:
            return await metas.find(name, leader=True)

    async def _read(self, subject: str, leader: bool) -> StoredMsg:
        direct = self.stream.cached_info.config.allow_direct and not leader
        return await read_message(self.api, self.stream.name, subject, direct=direct)

    async def _write(self, info: ObjectInfo, id: str, last: int) -> PubAck:
        subject = self.front + self.infos + encode_name(info.name)
        # Through a window, which sends it again after a lost connection.
        api = self.api
        left = max(api.deadline() - api.session.port.now(), _SHORTEST)
        async with self.publisher.window(max_pending=1, ack_timeout=left) as window:
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
                    # The second attempt was rejected. That says nothing about the first one.
                    raise PublishInDoubt("%s: it may or may not be stored" % error) from None
                raise


def is_in_doubt(error: BaseException) -> bool:
    """Return whether the info may be stored although `replace` raised this error."""
    return not isinstance(error, (ApiError, NoStreamResponse))
