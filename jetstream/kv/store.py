"""KeyValue: one bucket, its keys and their values (ADR-8).

A bucket is a stream, a key a subject of it, a value a message, a revision its sequence. So a put is
a publish, a deletion is a message that says so, and compare-and-set is the expectation of a publish
about the last sequence of its subject.
"""

from __future__ import annotations

from jetstream.errors import NoStreamResponse
from jetstream.errors.api import MessageNotFound, StreamNotFound, TtlDisabled, WrongLastSequence
from jetstream.errors.kv import (
    BucketNotFound,
    KeyDeleted,
    KeyExists,
    KeyNotFound,
    WrongLastRevision,
)
from jetstream.schema.timestamp import SECOND
from jetstream.schema.types import MOST_SEQUENCE
from natsproto.session import check_count, check_seconds
from natsproto.wire.text import shorten

from .bucket import ROLLUP, check_there, read_message
from .config import KeyValueConfig, KeyValueStatus
from .entry import DEL, OPERATION, PURGE, KeyValueEntry, stored_entry
from .names import ALL_KEYS, STREAM, check_key, prefix_of
from .watch import KeyLister, KeyWatcher, WatchOptions, WatchTarget, open_watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Unpack

    from jetstream.api.client import ApiClient
    from jetstream.config import StreamConfig
    from jetstream.publish.headers import PublishOptions
    from jetstream.publish.request import Publisher
    from jetstream.stream import Stream
    from natsproto.wire.encode import BytesLike

    from .options import WatchKeywords

_PREFIX = "$JS.API"
OLDER_THAN = 1800.0


