"""ServiceRequest: a request to an endpoint, and its answers."""

from __future__ import annotations

from jetstream.errors import ServiceError
from natsproto.errors import LocalError, NatsError
from natsproto.wire.encode import check_data
from natsproto.wire.text import shorten

from .errors import STOPPED, UNAVAILABLE, as_service_error, describe, error_headers
from .responses import encode

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any

    from natsproto.session import Session
    from natsproto.wire.encode import BytesLike
    from natsproto.wire.frames import Msg
    from natsproto.wire.headers import Headers, HeadersLike

    from .queue import Handling


class ServiceRequest:
    """A request to an endpoint. Answer it, or return the answer from the handler.

    Several answers are possible, for callers that use `request_many`. If the sender expects no
    answer, nothing is sent.
    """

    __slots__ = ("_handling", "_hold", "_session")

    def __init__(self, session: Session, handling: Handling, hold: bool) -> None:
        self._session = session
        self._handling = handling
        self._hold = hold  # taken by a loop: the request is done when it is answered

    @property
    def subject(self) -> str:
        """The subject that the request was sent to."""
        return self._handling.msg.subject

    @property
    def reply(self) -> str:
        """The subject of answers; "" if the sender expects none."""
        return self._handling.msg.reply

    @property
    def data(self) -> bytes:
        """The payload."""
        return self._handling.msg.data

    @property
    def headers(self) -> Headers | None:
        """The headers, or None; raises HeaderError if they are invalid."""
        return self._handling.msg.headers

    @property
    def answered(self) -> bool:
        """Whether the request was answered."""
        return self._handling.answered

    def json(self) -> Any:
        """Decode the payload as JSON; raise ValueError if it is not."""
        import json

        return json.loads(self._handling.msg.data)

    async def respond(self, data: BytesLike = b"", *, headers: HeadersLike | None = None) -> None:
        """Send an answer."""
        await self._send(check_data(data), headers)

    async def respond_json(self, value: object, *, headers: HeadersLike | None = None) -> None:
        """Send a value as JSON; raise TypeError if it cannot be encoded."""
        await self._send(encode(value), headers)

    async def respond_error(
        self, code: int, text: str, data: BytesLike = b"", *, headers: HeadersLike | None = None
    ) -> None:
        """Send an error as the answer, and count it. Handlers may raise ServiceError instead."""
        error = ServiceError(code, text, data, headers)
        answer = _encode_error(error)
        self._handling.fail(describe(error))
        await self._send(*answer)

    async def fail(self, error: Exception) -> None:
        """Count the error of a handler, and answer with it unless the request was answered.

        An exception that is not a ServiceError is a 500 (D-SERVICE-6). So is one whose payload or
        headers cannot be sent.
        """
        self._handling.fail(describe(error))
        if self._handling.answered:
            return  # D-SERVICE-7
        try:
            await self._send(*_encode_error(as_service_error(error)))
        except LocalError as problem:
            await self._send(*_encode_error(as_service_error(problem)))

    async def _send(self, data: bytes, headers: HeadersLike | None) -> None:
        session, msg = self._session, self._handling.msg
        first = False
        # D-SERVICE-16: without a connection, the answer waits for the next one.
        if msg.raw_reply and not self._handling.refused:  # D-SERVICE-8, D-SERVICE-13
            if headers is None:
                first = session.connection.respond(msg.raw_reply, data)
            else:
                first = session.connection.publish(msg.reply, data, "", headers)
        self._handling.answered = True
        if self._hold:  # D-SERVICE-17
            self.finish()
        if first:
            await session.make_room()

    def abandon(self) -> None:
        """Send a 503 without waiting: the handler was interrupted (D-SERVICE-13)."""
        if self._handling.answered or self._handling.done:
            return
        self._handling.fail(STOPPED)
        self._handling.answered = True
        if self._handling.msg.raw_reply:
            send_refusal(self._session, self._handling.msg)
            self._session.port.flush_soon()

    def finish(self) -> None:
        """End the request: it is no longer in progress."""
        handling, session = self._handling, self._session
        handling.finish(session.port.ticks())
        if handling.queue.ended:
            session.connection.apply(handling.queue)
            session.connection.consumed(session.port.now())  # the client may wait for that to drain
            session.port.flush_soon()

    def __repr__(self) -> str:
        return "<ServiceRequest to %s>" % shorten(self.subject)


def send_refusal(session: Session, msg: Msg) -> None:
    """Publish a 503, now or on the next connection (D-SERVICE-16); the caller flushes."""
    try:
        headers = error_headers(UNAVAILABLE, STOPPED)
        session.connection.publish(msg.reply, b"", "", headers)
    except NatsError:
        pass  # the connection is closed, or has no room for more


def _encode_error(error: ServiceError) -> tuple[bytes, Headers]:
    return check_data(error.data), error_headers(error.code, error.text, error.headers)
