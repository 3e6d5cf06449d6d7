"""The events of consumers, subscriptions, watches and fast batches, for programs to match on.

    consume()                         PullWarning, Pinned, Unpinned
    subscribe()                       PushWarning, Gap, ConsumerSequenceReset
    ordered consumers and watches     ConsumerReset, StreamRecreated as well
    FastBatch.take_losses()           Loss
    services                          RequestFailed, StatsFailed, ResponseTruncated, ServiceStopped

`events` of a consume(), a subscription or a watch reports them, and so does the log. Events of the
connection are in natsproto.events.
"""

from __future__ import annotations

from natsproto.events import DEBUG, INFO, WARNING, Event
from natsproto.wire.text import shorten

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
    "RequestFailed",
    "ResponseTruncated",
    "ServiceStopped",
    "StatsFailed",
    "StreamRecreated",
    "Unpinned",
]


class PullWarning(Event):
    """A pull ended with this error, which does not end consume(): it pulls again.

    While the cause persists, the event is repeated at growing intervals.
    """

    __slots__ = ("error",)

    def __init__(self, error: NatsError) -> None:
        self.error: NatsError = error

    def _text(self) -> str:
        return "pull ended: %s" % self.error


class Pinned(Event):
    """This client is now the pinned one of its priority group."""

    __slots__ = ("id",)

    def __init__(self, id: str) -> None:
        self.id: str = id

    def _level(self) -> str:
        return INFO

    def _text(self) -> str:
        return "this client is the pinned one"


class Unpinned(Event):
    """This client is no longer the pinned one of its priority group."""

    __slots__ = ()

    def _level(self) -> str:
        return INFO

    def _text(self) -> str:
        return "this client is no longer the pinned one"


class PushWarning(Event):
    """This error occurred in a push subscription, which continues."""

    __slots__ = ("error",)

    def __init__(self, error: NatsError) -> None:
        self.error: NatsError = error

    def _text(self) -> str:
        return "subscription continues after an error: %s" % self.error


class Gap(Event):
    """Deliveries that did not arrive, from `first` to `last`, by the consumer's sequence.

    Messages that require an acknowledgment are redelivered after their ack wait.
    """

    __slots__ = ("first", "last")

    def __init__(self, first: int, last: int) -> None:
        self.first: int = first
        self.last: int = last

    def _text(self) -> str:
        return "deliveries %d to %d did not arrive" % (self.first, self.last)


class ConsumerSequenceReset(Event):
    """The consumer's sequence went back from `before` to `now`.

    The consumer was reset, or its leader changed.
    """

    __slots__ = ("before", "now")

    def __init__(self, before: int, now: int) -> None:
        self.before: int = before
        self.now: int = now

    def _level(self) -> str:
        return INFO

    def _text(self) -> str:
        return "sequence of the consumer went back from %d to %d" % (self.before, self.now)


Recounted = ConsumerSequenceReset  # the former name


class ConsumerReset(Event):
    """The ordered consumer is recreated because of this error; repeated if that fails."""

    __slots__ = ("error",)

    def __init__(self, error: NatsError) -> None:
        self.error: NatsError = error

    def _text(self) -> str:
        return "consumer is recreated: %s" % self.error


class StreamRecreated(Event):
    """The stream was deleted and created again: reading continues with its first message.

    `created` is the creation time of the new stream, and `before` is that of the old one, or the
    latest that it can have been.
    """

    __slots__ = ("before", "created", "stream")

    def __init__(self, stream: str, before: Timestamp, created: Timestamp) -> None:
        self.stream: str = stream
        self.before: Timestamp = before
        self.created: Timestamp = created

    def _text(self) -> str:
        return "stream %s was created again: reading its first message" % shorten(self.stream)


class Loss:
    """Messages of a fast batch that were not stored, by their numbers from `first` to `last`.

    `error` is the stream's error, or None for a gap. PublishInDoubt: the connection was lost, and
    they may or may not be stored.
    """

    __slots__ = ("error", "first", "last")

    def __init__(self, first: int, last: int, error: NatsError | None = None) -> None:
        self.first: int = first
        self.last: int = last
        self.error: NatsError | None = error

    def __repr__(self) -> str:
        return "<Loss of %d to %d: %s>" % (self.first, self.last, self.error or "a gap")


class RequestFailed(Event):
    """The handler of a service's endpoint raised this error; the request was answered with it."""

    __slots__ = ("endpoint", "error", "subject")

    def __init__(self, endpoint: str, subject: str, error: Exception) -> None:
        self.endpoint: str = endpoint
        self.subject: str = subject
        self.error: Exception = error

    def _level(self) -> str:
        from jetstream.errors.services import ServiceError

        return DEBUG if isinstance(self.error, ServiceError) else WARNING

    def _text(self) -> str:
        # D-LOG-2: only the type, because the text may quote the request.
        return "handler of endpoint %s raised %s" % (shorten(self.endpoint), _type(self.error))


class StatsFailed(Event):
    """`stats_data` of a service raised this error for an endpoint, whose data was left out."""

    __slots__ = ("endpoint", "error")

    def __init__(self, endpoint: str, error: Exception) -> None:
        self.endpoint: str = endpoint
        self.error: Exception = error

    def _text(self) -> str:
        return "stats_data of endpoint %s raised %s" % (shorten(self.endpoint), _type(self.error))


class ResponseTruncated(Event):
    """A PING, INFO or STATS response of a service was above the server's max_payload.

    verb         PING, INFO or STATS
    size         of the whole response
    max_payload  of the server
    left_out     the omitted parts; "everything" if no response was sent
    """

    __slots__ = ("left_out", "max_payload", "size", "verb")

    def __init__(self, verb: str, size: int, max_payload: int, left_out: str) -> None:
        self.verb: str = verb
        self.size: int = size
        self.max_payload: int = max_payload
        self.left_out: str = left_out

    def _text(self) -> str:
        text = "%s response of %d bytes is above the max_payload %d: left out %s"
        return text % (self.verb, self.size, self.max_payload, self.left_out)


class ServiceStopped(Event):
    """A service has ended: all requests are answered. `error` is None if it was ended on purpose.

    It is the last event of a service.
    """

    __slots__ = ("error", "id", "name")

    def __init__(self, name: str, id: str, error: Exception | None) -> None:
        self.name: str = name
        self.id: str = id
        self.error: Exception | None = error

    def _level(self) -> str:
        return INFO if self.error is None else WARNING

    def _text(self) -> str:
        reason = "" if self.error is None else ": %s" % self.error
        return "service %s stopped%s" % (shorten(self.name), reason)


def _type(error: Exception) -> str:
    return type(error).__name__
