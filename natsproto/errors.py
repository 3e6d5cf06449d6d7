"""Every exception of the package.

    NatsError
      LocalError             your call was wrong; nothing was sent
        InvalidSubject       a subject, reply, queue or inbox prefix that NATS cannot carry
        InvalidName          a stream, consumer or durable name that the server would reject
        InvalidHeader        a header name or value that a header block cannot carry
        InvalidValue         any other argument of a wrong type or out of range
        InvalidState         a call or an input that the state does not allow
        PayloadTooLarge      more than the server's max_payload
        MissingExtra         an optional library is not installed
      RemoteError            the peer or the network failed
        ProtocolError        the peer sent bytes that are no NATS protocol
        HeaderError          another publisher's header block cannot be read
        TimeoutExpired       no answer in time
          MessagesUnconfirmed  closed before the server had confirmed all that was published
        NoResponders         nobody listens to the subject of a request
        TooManyReplies       more answers to a request than there is room for
        NotSupported         the server is too old or not configured for this
        PermissionDenied     the server does not allow this subject
        PendingBufferFull    not connected, and the buffer for pending messages is full
        ConnectionLost       the transport broke; a new one is being tried
        ConnectionClosed     the connection is closed for good
          ConnectFailed      no server could be reached
        AuthorizationFailed  the server refused the credentials, or has to be given others
        TlsFailed            TLS is wanted and not to be had; no credentials were sent
        ServerFailed         the server said -ERR and ended the connection

The class says what the caller can do about it, the message says what happened, with the values.

Some are built-in exceptions as well (ERR-10), so that the handlers of ordinary Python code catch
them: ValueError for an invalid subject, name, header, value or payload, ImportError for a missing
extra, TimeoutError for an expired timeout, ConnectionError for a lost or closed connection. On
MicroPython, where exceptions have one base and some of these do not exist, they are not.
"""

from __future__ import annotations

from .wire.text import cut_middle, shorten

TYPE_CHECKING = False
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
            """Instead of the second base, on MicroPython."""

        _ValueError = _ImportError = _TimeoutError = _ConnectionError = _Nothing


# ERR-11: no message is longer, whatever it quotes.
_LONGEST = 1000
_LONGEST_LOCAL = 300


class NatsError(Exception):
    """Root of all errors of this package."""

    def __init__(self, message: str = "") -> None:
        super().__init__(cut_middle(message, _LONGEST, _LONGEST // 2))


class LocalError(NatsError):
    """Your call was wrong and nothing was sent: mend the call.

    `rule` is the number of the broken rule in spec_notes, "" where there is none.
    """

    def __init__(self, message: str, rule: str = "") -> None:
        message = cut_middle(message, _LONGEST_LOCAL, 120)
        super().__init__("%s (%s)" % (message, rule) if rule else message)
        self.rule = rule


class InvalidSubject(LocalError, _ValueError):
    """A subject, reply, queue or inbox prefix that NATS cannot carry."""


class InvalidName(LocalError, _ValueError):
    """A stream, consumer or durable name that the server would reject."""


class InvalidHeader(LocalError, _ValueError):
    """A header name or value that a header block cannot carry."""


class InvalidValue(LocalError, _ValueError):
    """An argument of the wrong type or out of range."""


class InvalidState(LocalError):
    """A call or an input that is not legal in the present state."""


class PayloadTooLarge(LocalError, _ValueError):
    """Header block and payload are larger than the server's max_payload; nothing was sent."""


class MissingExtra(LocalError, _ImportError):
    """An optional library is needed; the message names the extra that brings it."""


class RemoteError(NatsError):
    """The peer or the network failed: the call was right, trying again may help."""


class ProtocolError(RemoteError):
    """The peer sent bytes that are no NATS protocol; the connection cannot be used further.

    `offset` counts from the first byte of the stream. `frames` are those that were complete before
    the garbage in the same call to `feed`: nothing that arrived is lost.
    """

    def __init__(self, reason: str, offset: int, excerpt: bytes) -> None:
        super().__init__("%s at byte %d: %s" % (reason, offset, shorten(excerpt)))
        self.reason = reason
        self.offset = offset
        self.excerpt = excerpt
        self.frames: list[Frame] = []


class HeaderError(RemoteError):
    """A publisher sent a header block that cannot be read; the rest of its message can."""


class TimeoutExpired(RemoteError, _TimeoutError):
    """No answer in time; what was sent may still arrive and take effect."""


class MessagesUnconfirmed(TimeoutExpired):
    """The client was closed before the server had confirmed everything that was published.

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
    """Nobody listens to the subject of the request; it was delivered to no one."""

    def __init__(self, subject: str) -> None:
        super().__init__("no responders on subject %s" % shorten(subject))
        self.subject = subject


class TooManyReplies(RemoteError):
    """More answers came than the request keeps; `replies` has those that were kept.

    Set `max_msgs` to get the first ones without this error, or raise the limits.
    """

    def __init__(self, text: str, replies: list[Msg]) -> None:
        super().__init__(text)
        self.replies = replies


class NotSupported(RemoteError):
    """The server is too old for this or not configured for it."""


class PermissionDenied(RemoteError):
    """The server does not allow this client the subject; `subject` and `queue` as it named them."""

    def __init__(self, text: str, subject: str = "", queue: str = "") -> None:
        super().__init__(text)
        self.subject = subject
        self.queue = queue


class PendingBufferFull(RemoteError):
    """Not connected, and `max_pending_out` bytes are pending: this message was not taken."""


OutBufferFull = PendingBufferFull  # the former name


class ConnectionLost(RemoteError, _ConnectionError):
    """The transport broke; a new one is being tried, and what was in flight may be lost."""


class ConnectionClosed(RemoteError, _ConnectionError):
    """The connection is closed for good."""


class ConnectFailed(ConnectionClosed):
    """No server could be reached; `errors` has (url, error) for each that was tried last."""

    def __init__(self, errors: list[tuple[str, Exception]]) -> None:
        tried = "; ".join(["%s: %s" % (cut_middle(url), error) for url, error in errors])
        super().__init__("no server could be reached: %s" % (tried or "none is left to try"))
        self.errors = errors


class AuthorizationFailed(RemoteError):
    """The server refused the credentials: give others, there is no use in trying these again."""


class TlsFailed(RemoteError):
    """TLS is wanted and not to be had; no credentials were sent."""


class ServerFailed(RemoteError):
    """The server said -ERR and ended the connection; `text` is what it said."""

    def __init__(self, text: str) -> None:
        super().__init__("server error: %s" % text)
        self.text = text
