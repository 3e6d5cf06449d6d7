"""Errors of consumer groups. Import them from jetstream.errors, which has the tree."""

from __future__ import annotations

from natsproto.wire.text import shorten

from .base import JetStreamError

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any


class GroupError(JetStreamError):
    """Base class of consumer group errors; `name` is the name of the group or member."""

    _text = "consumer group %s"

    def __init__(self, name: str) -> None:
        super().__init__(self._text % shorten(name))
        self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name,)


class GroupNotFound(GroupError):
    """The group does not exist."""

    _text = "consumer group %s does not exist"


class GroupExists(GroupError):
    """A group of this name exists with a different configuration: delete it, or choose another."""

    _text = "consumer group %s already exists with a different configuration"


class GroupChanged(GroupError):
    """A setting of the group that must not change has changed: its members stop."""

    _text = "configuration of the consumer group has changed: member %s stops"


class NotAMember(GroupError):
    """The static group does not have this member, or no partition is left for it."""

    _text = "static consumer group has no partitions for %s"
