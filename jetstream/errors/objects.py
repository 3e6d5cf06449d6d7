"""Errors of objects. Import them from jetstream.errors, which has the tree.

The errors of their buckets are in kv.py: BucketNotFound, BucketExists.
"""

from __future__ import annotations

from natsproto.wire.text import shorten

from .api import MessageNotFound
from .base import JetStreamError

TYPE_CHECKING: bool = False
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
    """Base class of the errors of objects."""

    _text = "object %s of bucket %s: %s"

    def __init__(self, bucket: str, name: str, why: str = "") -> None:
        super().__init__(self._text % (shorten(name), shorten(bucket), why))
        self.bucket = bucket
        self.name = name
        self.why = why

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.bucket, self.name, self.why)


class ObjectAlreadyExists(ObjectError):
    """An object of this name exists: choose another name, or delete the object."""

    _text = "object %s already exists in bucket %s%s"


class ObjectCorrupt(ObjectError):
    """The stored chunks are not those that were put: put the object again."""


class ObjectChanged(ObjectError):
    """The object was replaced or deleted during the read: get it again."""


class LinkUnreadable(ObjectError):
    """The link leads to a whole bucket, or in a circle: there is nothing to read."""
