"""The meaning of the statuses of a pull, as one table.

A status is an HMSG on our own reply subject with an inline status line, no payload and no reply; a
stored message never is one, whatever its headers are. 409s differ only in their text, and some
texts contain values, so a row matches the start of the description, ignoring case.

    BEAT    the server is alive and the pull continues
    DONE    the pull is over, as it should be: pull again
    SIZE    the next message does not fit in what is left of max_bytes: pull again with more room
    RETRY   the pull ended early, but not because of a mistake: notify the user, pull again
    ABSENT  no server serves the consumer now: notify the user, pull less and less often
    LIMIT   the pull was rejected, as the next one may be: notify the user, pull less and less often
    UNPIN   another client is pinned: forget our id, notify the user, pull again
    UNKNOWN a status that this client does not know: notify the user, pull less and less often
    FAIL    there will be no more messages: raise

A fetch has one pull, so UNKNOWN ends it with an error, as LIMIT and ABSENT do.
"""

from __future__ import annotations

from jetstream.errors import (
    ConsumerDeleted,
    ConsumerIsPush,
    ConsumerUnavailable,
    PullRefused,
    UnknownStatus,
)
from natsproto.wire.record import Record

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.errors import PullFailed
    from natsproto.wire.frames import Msg

BEAT = "beat"
DONE = "done"
SIZE = "size"
RETRY = "retry"
ABSENT = "absent"
LIMIT = "limit"
UNPIN = "unpin"
UNKNOWN = "unknown"
FAIL = "fail"

# PULL-9. First match wins: code, start of the description in lower case, meaning, exception.
STATUSES: list[tuple[int, str, str, type[PullFailed]]] = [
    (100, "", BEAT, PullRefused),
    (404, "", DONE, PullRefused),
    (408, "", DONE, PullRefused),
    (409, "batch completed", DONE, PullRefused),
    (409, "batch-completed", DONE, PullRefused),  # the spelling of ADR-37; servers use the other
    (409, "message size exceeds maxbytes", SIZE, PullRefused),
    (409, "exceeded max", LIMIT, PullRefused),
    (409, "consumer deleted", FAIL, ConsumerDeleted),
    (409, "consumer is push based", FAIL, ConsumerIsPush),
    (409, "leadership change", RETRY, ConsumerUnavailable),
    (409, "server shutdown", RETRY, ConsumerUnavailable),
    (423, "", UNPIN, ConsumerUnavailable),
    (503, "", ABSENT, ConsumerUnavailable),
    (400, "", FAIL, PullRefused),
    (412, "", LIMIT, PullRefused),
]

PENDING_MESSAGES = b"\r\nNats-Pending-Messages: "
PENDING_BYTES = b"\r\nNats-Pending-Bytes: "


class Status(Record):
    """The status of a pull.

    `messages` and `bytes` count what the pull did not deliver; None if that was not reported.
    `consumer` names the consumer and its stream in the error.
    """

    __slots__ = ("bytes", "code", "description", "error", "meaning", "messages")

    def __init__(self, msg: Msg, consumer: str = "") -> None:
        self.code: int = msg.status
        self.description: str = msg.description
        meaning, error = _look_up(self.code, self.description)
        self.meaning: str = meaning
        self.error: PullFailed = error(self.code, self.description, consumer)
        self.messages: int | None = header_number(msg.raw_headers or b"", PENDING_MESSAGES)
        self.bytes: int | None = header_number(msg.raw_headers or b"", PENDING_BYTES)

    @property
    def refused(self) -> bool:
        """Whether the pull has delivered nothing at all, unless the status reports a count."""
        return self.meaning in (LIMIT, ABSENT, UNPIN)


def is_status(msg: Msg) -> bool:
    """Return whether a message to our own reply subject is a status (PULL-10)."""
    return not msg.data and not msg.raw_reply and msg.status != 0


def _look_up(code: int, description: str) -> tuple[str, type[PullFailed]]:
    text = description.lower()
    for row_code, start, meaning, error in STATUSES:
        if row_code == code and text.startswith(start):
            return meaning, error
    return UNKNOWN, UnknownStatus  # PULL-16


def header_number(block: bytes, name: bytes) -> int | None:
    """Return the number in a header, read from the block; None if it is missing, never negative."""
    start = block.find(name)
    if start < 0:
        return None
    start += len(name)
    digits = block[start : block.find(b"\r", start)].strip()
    return int(digits) if digits.isdigit() and len(digits) < 20 else 0
