"""KeyValue: one bucket, its keys and their values (ADR-8).

A bucket is a stream, a key is a subject of it, a value is a message, and a revision is the sequence
of that message. So a put is a publish, a deletion is a message with a marker in its headers, and
compare-and-set is a publish that expects a certain last sequence of its subject.
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
from natsproto.durations import check_seconds
from natsproto.hinting import lazy_hints
from natsproto.session import check_count
from natsproto.wire.text import shorten

from .bucket import ROLLUP, check_there, read_message
from .coding import PLAIN, Coded
from .config import KeyValueConfig, KeyValueStatus
from .entry import DEL, OPERATION, PURGE, KeyValueEntry, stored_entry
from .names import ALL_KEYS, STREAM, prefix_of
from .options import WatchOptions, WatchTarget
from .watch import KeyLister, KeyWatcher, open_watch

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Unpack

    from jetstream.api.client import ApiClient
    from jetstream.config import StreamConfig
    from jetstream.publish.headers import PublishOptions
    from jetstream.publish.request import Publisher
    from jetstream.streams.stream import Stream
    from natsproto.durations import Seconds
    from natsproto.wire.encode import BytesLike

    from .codecs import KeyCodec, ValueCodec
    from .coding import Plain

_PREFIX = "$JS.API"
_SHORTEST = 0.001
OLDER_THAN = 1800.0


class KeyValue:
    """A key-value bucket. Returned by methods of JetStream.

    Any replica or mirror may answer a read, so shortly after a write a read may still return the
    previous value. The leader checks writes that have a condition.
    """

    def __init__(
        self, publisher: Publisher, api: ApiClient, stream: Stream, coding: Plain = PLAIN
    ) -> None:
        self._publisher = publisher
        self._coding = coding
        self._api = api
        self._stream = stream
        config = stream.cached_info.config
        self.bucket: str = config.name[len(STREAM) :]
        self._prefix, self._put_prefix = _prefixes(config, self.bucket, api.prefix)
        self._direct = config.allow_direct
        self._history = config.max_msgs_per_subject

    def with_codecs(
        self,
        *,
        keys: KeyCodec | Sequence[KeyCodec] | None = None,
        values: ValueCodec | Sequence[ValueCodec] | None = None,
    ) -> KeyValue:
        """Return the same bucket with codecs of its keys and values (ADR-54).

        keys    one codec of keys or several, such as [PathCodec(), Base64Codec()]: the first one
                gets the key, and the last one returns the key that is stored
        values  one codec of values or several, such as AesGcmCodec(secret)

        They replace any codecs that this object has. All calls take and return decoded keys and
        values. CodecError: a stored key or value cannot be decoded.
        """
        coding = Coded(keys, values)  # KVCODEC-1
        return KeyValue(self._publisher, self._api, self._stream, coding)

    # Reading

    async def get(self, key: str, revision: int | None = None) -> KeyValueEntry:
        """Return the latest value of a key, or the one of this revision.

        KeyNotFound: the key does not exist. KeyDeleted, a KeyNotFound: it was deleted.
        """
        stored = self._coding.key(key)
        if revision is not None:
            check_count("revision", revision, 1, MOST_SEQUENCE, "KV-27")
        entry = self._coding.entry(await self._find(key, stored, revision), key)
        if entry.deleted:
            raise KeyDeleted(entry)  # KV-28
        return entry

    async def history(self, key: str) -> list[KeyValueEntry]:
        """Return all values and markers of a key, oldest first; raise KeyNotFound.

        If others write in the meantime, it returns as many entries as existed when the call began.
        Raises TimeoutExpired as `keys` does.
        """
        coding = self._coding
        options = WatchOptions(coding.key(key), include_history=True)
        entries: list[KeyValueEntry] = []
        async with await self._watch(options, PLAIN) as watcher:  # KV-30
            async for entry in watcher.initial():
                entries.append(coding.entry(entry, key))  # noqa: PERF401 - not on MicroPython
        if not entries:
            raise KeyNotFound(self.bucket, key)
        return entries

    async def keys(self, filters: str | Sequence[str] = ALL_KEYS) -> list[str]:
        """Return all keys, or those that match, sorted; an empty list if there are none.

        Even if others write in the meantime, the list contains every key that existed when the call
        began and that still exists.

        TimeoutExpired: no message arrived within the timeout of this JetStream.
        """
        found: set[str] = set()
        async with await self.watch(filters, meta_only=True) as watcher:
            async for entry in watcher.initial():
                if entry.deleted:
                    found.discard(entry.key)  # it may have existed until a moment ago
                else:
                    found.add(entry.key)
        return sorted(found)

    async def list_keys(self, filters: str | Sequence[str] = ALL_KEYS) -> KeyLister:
        """List keys one by one, for very many of them: `async with` the result, and iterate."""
        stored = self._coding.filters(filters)
        options = WatchOptions(stored, ignore_deletes=True, meta_only=True)  # KV-38
        return KeyLister(await self._watch(options, self._coding))

    async def watch(
        self,
        keys: str | Sequence[str] = ALL_KEYS,
        *,
        include_history: bool = False,
        ignore_deletes: bool = False,
        meta_only: bool = False,
        updates_only: bool = False,
        resume_from_revision: int | None = None,
    ) -> KeyWatcher:
        """Watch keys: `async with` the result, and iterate over their values and changes.

        keys             a key, a filter such as `a.*.>`, or several of them (since 2.10)
        include_history  start with all values that exist, not with the latest of each key
        ignore_deletes   leave out the markers of deleted keys
        meta_only        leave out the values
        updates_only     start with the next change
        resume_from_revision
                         start with this revision, such as the one after the last that was read

        Only one of include_history, updates_only and resume_from_revision can be given.
        """
        return await self._watch(
            WatchOptions(
                self._coding.filters(keys),
                include_history=include_history,
                ignore_deletes=ignore_deletes,
                meta_only=meta_only,
                updates_only=updates_only,
                resume_from_revision=resume_from_revision,
            ),
            self._coding,
        )

    async def watch_all(
        self,
        *,
        include_history: bool = False,
        ignore_deletes: bool = False,
        meta_only: bool = False,
        updates_only: bool = False,
        resume_from_revision: int | None = None,
    ) -> KeyWatcher:
        """Watch all keys: `watch` without `keys`, with the same options.

        include_history  start with all values that exist, not with the latest of each key
        ignore_deletes   leave out the markers of deleted keys
        meta_only        leave out the values
        updates_only     start with the next change
        resume_from_revision
                         start with this revision, such as the one after the last that was read
        """
        return await self.watch(
            include_history=include_history,
            ignore_deletes=ignore_deletes,
            meta_only=meta_only,
            updates_only=updates_only,
            resume_from_revision=resume_from_revision,
        )

    # Writing

    async def put(self, key: str, value: BytesLike) -> int:
        """Set the value of a key, and return the revision."""
        stored = self._coding.key(key, write=True)
        return await self._publish(stored, self._coding.value(value, stored))

    async def create(self, key: str, value: BytesLike, *, ttl: Seconds | str | None = None) -> int:
        """Set the value of a key that does not exist or was deleted; otherwise raise KeyExists.

        After `ttl` seconds the key expires; the bucket needs a limit_marker_ttl.
        """
        stored = self._coding.key(key, write=True)
        data = self._coding.value(value, stored)
        until = self._api.deadline()
        try:
            return await self._publish(stored, data, ttl=ttl, expect_last_subject_seq=0)  # KV-20
        except WrongLastSequence as error:
            refusal = error
        last = await self._marker(key, stored, refusal, self._api.until(until))  # D-CALL-18
        if last is None:
            raise KeyExists(self.bucket, key, refusal)
        left = max(until - self._api.session.port.now(), _SHORTEST)
        try:
            return await self._publish(stored, data, left, ttl=ttl, expect_last_subject_seq=last)
        except WrongLastSequence as error:
            raise KeyExists(self.bucket, key, error) from None

    async def update(self, key: str, value: BytesLike, last: int) -> int:
        """Update a key if its latest revision is `last` (0: the key must not exist).

        WrongLastRevision: the latest revision is different, and nothing was written.
        """
        stored = self._coding.key(key, write=True)
        check_count("last", last, 0, MOST_SEQUENCE, "KV-22")
        return await self._publish_after(key, stored, self._coding.value(value, stored), last)

    async def delete(self, key: str, *, last: int | None = None) -> int:
        """Mark a key as deleted, and return the revision of the marker; its history stays.

        With `last`, raise WrongLastRevision unless that is the latest revision of the key.
        """
        stored = self._coding.key(key)
        headers = {OPERATION: DEL}
        return await self._publish_after(key, stored, b"", last, headers=headers)  # KV-23

    async def purge(
        self, key: str, *, last: int | None = None, ttl: Seconds | str | None = None
    ) -> int:
        """Delete a key and its history; after `ttl` seconds the marker is removed as well."""
        stored = self._coding.key(key)
        headers = {OPERATION: PURGE, ROLLUP: "sub"}
        # KV-23, KV-24
        return await self._publish_after(key, stored, b"", last, headers=headers, ttl=ttl)

    async def purge_deletes(self, older_than: Seconds = OLDER_THAN) -> int:
        """Remove markers older than `older_than` seconds, and the values before any marker.

        Return the number of removed messages. Values that are written in the meantime stay.
        """
        age = check_seconds("older_than", older_than)
        markers: list[KeyValueEntry] = []
        # Stored entries, so that a key which no codec can decode does not matter.
        async with await self._watch(WatchOptions(meta_only=True), PLAIN) as watcher:
            async for entry in watcher.initial():
                if entry.deleted:
                    markers.append(entry)  # noqa: PERF401 - as above
        assert watcher.began is not None
        limit = watcher.began.ns - int(age * SECOND)
        removed = 0
        for entry in markers:
            end = entry.revision + 1 if entry.created.ns <= limit else entry.revision
            removed += await self._stream.purge(subject=self._prefix + entry.key, seq=end)  # KV-31
        return removed

    # The bucket

    async def status(self) -> KeyValueStatus:
        """Return the configuration and the state of the bucket; raise BucketNotFound."""
        try:
            return KeyValueStatus(await self._stream.info())
        except StreamNotFound:
            raise BucketNotFound(self.bucket) from None

    async def info(self) -> KeyValueConfig:
        """Return the current configuration of the bucket; raise BucketNotFound."""
        return (await self.status()).config

    if not TYPE_CHECKING:  # a type checker would accept every name
        __getattr__ = lazy_hints("jetstream.api.attributes", "KEY_VALUE")

    def __repr__(self) -> str:
        return "<KeyValue %s>" % self.bucket

    # How it works

    async def _watch(self, options: WatchOptions, coding: Plain) -> KeyWatcher:
        target = WatchTarget(
            self._api,
            self._stream.name,
            self.bucket,
            self._prefix,
            history=self._history,
            whole=True,
            coding=coding,
        )
        return await open_watch(KeyWatcher, target, options)

    async def _find(
        self,
        key: str,
        stored: str,
        revision: int | None = None,
        *,
        leader: bool = False,
        api: ApiClient | None = None,
    ) -> KeyValueEntry:
        """Return the stored entry, which may be a marker; raise KeyNotFound."""
        stream, subject = self._stream.name, self._prefix + stored
        direct = self._direct and not leader
        try:
            msg = await read_message(api or self._api, stream, subject, seq=revision, direct=direct)
        except MessageNotFound:
            raise KeyNotFound(self.bucket, key, revision) from None
        except StreamNotFound:
            raise BucketNotFound(self.bucket) from None
        if msg.subject != subject:
            raise KeyNotFound(self.bucket, key, revision)  # KV-27
        return stored_entry(msg, self.bucket, stored)

    async def _marker(
        self, key: str, stored: str, refusal: WrongLastSequence, api: ApiClient
    ) -> int | None:
        """Return the revision of the marker of a deleted key; None: the key exists."""
        last = refusal.last_seq
        entry: KeyValueEntry | None = None
        try:
            entry = await self._find(key, stored, api=api)
        except KeyNotFound:
            pass  # a replica may lag behind
        if entry is None or (last is not None and entry.revision != last):
            try:
                entry = await self._find(key, stored, leader=True, api=api)  # KV-21
            except KeyNotFound:
                return 0  # it was removed in the meantime
        return entry.revision if entry.deleted else None

    async def _publish(
        self,
        stored: str,
        value: BytesLike,
        timeout: float | None = None,
        **options: Unpack[PublishOptions],
    ) -> int:
        subject = self._put_prefix + stored
        try:
            ack = await self._publisher.publish(subject, value, timeout=timeout, **options)  # KV-18
        except NoStreamResponse:
            await check_there(self._stream, self.bucket)
            raise
        except TtlDisabled as error:
            text = "bucket %s does not allow a TTL of a key: it has no limit_marker_ttl"
            raise TtlDisabled(
                error.code, error.err_code, text % shorten(self.bucket)
            ) from None  # D-KV-49
        return ack.seq

    async def _publish_after(
        self,
        key: str,
        stored: str,
        value: BytesLike,
        last: int | None,
        **options: Unpack[PublishOptions],
    ) -> int:
        if last is None:
            return await self._publish(stored, value, **options)
        check_count("last", last, 0, MOST_SEQUENCE, "KV-22")
        options["expect_last_subject_seq"] = last
        try:
            return await self._publish(stored, value, **options)
        except WrongLastSequence as error:
            raise WrongLastRevision(self.bucket, key, last, error) from None


def _prefixes(config: StreamConfig, bucket: str, api: str) -> tuple[str, str]:
    """Return the prefixes of keys: in the stream, and for publishing (KV-19, KV-29)."""
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
