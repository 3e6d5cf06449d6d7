"""Stored messages: get them by sequence or subject, without a consumer.

There are two ways. The API (STREAM.MSG.GET) asks the stream's leader, and the response is JSON with
base64. With direct get (ADR-31), if the stream allows it, any replica returns the message itself,
with its position in headers after its own. Direct get can also return many messages, followed by
the status 204.

Direct get removes the last two bytes of the message's own block, the empty line, and appends its
headers. If a publisher stored a block without an empty line, they begin in the middle of a line
(GET-11).
"""

from __future__ import annotations

from jetstream.errors import InvalidResponse, JetStreamError
from jetstream.errors.api import MessageNotFound
from jetstream.schema.timestamp import Timestamp
from natsproto.errors import InvalidValue, NoResponders, NotSupported, TimeoutExpired
from natsproto.wire.headers import VERSION, Headers
from natsproto.wire.record import Record
from natsproto.wire.text import cut_middle, decode, shorten

from .client import encode_json

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any, TypeAlias

    from natsproto.wire.frames import Msg

    from .client import ApiClient

    Getting: TypeAlias = "Coroutine[Any, Any, StoredMsg]"

NOT_FOUND = 404
END_OF_BATCH = 204
_MESSAGE_NOT_FOUND = 10037  # the API's err_code
_PLACE = b"Nats-Stream: "  # where the headers of direct get begin
_LINE_END = b"\r\n"
_MOST_DIGITS = 20
# The names of the headers after Nats-Stream, as the server writes them for a single message.
_NAMES = b"Nats-Subject: Nats-Sequence: Nats-Time-Stamp: "


class StoredMsg(Record):
    """A message as the stream stores it; `time` is when it was stored."""

    __slots__ = ("stream", "subject", "seq", "time", "data", "raw_headers", "_headers")

    _headers: Headers

    def __init__(
        self,
        stream: str,
        subject: str,
        seq: int,
        time: Timestamp,
        data: bytes,
        raw_headers: bytes | None = None,
    ) -> None:
        self.stream: str = stream
        self.subject: str = subject
        self.seq: int = seq
        self.time: Timestamp = time
        self.data: bytes = data
        self.raw_headers: bytes | None = raw_headers

    @property
    def headers(self) -> Headers | None:
        """The headers, or None; raises HeaderError if the publisher sent an invalid block."""
        if self.raw_headers is None:
            return None
        try:
            return self._headers
        except AttributeError:
            self._headers = Headers.decode(self.raw_headers)  # GET-8
            return self._headers

    def _fields(self) -> list[tuple[str, object]]:
        return [(name, getattr(self, name)) for name in self.__slots__[:-1]]


# GET-1, GET-2
async def get_by_api(
    api: ApiClient, stream: str, body: dict[str, Any], deadline: float | None = None
) -> StoredMsg:
    """Return one message from the leader; raise MessageNotFound."""
    endpoint = "STREAM.MSG.GET.%s" % stream
    return read_stored(stream, await api.call(endpoint, body, deadline=deadline))


def read_stored(stream: str, reply: dict[str, Any]) -> StoredMsg:
    """Return the message in a response to STREAM.MSG.GET."""
    import binascii

    try:
        message = reply["message"]
        block = binascii.a2b_base64(message.get("hdrs") or "")
        subject, seq = message["subject"], message["seq"]
        if not isinstance(subject, str) or not isinstance(seq, int):
            raise TypeError("message %s of subject %s" % (shorten(seq), shorten(subject)))
        return StoredMsg(
            stream,
            subject,
            seq,
            Timestamp.parse(message["time"]),
            binascii.a2b_base64(message.get("data") or ""),
            block or None,
        )
    except (KeyError, TypeError, AttributeError, ValueError, InvalidValue) as error:  # D-GET-9
        raise InvalidResponse(
            "response to STREAM.MSG.GET is not valid: %s" % cut_middle(repr(error))
        ) from error


# The next two return a coroutine without being one: each coroutine costs 0.5 us.


def get_direct(
    api: ApiClient, stream: str, body: dict[str, Any], by_api: dict[str, Any] | None = None
) -> Getting:
    """Return one message from any replica; raise MessageNotFound.

    If the stream does not allow direct get, the API is asked with `by_api` instead; None: raise
    NotSupported.
    """
    return _get_one(api, stream, direct_endpoint(api, stream), encode_json(body), by_api)


def get_direct_last(
    api: ApiClient, stream: str, subject: str, by_api: dict[str, Any] | None = None
) -> Getting:
    """Return the last message of a subject, which is part of the endpoint, for permissions."""
    endpoint = "%s.%s" % (direct_endpoint(api, stream), subject)  # GET-10
    return _get_one(api, stream, endpoint, b"", by_api)


