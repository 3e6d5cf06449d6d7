"""All exceptions of JetStream; those of the connection are in natsproto.errors.

    RemoteError (natsproto)
      ServiceError               a service answered with an error: code, text, data, headers
      JetStreamError             base class of the following
        InvalidResponse          response that violates the API
        JetStreamNotAvailable    no response to an API request
        NoStreamResponse         no stream accepts the subject of a publish
        PublishInDoubt           publish without an acknowledgment: it may have been stored
          PublishTimeout         no acknowledgment in time; also a TimeoutExpired
        PublishesFailed          some of many publishes failed
        FastBatchFailed          a fast batch ended before all of it was stored
        NotJetStreamMessage      message that no consumer delivered
        FilterIgnored            the server is too old for filter_subjects
        AmbiguousStream          more than one stream accepts the subject
        ConsumerMoved            a push consumer now delivers to another subject
        PullFailed               a pull ended with an error status: code, description
          ConsumerDeleted        the consumer was deleted
          ConsumerIsPush         the consumer cannot be pulled from
          PullRefused            the request exceeds a limit of the consumer, or is invalid
          ConsumerUnavailable    no server responds for the consumer
          UnknownStatus          status that this client does not know
        HeartbeatMissed          the server stopped sending heartbeats
        SnapshotFailed           a snapshot ended early: code, description
        MessagesMissed           messages of an ordered consumer did not arrive
        ResetFailed              an ordered consumer could not be recreated
        ApiError                 the server responded with an error: code, err_code, description
          ...                    a class for each error that callers handle, see api.py
          BucketNotFound         the bucket does not exist; also a StreamNotFound
          BucketExists           it exists with a different configuration; also a StreamNameInUse
          KeyNotFound            the bucket does not have the key; also a MessageNotFound
            KeyDeleted           the key was deleted: entry
          KeyExists              the key cannot be created; also a WrongLastSequence
          WrongLastRevision      the key has changed; also a WrongLastSequence
          ObjectNotFound         the bucket does not have the object; also a MessageNotFound
        GroupError               error of a consumer group: name
          GroupNotFound          the group does not exist
          GroupExists            it exists with a different configuration
          GroupChanged           a setting of the group has changed: its members stop
          NotAMember             the static group has no partitions for the member
        NotABucket               stream with the name of a bucket that is not one
        CodecError               a codec failed on a key or value of a bucket: entry
        ObjectError              error of an object
          ObjectAlreadyExists    an object of this name exists
          ObjectCorrupt          the stored chunks are not those that were put
          ObjectChanged          the object was replaced or deleted during the read
          LinkUnreadable         link to a whole bucket, or circular link

    LocalError (natsproto)
      BindRefused                the existing consumer does not match the call
        DuplicateSubscription    it has a subscriber, and no queue group
        QueueRequired            it has a queue group, and the call has none
        QueueMismatch            it has another queue group
        QueueNotServed           it has no queue group, and the call has one
        SubjectMismatch          it filters other subjects
        PullOfPushConsumer       it is a push consumer
        PushOfPullConsumer       it is a pull consumer
        FlowControlWithQueue     flow control does not work in a queue group
        HeartbeatWithQueue       heartbeats do not work in a queue group
        ConfigMismatch           a field of its configuration has another value: field

An invalid call raises a LocalError of natsproto before anything is sent.
"""

from __future__ import annotations

from natsproto.errors import LocalError, TimeoutExpired
from natsproto.wire.text import cut_middle, shorten

