"""All exceptions of the package.

    NatsError
      LocalError             your call was wrong; nothing was sent
        InvalidSubject       invalid subject, reply subject, queue name or inbox prefix
        InvalidName          stream, consumer or durable name that the server would reject
        InvalidHeader        header name or value that cannot be encoded
        InvalidValue         any other argument of the wrong type or out of range
        InvalidState         call or input that the current state does not allow
        PayloadTooLarge      message larger than the server's max_payload
        MissingExtra         optional library that is not installed
      RemoteError            the peer or the network failed
        ProtocolError        the peer sent bytes that are not valid NATS protocol
        HeaderError          received header block that cannot be parsed
        TimeoutExpired       no response in time
          MessagesUnconfirmed  closed before the server confirmed every published message
        NoResponders         no subscriber for the subject of a request
        TooManyReplies       more replies to a request than fit its limits
        NotSupported         the server is too old, or not configured for this feature
        PermissionDenied     the server does not permit this subject
        PendingBufferFull    not connected, and the buffer for pending messages is full
        ConnectionLost       the transport failed; the client reconnects
        ConnectionClosed     the connection is closed permanently
          ConnectFailed      no server could be reached
        AuthorizationFailed  the server rejected the credentials
        TlsFailed            TLS is required but unavailable; no credentials were sent
        ServerFailed         the server sent -ERR and closed the connection
        UserRejected         for auth callouts: raise it if a client may not connect

The class shows callers what they can do; the message says what happened, with the values.

Some are built-in exceptions as well (D-ERR-10), so that the handlers of ordinary Python code catch
them: ValueError for an invalid subject, name, header, value or payload, ImportError for a missing
extra, TimeoutError for an expired timeout, ConnectionError for a lost or closed connection.
MicroPython allows only one base and lacks some of these, so there they have no second base.
"""

from __future__ import annotations

from .wire.text import cut_middle, shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from .wire.frames import Frame, Msg

    _ValueError = ValueError
    _ImportError = ImportError
    _TimeoutError = TimeoutError
    _ConnectionError = ConnectionError
else:
    try:
        _TimeoutError = TimeoutError
        _ConnectionError = ConnectionError
        _ValueError = ValueError
        _ImportError = ImportError
    except NameError:

        class _Nothing:
            """Placeholder for the second base, on MicroPython."""

        _ValueError = _ImportError = _TimeoutError = _ConnectionError = _Nothing


# D-ERR-11: the maximum length of a message, whatever it quotes.
_LONGEST = 1000
_LONGEST_LOCAL = 300


class NatsError(Exception):
    """Base class of all errors of this package."""

    def __init__(self, message: str = "") -> None:
        super().__init__(cut_middle(message, _LONGEST, _LONGEST // 2))


class LocalError(NatsError):
    """The call was invalid and nothing was sent: fix the call.

    `rule` is the id of the broken rule in spec_notes, or "".
    """

    def __init__(self, message: str, rule: str = "") -> None:
        message = cut_middle(message, _LONGEST_LOCAL, 120)
        super().__init__("%s (%s)" % (message, rule) if rule else message)
        self.rule = rule


class InvalidSubject(LocalError, _ValueError):
    """The subject, reply subject, queue name or inbox prefix is invalid."""


class InvalidName(LocalError, _ValueError):
    """The server would reject this stream, consumer or durable name."""


class InvalidHeader(LocalError, _ValueError):
    """The header name or value cannot be encoded."""


class InvalidValue(LocalError, _ValueError):
    """An argument has the wrong type or is out of range."""


class InvalidState(LocalError):
    """The call or input is not allowed in the current state."""


class PayloadTooLarge(LocalError, _ValueError):
    """The message is larger than the server's max_payload; nothing was sent."""


class MissingExtra(LocalError, _ImportError):
    """An optional library is missing; the message names the extra that installs it."""


class RemoteError(NatsError):
    """The peer or the network failed; the call was valid, and retrying may help."""


class ProtocolError(RemoteError):
    """The peer sent bytes that are not valid NATS protocol; the connection is unusable.

    `offset` counts from the first byte of the stream. `frames` holds the frames that were complete
    before the invalid bytes in the same call to `feed`, so that nothing that arrived is lost.
    """

    def __init__(self, reason: str, offset: int, excerpt: bytes) -> None:
        super().__init__("%s at byte %d: %s" % (reason, offset, shorten(excerpt)))
        self.reason = reason
        self.offset = offset
        self.excerpt = excerpt
        self.frames: list[Frame] = []


class HeaderError(RemoteError):
    """The header block of a message cannot be parsed; the rest of the message is available."""


class TimeoutExpired(RemoteError, _TimeoutError):
    """No response arrived in time; the request may still arrive and take effect."""


class MessagesUnconfirmed(TimeoutExpired):
    """The client was closed before the server confirmed every published message.

    `unsent` messages never left this process; `in_doubt` messages were sent and may have arrived.
    """

    def __init__(self, unsent: int, in_doubt: int) -> None:
        super().__init__(
            "the client was closed with unconfirmed messages: %d not sent, %d sent and in doubt"
            % (unsent, in_doubt)
        )
        self.unsent = unsent
        self.in_doubt = in_doubt


class NoResponders(RemoteError):
    """The subject of the request has no subscribers, so the request was not delivered."""

    def __init__(self, subject: str) -> None:
        super().__init__("no responders on subject %s" % shorten(subject))
        self.subject = subject


class TooManyReplies(RemoteError):
    """More replies arrived than the request keeps; `replies` holds those that were kept.

    To get the first replies without this error, set `max_msgs`; or raise the limits.
    """

    def __init__(self, text: str, replies: list[Msg]) -> None:
        super().__init__(text)
        self.replies = replies


class NotSupported(RemoteError):
    """The server is too old for this feature, or not configured for it."""


class PermissionDenied(RemoteError):
    """The server does not permit `subject`, or `queue` on it."""

    def __init__(self, text: str, subject: str = "", queue: str = "") -> None:
        super().__init__(text)
        self.subject = subject
        self.queue = queue


class PendingBufferFull(RemoteError):
    """Not connected, and `max_pending_out` bytes are pending: this message was not taken."""


OutBufferFull = PendingBufferFull  # the former name


class ConnectionLost(RemoteError, _ConnectionError):
    """The transport failed and the client reconnects; messages in flight may be lost."""


class ConnectionClosed(RemoteError, _ConnectionError):
    """The connection is closed permanently."""


class ConnectFailed(ConnectionClosed):
    """No server could be reached; `errors` has the last (url, error) of each server."""

    def __init__(self, errors: list[tuple[str, Exception]]) -> None:
        tried = "; ".join(["%s: %s" % (cut_middle(url), error) for url, error in errors])
        super().__init__("no server could be reached: %s" % (tried or "no servers left to try"))
        self.errors = errors


class AuthorizationFailed(RemoteError):
    """The server rejected the credentials; retrying with the same ones will fail."""


class TlsFailed(RemoteError):
    """TLS is required but unavailable; no credentials were sent."""


class ServerFailed(RemoteError):
    """The server sent -ERR and closed the connection; `text` is the reason that it gave."""

    def __init__(self, text: str) -> None:
        super().__init__("server error: %s" % text)
        self.text = text


class UserRejected(RemoteError):
    """Raise it in an auth callout to reject a client; the server logs the `reason`."""

    def __init__(self, reason: str) -> None:
        super().__init__("user rejected: %s" % reason)
        self.reason = reason

    def __reduce__(self) -> tuple[type[UserRejected], tuple[str]]:
        return type(self), (self.reason,)
