"""Every exception of JetStream; those of the connection are in natsproto.errors.

    RemoteError (natsproto)
      JetStreamError             root of what follows
        InvalidResponse          an answer that is not what the API promises
        JetStreamNotAvailable    nobody answers calls of the API
        NoStreamResponse         no stream takes the subject that was published to
        PublishInDoubt           a publish was not acknowledged: it may be stored or not
        PublishesFailed          some of many publishes failed
        NotJetStreamMessage      a message that no consumer delivered
        FilterIgnored            the server is too old for filter_subjects
        SeveralStreams           more than one stream takes the subject
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
          ...                    one class for each thing that callers handle, see BY_CODE

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
Never match on a description: the server may change its words. `err_code` stays (ADR-1).
"""

from __future__ import annotations

from natsproto.errors import LocalError, RemoteError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .publisher import Publication


class JetStreamError(RemoteError):
    """Root of all errors of JetStream."""


class InvalidResponse(JetStreamError):
    """The server's answer is not what the API promises; the message names the field."""


class NoStreamResponse(JetStreamError):
    """No stream takes this subject, or JetStream is down: nothing was stored."""

    def __init__(self, subject: str) -> None:
        super().__init__("no stream takes subject %r" % subject)
        self.subject = subject


class JetStreamNotAvailable(JetStreamError):
    """Nobody answers calls of the API: JetStream is off, has no leader now, or is elsewhere."""


class PublishInDoubt(JetStreamError):
    """A publish was not acknowledged: it may be stored or not. With a message id, send it again."""


class PublishesFailed(JetStreamError):
    """Some publishes of a window failed; `publications` has them, each with its own error."""

    def __init__(self, publications: list[Publication]) -> None:
        first = publications[0]
        super().__init__(
            "%d publishes failed, the first one to %r: %s"
            % (len(publications), first.subject, first.error)
        )
        self.publications = publications


class NotJetStreamMessage(JetStreamError):
    """The message has no metadata: no consumer delivered it."""


class FilterIgnored(JetStreamError):
    """The server took the consumer without its filter_subjects: it is too old for them."""


class SeveralStreams(JetStreamError):
    """More than one stream has messages of this subject: name the one that is meant."""

    def __init__(self, subject: str, streams: list[str]) -> None:
        super().__init__("subject %r is taken by several streams: %s" % (subject, streams))
        self.subject = subject
        self.streams = streams

    def __reduce__(self) -> tuple[type[SeveralStreams], tuple[str, list[str]]]:
        return type(self), (self.subject, self.streams)


class ConsumerMoved(JetStreamError):
    """The push consumer delivers to another subject now: somebody else has taken it."""

    def __init__(self, stream: str, consumer: str, target: str) -> None:
        text = "consumer %r of stream %r delivers to %r now"
        super().__init__(text % (consumer, stream, target))
        self.stream = stream
        self.consumer = consumer
        self.target = target

    def __reduce__(self) -> tuple[type[ConsumerMoved], tuple[str, str, str]]:
        return type(self), (self.stream, self.consumer, self.target)


class PullFailed(JetStreamError):
    """A pull ended with a status that is an error; `code` and `description` are the server's."""

    def __init__(self, code: int, description: str) -> None:
        super().__init__("%d %s" % (code, description) if description else str(code))
        self.code = code
        self.description = description


class ConsumerDeleted(PullFailed):
    """The consumer is gone; no further message will come. Create it again or stop."""


class ConsumerIsPush(PullFailed):
    """The consumer delivers to a subject: it cannot be pulled from."""


class PullRefused(PullFailed):
    """The server refuses the pull: the request, or a limit of the consumer, is to be changed."""


class ConsumerUnavailable(PullFailed):
    """Nobody serves the consumer now: it has no leader, its server stops, or it does not exist."""


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


