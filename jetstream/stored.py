"""Stored messages: getting them by sequence or subject, without a consumer.

Two ways lead to them. The API (STREAM.MSG.GET) asks the stream's leader and answers in JSON with
base64. Direct get (ADR-31), where the stream allows it, is answered by any replica with the message
itself, its place in extra headers; and it can give many at once, ended by the status 204.
"""

from __future__ import annotations

from natsproto._record import Record
from natsproto.errors import NoResponders, NotSupported
from natsproto.headers import Headers

from .call import encode_json
from .errors import InvalidResponse, JetStreamError, MessageNotFound
from .timestamp import Timestamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from natsproto.frames import Msg

    from .call import Api

_NOT_FOUND = 404
_END_OF_BATCH = 204
# Headers that direct get adds; they are attributes of a StoredMsg instead.
_ADDED = (
    "Nats-Stream",
    "Nats-Subject",
    "Nats-Sequence",
    "Nats-Time-Stamp",
    "Nats-Num-Pending",
    "Nats-Last-Sequence",
    "Nats-UpTo-Sequence",
)


class StoredMsg(Record):
    """A message as the stream holds it."""

    __slots__ = ("data", "headers", "seq", "stream", "subject", "time")

    def __init__(
        self,
        stream: str,
        subject: str,
        seq: int,
        time: Timestamp | None,
        data: bytes,
        headers: Headers | None,
    ) -> None:
        self.stream = stream
        self.subject = subject
        self.seq = seq
        self.time = time
        self.data = data
        self.headers = headers


async def get_by_api(api: Api, stream: str, body: dict[str, Any]) -> StoredMsg:
    """One message from the leader; MessageNotFound."""
    import binascii

    reply = await api.call("STREAM.MSG.GET.%s" % stream, body)
    try:
        message = reply["message"]
        block = binascii.a2b_base64(message.get("hdrs") or "")
        return StoredMsg(
            stream,
            message["subject"],
            message["seq"],
            Timestamp.parse(message["time"]),
            binascii.a2b_base64(message.get("data") or ""),
            Headers.decode(block) if block else None,
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InvalidResponse("answer to STREAM.MSG.GET is odd: %r" % error) from error


async def get_direct(api: Api, stream: str, body: dict[str, Any]) -> StoredMsg:
    """One message from any replica; MessageNotFound."""
    return (await _get(api, stream, body, 1))[0]


async def get_direct_batch(api: Api, stream: str, body: dict[str, Any]) -> list[StoredMsg]:
    """Many messages in one request; an empty list if there are none (ADR-31, needs 2.11)."""
    api.require_level(1, "batched direct get")
    try:
        return await _get(api, stream, body, 0)
    except MessageNotFound:
        return []


async def _get(api: Api, stream: str, body: dict[str, Any], most: int) -> list[StoredMsg]:
    session = api.session
    gather = session.connection.start_gather(
        "%s.DIRECT.GET.%s" % (api.prefix, stream),
        encode_json(body),
        deadline=session.deadline(api.timeout),
        most=most,
    )
    session.port.flush_soon()
    found: list[StoredMsg] = []
    try:
        while True:
            for msg in gather.replies[len(found) :]:
                if msg.status == _END_OF_BATCH:
                    return found
                found.append(_read(msg))
            if gather.done:
                break
            await session.port.wait(gather)
    finally:
        session.connection.cancel(gather)
    if isinstance(gather.error, NoResponders):
        raise NotSupported("stream %r does not allow direct get, or is gone" % stream)
    if gather.error is not None:
        raise gather.error
    if not most or not found:
        raise JetStreamError("direct get of stream %r was not answered to its end" % stream)
    return found


def _read(msg: Msg) -> StoredMsg:
    """The message in an answer; the status of an error raises."""
    if msg.status == _NOT_FOUND:
        raise MessageNotFound(404, 10037, msg.description.lower())
    if msg.status:
        raise JetStreamError("direct get: %d %s" % (msg.status, msg.description))
    headers = msg.headers
    if headers is None:
        raise InvalidResponse("answer to DIRECT.GET has no headers")
    sequence = headers.get("Nats-Sequence")
    if not sequence.isdigit():
        raise InvalidResponse("answer to DIRECT.GET has sequence %r" % sequence)
    own = Headers([pair for pair in headers.items() if pair[0] not in _ADDED])
    return StoredMsg(
        headers.get("Nats-Stream"),
        headers.get("Nats-Subject"),
        int(sequence),
        Timestamp.parse(headers.get("Nats-Time-Stamp")),
        msg.data,
        own if len(own) else None,
    )
