"""The events of consumers, subscriptions, watches and fast batches, for programs to match on.

    consume()                         PullWarning, Pinned, Unpinned
    subscribe()                       PushWarning, Gap, ConsumerSequenceReset
    ordered consumers and watches     ConsumerReset, StreamRecreated as well
    FastBatch.take_losses()           Loss

`events` of a consume(), a subscription or a watch reports them. Events of the connection are in
natsproto.events.
"""

from __future__ import annotations

from natsproto.wire.record import Record

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.schema.timestamp import Timestamp
    from natsproto.errors import NatsError

__all__ = [
    "ConsumerReset",
    "ConsumerSequenceReset",
    "Gap",
    "Loss",
    "Pinned",
    "PullWarning",
    "PushWarning",
    "StreamRecreated",
    "Unpinned",
]


class PullWarning(Record):
    """A pull ended with this error, which does not end consume(): it pulls again.

    While the cause persists, the event is repeated at growing intervals.
    """

    __slots__ = ("error",)

    def __init__(self, error: NatsError) -> None:
        self.error: NatsError = error


class Pinned(Record):
    """This client is now the pinned one of its priority group."""

    __slots__ = ("id",)

    def __init__(self, id: str) -> None:
        self.id: str = id


class Unpinned(Record):
    """This client is no longer the pinned one of its priority group."""

    __slots__ = ()


class PushWarning(Record):
    """This error occurred in a push subscription, which continues."""

    __slots__ = ("error",)

    def __init__(self, error: NatsError) -> None:
        self.error: NatsError = error


class Gap(Record):
    """Deliveries that did not arrive, from `first` to `last`, by the consumer's sequence.

    Messages that require an acknowledgment are redelivered after their ack wait.
    """

    __slots__ = ("first", "last")

    def __init__(self, first: int, last: int) -> None:
        self.first: int = first
        self.last: int = last


class ConsumerSequenceReset(Record):
    """The consumer's sequence went back from `before` to `now`.

    The consumer was reset, or its leader changed.
    """

    __slots__ = ("before", "now")

    def __init__(self, before: int, now: int) -> None:
        self.before: int = before
        self.now: int = now


Recounted = ConsumerSequenceReset  # the former name


class ConsumerReset(Record):
    """The ordered consumer is recreated because of this error; repeated if that fails."""

    __slots__ = ("error",)

    def __init__(self, error: NatsError) -> None:
        self.error: NatsError = error


class StreamRecreated(Record):
    """The stream was deleted and created again: reading continues with its first message.

    `created` is the creation time of the new stream, `before` that of the old one, or the latest
    that it can have been.
    """

    __slots__ = ("before", "created", "stream")

    def __init__(self, stream: str, before: Timestamp, created: Timestamp) -> None:
        self.stream: str = stream
        self.before: Timestamp = before
        self.created: Timestamp = created


class Loss:
    """Messages of a fast batch that were not stored, by their numbers from `first` to `last`.

    `error` is the stream's error, or None for a gap. PublishInDoubt: the connection was lost, and
    they may be stored or not.
    """

    __slots__ = ("error", "first", "last")

    def __init__(self, first: int, last: int, error: NatsError | None = None) -> None:
        self.first: int = first
        self.last: int = last
        self.error: NatsError | None = error

    def __repr__(self) -> str:
        return "<Loss of %d to %d: %s>" % (self.first, self.last, self.error or "a gap")
