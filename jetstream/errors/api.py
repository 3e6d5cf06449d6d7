"""ApiError and its subclasses: the error responses of the JetStream API.

There is a class for each error that callers handle; BY_CODE maps the server's codes to them. Import
them from jetstream.errors, which has all exceptions of JetStream and their tree.

Never match on a description: servers may change the wording. `err_code` is stable (ADR-1).
"""

from __future__ import annotations

from natsproto.wire.text import cut_middle

from .base import JetStreamError

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any


_MOST_DIGITS = 20  # of a uint64
_LONGEST = 300  # characters of a description that are not cut (D-ERR-11)


class ApiError(JetStreamError):
    """The server responded with an error.

    `code` resembles an HTTP status, `err_code` identifies the error, `description` explains it.
    Most of these do not name the stream or consumer; `asked`, the request, does. `needs` is the
    field of the stream that must be True, if that is the cause.
    """

    def __init__(self, code: int, err_code: int, description: str) -> None:
        # JSERR-1
        super().__init__("%s (%d, %d)" % (cut_middle(description, _LONGEST), code, err_code))
        self.code = code
        self.err_code = err_code
        self.description = description
        self.asked: str = ""
        self.needs: str = ENABLED_BY.get(err_code, "")

    def __str__(self) -> str:
        text = str(self.args[0])
        if self.asked:
            text = "%s, in response to %s" % (text, cut_middle(self.asked))
        return "%s; the stream needs %s=True" % (text, self.needs) if self.needs else text

    # By default an exception is pickled as its message alone, which `__init__` does not accept.
    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, self.err_code, self.description), {"asked": self.asked}


class ConfigExists(ApiError):
    """A stream or consumer of this name exists with a different configuration.

    `different` describes each field that differs, if that is known.
    """

    different: list[str] | tuple[str, ...] = ()

    def __str__(self) -> str:
        text = super().__str__()
        return "%s: %s" % (text, "; ".join(self.different)) if self.different else text  # D-JSERR-6

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, self.err_code, self.description), dict(self.__dict__)


class StreamNotFound(ApiError):
    """The stream does not exist."""


class ConsumerNotFound(ApiError):
    """The consumer does not exist."""


class ConsumerDoesNotExist(ConsumerNotFound):
    """The consumer to update does not exist: create it."""


class MessageNotFound(ApiError):
    """The stream does not have this message, or no longer has it."""


class StreamNameInUse(ConfigExists):
    """A stream of this name exists with a different configuration: update or rename it."""


class ConsumerExists(ConfigExists):
    """A consumer of this name exists: use it, update it, or choose another name."""


class SubjectOverlap(ApiError):
    """Another stream accepts some of these subjects; streams may not overlap."""


class WrongLastSequence(ApiError):
    """Another client published first: read again, then publish with the new sequence.

    `last_seq` is the actual last sequence of the stream or subject; None if unknown.
    """

    def __init__(self, code: int, err_code: int, description: str) -> None:
        super().__init__(code, err_code, description)
        number = description.rpartition(": ")[2]
        # By character, because isdigit accepts digits of other scripts; D-JSERR-8.
        digits = 0 < len(number) <= _MOST_DIGITS and all(char in "0123456789" for char in number)
        self.last_seq: int | None = int(number) if digits else None  # JSERR-3


class WrongLastMsgId(ApiError):
    """The last message of the stream has another id: another client published first."""


class WrongStream(ApiError):
    """The subject belongs to another stream than expected."""


class DuplicateInProcess(ApiError):
    """The same message id is being stored: publish again to learn the result."""


class JetStreamNotEnabled(ApiError):
    """JetStream is disabled on this server or for this account."""


class InsufficientResources(ApiError):
    """Memory, storage or suitable servers are missing, or the account is at its limit."""


class NoSuitablePeers(InsufficientResources):
    """The cluster has no suitable servers: too few, too full, or with other tags."""


class StreamLimitReached(ApiError):
    """The account cannot have more streams."""


class ConsumerLimitReached(ApiError):
    """The stream or the account cannot have more consumers."""


class MessageTooLarge(ApiError):
    """The message or its header exceeds the limit of the stream."""


class StoreFailed(ApiError):
    """The stream did not store the message.

    `full` is True if the stream is at a limit and has discard "new": publishing may succeed after
    messages are removed.
    """

    def __init__(self, code: int, err_code: int, description: str) -> None:
        super().__init__(code, err_code, description)
        # Despite ADR-1, because all causes share one err_code.
        self.full: bool = description.startswith("maximum ")  # JSERR-4


class StreamSealed(ApiError):
    """The stream is sealed: messages can be neither added nor removed."""


class TtlDisabled(ApiError):
    """The stream does not accept message TTLs: it lacks allow_msg_ttl."""


class TtlInvalid(ApiError):
    """The TTL is not a whole number of seconds of at least 1, a duration, or "never"."""


class CounterRefused(ApiError):
    """The increment of a counter is missing, invalid, or not allowed on this stream."""


class BatchRefused(ApiError):
    """An atomic or fast batch is invalid, or not allowed on this stream."""


class ScheduleRefused(ApiError):
    """The schedule of a message is invalid, or not allowed on this stream."""


class InvalidConfig(ApiError):
    """The server rejected a configuration; the description gives the reason."""


class WorkQueueConflict(InvalidConfig):
    """The consumer conflicts with another on a work queue, where each message has one consumer."""


class BadRequest(ApiError):
    """The request is invalid."""


class InvalidJson(BadRequest):
    """The request has a field or value that the server does not know; it may be too old."""


class ApiLevelTooHigh(ApiError):
    """The request needs a higher API level: the server is too old."""


class TooManyRequests(ApiError):
    """The server is overloaded: wait, then retry."""


class TemporarilyUnavailable(ApiError):
    """The cluster has no leader, or is reorganizing: retry."""


class AssetOffline(ApiError):
    """The stream or consumer is offline: this server cannot run it."""


# JSERR-7: the field of a stream that enables the feature, by the code that reports it as disabled.
ENABLED_BY: dict[int, str] = {
    10166: "allow_msg_ttl",
    10168: "allow_msg_counter",
    10174: "allow_atomic",
    10188: "allow_msg_schedules",
    10205: "allow_batched",
}

# err_code -> class. All other codes are a plain ApiError.
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
    """Return the exception for the `error` of a response, whatever its shape. Never raises."""
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
