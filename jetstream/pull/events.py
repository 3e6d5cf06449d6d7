"""What `Messages.events` of a consume() reports, besides ConsumerReset of ordered consumers."""

from __future__ import annotations

from natsproto.wire.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from natsproto.errors import NatsError


class PullWarning(Record):
    """A pull ended with this error, which does not end consume(): it pulls again.

    While the cause persists, the event is repeated at growing intervals.
    """

    __slots__ = ("error",)

    def __init__(self, error: NatsError) -> None:
        self.error = error


class Pinned(Record):
    """This client is now the pinned one of its priority group."""

    __slots__ = ("id",)

    def __init__(self, id: str) -> None:
        self.id = id


class Unpinned(Record):
    """This client is no longer the pinned one of its priority group."""

    __slots__ = ()
