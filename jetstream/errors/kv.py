"""What goes wrong with buckets and keys. Import them from jetstream.errors, which has the tree.

Most are the server's own word, said of a bucket or a key: a KeyExists is the WrongLastSequence that
the stream answered with, and so on. `code` and `err_code` stay.
"""

from __future__ import annotations

from natsproto.wire.text import cut_middle, shorten

from .api import (
    JetStreamError,
    MessageNotFound,
    StreamNameInUse,
    StreamNotFound,
    WrongLastSequence,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from jetstream.kv.entry import KeyValueEntry, Operation


class BucketNotFound(StreamNotFound):
    """There is no such bucket."""

    def __init__(self, bucket: str) -> None:
        super().__init__(404, 10059, "bucket %s does not exist" % shorten(bucket))
        self.bucket = bucket

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.bucket,)


class BucketExists(StreamNameInUse):
    """There is a bucket of this name with another configuration: update it or take another name.

    `different` has the names of the fields that differ from the given ones.
    """

    def __init__(self, bucket: str, different: tuple[str, ...] = ()) -> None:
        text = "bucket %s already exists with a different configuration" % shorten(bucket)
        super().__init__(400, 10058, text)
        self.bucket = bucket
        self.different = different

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.bucket, self.different)


class NotABucket(JetStreamError):
    """The stream has the name of a bucket, but no limit for the messages of a subject."""

    def __init__(self, bucket: str) -> None:
        text = "stream %s is not a bucket: max_msgs_per_subject is not set"
        super().__init__(text % shorten("KV_" + bucket))
        self.bucket = bucket

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.bucket,)


class KeyNotFound(MessageNotFound):
    """The bucket does not have this key, or not in this `revision` (None: any)."""

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
    """The key was deleted or purged: `entry` is the marker, with its revision and operation."""

    def __init__(self, entry: KeyValueEntry) -> None:
        super().__init__(entry.bucket, entry.key, entry.revision)
        told = (shorten(entry.key), shorten(entry.bucket), entry.operation, entry.revision)
        self.description = "key %s of bucket %s is deleted: %s is revision %d" % told
        self.args = (self.description,)
        self.entry = entry
        self.operation: Operation = entry.operation

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.entry,)


class KeyExists(WrongLastSequence):
    """The key is there, so it cannot be created; `last_seq` is its revision, None if not told."""

    def __init__(self, bucket: str, key: str, error: WrongLastSequence) -> None:
        told = (shorten(key), shorten(bucket), cut_middle(error.description))
        text = "key %s is in bucket %s: %s" % told
        super().__init__(error.code, error.err_code, text)
        self.bucket = bucket
        self.key = key
        self.error = error

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.bucket, self.key, self.error)


class WrongLastRevision(WrongLastSequence):
    """Somebody else has changed the key since revision `last`: read it again, then try again.

    `last_seq` is the revision that it really has; None if the server did not tell.
    """

    def __init__(self, bucket: str, key: str, last: int, error: WrongLastSequence) -> None:
        told = (shorten(key), shorten(bucket), last, cut_middle(error.description))
        text = "key %s of bucket %s does not have revision %d: %s" % told
        super().__init__(error.code, error.err_code, text)
        self.bucket = bucket
        self.key = key
        self.last = last
        self.error = error

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.bucket, self.key, self.last, self.error)
