"""Reading acknowledgements of publishes, which come as fast as the publishes go."""

from __future__ import annotations

from jetstream.api.client import read_reply
from jetstream.errors import InvalidResponse
from jetstream.schema.info import PubAck
from natsproto.wire.text import shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    # The JSON of an acknowledgement; the digits of the sequence to put in its place, if any.
    Ack: TypeAlias = tuple[dict[str, Any], bytes]

RETRY_WAIT = 0.25  # until what nobody took is published again
_MOST_DIGITS = 19  # any number of these fits into a uint64
_ZERO = 48  # "0"
_BRACE = 125  # "}"


def read_ack(data: bytes) -> PubAck:
    """The acknowledgement; ApiError if the stream refused, InvalidResponse if it is neither."""
    return make_ack((_read(data), b""))


def _read(data: bytes) -> dict[str, Any]:
    reply = read_reply(data)
    if not PubAck.from_json(reply).stream:
        # PUB-1: somebody else answers on this subject, or no stream does.
        raise InvalidResponse("answer is not an acknowledgment: %s" % shorten(data))
    return reply


class AckReader:
    """Reads many: one that differs from the last in its sequence alone is known by its bytes.

    Nearly all do. `{"stream":"S","seq":7}` behind `{"stream":"S","seq":6}` is the same object with
    another number, whatever stands before the number. So no JSON is read for it, and the PubAck is
    made when somebody asks for it: 0.5 us instead of 7.
    """

    __slots__ = ("_head", "_like", "_size")

    def __init__(self) -> None:
        self._head = b"\0"  # what no answer begins with
        self._size = 0
        self._like: dict[str, Any] = {}

    def read(self, data: bytes) -> Ack:
        """The acknowledgement in this answer; errors as from `read_ack`."""
        digits = data[self._size : -1]
        if data.startswith(self._head) and _is_sequence(digits) and data[-1] == _BRACE:
            return self._like, digits
        like = _read(data)
        head = data[: data.rfind(b":") + 1]
        if head.endswith(b'"seq":') and _is_sequence(data[len(head) : -1]):
            self._head = head
            self._size = len(head)
            self._like = like
        return like, b""


def _is_sequence(digits: bytes) -> bool:
    # JSON knows no numbers like 007.
    return digits.isdigit() and digits[0] != _ZERO and len(digits) <= _MOST_DIGITS


def make_ack(ack: Ack) -> PubAck:
    like, digits = ack
    return PubAck.from_json(dict(like, seq=int(digits)) if digits else like)