# All of them are public here as well. One list is easier to read than many statements.
# isort: off
from .api import (
    BY_CODE as BY_CODE,
    ENABLED_BY as ENABLED_BY,
    ApiError as ApiError,
    ApiLevelTooHigh as ApiLevelTooHigh,
    AssetOffline as AssetOffline,
    BadRequest as BadRequest,
    BatchRefused as BatchRefused,
    ConfigExists as ConfigExists,
    ConsumerDoesNotExist as ConsumerDoesNotExist,
    ConsumerExists as ConsumerExists,
    ConsumerLimitReached as ConsumerLimitReached,
    ConsumerNotFound as ConsumerNotFound,
    CounterRefused as CounterRefused,
    DuplicateInProcess as DuplicateInProcess,
    InsufficientResources as InsufficientResources,
    InvalidConfig as InvalidConfig,
    InvalidJson as InvalidJson,
    JetStreamError as JetStreamError,
    JetStreamNotEnabled as JetStreamNotEnabled,
    MessageNotFound as MessageNotFound,
    MessageTooLarge as MessageTooLarge,
    NoSuitablePeers as NoSuitablePeers,
    ScheduleRefused as ScheduleRefused,
    StoreFailed as StoreFailed,
    StreamLimitReached as StreamLimitReached,
    StreamNameInUse as StreamNameInUse,
    StreamNotFound as StreamNotFound,
    StreamSealed as StreamSealed,
    SubjectOverlap as SubjectOverlap,
    TemporarilyUnavailable as TemporarilyUnavailable,
    TooManyRequests as TooManyRequests,
    TtlDisabled as TtlDisabled,
    TtlInvalid as TtlInvalid,
    WorkQueueConflict as WorkQueueConflict,
    WrongLastMsgId as WrongLastMsgId,
    WrongLastSequence as WrongLastSequence,
    WrongStream as WrongStream,
    api_error as api_error,
)
from .groups import (
    GroupChanged as GroupChanged,
    GroupError as GroupError,
    GroupExists as GroupExists,
    GroupNotFound as GroupNotFound,
    NotAMember as NotAMember,
)
from .kv import (
    BucketExists as BucketExists,
    BucketNotFound as BucketNotFound,
    CodecError as CodecError,
    KeyDeleted as KeyDeleted,
    KeyExists as KeyExists,
    KeyNotFound as KeyNotFound,
    NotABucket as NotABucket,
    WrongLastRevision as WrongLastRevision,
)
from .objects import (
    LinkUnreadable as LinkUnreadable,
    ObjectAlreadyExists as ObjectAlreadyExists,
    ObjectChanged as ObjectChanged,
    ObjectCorrupt as ObjectCorrupt,
    ObjectError as ObjectError,
    ObjectNotFound as ObjectNotFound,
)
from .services import ServiceError as ServiceError
# isort: on

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any

    from jetstream.publish.window_machine import Publication
    from natsproto.errors import NatsError


class InvalidResponse(JetStreamError):
    """The response of the server violates the API; the message names the field."""


class NoStreamResponse(JetStreamError):
    """No stream accepts this subject, or JetStream is unavailable: nothing was stored."""

    def __init__(self, subject: str, why: str = "") -> None:
        text = "no stream accepts subject %s" % shorten(subject)
        super().__init__("%s: %s" % (text, why) if why else text)
        self.subject = subject
        self.why = why

    def __reduce__(self) -> tuple[type[NoStreamResponse], tuple[str, str]]:
        return type(self), (self.subject, self.why)


class JetStreamNotAvailable(JetStreamError):
    """No response to an API request: JetStream is disabled, has no leader, or is elsewhere."""


class PublishInDoubt(JetStreamError):
    """A publish was not acknowledged and may have been stored. With a message id, retry it."""


def _with_two_bases(name: str, doc: str, first: type, second: type) -> type:
    """Create an exception with both bases; on MicroPython, which allows one, with the first."""
    body = {"__module__": __name__, "__doc__": doc}
    try:
        return type(name, (first, second), body)
    except TypeError:
        return type(name, (first,), body)


if TYPE_CHECKING:

    class PublishTimeout(PublishInDoubt, TimeoutExpired):
        """No acknowledgment arrived in time; the message may have been stored."""

else:
    PublishTimeout = _with_two_bases(
        "PublishTimeout",
        "No acknowledgment arrived in time; the message may have been stored.",
        PublishInDoubt,
        TimeoutExpired,
    )


class PublishesFailed(JetStreamError):
    """Some publishes of a window failed; `publications` has them, each with its error."""

    def __init__(self, publications: list[Publication]) -> None:
        first = publications[0]
        super().__init__(
            "%d publishes failed, the first one to %s: %s"
            % (len(publications), shorten(first.subject), first.error)
        )
        self.publications = publications


class FastBatchFailed(JetStreamError):
    """A fast batch ended early: only its first `stored` messages were stored.

    The others, up to number `sent`, were not stored, or may have been if `in_doubt` is True.
    `cause` is the first error, or None.
    """

    def __init__(self, stored: int, sent: int, in_doubt: bool, cause: NatsError | None) -> None:
        super().__init__(
            "%d of %d messages of the batch were stored, the others %s: %s"
            % (
                stored,
                sent,
                "may have been" if in_doubt else "were not",
                cause or ("no response" if in_doubt else "some were lost in transit"),
            )
        )
        self.stored = stored
        self.sent = sent
        self.in_doubt = in_doubt
        self.cause = cause

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.stored, self.sent, self.in_doubt, self.cause)


class NotJetStreamMessage(JetStreamError):
    """The message has no metadata, because no consumer delivered it."""


class FilterIgnored(JetStreamError):
    """The server created the consumer without filter_subjects: it is too old for them."""


class AmbiguousStream(JetStreamError):
    """More than one stream accepts this subject: pass the name of the stream."""

    def __init__(self, subject: str, streams: list[str]) -> None:
        text = "subject %s is accepted by several streams: %s"
        super().__init__(text % (shorten(subject), shorten(streams)))
        self.subject = subject
        self.streams = streams

    def __reduce__(self) -> tuple[type[AmbiguousStream], tuple[str, list[str]]]:
        return type(self), (self.subject, self.streams)


