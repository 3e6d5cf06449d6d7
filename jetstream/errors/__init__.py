"""Every exception of JetStream; those of the connection are in natsproto.errors.

    RemoteError (natsproto)
      JetStreamError             root of what follows
        InvalidResponse          an answer that is not what the API promises
        JetStreamNotAvailable    nobody answers calls of the API
        NoStreamResponse         no stream takes the subject that was published to
        PublishInDoubt           a publish was not acknowledged: it may be stored or not
          PublishTimeout         no acknowledgment came in time: a TimeoutExpired, too
        PublishesFailed          some of many publishes failed
        FastBatchFailed          a fast batch ended before all of it was stored
        NotJetStreamMessage      a message that no consumer delivered
        FilterIgnored            the server is too old for filter_subjects
        AmbiguousStream          more than one stream takes the subject
        ConsumerMoved            a push consumer delivers to another subject now
        PullFailed               a pull ended with a status that is an error: code, description
          ConsumerDeleted        the consumer is gone
          ConsumerIsPush         the consumer cannot be pulled from
          PullRefused            the request or a limit of the consumer is to be changed
          ConsumerUnavailable    nobody serves the consumer now
          UnknownStatus          a status that this client does not know
        HeartbeatMissed          the server was silent though it was to send heartbeats
        MessagesMissed           messages of an ordered consumer did not arrive
        ResetFailed              an ordered consumer could not be made anew
        ApiError                 the server answered with an error: code, err_code, description
          ...                    one class for each thing that callers handle, see api.py
          BucketNotFound         there is no such bucket: a StreamNotFound
          BucketExists           there is one with another configuration: a StreamNameInUse
          KeyNotFound            the bucket does not have this key: a MessageNotFound
            KeyDeleted           it was deleted: entry
          KeyExists              it cannot be created: a WrongLastSequence
          WrongLastRevision      somebody else has changed it: a WrongLastSequence
          ObjectNotFound         the bucket does not have this object: a MessageNotFound
        NotABucket               a stream that only has the name of one
        ObjectError              something is wrong with an object
          ObjectAlreadyExists    there is an object of this name
          ObjectCorrupt          what is stored is not what was put
          ObjectChanged          it was replaced or deleted while it was read
          LinkUnreadable         a link to a whole bucket, or in a circle

    LocalError (natsproto)
      BindRefused                the consumer that there is does not fit what was asked for
        DuplicateSubscription    it has a subscriber, and no queue group
        QueueRequired            it is for a queue group, and none was asked for
        QueueMismatch            it is for another queue group
        QueueNotServed           it is for no queue group, and one was asked for
        SubjectMismatch          it filters other subjects
        PullOfPushConsumer       it delivers to a subject
        PushOfPullConsumer       it is to be pulled from
        FlowControlWithQueue     flow control cannot work in a queue group
        HeartbeatWithQueue       nor can heartbeats
        ConfigMismatch           a field of its configuration has another value: field

A call that is wrong in itself raises a LocalError of natsproto before anything is sent.
"""

from __future__ import annotations

from natsproto.errors import LocalError, TimeoutExpired
from natsproto.wire.text import cut_middle, shorten

# All of them are public here, too; one list is easier to read than a statement for each.
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
from .kv import (
    BucketExists as BucketExists,
    BucketNotFound as BucketNotFound,
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
# isort: on

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from jetstream.publish.window_machine import Publication
    from natsproto.errors import NatsError


class InvalidResponse(JetStreamError):
    """The server's answer is not what the API promises; the message names the field."""


class NoStreamResponse(JetStreamError):
    """No stream takes this subject, or JetStream is down: nothing was stored."""

    def __init__(self, subject: str, why: str = "") -> None:
        text = "no stream takes subject %s" % shorten(subject)
        super().__init__("%s: %s" % (text, why) if why else text)
        self.subject = subject
        self.why = why

    def __reduce__(self) -> tuple[type[NoStreamResponse], tuple[str, str]]:
        return type(self), (self.subject, self.why)


class JetStreamNotAvailable(JetStreamError):
    """Nobody answers calls of the API: JetStream is off, has no leader now, or is elsewhere."""


class PublishInDoubt(JetStreamError):
    """A publish was not acknowledged: it may be stored or not. With a message id, send it again."""


def _with_two_bases(name: str, doc: str, first: type, second: type) -> type:
    """Make an exception that is both; on MicroPython, where one has a single base, the first."""
    body = {"__module__": __name__, "__doc__": doc}
    try:
        return type(name, (first, second), body)
    except TypeError:
        return type(name, (first,), body)


if TYPE_CHECKING:

    class PublishTimeout(PublishInDoubt, TimeoutExpired): ...

else:
    PublishTimeout = _with_two_bases(
        "PublishTimeout",
        "No acknowledgment came in time: the message may be stored or not.",
        PublishInDoubt,
        TimeoutExpired,
    )


class PublishesFailed(JetStreamError):
    """Some publishes of a window failed; `publications` has them, each with its own error."""

    def __init__(self, publications: list[Publication]) -> None:
        first = publications[0]
        super().__init__(
            "%d publishes failed, the first one to %s: %s"
            % (len(publications), shorten(first.subject), first.error)
        )
        self.publications = publications


class FastBatchFailed(JetStreamError):
    """A fast batch ended before all of it was stored. Its first `stored` messages are.

    The others, up to number `sent`, are not, or if `in_doubt` may be. `cause` is the error that
    began it, if there was one.
    """

    def __init__(self, stored: int, sent: int, in_doubt: bool, cause: NatsError | None) -> None:
        super().__init__(
            "%d of %d messages of the batch are stored, the others %s: %s"
            % (
                stored,
                sent,
                "may be stored or not" if in_doubt else "are not",
                cause or ("no answer" if in_doubt else "some were lost on the way"),
            )
        )
        self.stored = stored
        self.sent = sent
        self.in_doubt = in_doubt
        self.cause = cause

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.stored, self.sent, self.in_doubt, self.cause)


