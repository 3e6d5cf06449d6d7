"""Headers that a stream adds: to messages that it republishes (ADR-28) or schedules (ADR-51).

A republished message arrives at ordinary subscriptions, so its place in the stream is in headers.
The stream appends them, and a publisher may have sent headers of the same names before: the last
of each name counts (REPUB-2).
"""

from __future__ import annotations

from jetstream.schema.timestamp import Timestamp
from natsproto.errors import HeaderError, InvalidValue
from natsproto.wire.record import Record

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Protocol

    from natsproto.wire.headers import Headers

    class WithHeaders(Protocol):
        """A message of any kind: Msg, JsMsg or StoredMsg."""

        @property
        def headers(self) -> Headers | None: ...


SCHEDULER = "Nats-Scheduler"
SCHEDULE_NEXT = "Nats-Schedule-Next"
PURGE = "purge"
_MOST_DIGITS = 19


class Republished(Record):
    """Where a republished message is stored.

    stream    the name of the stream
    subject   the subject that the message is stored under
    seq       its sequence
    time      the time at which it was stored; None if the server did not send it
    last_seq  the sequence of the previous message of this subject; 0: there was none
    size      the size of the payload, where only headers are republished; None otherwise
    """

    __slots__ = ("stream", "subject", "seq", "time", "last_seq", "size")

    def __init__(
        self,
        stream: str,
        subject: str,
        seq: int,
        time: Timestamp | None,
        last_seq: int,
        size: int | None,
    ) -> None:
        self.stream: str = stream
        self.subject: str = subject
        self.seq: int = seq
        self.time: Timestamp | None = time
        self.last_seq: int = last_seq
        self.size: int | None = size


class Scheduled(Record):
    """The schedule that a message comes from.

    scheduler  the subject of the schedule
    next       when the schedule publishes again; None if it was removed
    """

    __slots__ = ("scheduler", "next")

    def __init__(self, scheduler: str, next: Timestamp | None) -> None:
        self.scheduler: str = scheduler
        self.next: Timestamp | None = next


def republished(msg: WithHeaders) -> Republished | None:
    """Return where a republished message is stored; None if it is not republished (REPUB-1).

    Any publisher can send such headers: rely on them only for subjects that only the stream may
    publish to.
    """
    headers = _headers(msg)
    stream = _last(headers, "Nats-Stream")
    subject = _last(headers, "Nats-Subject")
    seq = _number(_last(headers, "Nats-Sequence"))
    if not stream or not subject or seq is None:
        return None
    return Republished(
        stream,
        subject,
        seq,
        _time(_last(headers, "Nats-Time-Stamp")),
        _number(_last(headers, "Nats-Last-Sequence")) or 0,
        _number(_last(headers, "Nats-Msg-Size")),
    )


def scheduled(msg: WithHeaders) -> Scheduled | None:
    """Return the schedule that a message comes from; None if there is none (SCHED-6)."""
    headers = _headers(msg)
    scheduler = _last(headers, SCHEDULER)
    next_time = _last(headers, SCHEDULE_NEXT)
    if not scheduler or not next_time:
        return None
    return Scheduled(scheduler, None if next_time == PURGE else _time(next_time))


def _headers(msg: WithHeaders) -> Headers | None:
    try:
        return msg.headers
    except HeaderError:
        return None  # a stream would have rejected them


def _last(headers: Headers | None, name: str) -> str:
    values = [] if headers is None else headers.get_all(name)
    return values[-1] if values else ""


def _number(text: str) -> int | None:
    digits = 0 < len(text) <= _MOST_DIGITS and not [c for c in text if c not in "0123456789"]
    return int(text) if digits else None


def _time(text: str) -> Timestamp | None:
    try:
        return Timestamp.parse(text)
    except InvalidValue:
        return None
