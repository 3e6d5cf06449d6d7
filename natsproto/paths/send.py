"""Sending a traced message and collecting the reports of the servers (ADR-41)."""

from __future__ import annotations

from natsproto.errors import ConnectionLost, InvalidValue, NotSupported, TimeoutExpired
from natsproto.subscription import Subscription
from natsproto.wire.headers import Headers
from natsproto.wire.text import cut_middle, shorten
from natsproto.wire.versions import has_version

from .hop import PARENT
from .path import MessagePath

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.session import Session
    from natsproto.wire.encode import BytesLike
    from natsproto.wire.headers import HeadersLike

SINCE = (2, 11)
MOST = 1000  # reports of one message
_SAMPLED = 1  # a flag of a traceparent
_LENGTHS = (2, 32, 16, 2)  # of its parts


class Traced:
    """A message to be traced, and the subject of its reports."""

    def __init__(self, session: Session, headers: HeadersLike | None) -> None:
        self._session = session
        self.headers: Headers = Headers(headers or [])
        self.parent: str = ""
        self.dest: str = ""

    def ask_servers(self, deliver: bool) -> None:
        """Request the reports with NATS headers (HOP-1)."""
        self.dest = self._session.connection.new_inbox()
        self.headers.set("Nats-Trace-Dest", self.dest)
        if not deliver:
            self.headers.set("Nats-Trace-Only", "true")

    def ask_account(self, dest: str, parent: str, deliver: bool) -> None:
        """Request the reports with the header of a W3C trace context (HOP-6)."""
        if not (dest and parent):
            raise InvalidValue("traceparent and dest must be given together", "HOP-6")
        if not deliver:
            raise InvalidValue("traceparent does not prevent delivery: use deliver=True", "HOP-6")
        check_parent(parent)
        self.parent, self.dest = parent, dest
        self.headers.set(PARENT, parent)

    async def send(self, subject: str, data: BytesLike, reply: str, deadline: float) -> MessagePath:
        """Publish the message and return its path, which may be incomplete at the deadline."""
        session = self._session
        connection = session.connection
        mailbox = connection.mailbox(0, 0)
        connection.subscribe(self.dest, mailbox)
        reports = Subscription(session, mailbox)
        path = MessagePath()
        try:
            connection.publish(subject, data, reply, self.headers)
            await session.make_room()
            while not path.complete and len(path.hops) < MOST:  # D-HOP-9
                payload = await self._next(reports, deadline)
                if payload is None:
                    break
                path.add(payload)
        finally:
            connection.unsubscribe(mailbox.sid)
            session.port.flush_soon()
        return path

    async def _next(self, reports: Subscription, deadline: float) -> bytes | None:
        """Return the next report; None at the deadline."""
        while True:
            try:
                msg = await reports.next(max(0.0, deadline - self._session.port.now()))
            except TimeoutExpired:
                return None
            # The report quotes the headers of its message; JSON escapes nothing in this one.
            if not self.parent or self.parent.encode() in msg.data:
                return msg.data


def check_server(session: Session) -> None:
    """Raise an error unless the connected server traces messages.

    D-HOP-7: an older server would ignore the headers and deliver the message.
    """
    info = session.connection.info
    if info is None or not session.connection.online:
        raise ConnectionLost("message cannot be traced without a connection (D-HOP-7)")
    if not has_version(info, SINCE):
        text = "message tracing needs nats-server 2.11; this is %s (D-HOP-7)"
        raise NotSupported(text % cut_middle(info.version))


def check_parent(parent: str) -> None:
    """Raise InvalidValue unless it is a W3C traceparent whose sampled flag is set (HOP-6)."""
    parts = parent.split("-")
    known = tuple([len(part) for part in parts]) == _LENGTHS
    if not known or any(char not in "0123456789abcdef" for part in parts for char in part):
        raise InvalidValue("traceparent is not valid: %s" % shorten(parent), "HOP-6")
    if not int(parts[3], 16) & _SAMPLED:
        raise InvalidValue("traceparent is not sampled: %s" % shorten(parent), "HOP-6")