class NotJetStreamMessage(JetStreamError):
    """The message has no metadata: no consumer delivered it."""


class FilterIgnored(JetStreamError):
    """The server took the consumer without its filter_subjects: it is too old for them."""


class AmbiguousStream(JetStreamError):
    """More than one stream has messages of this subject: name the one that is meant."""

    def __init__(self, subject: str, streams: list[str]) -> None:
        text = "subject %s is taken by several streams: %s"
        super().__init__(text % (shorten(subject), shorten(streams)))
        self.subject = subject
        self.streams = streams

    def __reduce__(self) -> tuple[type[AmbiguousStream], tuple[str, list[str]]]:
        return type(self), (self.subject, self.streams)


SeveralStreams = AmbiguousStream  # the former name


class ConsumerMoved(JetStreamError):
    """The push consumer delivers to another subject now: somebody else has taken it."""

    def __init__(self, stream: str, consumer: str, target: str) -> None:
        text = "consumer %s of stream %s delivers to %s now"
        super().__init__(text % (shorten(consumer), shorten(stream), shorten(target)))
        self.stream = stream
        self.consumer = consumer
        self.target = target

    def __reduce__(self) -> tuple[type[ConsumerMoved], tuple[str, str, str]]:
        return type(self), (self.stream, self.consumer, self.target)


class PullFailed(JetStreamError):
    """A pull ended with a status that is an error; `code` and `description` are the server's.

    `consumer` names the consumer and its stream, where they are known.
    """

    _hint = ""  # the likely reasons

    def __init__(self, code: int, description: str, consumer: str = "") -> None:
        told = cut_middle(description)
        text = "%d %s" % (code, told) if told else str(code)
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
    """The consumer is gone; no further message will come. Create it again or stop."""

    _hint = "the consumer or its stream was deleted, or the consumer was inactive for too long"


class ConsumerIsPush(PullFailed):
    """The consumer delivers to a subject: it cannot be pulled from."""


class PullRefused(PullFailed):
    """The server refuses the pull: the request, or a limit of the consumer, is to be changed."""

    _hint = "the request does not fit the consumer's limits, or is not valid"


class ConsumerUnavailable(PullFailed):
    """Nobody serves the consumer now: it has no leader, its server stops, or it does not exist."""

    _hint = (
        "the consumer or its stream does not exist, has no leader now, or is in another account,"
        " domain or prefix"
    )


class UnknownStatus(PullFailed):
    """The server sent a status that this client does not know."""


class HeartbeatMissed(JetStreamError):
    """The server was silent: two heartbeats with a pull open, three on a push subscription."""


class BindRefused(LocalError):
    """The consumer that there is does not fit what was asked for: mend the call or the consumer.

    Nothing was changed. `wanted` and `found` are the values that do not fit, on both sides.
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
    """Somebody is subscribed to the consumer, and it is for no queue group: one is the most."""


class QueueRequired(BindRefused):
    """The consumer is for a queue group: subscribe with its name as `queue`."""


class QueueMismatch(BindRefused):
    """The consumer is for another queue group than this one."""


class QueueNotServed(BindRefused):
    """The consumer is for no queue group: subscribe without `queue`."""


class SubjectMismatch(BindRefused):
    """The consumer filters other subjects than those that were asked for."""


class PullOfPushConsumer(BindRefused):
    """The consumer delivers to a subject: it cannot be pulled from."""


class PushOfPullConsumer(BindRefused):
    """The consumer delivers to no subject: its messages are to be pulled."""


class FlowControlWithQueue(BindRefused):
    """Flow control cannot work in a queue group: each member sees a part of the messages."""


class HeartbeatWithQueue(BindRefused):
    """Heartbeats are of no use in a queue group: each goes to one member."""


class ConfigMismatch(BindRefused):
    """The consumer has another value in this `field` than was asked for; nothing is changed."""

    field = ""


class MessagesMissed(JetStreamError):
    """Messages of an ordered consumer did not arrive: it starts anew behind the last that did."""


class ResetFailed(JetStreamError):
    """An ordered consumer was lost, and could not be made anew; `error` is why the last try failed.

    It can be used again: it goes on where it was.
    """

    def __init__(self, attempts: int, error: Exception) -> None:
        super().__init__("the consumer was not made anew in %d tries: %s" % (attempts, error))
        self.attempts = attempts
        self.error = error

    def __reduce__(self) -> tuple[type[ResetFailed], tuple[int, Exception]]:
        return type(self), (self.attempts, self.error)
