"""Upload: an object that is being put into a bucket.

    add       send the next piece of data: chunks are published through a window that holds a few
              megabytes
    finish    wait for all acknowledgments, then write the info, which makes the object visible
    give_up   after an error: purge the chunks that were stored
    abandon   the same without waiting, for a put that is canceled

Chunks have message ids, so they can be sent again after a lost connection and are stored once. The
sequences in the acknowledgments must increase, which shows that chunks are stored in order.
"""

from __future__ import annotations

from jetstream.errors import ObjectCorrupt, PublishTimeout
from jetstream.streams.stream import stream_through
from natsproto import encode
from natsproto.errors import InvalidValue, TimeoutExpired
from natsproto.session import check_count

from .info import ObjectInfo, ObjectMetaOptions, write_digest
from .meta import is_in_doubt
from .names import encode_name
from .sweep import ExpectedMeta, sweep

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.publish.source import Source
    from jetstream.publish.window_machine import Publication
    from natsproto.port import Lock
    from natsproto.wire.encode import BytesLike

    from .info import ObjectMeta
    from .meta import MetaStore
    from .sweep import Sweep

CHUNK = 128 * 1024
AHEAD = 4 * 1024 * 1024
_MOST_CHUNKS = 1000  # in flight
_HEADERS = 128  # bytes of a chunk's headers, at most


async def send_all(source: Source, upload: Upload, lock: Lock) -> ObjectInfo:
    """Put all data of the source. The lock is free while the source is read, which may be slow."""
    try:
        while True:
            piece = await source.next()
            with lock:
                if piece is None:
                    return await upload.finish()
                await upload.add(piece)
    except Exception as error:
        with lock:
            await upload.give_up(error)
        raise
    except BaseException:
        with lock:
            upload.abandon()
        raise


