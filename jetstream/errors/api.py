"""What the server's API answers with where it does not do what it was asked: ApiError.

It has a class for each thing that callers handle; BY_CODE says which codes of the server are one.
Import them from jetstream.errors, which has all exceptions of JetStream and their tree. The root of
them all is here, because that module imports this one.

Never match on a description: the server may change its words. `err_code` stays (ADR-1).
"""

from __future__ import annotations

from natsproto.errors import RemoteError
from natsproto.wire.text import cut_middle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_MOST_DIGITS = 20  # of a uint64
_LONGEST = 300  # description that a message has as it is (ERR-11)


class JetStreamError(RemoteError):
    """Root of all errors of JetStream."""


class ApiError(JetStreamError):
    """The server answered with an error.

    `code` is like a status of HTTP, `err_code` says what is wrong, `description` says it in words.
    These mostly do not say which stream or consumer: `asked`, what the API was asked for, does.
    `needs` is the field of the stream that has to be True, where that is what is wrong.
    """

    def __init__(self, code: int, err_code: int, description: str) -> None:
        # JSERR-1
        super().__init__("%s (%d, %d)" % (cut_middle(description, _LONGEST), code, err_code))
        self.code = code
        self.err_code = err_code
        self.description = description
        self.asked = ""
        self.needs = ENABLED_BY.get(err_code, "")

    def __str__(self) -> str:
        text = str(self.args[0])
        if self.asked:
            text = "%s, asked for %s" % (text, cut_middle(self.asked))
        return "%s; the stream needs %s=True" % (text, self.needs) if self.needs else text

    # By default an exception is pickled as its message alone, which is not how these are made.
    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, self.err_code, self.description), {"asked": self.asked}


class ConfigExists(ApiError):
    """There is a stream or consumer of this name, and its configuration is another.

    `different` describes each field that differs, if it could be found out.
    """

    different: list[str] | tuple[str, ...] = ()

    def __str__(self) -> str:
        text = super().__str__()
        return "%s: %s" % (text, "; ".join(self.different)) if self.different else text  # JSERR-6

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, self.err_code, self.description), dict(self.__dict__)


class StreamNotFound(ApiError):
    """There is no such stream."""


class ConsumerNotFound(ApiError):
    """There is no such consumer on the stream."""


class ConsumerDoesNotExist(ConsumerNotFound):
    """There is no such consumer to update: create it."""


class MessageNotFound(ApiError):
    """The stream does not have this message; it may have had it."""


class StreamNameInUse(ConfigExists):
    """There is a stream of this name with another configuration: update it or take another name."""


class ConsumerExists(ConfigExists):
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
        # By character, because isdigit knows digits of other scripts; JSERR-8.
        digits = 0 < len(number) <= _MOST_DIGITS and all(char in "0123456789" for char in number)
        self.last_seq = int(number) if digits else None  # JSERR-3


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
        self.full = description.startswith("maximum ")  # JSERR-4


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


# JSERR-7: the field of a stream that allows what these codes say is disabled.
ENABLED_BY = {
    10166: "allow_msg_ttl",
    10168: "allow_msg_counter",
    10174: "allow_atomic",
    10188: "allow_msg_schedules",
    10205: "allow_batched",
}

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


def api_error(error: object) -> ApiError:  # JSERR-2, JSERR-5
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
