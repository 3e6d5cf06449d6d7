"""Every exception of the package.

    NatsError
      LocalError             your call was wrong; nothing was sent
        InvalidSubject       a subject, reply, queue or inbox prefix that NATS cannot carry
        InvalidName          a stream, consumer or durable name that the server would reject
        InvalidHeader        a header name or value that a header block cannot carry
        InvalidValue         any other argument of a wrong type or out of range
      RemoteError            the peer or the network failed
        ProtocolError        the peer sent bytes that are no NATS protocol
        HeaderError          another publisher's header block cannot be read

The class says what the caller can do about it, the message says what happened, with the values.
They derive from Exception alone: MicroPython has neither ConnectionError nor TimeoutError.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .frames import Frame


class NatsError(Exception):
    """Root of all errors of this package."""


class LocalError(NatsError):
    """Your call was wrong and nothing was sent: mend the call.

    `rule` is the number of the broken rule in spec_notes, "" where there is none.
    """

    def __init__(self, message: str, rule: str = "") -> None:
        super().__init__("%s (%s)" % (message, rule) if rule else message)
        self.rule = rule


class InvalidSubject(LocalError):
    """A subject, reply, queue or inbox prefix that NATS cannot carry."""


class InvalidName(LocalError):
    """A stream, consumer or durable name that the server would reject."""


class InvalidHeader(LocalError):
    """A header name or value that a header block cannot carry."""


class InvalidValue(LocalError):
    """An argument of the wrong type or out of range."""


class RemoteError(NatsError):
    """The peer or the network failed: the call was right, trying again may help."""


class ProtocolError(RemoteError):
    """The peer sent bytes that are no NATS protocol; the connection cannot be used further.

    `offset` counts from the first byte of the stream. `frames` are those that were complete before
    the garbage in the same call to `feed`: nothing that arrived is lost.
    """

    def __init__(self, reason: str, offset: int, excerpt: bytes) -> None:
        super().__init__("%s at byte %d: %r" % (reason, offset, excerpt))
        self.reason = reason
        self.offset = offset
        self.excerpt = excerpt
        self.frames: list[Frame] = []


class HeaderError(RemoteError):
    """A publisher sent a header block that cannot be read; the rest of its message can."""