class ApiError(JetStreamError):
    """The server answered with an error.

    `code` is like a status of HTTP, `err_code` says what is wrong, `description` says it in words.
    """

    def __init__(self, code: int, err_code: int, description: str) -> None:
        super().__init__("%s (%d, %d)" % (description, code, err_code))
        self.code = code
        self.err_code = err_code
        self.description = description

    # By default an exception is pickled as its message alone, which is not how these are made.
    def __reduce__(self) -> tuple[type[ApiError], tuple[int, int, str]]:
        return type(self), (self.code, self.err_code, self.description)


class StreamNotFound(ApiError):
    """There is no such stream."""


class ConsumerNotFound(ApiError):
    """There is no such consumer on the stream."""


class ConsumerDoesNotExist(ConsumerNotFound):
    """There is no such consumer to update: create it."""


class MessageNotFound(ApiError):
    """The stream does not have this message; it may have had it."""


class StreamNameInUse(ApiError):
    """There is a stream of this name with another configuration: update it or take another name."""


class ConsumerExists(ApiError):
    """There is a consumer of this name already: update it, use it or take another name."""


class SubjectOverlap(ApiError):
    """Another stream takes some of these subjects; no two streams may."""


class WrongLastSequence(ApiError):
    """Somebody else published first: read again, then publish with the new expectation.

    `last_seq` is the sequence that the stream or the subject is really at; None if not told.
    """

    def __init__(self, code: int, err_code: int, description: str) -> None:
        super().__init__(code, err_code, description)
        number = description.rpartition(": ")[2]
        self.last_seq = int(number) if number.isdigit() else None


class WrongLastMsgId(ApiError):
    """The last message of the stream has another id than expected: somebody published first."""


class WrongStream(ApiError):
    """The subject leads to another stream than the expected one."""


class DuplicateInProcess(ApiError):
    """The same message id is being stored at this moment: publish again to learn how it ended."""


class JetStreamNotEnabled(ApiError):
    """JetStream is off, on this server or for this account."""


class InsufficientResources(ApiError):
    """No room: memory, storage or servers that fit are missing, or the account has no more."""


class NoSuitablePeers(InsufficientResources):
    """The cluster has no servers that fit: too few, too full, or with other tags."""


class StreamLimitReached(ApiError):
    """The account may not have more streams."""


class ConsumerLimitReached(ApiError):
    """The stream or the account may not have more consumers."""


class MessageTooLarge(ApiError):
    """The message or its header is larger than the stream takes."""


class StoreFailed(ApiError):
    """The stream did not store the message.

    `full` is true where a limit of the stream is why: it has discard "new", and publishing may
    succeed once messages have gone.
    """

    def __init__(self, code: int, err_code: int, description: str) -> None:
        super().__init__(code, err_code, description)
        # Against ADR-1, because all causes share one err_code.
        self.full = description.startswith("maximum ")


class StreamSealed(ApiError):
    """The stream is sealed: nothing goes in or out any more."""


class TtlDisabled(ApiError):
    """The stream takes no TTLs of messages: it lacks allow_msg_ttl."""


class TtlInvalid(ApiError):
    """The TTL of the message is no whole number of seconds from 1, no duration, not "never"."""


class CounterRefused(ApiError):
    """A counter's increment is missing, wrong or not allowed on this stream."""


class BatchRefused(ApiError):
    """A batch of messages, atomic or fast, is wrong or not allowed on this stream."""


class ScheduleRefused(ApiError):
    """A message's schedule is wrong or not allowed on this stream."""


class InvalidConfig(ApiError):
    """The server refuses the configuration of a stream or a consumer; the description says why."""


class WorkQueueConflict(InvalidConfig):
    """The consumer does not fit a workqueue stream, where each message is for one consumer."""


class BadRequest(ApiError):
    """The server does not understand the request."""


class InvalidJson(BadRequest):
    """The request has a field or a value that this server does not know: it may be too old."""


class ApiLevelTooHigh(ApiError):
    """The request asks for more than this server's API level: it is too old for this."""


