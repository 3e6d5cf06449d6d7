"""JsMsg: a message that a consumer delivered, and its acknowledgements (ADR-15)."""

from __future__ import annotations

from natsproto import _text
from natsproto.errors import InvalidValue
from natsproto.session import check_seconds

from .metadata import read_metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from natsproto.frames import Msg
    from natsproto.headers import Headers
    from natsproto.session import Session

    from .metadata import Metadata

ACK = b"+ACK"
NAK = b"-NAK"
TERM = b"+TERM"
IN_PROGRESS = b"+WPI"


class JsMsg:
    """A message from JetStream: everything of Msg, its metadata, and its acknowledgements.

    `ack`, `nak` and `term` settle it: the first of them counts, later ones are ignored, as the
    server would answer "fine" to any of them. With ack policy none all are ignored.
    """

    __slots__ = ("_metadata", "_msg", "_session", "settled")

    def __init__(self, msg: Msg, session: Session, settled: bool = False) -> None:
        self._msg = msg
        self._session = session
        #: Whether it needs no acknowledgement (any more).
        self.settled = settled

    @property
    def subject(self) -> str:
        return self._msg.subject

    @property
    def reply(self) -> str:
        """The subject of acknowledgements; opaque."""
        return self._msg.reply

    @property
    def sid(self) -> int:
        return self._msg.sid

    @property
    def data(self) -> bytes:
        return self._msg.data

    @property
    def headers(self) -> Headers | None:
        """None if there are none; HeaderError if nobody can read them."""
        return self._msg.headers

    @property
    def status(self) -> int:
        return self._msg.status

    @property
    def description(self) -> str:
        return self._msg.description

    @property
    def raw_subject(self) -> bytes:
        return self._msg.raw_subject

    @property
    def raw_reply(self) -> bytes:
        return self._msg.raw_reply

    @property
    def raw_headers(self) -> bytes | None:
        return self._msg.raw_headers

    @property
    def size(self) -> int:
        return self._msg.size

    @property
    def metadata(self) -> Metadata:
        """Stream, consumer, sequences, time; NotJetStreamMessage if the reply says none of it."""
        try:
            return self._metadata
        except AttributeError:
            self._metadata: Metadata = read_metadata(self._msg.raw_reply)
            return self._metadata

    async def ack(self) -> None:
        """Done: it will not be delivered again."""
        ack_now(self)

    async def ack_sync(self, timeout: float = 5.0) -> None:
        """The same, and wait until the server has it.

        TimeoutExpired leaves it in doubt: the server may have it, and only its answer got lost.
        It is not settled then, and may be tried again. NoResponders: the consumer is gone.
        """
        if self.settled:
            return
        session = self._session
        request = session.connection.start_request(
            self._msg.reply, ACK, deadline=session.deadline(timeout)
        )
        self.settled = True  # ACK-4: meanwhile no other acknowledgement is sent
        try:
            await session.settle(request)
        except BaseException:
            self.settled = False
            raise

    async def nak(self, delay: float | None = None) -> None:
        """Not done: deliver it again, at once or after that many seconds."""
        if delay is None:
            self._settle(NAK)
        else:
            nanoseconds = round(check_seconds("delay", delay) * 1e9)
            self._settle(b'%s {"delay":%d}' % (NAK, nanoseconds))

    async def term(self, reason: str = "") -> None:
        """Never deliver it again, though it is not done; advisories tell the reason."""
        if not isinstance(reason, str) or "\r" in reason or "\n" in reason:
            raise InvalidValue("reason %r is not one line of text" % (reason,), "ACK-6")
        try:
            why = _text.encode(reason)
        except UnicodeError:
            raise InvalidValue("reason %r is not UTF-8" % reason, "ACK-6") from None
        self._settle(TERM + b" " + why if why else TERM)

    async def in_progress(self) -> None:
        """Still at it: start the time for the acknowledgement anew. May be repeated."""
        if not self.settled:
            self._respond(IN_PROGRESS)

    def _settle(self, payload: bytes) -> None:
        if not self.settled:
            self._respond(payload)
            self.settled = True  # only now: if it could not be sent, it can be tried again

    def _respond(self, payload: bytes) -> None:
        session = self._session
        if session.connection.respond(self._msg.raw_reply, payload):
            session.port.flush_soon()

    def __repr__(self) -> str:
        return "JsMsg(subject=%r, data=%r, reply=%r)" % (self.subject, self.data, self.reply)


def ack_now(msg: JsMsg) -> None:
    """What `ack` does, for those who are not async."""
    # As _settle does it, in one call instead of three.
    if not msg.settled:
        session = msg._session  # pyright: ignore[reportPrivateUsage]
        raw_reply = msg._msg.raw_reply  # pyright: ignore[reportPrivateUsage]
        if session.connection.respond(raw_reply, ACK):
            session.port.flush_soon()
        msg.settled = True
