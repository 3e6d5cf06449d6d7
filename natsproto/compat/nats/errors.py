"""The exceptions of nats-py's `nats.errors`, by the same names and with the same texts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .aio.subscription import Subscription


class Error(Exception):
    """The base class of all errors of this layer."""


class _Fixed(Error):
    """An error whose text is always the same, whatever it was created with."""

    text: str = ""

    def __str__(self) -> str:
        return self.text


class TimeoutError(_Fixed, asyncio.TimeoutError):
    """A call took longer than its timeout."""

    text = "nats: timeout"


class NoRespondersError(_Fixed):
    """No subscription exists for the subject of a request."""

    text = "nats: no responders available for request"


class StaleConnectionError(_Fixed):
    """The server no longer answers PINGs."""

    text = "nats: stale connection"


class OutboundBufferLimitError(_Fixed):
    """More than `pending_size` bytes would wait for a connection."""

    text = "nats: outbound buffer limit exceeded"


class UnexpectedEOF(StaleConnectionError):
    """The server closed the connection."""

    text = "nats: unexpected EOF"


class FlushTimeoutError(TimeoutError):
    """A flush took longer than its timeout."""

    text = "nats: flush timeout"


class ConnectionClosedError(_Fixed):
    """The client is closed, or was never connected."""

    text = "nats: connection closed"


class SecureConnRequiredError(_Fixed):
    """The server requires TLS."""

    text = "nats: secure connection required"


class SecureConnWantedError(_Fixed):
    """The client requires TLS, and the server has none."""

    text = "nats: secure connection not available"


class SecureConnFailedError(_Fixed):
    """The TLS handshake failed."""

    text = "nats: secure connection failed"


class BadSubscriptionError(_Fixed):
    """The subscription has ended."""

    text = "nats: invalid subscription"


class BadSubjectError(_Fixed):
    """The subject, or the queue group, is invalid."""

    text = "nats: invalid subject"


class BadHeaderError(Error):
    """The name of a header, `key`, is invalid."""

    def __init__(self, key: str = "") -> None:
        super().__init__(*([key] if key else []))
        self.key: str = key

    def __str__(self) -> str:
        return "nats: invalid header" + (f": {self.key!r}" if self.key else "")


class SlowConsumerError(Error):
    """Messages were dropped, because a subscription had too many of them already."""

    def __init__(self, subject: str, reply: str, sid: int, sub: Subscription | None) -> None:
        super().__init__(subject, reply, sid, sub)
        self.subject: str = subject
        self.reply: str = reply
        self.sid: int = sid
        self.sub: Subscription | None = sub

    def __str__(self) -> str:
        return (
            f"nats: slow consumer, messages dropped subject: {self.subject}, "
            f"sid: {self.sid}, sub: {self.sub}"
        )


class BadTimeoutError(_Fixed):
    """The timeout is negative."""

    text = "nats: timeout invalid"


class AuthorizationError(_Fixed):
    """The server rejected the credentials."""

    text = "nats: authorization failed"


class NoServersError(_Fixed):
    """No server could be reached."""

    text = "nats: no servers available for connection"


class JsonParseError(_Fixed):
    """INFO of the server is not valid JSON."""

    text = "nats: connect message, json parse err"


class MaxPayloadError(_Fixed):
    """The payload is larger than the server allows."""

    text = "nats: maximum payload exceeded"


class DrainTimeoutError(TimeoutError):
    """A drain took longer than `drain_timeout`."""

    text = "nats: draining connection timed out"


class ConnectionDrainingError(_Fixed):
    """The client is being drained: it accepts no new subscriptions."""

    text = "nats: connection draining"


class ConnectionReconnectingError(_Fixed):
    """The client has no connection at the moment."""

    text = "nats: connection reconnecting"


class InvalidUserCredentialsError(_Fixed):
    """The file or text of the credentials has no JWT or no seed."""

    text = "nats: invalid user credentials"


class InvalidCallbackTypeError(_Fixed):
    """A callback is not a coroutine function."""

    text = "nats: callbacks must be coroutine functions"


class ProtocolError(_Fixed):
    """The server sent something that is not part of the protocol."""

    text = "nats: protocol error"


class ServerNotInPoolError(_Fixed):
    """`reconnect_to_server_handler` returned a server that the client does not know."""

    text = "nats: selected server is not in the pool"


class NotJSMessageError(_Fixed):
    """The message was not delivered by a JetStream consumer."""

    text = "nats: not a JetStream message"


class MsgAlreadyAckdError(Error):
    """The message was already acknowledged."""

    def __init__(self, msg: Any = None) -> None:
        super().__init__(*([] if msg is None else [msg]))
        self._msg = msg

    def __str__(self) -> str:
        return f"nats: message was already acknowledged: {self._msg}"