class TooManyRequests(ApiError):
    """The server has too much to do: wait and try again."""


class TemporarilyUnavailable(ApiError):
    """The cluster has no leader or is busy with itself: try again."""


class AssetOffline(ApiError):
    """The stream or the consumer is offline: this server cannot run it."""


# The one table: err_code -> class. Whatever is not here is a plain ApiError.
BY_CODE: dict[int, type[ApiError]] = {
    10002: InsufficientResources,
    10003: BadRequest,
    10004: TemporarilyUnavailable,
    10005: NoSuitablePeers,
    10008: TemporarilyUnavailable,
    10009: TemporarilyUnavailable,
    10013: ConsumerExists,
    10014: ConsumerNotFound,
    10023: InsufficientResources,
    10025: InvalidJson,
    10026: ConsumerLimitReached,
    10027: StreamLimitReached,
    10028: InsufficientResources,
    10037: MessageNotFound,
    10039: JetStreamNotEnabled,
    10043: MessageNotFound,
    10047: InsufficientResources,
    10052: InvalidConfig,
    10054: MessageTooLarge,
    10058: StreamNameInUse,
    10059: StreamNotFound,
    10060: WrongStream,
    10065: SubjectOverlap,
    10070: WrongLastMsgId,
    10071: WrongLastSequence,
    10074: NoSuitablePeers,
    10076: JetStreamNotEnabled,
    10077: StoreFailed,
    10084: WorkQueueConflict,
    10093: InvalidConfig,
    10094: InvalidConfig,
    10097: MessageTooLarge,
    10098: WorkQueueConflict,
    10099: WorkQueueConflict,
    10100: WorkQueueConflict,
    10101: WorkQueueConflict,
    10105: ConsumerExists,
    10109: StreamSealed,
    10118: AssetOffline,
    10119: AssetOffline,
    10130: StreamNameInUse,
    10138: InvalidConfig,
    10148: ConsumerExists,
    10149: ConsumerDoesNotExist,
    10157: InvalidConfig,
    10158: DuplicateInProcess,
    10163: TemporarilyUnavailable,
    10164: WrongLastSequence,
    10165: TtlInvalid,
    10166: TtlDisabled,
    10167: TooManyRequests,
    10168: CounterRefused,
    10169: CounterRefused,
    10170: CounterRefused,
    10171: CounterRefused,
    10172: CounterRefused,
    10174: BatchRefused,
    10175: BatchRefused,
    10176: BatchRefused,
    10177: BatchRefused,
    10179: BatchRefused,
    10180: WrongLastSequence,
    10185: ApiLevelTooHigh,
    10188: ScheduleRefused,
    10189: ScheduleRefused,
    10190: ScheduleRefused,
    10191: ScheduleRefused,
    10192: ScheduleRefused,
    10194: AssetOffline,
    10195: AssetOffline,
    10199: BatchRefused,
    10200: BatchRefused,
    10201: BatchRefused,
    10203: ScheduleRefused,
    10205: BatchRefused,
    10206: BatchRefused,
    10207: BatchRefused,
    10208: BatchRefused,
    10210: TooManyRequests,
    10211: TooManyRequests,
    10212: ScheduleRefused,
    10223: ScheduleRefused,
}


def api_error(error: object) -> ApiError:
    """The exception for the `error` of an answer, of whatever shape; it is never another one."""
    fields: Any = error
    if not isinstance(error, dict):
        fields = {"description": str(error)}
    code = fields.get("code")
    err_code = fields.get("err_code")
    description = fields.get("description")
    # Servers before 2.3 have no err_code (ADR-7), and a proxy may write anything.
    number: int = err_code if isinstance(err_code, int) else 0
    return BY_CODE.get(number, ApiError)(
        code if isinstance(code, int) else 0,
        number,
        description if isinstance(description, str) else "error without a description",
    )