class KeyValue:
    """A bucket. Made by the calls of JetStream.

    Reads are answered by any replica, and by mirrors: shortly after a write they may still give
    what was there before. What is written with an expectation is checked by the leader.
    """

    def __init__(self, publisher: Publisher, api: ApiClient, stream: Stream) -> None:
        self._publisher = publisher
        self._api = api
        self._stream = stream
        config = stream.cached_info.config
        self.bucket = config.name[len(STREAM) :]
        self._prefix, self._put_prefix = _prefixes(config, self.bucket, api.prefix)
        self._direct = config.allow_direct
        self._target = WatchTarget(
            api,
            stream.name,
            self.bucket,
            self._prefix,
            history=config.max_msgs_per_subject,
            whole=True,
        )

    # Reading

    async def get(self, key: str, revision: int | None = None) -> KeyValueEntry:
        """The latest value of the key, or the one of this revision.

        KeyNotFound; KeyDeleted, which is one, if there is but a marker.
        """
        check_key(key)
        if revision is not None:
            check_count("revision", revision, 1, MOST_SEQUENCE, "KV-27")
        entry = await self._find(key, revision)
        if entry.deleted:
            raise KeyDeleted(entry)
        return entry

    async def history(self, key: str) -> list[KeyValueEntry]:
        """All values and markers that there are of the key, oldest first; KeyNotFound.

        While others write, as many as there were when the call began. TimeoutExpired as for `keys`.
        """
        check_key(key)
        entries: list[KeyValueEntry] = []
        async with await self.watch(key, include_history=True) as watcher:
            async for entry in watcher.initial():
                entries.append(entry)  # noqa: PERF401 - MicroPython has no such comprehensions
        if not entries:
            raise KeyNotFound(self.bucket, key)
        return entries

    async def keys(self, filters: str | Sequence[str] = ALL_KEYS) -> list[str]:
        """All keys, or those that match, sorted; an empty list if there are none.

        While others write, every key that was there when the call began and still is. If no
        message arrives for as long as a call of this JetStream may take: TimeoutExpired.
        """
        found: set[str] = set()
        async with await self.watch(filters, meta_only=True) as watcher:
            async for entry in watcher.initial():
                if entry.deleted:
                    found.discard(entry.key)  # it may have been there a moment ago
                else:
                    found.add(entry.key)
        return sorted(found)

    async def list_keys(self, filters: str | Sequence[str] = ALL_KEYS) -> KeyLister:
        """The same one by one, whatever their number: `async with` it, and iterate."""
        options = WatchOptions(filters, ignore_deletes=True, meta_only=True)
        return KeyLister(await self._watch(options))

    async def watch(
        self, keys: str | Sequence[str] = ALL_KEYS, **options: Unpack[WatchKeywords]
    ) -> KeyWatcher:
        """Watch keys: `async with` the result, and iterate over their values and changes.

        keys             a key, a filter such as `a.*.>`, or several of them (since 2.10)
        include_history  start with all values that exist, not with the latest of each key
        updates_only     start with the next change
        resume_from_revision
                         start with this revision, such as the one after the last that was read
        ignore_deletes   leave out the markers of deleted keys
        meta_only        leave out the values
        """
        return await self._watch(WatchOptions(keys, **options))

    async def watch_all(self, **options: Unpack[WatchKeywords]) -> KeyWatcher:
        """Watch all keys; the options are those of `watch`."""
        return await self._watch(WatchOptions(**options))

    # Writing

    async def put(self, key: str, value: BytesLike) -> int:
        """Give the key this value; returns the revision."""
        check_key(key, write=True)
        return await self._publish(key, value)

    async def create(self, key: str, value: BytesLike, *, ttl: float | str | None = None) -> int:
        """The same if the key is not there, or was deleted; else KeyExists.

        With a `ttl` in seconds it goes by itself; the bucket needs a limit_marker_ttl.
        """
        check_key(key, write=True)
        try:
            return await self._publish(key, value, ttl=ttl, expect_last_subject_seq=0)
        except WrongLastSequence as error:
            refusal = error
        last = await self._marker(key, refusal)
        if last is None:
            raise KeyExists(self.bucket, key, refusal)
        try:
            return await self._publish(key, value, ttl=ttl, expect_last_subject_seq=last)
        except WrongLastSequence as error:
            raise KeyExists(self.bucket, key, error) from None

    async def update(self, key: str, value: BytesLike, last: int) -> int:
        """The same if its latest revision is `last` (0: it never was there): WrongLastRevision."""
        check_key(key, write=True)
        check_count("last", last, 0, MOST_SEQUENCE, "KV-22")
        return await self._publish_after(key, value, last)

    async def delete(self, key: str, *, last: int | None = None) -> int:
        """Mark the key as deleted; its history stays. Returns the revision of the marker.

        With `last` only if that is its latest revision: WrongLastRevision.
        """
        check_key(key)
        return await self._publish_after(key, b"", last, headers={OPERATION: DEL})

    async def purge(
        self, key: str, *, last: int | None = None, ttl: float | str | None = None
    ) -> int:
        """The same, and its history goes. With a `ttl` in seconds the marker goes as well."""
        check_key(key)
        headers = {OPERATION: PURGE, ROLLUP: "sub"}
        return await self._publish_after(key, b"", last, headers=headers, ttl=ttl)

    async def purge_deletes(self, older_than: float = OLDER_THAN) -> int:
        """Remove markers that are older, in seconds, and whatever is before any marker.

        Returns how many messages were removed. What happens to a key meanwhile stays.
        """
        check_seconds("older_than", older_than)
        markers: list[KeyValueEntry] = []
        async with await self.watch(meta_only=True) as watcher:
            async for entry in watcher.initial():
                if entry.deleted:
                    markers.append(entry)  # noqa: PERF401 - as above
        assert watcher.began is not None
        limit = watcher.began.ns - int(older_than * SECOND)
        removed = 0
        for entry in markers:
            end = entry.revision + 1 if entry.created.ns <= limit else entry.revision
            removed += await self._stream.purge(subject=self._prefix + entry.key, seq=end)
        return removed

    # The bucket

    async def status(self) -> KeyValueStatus:
        """Its configuration and what it holds; BucketNotFound."""
        try:
            return KeyValueStatus(await self._stream.info())
        except StreamNotFound:
            raise BucketNotFound(self.bucket) from None

    async def info(self) -> KeyValueConfig:
        """Its configuration, as the server has it now; BucketNotFound."""
        return (await self.status()).config

    def __repr__(self) -> str:
        return "<KeyValue %s>" % self.bucket

    # How it works

    async def _watch(self, options: WatchOptions) -> KeyWatcher:
        return await open_watch(KeyWatcher, self._target, options)

    async def _find(
        self, key: str, revision: int | None = None, *, leader: bool = False
    ) -> KeyValueEntry:
        """The entry, marker or not; KeyNotFound."""
        stream, subject = self._stream.name, self._prefix + key
        direct = self._direct and not leader
        try:
            msg = await read_message(self._api, stream, subject, seq=revision, direct=direct)
        except MessageNotFound:
            raise KeyNotFound(self.bucket, key, revision) from None
        except StreamNotFound:
            raise BucketNotFound(self.bucket) from None
        if msg.subject != subject:
            raise KeyNotFound(self.bucket, key, revision)  # KV-27
        return stored_entry(msg, self.bucket, key)

    async def _marker(self, key: str, refusal: WrongLastSequence) -> int | None:
        """The revision of the marker if the key is deleted, by those who know; None: it is not."""
        told = refusal.last_seq
        entry: KeyValueEntry | None = None
        try:
            entry = await self._find(key)
        except KeyNotFound:
            pass  # by one who may not know it yet
        if entry is None or (told is not None and entry.revision != told):
            try:
                entry = await self._find(key, leader=True)  # KV-21
            except KeyNotFound:
                return 0  # gone meanwhile
        return entry.revision if entry.deleted else None

    async def _publish(self, key: str, value: BytesLike, **options: Unpack[PublishOptions]) -> int:
        try:
            ack = await self._publisher.publish(self._put_prefix + key, value, **options)
        except NoStreamResponse:
            await check_there(self._stream, self.bucket)
            raise
        except TtlDisabled as error:
            text = "bucket %s does not allow a TTL of a key: it has no limit_marker_ttl"
            raise TtlDisabled(
                error.code, error.err_code, text % shorten(self.bucket)
            ) from None  # KV-49
        return ack.seq

    async def _publish_after(
        self, key: str, value: BytesLike, last: int | None, **options: Unpack[PublishOptions]
    ) -> int:
        if last is None:
            return await self._publish(key, value, **options)
        check_count("last", last, 0, MOST_SEQUENCE, "KV-22")
        options["expect_last_subject_seq"] = last
        try:
            return await self._publish(key, value, **options)
        except WrongLastSequence as error:
            raise WrongLastRevision(self.bucket, key, last, error) from None


def _prefixes(config: StreamConfig, bucket: str, api: str) -> tuple[str, str]:
    """What subjects of keys start with: in the stream, and to publish to (KV-19, KV-29)."""
    own = prefix_of(bucket)
    front = "" if api == _PREFIX else api + "."
    mirror = config.mirror
    if mirror is None:
        return own, front + own
    is_bucket = mirror.name.startswith(STREAM)
    origin = prefix_of(mirror.name[len(STREAM) :]) if is_bucket else own
    if mirror.external is not None and mirror.external.api:
        front = mirror.external.api + "."
    moved = [each.dest for each in mirror.subject_transforms if each.dest.startswith(own)]
    return own if moved else origin, front + origin
