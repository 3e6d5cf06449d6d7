"""What goes wrong with objects. Import them from jetstream.errors, which has the tree.

What goes wrong with their buckets is in kv.py: BucketNotFound, BucketExists.
"""

from __future__ import annotations

from natsproto.wire.text import shorten

from .api import JetStreamError, MessageNotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ObjectNotFound(MessageNotFound):
    """The bucket does not have this object, or it was deleted."""

    def __init__(self, bucket: str, name: str) -> None:
        text = "object %s is not in bucket %s" % (shorten(name), shorten(bucket))
        super().__init__(404, 10037, text)
        self.bucket = bucket
        self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.bucket, self.name)


class ObjectError(JetStreamError):
    """Something is wrong with an object; the base of those that say what."""

    _text = "object %s of bucket %s: %s"

    def __init__(self, bucket: str, name: str, why: str = "") -> None:
        super().__init__(self._text % (shorten(name), shorten(bucket), why))
        self.bucket = bucket
        self.name = name
        self.why = why

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.bucket, self.name, self.why)


class ObjectAlreadyExists(ObjectError):
    """There is an object of this name, which is not to be replaced: take another, or delete it."""

    _text = "object %s is in bucket %s%s"


class ObjectCorrupt(ObjectError):
    """The chunks that are stored are not those that were given: put the object again."""


class ObjectChanged(ObjectError):
    """The object was replaced or deleted while it was read: get it again."""


class LinkUnreadable(ObjectError):
    """It is a link to a whole bucket, or one in a circle: there is nothing to read."""
