"""Objects that a caller may wait for: requests here, and receivers of messages in receiver.py.

The core passes ready waitables to the adapter (Connection.take_ready), which wakes the waiting
callers. A wake-up guarantees nothing: callers check again.
"""

from __future__ import annotations

from natsproto.errors import NoResponders, TimeoutExpired, TooManyReplies
from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from natsproto.errors import NatsError
    from natsproto.wire.frames import Msg

    class Reported(Protocol):
        """An event, as the log needs it; natsproto.events.Event is the base class."""

        __slots__: Any

        @property
        def level(self) -> str: ...
        @property
        def text(self) -> str: ...


NO_RESPONDERS = 503
MAX_REPORTS = 256
# JetStream appends this to the headers of a stored message in a response.
_STORED = b"Nats-Stream: "


def is_status_reply(msg: Msg) -> bool:
    """Return whether a response is a status of the server, not a message that looks like one.

    GET-12: servers before 2.12.6 answer direct gets with status lines that publishers stored.
    """
    return msg.status > 0 and not msg.data and _STORED not in (msg.raw_headers or b"")


class Reports:
    """The events of one source that the adapter has not logged yet, at most 256 of them (D-LOG-4).

    `source` names it in the log, such as a consumer and its stream; "": the connection.
    """

    __slots__ = ("events", "source")

    def __init__(self, source: str = "") -> None:
        self.source: str = source
        self.events: list[Reported] = []

    def add(self, event: Reported) -> None:
        """Append an event, and drop the oldest if the adapter has not taken enough of them."""
        self.events.append(event)
        if len(self.events) > MAX_REPORTS:
            self.events.pop(0)

    def take(self) -> list[Reported]:
        """Remove and return all events."""
        events = self.events
        self.events = []
        return events


class Waitable:
    """Something that a caller may be waiting for, and that may have a deadline.

    `waiters` belongs to the adapter and holds its wake-up functions. `armed` belongs to Timers.
    """

    __slots__ = ("armed", "deadline", "waiters")

    # The events for the log, where there can be any. Not annotated in the usual way: publications
    # are waitables, too, and this is not for programs.
    reports = None  # type: Reports | None

    def __init__(self) -> None:
        self.deadline: float | None = None
        self.armed: float | None = None
        self.waiters: list[Callable[[], object]] = []

    def handle_timer(self, now: float) -> bool:
        """Handle the deadline; return True if the waiters have something to do."""
        self.deadline = None
        return True


class Alarm(Waitable):
    """Wakes the callers that wait for `target`, whose own deadline serves another purpose."""

    __slots__ = ("target",)

    def __init__(self, target: Waitable) -> None:
        super().__init__()
        self.target: Waitable = target


class Request(Waitable):
    """An expected response: a reply, a PONG, the end of a drain, or the first connection.

    `what` names it in the error of a timeout; if it is "", the subject does.
    """

    __slots__ = ("done", "error", "reply", "subject", "token", "what")

    def __init__(self, what: str, deadline: float | None = None, subject: str = "") -> None:
        # Not through super(): every request would pay for the call.
        self.deadline: float | None = deadline
        self.armed: float | None = None
        self.waiters: list[Callable[[], object]] = []
        self.what: str = what
        self.subject: str = subject
        self.token: bytes = b""
        self.done: bool = False
        self.reply: Msg | None = None
        self.error: NatsError | None = None

    def finish(self, reply: Msg | None = None, error: NatsError | None = None) -> bool:
        """Settle the request; return False if it was settled before."""
        if self.done:
            return False
        self.done = True
        self.deadline = None
        self.reply = reply
        self.error = error
        return True

    def receive(self, msg: Msg, now: float) -> bool:
        """Settle the request with the response, or with NoResponders."""
        block = msg.raw_headers
        # REQ-3: most blocks have no status after the version, which one look shows.
        may_fail = block is not None and block[8:9] == b" " and msg.status == NO_RESPONDERS
        if may_fail and is_status_reply(msg):
            return self.finish(error=NoResponders(self.subject))
        return self.finish(msg)

    def handle_timer(self, now: float) -> bool:
        what = self.what or "the request to %s" % shorten(self.subject)
        return self.finish(error=TimeoutExpired("no answer to %s in time" % what))


class MultiRequest(Request):  # REQ-6
    """A request with many responses (ADR-47), which are in `replies` until they are taken.

    It ends after `max_msgs` responses, after a pause of `stall` seconds, or at the deadline, which
    is not an error. A status instead of a response ends it as well: 503 with NoResponders, any
    other is kept as a response. A response above `limits`, messages and bytes, ends it with
    TooManyReplies; those that were taken do not count.
    """

    __slots__ = ("_limits", "_size", "count", "end", "max_msgs", "replies", "stall")

    def __init__(
        self,
        what: str,
        deadline: float | None,
        subject: str,
        max_msgs: int = 0,
        stall: float = 0.0,
        limits: tuple[int, int] = (65536, 64 * 1024 * 1024),
    ) -> None:
        super().__init__(what, deadline, subject)
        self._limits = limits
        self._size = 0
        self.count: int = 0  # of all responses, including those that were taken
        self.end: float | None = deadline
        self.max_msgs: int = max_msgs
        self.stall: float = stall
        self.replies: list[Msg] = []

    def receive(self, msg: Msg, now: float) -> bool:
        status = msg.status >= 200 and is_status_reply(msg)
        if status and msg.status == NO_RESPONDERS:  # REQ-7
            return self.finish(error=NoResponders(self.subject))
        self._size += msg.size
        most, most_bytes = self._limits
        if (not self.max_msgs and len(self.replies) >= most) or self._size > most_bytes:
            return self.finish(error=self._too_many())  # D-REQ-10
        self.replies.append(msg)
        self.count += 1
        if status or self.count == self.max_msgs:
            return self.finish()
        if self.stall:
            stalled = now + self.stall
            self.deadline: float | None = stalled if self.end is None else min(self.end, stalled)
        return True

    def take(self) -> list[Msg]:  # D-REQ-13
        """Return the responses since the last call, and make room for as many more."""
        taken, self.replies = self.replies, []
        self._size = 0
        return taken

    def _too_many(self) -> TooManyReplies:
        text = "responses to the request to %s exceed %d messages or %d bytes: set max_msgs"
        values = (shorten(self.subject), self._limits[0], self._limits[1])
        return TooManyReplies(text % values, self.replies)

    def handle_timer(self, now: float) -> bool:
        return self.finish()
