"""Encode the operations of a client; encode_server.py has those of a server.

Each function validates its arguments before it builds anything: input that the protocol cannot
carry is rejected, never rewritten (ENC-5).
"""

from __future__ import annotations

from natsproto.errors import InvalidValue

from . import text as _text
from .headers import Headers
from .subjects import check_publish, check_queue, check_subscribe

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    from .headers import HeadersLike

    BytesLike: TypeAlias = bytes | bytearray | memoryview

_MAX_NUMBER = 999_999_999_999_999_999  # the 18 digits that the parser reads (WIRE-7)


def connect(fields: Mapping[str, object]) -> bytes:
    """Encode a CONNECT with these fields."""
    import json  # takes longer to import than this whole package

    return b"CONNECT " + json.dumps(fields, separators=(",", ":")).encode() + b"\r\n"  # ENC-2


def pub(
    subject: str, data: BytesLike = b"", *, reply: str = "", headers: HeadersLike | None = None
) -> bytes:
    """Encode a PUB, or an HPUB if there are headers; an empty Headers is an empty block."""
    return pub_checked(
        check_publish(subject),
        check_data(data),
        check_publish(reply, "reply") if reply else b"",
        None if headers is None else header_block(headers),
    )


def pub_checked(subject: bytes, data: bytes, reply: bytes, block: bytes | None) -> bytes:
    """Encode a PUB or HPUB from fields that were validated before."""
    if reply:
        subject = subject + b" " + reply
    if block is None:
        return b"PUB %s %d\r\n%s\r\n" % (subject, len(data), data)  # ENC-1
    size = len(block)
    return b"HPUB %s %d %d\r\n%s%s\r\n" % (subject, size, size + len(data), block, data)  # ENC-3


def sub(subject: str, sid: int, *, queue: str = "") -> bytes:
    """Encode a SUB; with `queue`, as a member of that queue group."""
    raw = check_subscribe(subject)
    if queue:
        raw = raw + b" " + check_queue(queue)
    return b"SUB %s %d\r\n" % (raw, check_number("sid", sid, 0))


def unsub(sid: int, *, after: int = 0) -> bytes:
    """Encode an UNSUB that takes effect now, or after `after` messages in total."""
    check_number("sid", sid, 0)
    if after:
        return b"UNSUB %d %d\r\n" % (sid, check_number("after", after, 1))  # ENC-4
    return b"UNSUB %d\r\n" % sid


def ping() -> bytes:
    """Encode a PING."""
    return b"PING\r\n"


def pong() -> bytes:
    """Encode a PONG."""
    return b"PONG\r\n"


def header_block(headers: HeadersLike) -> bytes:
    """Encode a header block; raise InvalidHeader if a name or value cannot be sent."""
    return (headers if isinstance(headers, Headers) else Headers(headers)).encode()


def check_data(data: BytesLike) -> bytes:
    """Return the payload as bytes; raise InvalidValue for text and other types."""
    if isinstance(data, bytes):
        return data
    if isinstance(data, (bytearray, memoryview)):
        return bytes(data)
    what = (_text.shorten(data), type(data).__name__)
    raise InvalidValue("payload %s is %s, not bytes" % what, "D-ENC-6")


def check_number(what: str, value: int, least: int) -> int:
    """Return a number that the parser reads; raise InvalidValue for anything else."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not least <= value <= _MAX_NUMBER:
        raise InvalidValue(
            "%s %s is not a whole number from %d to %d"
            % (what, _text.shorten(value), least, _MAX_NUMBER),
            "D-ENC-7",
        )
    return value
