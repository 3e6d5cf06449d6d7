"""Encode the operations of a server, for servers, proxies and tests.

A separate module, because a client needs none of it: devices leave it out. As in encode.py, each
function validates its arguments before it builds anything (ENC-5).
"""

from __future__ import annotations

from natsproto.errors import InvalidHeader, InvalidValue

from . import text as _text
from .encode import check_data, check_number, header_block, ping, pong
from .headers import VERSION
from .subjects import check_publish

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .encode import BytesLike
    from .headers import HeadersLike

__all__ = ["err", "info", "msg", "msg_checked", "ok", "ping", "pong"]


def info(fields: Mapping[str, object]) -> bytes:
    """Encode an INFO with these fields."""
    import json  # takes longer to import than this whole package

    # ENC-8: nats-server ends the line with a space.
    return b"INFO " + json.dumps(fields, separators=(",", ":")).encode() + b" \r\n"


def msg(
    subject: str,
    sid: int,
    data: BytesLike = b"",
    *,
    reply: str = "",
    headers: HeadersLike | None = None,
    status: int = 0,
    description: str = "",
) -> bytes:
    """Encode a MSG, or an HMSG if there are headers or a status.

    status, description: the inline status, such as 404 and "No Messages"
    """
    block = None if headers is None else header_block(headers)
    if status or description:
        block = _add_status(block, status, description)
    return msg_checked(
        check_publish(subject),
        check_number("sid", sid, 0),
        check_data(data),
        check_publish(reply, "reply") if reply else b"",
        block,
    )


def msg_checked(subject: bytes, sid: int, data: bytes, reply: bytes, block: bytes | None) -> bytes:
    """Encode a MSG or HMSG from fields that were validated or received before.

    A server forwards subjects, replies and header blocks as they are, even invalid ones (WIRE-15).
    """
    if reply:
        reply = reply + b" "
    if block is None:
        return b"MSG %s %d %s%d\r\n%s\r\n" % (subject, sid, reply, len(data), data)  # ENC-8
    size = len(block)
    sizes = (size, size + len(data))
    return b"HMSG %s %d %s%d %d\r\n%s%s\r\n" % ((subject, sid, reply) + sizes + (block, data))


def _add_status(block: bytes | None, status: int, description: str) -> bytes:
    """Return the header block with an inline status (ENC-9)."""
    whole = isinstance(status, int) and not isinstance(status, bool)
    if not whole or not 100 <= status <= 999:
        raise InvalidHeader(
            "status %s is not a number of three digits" % _text.shorten(status), "HDR-5"
        )
    line = b" %d" % status
    if description:
        line += b" " + _check_line("description", description)
    return VERSION + line + (b"\r\n\r\n" if block is None else block[len(VERSION) :])


def ok() -> bytes:
    """Encode a +OK."""
    return b"+OK\r\n"


def err(text: str) -> bytes:
    """Encode a -ERR; the quotes around the text are added."""
    return b"-ERR '%s'\r\n" % _check_line("text", text)  # ENC-8


def _check_line(what: str, value: str) -> bytes:
    """Encode the rest of a line; raise InvalidValue if it would not arrive unchanged (D-ENC-10)."""
    if not isinstance(value, str):
        raise _bad_text(what, value, "is not a str")
    for char in ("\r", "\n", "\0"):
        if char in value:
            raise _bad_text(what, value, "contains %r" % char)
    if value != value.strip():
        raise _bad_text(what, value, "has whitespace around it")
    try:
        return _text.encode(value)
    except UnicodeError:
        raise _bad_text(what, value, "cannot be encoded as UTF-8") from None


def _bad_text(what: str, value: object, problem: str) -> InvalidValue:
    return InvalidValue("%s %s %s" % (what, _text.shorten(value), problem), "D-ENC-10")
