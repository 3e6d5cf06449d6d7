"""The exceptions of nats-py's `nats.js.errors`, by the same names and with the same texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from natsproto.compat.nats import errors

from . import api as api  # programs get it by `from nats.js.errors import *`


class Error(errors.Error):
    """The base class of JetStream's errors."""

    def __init__(self, description: str | None = None) -> None:
        super().__init__(*([] if description is None else [description]))
        self.description: str | None = description

    def __str__(self) -> str:
        return f"nats: JetStream.{self.__class__.__name__} {self.description or ''}"


@dataclass(init=False, repr=False, eq=False)
class APIError(Error):
    """An error that the server reported; `err_code` identifies it."""

    code: int | None
    err_code: int | None
    description: str | None
    stream: str | None
    seq: int | None

    def __init__(
        self,
        code: int | None = None,
        description: str | None = None,
        err_code: int | None = None,
        stream: str | None = None,
        seq: int | None = None,
    ) -> None:
        super().__init__(description)
        self.code = code
        self.err_code = err_code
        self.stream = stream
        self.seq = seq

    @classmethod
    def from_msg(cls, msg: Any) -> NoReturn:
        """Raise the error of a message with a status."""
        if msg.header is None:
            raise APIError
        code = msg.header["Status"]
        if code == "503":
            raise ServiceUnavailableError
        raise APIError(code=int(code), description=msg.header.get("Description"))

    @classmethod
    def from_error(cls, err: dict[str, Any]) -> NoReturn:
        """Raise the error in a response."""
        if err.get("err_code") == 10204:
            raise ConsumerInvalidResetError(**err)
        raise _BY_CODE.get(err["code"], APIError)(**err)

    def __str__(self) -> str:
        return (
            f"nats: {type(self).__name__}: code={self.code} err_code={self.err_code} "
            f"description='{self.description}'"
        )


class ServiceUnavailableError(APIError):
    """503: JetStream is not available."""


class ServerError(APIError):
    """500: the server failed."""


class NotFoundError(APIError):
    """404: the stream, consumer or message does not exist."""


class BadRequestError(APIError):
    """400: the request is invalid."""


class ConsumerInvalidResetError(BadRequestError):
    """The consumer cannot be reset to that sequence."""


_BY_CODE: dict[int, type[APIError]] = {
    503: ServiceUnavailableError,
    500: ServerError,
    404: NotFoundError,
    400: BadRequestError,
}


class NoStreamResponseError(Error):
    """No stream takes the subject of a publish."""

    def __str__(self) -> str:
        return "nats: no response from stream"


class TooManyStalledMsgsError(Error):
    """Too many publishes wait for their acknowledgment."""

    def __str__(self) -> str:
        return "nats: stalled with too many outstanding async published messages"


class FetchTimeoutError(errors.TimeoutError):
    """A fetch with heartbeats ended without a message."""

    text = "nats: fetch timeout"


class ConsumerSequenceMismatchError(Error):
    """A consumer has delivered messages that did not arrive."""

    def __init__(
        self,
        stream_resume_sequence: int | None = None,
        consumer_sequence: int | None = None,
        last_consumer_sequence: int | None = None,
    ) -> None:
        super().__init__()
        self.stream_resume_sequence: int | None = stream_resume_sequence
        self.consumer_sequence: int | None = consumer_sequence
        self.last_consumer_sequence: int | None = last_consumer_sequence

    def __str__(self) -> str:
        gap = (self.last_consumer_sequence or 0) - (self.consumer_sequence or 0)
        return (
            f"nats: sequence mismatch for consumer at sequence {self.consumer_sequence} "
            f"({gap} sequences behind), should restart consumer from stream sequence "
            f"{self.stream_resume_sequence}"
        )


class BucketNotFoundError(NotFoundError):
    """The bucket does not exist."""


class BadBucketError(APIError):
    """The stream of that name is not a bucket."""


class KeyValueError(APIError):
    """The base class of the errors of key-value stores."""


class KeyDeletedError(KeyValueError, NotFoundError):
    """The key was deleted."""

    def __init__(self, entry: Any = None, op: str | None = None) -> None:
        super().__init__()
        self.entry: Any = entry
        self.op: str | None = op

    def __str__(self) -> str:
        return "nats: key was deleted"


class KeyNotFoundError(KeyValueError, NotFoundError):
    """The key does not exist, or was deleted; in that case `entry` is its marker."""

    def __init__(
        self, entry: Any = None, op: str | None = None, message: str | None = None
    ) -> None:
        super().__init__()
        self.entry: Any = entry
        self.op: str | None = op
        self.message: str | None = message

    def __str__(self) -> str:
        return "nats: key not found" + (f": {self.message}" if self.message else "")


class KeyWrongLastSequenceError(KeyValueError, BadRequestError):
    """The key has another revision than expected."""

    def __init__(self, description: str | None = None) -> None:
        super().__init__(description=description)

    def __str__(self) -> str:
        return f"nats: {self.description}"


class NoKeysError(KeyValueError):
    """The bucket has no keys."""

    def __str__(self) -> str:
        return "nats: no keys found"


class KeyHistoryTooLargeError(KeyValueError):
    """A bucket keeps at most 64 values of each key."""

    def __str__(self) -> str:
        return "nats: history limited to a max of 64"


class InvalidKeyError(Error):
    """The key is invalid."""


class InvalidBucketNameError(Error):
    """The name of the bucket is invalid."""


class InvalidObjectNameError(Error):
    """The name of the object is invalid."""


class BadObjectMetaError(Error):
    """The description of the object is invalid."""


class LinkIsABucketError(Error):
    """The link leads to a bucket, not to an object."""


class DigestMismatchError(Error):
    """The object is damaged."""


class ObjectNotFoundError(NotFoundError):
    """The object does not exist."""


class ObjectDeletedError(NotFoundError):
    """The object was deleted, or does not exist."""


class ObjectAlreadyExists(Error):
    """Another object has the name."""


class KeyValueLimitMarkerTTLNotSupportedError(Error):
    """The server is too old for `limit_marker_ttl`."""

    def __str__(self) -> str:
        return "nats: limit marker TTLs not supported by server"