class Upload:
    """Upload one object. `meta` has a checked name, and no link."""

    def __init__(self, metas: MetaStore, meta: ObjectMeta, chunk_size: int | None) -> None:
        default = 0 if meta.options is None else meta.options.max_chunk_size
        self.chunk_size: int = self._check_size(
            metas, default if chunk_size is None else chunk_size
        )
        from hashlib import sha256

        self._metas = metas
        self._meta = meta
        self._nuid = metas.api.session.connection.new_token()
        self._subject = metas.chunks + self._nuid
        self._hash = sha256()
        self._size = 0
        self._chunks = 0
        self._held: list[bytes] = []  # less than a chunk
        self._room = self.chunk_size
        self._flying: list[Publication] = []
        self._last = 0  # the sequence of the last acknowledged chunk
        self._again = False  # whether a chunk was sent a second time
        self._in_doubt = False  # whether the info was sent, and may be stored
        self._there = False  # whether the info is stored
        self._before: ObjectInfo | None = None
        most = min(max(1, AHEAD // self.chunk_size), _MOST_CHUNKS)  # D-OBJ-19
        self._window = metas.publisher.window(max_pending=most)

    @staticmethod
    def _check_size(metas: MetaStore, size: int) -> int:
        given = check_count("chunk_size", size or CHUNK, 1, rule="OBJ-17")
        info = metas.api.session.connection.info
        if info is None or not 0 < info.max_payload < given + _HEADERS:
            return given
        largest = max(1, info.max_payload - _HEADERS)
        if not size:
            return largest  # OBJ-43
        text = "chunk_size %d exceeds %d: the server's max_payload is %d, with headers"
        raise InvalidValue(text % (size, largest, info.max_payload), "D-OBJ-18")

    async def add(self, piece: BytesLike) -> None:
        """Add data; wait for room in the window. Raise the error of a chunk that failed."""
        data = piece if isinstance(piece, bytes) else encode.check_data(piece)
        start = 0
        while len(data) - start >= self._room:
            end = start + self._room
            self._held.append(data[start:end])
            start = end
            await self._send()
        if start < len(data):
            self._held.append(data[start:])
            self._room -= len(data) - start

    async def finish(self) -> ObjectInfo:  # OBJ-22
        """Send the rest, wait for the acknowledgments, write the info, and return it."""
        if self._held:
            await self._send()
        while self._flying:
            await self._flying[0].result()
            self._settle()
        await self._window.close()
        if self._again:
            await self._count()
        try:
            before, info, seq = await self._metas.replace(self._meta.name, self._replace)
        except BaseException as error:
            self._in_doubt = is_in_doubt(error)
            raise
        self._there = True
        assert info is not None
        # D-CALL-21: the put succeeds without responses to these, so they share one timeout.
        metas = self._metas.through(self._metas.api.bounded())
        if before is not None:
            await metas.purge_chunks(before)  # OBJ-24
        return await metas.dated(info, seq)

    async def give_up(self, error: Exception) -> None:
        """Purge the stored chunks before the error is raised, within the timeout of a call."""
        machine = self.abandon()
        if machine is None or isinstance(error, (TimeoutExpired, PublishTimeout)):
            return  # D-CALL-21: the call has waited for the server already
        session = self._metas.api.session
        deadline = session.deadline(self._metas.api.timeout)
        try:
            while not machine.done:
                await session.wait(machine, deadline, "purge")
        except TimeoutExpired:
            pass  # the purge continues in the background

    def abandon(self) -> Sweep | None:
        """Purge the chunks without waiting (OBJ-25); return None if the object is stored."""
        self._window.abandon()
        metas = self._metas
        if self._there:
            return None
        expected = None
        if self._in_doubt:
            before = self._before
            old = "" if before is None or not before.chunks else metas.chunks + before.nuid
            expected = ExpectedMeta(metas.infos + encode_name(self._meta.name), self._nuid, old)
        return sweep(metas.api, metas.stream.name, self._subject, expected=expected)

    # How it works

    async def _send(self) -> None:
        chunk = self._held[0] if len(self._held) == 1 else b"".join(self._held)
        self._held = []
        self._room = self.chunk_size
        self._hash.update(chunk)
        self._size += len(chunk)
        self._chunks += 1
        id = "%s.%d" % (self._nuid, self._chunks)
        subject = self._metas.front + self._subject
        self._flying.append(await self._window.publish(subject, chunk, msg_id=id))  # D-OBJ-20
        self._settle()
        while self._flying and self._flying[0].trouble is not None:
            # The first chunk is sent again: later ones must not overtake it.
            await self._flying[0].result()
            self._settle()

    def _settle(self) -> None:
        """Check the acknowledgments that have arrived for the first chunks in flight."""
        while self._flying and self._flying[0].done:
            publication = self._flying.pop(0)
            if publication.error is not None:
                publication.error_raised = True
                raise publication.error
            ack = publication.ack
            assert ack is not None
            if ack.seq <= self._last:
                raise self._corrupt("its chunks were not stored in order")
            self._last = ack.seq
            if publication.trouble is not None:
                self._again = True

    async def _count(self) -> None:
        """Compare the number of stored chunks after a resend: the stream forgets ids (D-OBJ-21)."""
        api = self._metas.api.bounded()
        stream = self._metas.stream
        try:
            first = stream_through(stream, api.first_try())
            info = await first.info(subjects_filter=self._subject)
        except TimeoutExpired:  # lost with a connection
            info = await stream_through(stream, api).info(subjects_filter=self._subject)
        stored = info.state.subjects.get(self._subject, 0)
        if stored != self._chunks:
            raise self._corrupt("%d chunks are stored, not %d" % (stored, self._chunks))

    def _corrupt(self, why: str) -> ObjectCorrupt:
        return ObjectCorrupt(self._metas.bucket, self._meta.name, why)

    def _replace(self, before: ObjectInfo | None) -> ObjectInfo:
        self._before = before
        meta = self._meta
        info = ObjectInfo(name=meta.name)
        for name in ("description", "headers", "metadata"):
            if getattr(meta, name):
                setattr(info, name, getattr(meta, name))
        info.options = ObjectMetaOptions(max_chunk_size=self.chunk_size)
        info.bucket = self._metas.bucket
        info.nuid = self._nuid
        info.size = self._size
        info.chunks = self._chunks
        info.digest = write_digest(self._hash.digest())
        return info
