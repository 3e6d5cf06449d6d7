"""JsMsg: a message that a consumer delivered, and its acknowledgments (ADR-15)."""

from __future__ import annotations

from natsproto.durations import check_seconds
from natsproto.errors import InvalidSubject, InvalidValue
from natsproto.hinting import add_hints
from natsproto.wire import text as _text
from natsproto.wire.text import shorten
from natsproto.wire.versions import has_version

from .api.metadata import ACK_PREFIX, read_metadata

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.durations import Seconds
    from natsproto.session import Session
    from natsproto.wire.frames import Msg
    from natsproto.wire.headers import Headers

    from .api.metadata import Metadata

ACK = b"+ACK"  # ACK-2
NAK = b"-NAK"
TERM = b"+TERM"
IN_PROGRESS = b"+WPI"
_FIRST_WITH_REASONS = (2, 10, 4)


class JsMsg:
    """A message from JetStream: the attributes of Msg, its metadata, and its acknowledgments.

    `ack`, `nak` and `term` settle the message: the first of them counts and later ones are ignored,
    because the server would accept any of them. With ack policy none, all are ignored.
    """

    __slots__ = ("_metadata", "_msg", "_session", "settled")

    def __init__(self, msg: Msg, session: Session, settled: bool = False) -> None:
        self._msg = msg
        self._session = session
        #: Whether the message needs no acknowledgment (anymore).
        self.settled: bool = settled  # ACK-8

    @property
    def subject(self) -> str:
        """The subject that the message was published to."""
        return self._msg.subject

    @property
    def reply(self) -> str:
        """The subject of acknowledgments, which is opaque."""
        return self._msg.reply

    @property
    def sid(self) -> int:
        """The id of the subscription that received the message."""
        return self._msg.sid

    @property
    def data(self) -> bytes:
        """The payload."""
        return self._msg.data

    @property
    def headers(self) -> Headers | None:
        """The headers, or None; raises HeaderError if they are invalid."""
        return self._msg.headers

    @property
    def status(self) -> int:
        """The inline status of the header block, or 0."""
        return self._msg.status

    @property
    def description(self) -> str:
        """The text after the inline status, or ""."""
        return self._msg.description

    @property
    def raw_subject(self) -> bytes:
        """The subject as received."""
        return self._msg.raw_subject

    @property
    def raw_reply(self) -> bytes:
        """The reply subject as received."""
        return self._msg.raw_reply

    @property
    def raw_headers(self) -> bytes | None:
        """The header block as received, or None."""
        return self._msg.raw_headers

    @property
    def size(self) -> int:
        """The length on the wire, including the control line."""
        return self._msg.size

    @property
    def metadata(self) -> Metadata:
        """Stream, consumer, sequences and time; raises NotJetStreamMessage if there are none."""
        try:
            return self._metadata
        except AttributeError:
            self._metadata: Metadata = read_metadata(self._msg.raw_reply)  # D-META-4
            return self._metadata

    async def ack(self) -> None:
        """Acknowledge the message: it is not redelivered."""
        # Like ack_nowait, without the call.
        if not self.settled:
            reply = self._msg.raw_reply
            if not reply.startswith(ACK_PREFIX):
                _ack_subject(self._msg)  # raises
            session = self._session
            if session.connection.respond(reply, ACK):
                session.port.flush_soon()
            self.settled = True

    def ack_nowait(self) -> None:
        """Acknowledge the message, like `ack`, without a coroutine."""
        # Like _settle, in one call instead of four.
        if not self.settled:
            reply = self._msg.raw_reply
            if not reply.startswith(ACK_PREFIX):
                _ack_subject(self._msg)  # raises
            session = self._session
            if session.connection.respond(reply, ACK):
                session.port.flush_soon()
            self.settled = True

    async def ack_sync(self, timeout: Seconds = 5.0) -> None:
        """Acknowledge the message, and wait until the server confirms it.

        After TimeoutExpired the result is unknown: perhaps only the confirmation was lost. The
        message is then not settled, and the call can be repeated. Raises NoResponders if the
        consumer was deleted.
        """
        if self.settled:
            return
        session = self._session
        _ack_subject(self._msg)
        request = session.connection.start_request(  # ACK-7
            self._msg.reply, ACK, deadline=session.answer_deadline(timeout)
        )
        self.settled = True  # ACK-4: no other acknowledgment is sent in the meantime
        try:
            await session.settle(request)
        except BaseException:
            self.settled = False
            raise

    async def nak(self, delay: Seconds | None = None) -> None:
        """Reject the message: it is redelivered, at once or after `delay` seconds."""
        if delay is None:
            self._settle(NAK)
        else:
            nanoseconds = round(check_seconds("delay", delay) * 1e9)  # ACK-5
            self._settle(b'%s {"delay":%d}' % (NAK, nanoseconds))

    async def term(self, reason: str = "") -> None:
        """Terminate the message: it is not redelivered. The reason appears in the advisory.

        Servers before 2.10.4 do not support reasons: the message is terminated without one.
        """
        if not isinstance(reason, str) or "\r" in reason or "\n" in reason:
            raise InvalidValue("reason %s is not one line of text" % shorten(reason), "ACK-6")
        try:
            why = _text.encode(reason)
        except UnicodeError:
            raise InvalidValue("reason %s is not UTF-8" % shorten(reason), "ACK-6") from None
        # ACK-11: a server before 2.10.4 ignores +TERM with a reason, and redelivers.
        known = has_version(self._session.connection.info, _FIRST_WITH_REASONS)
        self._settle(TERM + b" " + why if why and known else TERM)

    async def in_progress(self) -> None:  # ACK-3
        """Restart the time for the acknowledgment. Can be called repeatedly."""
        if not self.settled:  # ACK-3
            self._respond(IN_PROGRESS)

    def _settle(self, payload: bytes) -> None:
        if not self.settled:  # ACK-3
            self._respond(payload)
            self.settled = True  # only now: if sending failed, it can be retried

    def _respond(self, payload: bytes) -> None:
        session = self._session
        if session.connection.respond(_ack_subject(self._msg), payload):  # ACK-1
            session.port.flush_soon()

    def __repr__(self) -> str:
        fields = (shorten(self.subject), shorten(self.data), shorten(self.reply))
        return "JsMsg(subject=%s, data=%s, reply=%s)" % fields


add_hints(
    JsMsg,
    "jetstream.api.attributes",
    "MESSAGE",
    "header respond is_acked double_ack nak_with_delay term_with_reason",
)


def wrap_all(msgs: list[Msg], session: Session, settled: bool) -> list[JsMsg]:
    """Return JsMsg(msg, session, settled) for each message, without calls: 0.05 us less."""
    new = object.__new__
    wrapped: list[JsMsg] = []
    for msg in msgs:
        made = new(JsMsg)
        made._msg = msg  # pyright: ignore[reportPrivateUsage]
        made._session = session  # pyright: ignore[reportPrivateUsage]
        made.settled = settled
        wrapped.append(made)
    return wrapped


def _ack_subject(msg: Msg) -> bytes:
    """Return the subject of acknowledgments; raise InvalidSubject if it is not JetStream's.

    D-ACK-10: anyone who can publish to an inbox chooses the reply subject there.
    """
    raw_reply = msg.raw_reply  # ACK-9
    if not raw_reply.startswith(ACK_PREFIX):
        text = "reply %s is not an acknowledgment subject: no consumer delivered the message"
        raise InvalidSubject(text % shorten(msg.reply), "D-ACK-10")
    return raw_reply
