"""Errors of buckets and keys. Import them from jetstream.errors, which has the tree.

Most are an API error with the name of a bucket or key: a KeyExists, for example, is the
WrongLastSequence with which the stream responded, and keeps its `code` and `err_code`.
"""

from __future__ import annotations

from natsproto.wire.text import cut_middle, shorten

from .api import MessageNotFound, StreamNameInUse, StreamNotFound, WrongLastSequence
from .base import JetStreamError

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any

    from jetstream.kv.entry import KeyValueEntry, Operation


class BucketNotFound(StreamNotFound):
    """The bucket does not exist."""

    def __init__(self, bucket: str) -> None:
        super().__init__(404, 10059, "bucket %s does not exist" % shorten(bucket))
        self.bucket = bucket

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.bucket,)


class BucketExists(StreamNameInUse):
    """A bucket of this name exists with a different configuration: update or rename it.

    `different` has the names of the fields that differ.
    """

    def __init__(self, bucket: str, different: tuple[str, ...] = ()) -> None:
        text = "bucket %s already exists with a different configuration" % shorten(bucket)
        super().__init__(400, 10058, text)
        self.bucket = bucket
        self.different: list[str] | tuple[str, ...] = different

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.bucket, self.different)


class NotABucket(JetStreamError):
    """The stream has the name of a bucket, but no max_msgs_per_subject."""

    def __init__(self, bucket: str) -> None:
        text = "stream %s is not a bucket: max_msgs_per_subject is not set"
        super().__init__(text % shorten("KV_" + bucket))
        self.bucket = bucket

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.bucket,)


class CodecError(JetStreamError):
    """A codec of the bucket failed on a key or value; its own error is the cause.

    `entry` is the entry as it is stored; None if the codec failed to encode.
    """

    def __init__(self, text: str, entry: KeyValueEntry | None = None) -> None:
        super().__init__(text)
        self.entry = entry

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.entry)


class KeyNotFound(MessageNotFound):
    """The bucket does not have this key, or does not have this `revision` of it (None: any)."""

    def __init__(self, bucket: str, key: str, revision: int | None = None) -> None:
        what = "key %s" % shorten(key)
        if revision is not None:
            what += " with revision %d" % revision
        super().__init__(404, 10037, "%s is not in bucket %s" % (what, shorten(bucket)))
        self.bucket = bucket
        self.key = key
        self.revision = revision

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.bucket, self.key, self.revision)


class KeyDeleted(KeyNotFound):
    """The key was deleted or purged; `entry` is the marker, with its revision and operation."""

    def __init__(self, entry: KeyValueEntry) -> None:
        super().__init__(entry.bucket, entry.key, entry.revision)
        values = (shorten(entry.key), shorten(entry.bucket), entry.operation, entry.revision)
        self.description: str = "key %s of bucket %s is deleted: %s in revision %d" % values
        self.args: tuple[Any, ...] = (self.description,)
        self.entry = entry
        self.operation: Operation = entry.operation

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.entry,)


class KeyExists(WrongLastSequence):
    """The key exists and cannot be created; `last_seq` is its revision, None if unknown."""

    def __init__(self, bucket: str, key: str, error: WrongLastSequence) -> None:
        values = (shorten(key), shorten(bucket), cut_middle(error.description))
        text = "key %s already exists in bucket %s: %s" % values
        super().__init__(error.code, error.err_code, text)
        self.bucket = bucket
        self.key = key
        self.error = error

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.bucket, self.key, self.error)


class WrongLastRevision(WrongLastSequence):
    """The key has changed since revision `last`: read it again, then retry.

    `last_seq` is its actual revision; None if unknown.
    """

    def __init__(self, bucket: str, key: str, last: int, error: WrongLastSequence) -> None:
        values = (shorten(key), shorten(bucket), last, cut_middle(error.description))
        text = "key %s of bucket %s is not at revision %d: %s" % values
        super().__init__(error.code, error.err_code, text)
        self.bucket = bucket
        self.key = key
        self.last = last
        self.error = error

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.bucket, self.key, self.last, self.error)