SeveralStreams = AmbiguousStream  # the former name


class ConsumerMoved(JetStreamError):
    """The push consumer now delivers to another subject: another client has taken it over."""

    def __init__(self, stream: str, consumer: str, target: str) -> None:
        text = "consumer %s of stream %s now delivers to %s"
        super().__init__(text % (shorten(consumer), shorten(stream), shorten(target)))
        self.stream = stream
        self.consumer = consumer
        self.target = target

    def __reduce__(self) -> tuple[type[ConsumerMoved], tuple[str, str, str]]:
        return type(self), (self.stream, self.consumer, self.target)


class PullFailed(JetStreamError):
    """A pull ended with an error status; `code` and `description` are the server's.

    `consumer` names the consumer and its stream, if they are known.
    """

    _hint = ""  # the likely reasons

    def __init__(self, code: int, description: str, consumer: str = "") -> None:
        short = cut_middle(description)
        text = "%d %s" % (code, short) if short else str(code)
        if consumer:
            text = "pull from %s failed: %s" % (consumer, text)
            if self._hint:
                text = "%s (%s)" % (text, self._hint)
        super().__init__(text)
        self.code = code
        self.description = description
        self.consumer = consumer

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, self.description, self.consumer)


class ConsumerDeleted(PullFailed):
    """The consumer was deleted, so no more messages will arrive: create it again or stop."""

    _hint = "the consumer or its stream was deleted, or the consumer was inactive for too long"


class ConsumerIsPush(PullFailed):
    """The consumer is a push consumer, which cannot be pulled from."""


class PullRefused(PullFailed):
    """The server rejected the pull: change the request or the limits of the consumer."""

    _hint = "the request exceeds a limit of the consumer, or is invalid"


class ConsumerUnavailable(PullFailed):
    """No server responds for the consumer: it has no leader, or does not exist."""

    _hint = (
        "the consumer or its stream does not exist, has no leader, or is in another account,"
        " domain or prefix"
    )


class UnknownStatus(PullFailed):
    """The server sent a status that this client does not know."""


class SnapshotFailed(JetStreamError):
    """A snapshot ended before it was complete; `code` is the status of the server, or 0."""

    def __init__(self, stream: str, code: int, description: str) -> None:
        short = cut_middle(description)
        text = "%d %s" % (code, short) if code else short
        super().__init__("snapshot of stream %s failed: %s" % (stream, text))
        self.stream = stream
        self.code = code
        self.description = description

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.stream, self.code, self.description)


class HeartbeatMissed(JetStreamError):
    """Heartbeats did not arrive: two during a pull, or three of a push subscription."""


class BindRefused(LocalError):
    """The existing consumer does not match the call: change one of them.

    Nothing was changed. `wanted` and `found` are the values that differ.
    """

    def __init__(
        self, message: str, rule: str, stream: str, consumer: str, wanted: object, found: object
    ) -> None:
        super().__init__(message, rule)
        self.message = message
        self.stream = stream
        self.consumer = consumer
        self.wanted = wanted
        self.found = found

    def __reduce__(self) -> tuple[Any, ...]:
        values = (self.message, self.rule, self.stream, self.consumer, self.wanted, self.found)
        return type(self), values, self.__dict__


class DuplicateSubscription(BindRefused):
    """The consumer has a subscriber; without a queue group only one is allowed."""


class QueueRequired(BindRefused):
    """The consumer has a queue group: subscribe with its name as `queue`."""


class QueueMismatch(BindRefused):
    """The consumer has another queue group."""


class QueueNotServed(BindRefused):
    """The consumer has no queue group: subscribe without `queue`."""


class SubjectMismatch(BindRefused):
    """The consumer filters other subjects."""


class PullOfPushConsumer(BindRefused):
    """The consumer is a push consumer, which cannot be pulled from."""


class PushOfPullConsumer(BindRefused):
    """The consumer is a pull consumer, which cannot be subscribed to."""


class FlowControlWithQueue(BindRefused):
    """Flow control does not work in a queue group: each member sees some of the messages."""


class HeartbeatWithQueue(BindRefused):
    """Heartbeats do not work in a queue group: each goes to one member only."""


class ConfigMismatch(BindRefused):
    """The consumer has another value in this `field`; nothing was changed."""

    field: str = ""


class MessagesMissed(JetStreamError):
    """Messages of an ordered consumer did not arrive: it is recreated after the last that did."""


class ResetFailed(JetStreamError):
    """An ordered consumer could not be recreated; `error` is that of the last attempt.

    It can be used again, and continues after the last message.
    """

    def __init__(self, attempts: int, error: Exception) -> None:
        super().__init__("consumer could not be recreated in %d attempts: %s" % (attempts, error))
        self.attempts = attempts
        self.error = error

    def __reduce__(self) -> tuple[type[ResetFailed], tuple[int, Exception]]:
        return type(self), (self.attempts, self.error)