async def _get_one(
    api: ApiClient, stream: str, endpoint: str, payload: bytes, by_api: dict[str, Any] | None
) -> StoredMsg:
    session = api.session
    deadline = api.deadline()
    request = session.connection.start_request(endpoint, payload, deadline=deadline)
    try:
        reply = await session.settle(request)
    except NoResponders:
        reply = None
    if reply is not None:
        return read_direct(reply)
    if by_api is None:
        raise not_allowed(stream)
    return await get_by_api(api, stream, by_api, deadline)  # D-CALL-18


class PageEnd:
    """The end of one response: remaining messages, its last sequence, and that of all pages."""

    __slots__ = ("last", "pending", "up_to")

    def __init__(self, pending: int, last: int, up_to: int) -> None:
        self.pending: int = pending
        self.last: int = last
        self.up_to: int = up_to


def page_end(msg: Msg) -> PageEnd:
    """Read the final status of an answer with many messages."""
    headers = msg.headers or Headers()
    return PageEnd(
        _number(headers, "Nats-Num-Pending"),
        _number(headers, "Nats-Last-Sequence"),
        _number(headers, "Nats-UpTo-Sequence"),
    )


async def request_direct(api: ApiClient, stream: str, body: dict[str, Any]) -> list[Msg]:
    """Return all responses to one direct get, including the final status.

    NotSupported: the stream does not allow direct get.
    """
    session = api.session
    gather = session.connection.start_gather(
        direct_endpoint(api, stream), encode_json(body), deadline=api.deadline()
    )
    try:
        await session.settle(gather)
    except NoResponders:
        raise not_allowed(stream) from None
    return gather.replies


def incomplete(stream: str) -> TimeoutExpired:
    """Return the error for responses without a final status."""
    return TimeoutExpired("direct get of stream %s did not end in time" % shorten(stream))  # GET-5


def direct_endpoint(api: ApiClient, stream: str) -> str:
    """Return the subject of direct gets from a stream."""
    return "%s.DIRECT.GET.%s" % (api.prefix, stream)


def not_allowed(stream: str) -> NotSupported:
    """Return the error for a stream that does not answer direct gets."""
    text = "stream %s does not allow direct get, or is gone: it needs allow_direct=True"
    return NotSupported(text % shorten(stream))


def split_direct(block: bytes) -> tuple[bytes | None, bytes]:
    """Split the header block of a response into the message's own block and the added lines.

    The first is None if the message has no headers. The second is empty if the answer is not a
    stored message.
    """
    # GET-4: the last ones count, because a republished message has such headers of its own.
    place = block.rfind(_PLACE)
    if place < 0:
        return None, b""
    own = block[:place]
    added = block[place:]
    if not own.endswith(_LINE_END):
        return own or None, added  # GET-11: its last two bytes are missing
    if own == VERSION + _LINE_END:
        return None, added
    return own + _LINE_END, added


def read_direct(msg: Msg) -> StoredMsg:
    """Return the message in an answer; raise the error of a status."""
    block = msg.raw_headers or b""
    own, added = split_direct(block)
    if not added:
        if msg.status == NOT_FOUND:
            raise MessageNotFound(NOT_FOUND, _MESSAGE_NOT_FOUND, msg.description.lower())  # GET-3
        if msg.status:
            raise JetStreamError("direct get: %d %s" % (msg.status, cut_middle(msg.description)))
        raise InvalidResponse("response to DIRECT.GET is not a stored message: %s" % shorten(block))
    stream, subject, seq, moment = _read_place(added)
    try:
        time = Timestamp.parse(moment)
    except InvalidValue as error:
        raise InvalidResponse("response to DIRECT.GET is not valid: %s" % error) from None
    return StoredMsg(stream, subject, seq, time, msg.data, own)


def _read_place(added: bytes) -> tuple[str, str, int, str]:
    """Return stream, subject, sequence and time from the lines that direct get has added."""
    lines = added.split(_LINE_END)
    # The usual lines, without a Headers: 2 us less.
    if len(lines) == 6 and added.count(b"\r") + added.count(b"\n") == 10:
        stream, subject, seq, time, end, after = lines
        digits = seq[15:]
        usual = subject[:14] + seq[:15] + time[:17] + end + after == _NAMES
        if usual and digits.isdigit() and len(digits) <= _MOST_DIGITS:
            return decode(stream[13:]), decode(subject[14:]), int(digits), decode(time[17:])
    headers = Headers.decode(VERSION + _LINE_END + added)
    return (
        headers.get("Nats-Stream"),
        headers.get("Nats-Subject"),
        _number(headers, "Nats-Sequence"),
        headers.get("Nats-Time-Stamp"),
    )


def _number(headers: Headers, name: str) -> int:
    text = headers.get(name) or "0"
    if len(text) > _MOST_DIGITS or text.strip("0123456789"):
        text = "header %s of a response to DIRECT.GET is not a number: %s" % (name, shorten(text))
        raise InvalidResponse(text)
    return int(text)
