"""What a caller may be waiting for: requests, and the queues that subscriptions deliver to.

The core hands those that are ready to the adapter (Connection.take_ready), which wakes whoever
waits. A wake-up promises nothing: callers look again.
"""

from __future__ import annotations

from natsproto.errors import NoResponders, TimeoutExpired, TooManyReplies
from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from natsproto.errors import NatsError
    from natsproto.wire.frames import Msg

    from .effects import Publish
    from .tokens import Tokens

NO_RESPONDERS = 503
# JetStream puts this behind the headers of a stored message that it answers with.
_STORED = b"Nats-Stream: "


def is_status_reply(msg: Msg) -> bool:
    """Return whether the answer is a status of the server, not a message that looks like one.

    GET-12: servers before 2.12.6 answer direct gets with status lines that publishers stored.
    """
    return msg.status > 0 and not msg.data and _STORED not in (msg.raw_headers or b"")


class Waitable:
    """Something that a caller may be waiting for, and that may have a deadline.

    `waiters` belongs to the adapter: what to call to wake them. `armed` belongs to Timers.
    """

    __slots__ = ("armed", "deadline", "waiters")

    def __init__(self) -> None:
        self.deadline: float | None = None
        self.armed: float | None = None
        self.waiters: list[Callable[[], object]] = []

    def handle_timer(self, now: float) -> bool:
        """Handle the deadline; return True if the waiters have something to do."""
        self.deadline = None
        return True


class Request(Waitable):
    """An answer to come: a reply, a PONG, the end of a drain, the first connection.

    `what` names it in the error, should the answer not come in time; if it is "", the subject does.
    """

    __slots__ = ("done", "error", "reply", "subject", "token", "what")

    def __init__(self, what: str, deadline: float | None = None, subject: str = "") -> None:
        # Not by super: every request would pay for the call.
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
        """Settle it; False if it was settled before."""
        if self.done:
            return False
        self.done = True
        self.deadline = None
        self.reply = reply
        self.error = error
        return True

    def receive(self, msg: Msg, now: float) -> bool:
        """Settle it with the response, or with NoResponders."""
        # REQ-3
        if msg.raw_headers is not None and msg.status == NO_RESPONDERS and is_status_reply(msg):
            return self.finish(error=NoResponders(self.subject))
        return self.finish(msg)

    def handle_timer(self, now: float) -> bool:
        what = self.what or "the request to %s" % shorten(self.subject)
        return self.finish(error=TimeoutExpired("no answer to %s in time" % what))


class Fence(Request):
    """A PING behind UNSUBs: at its PONG nothing is on its way to these receivers any more."""

    __slots__ = ("receivers",)

    def __init__(self, what: str, deadline: float | None, receivers: list[Receiver]) -> None:
        super().__init__(what, deadline)
        self.receivers: list[Receiver] = receivers


class MultiRequest(Request):  # REQ-6
    """A request with many responses (ADR-47), which are in `replies`.

    It ends after `max_msgs` responses, after a pause of `stall` seconds, or at the deadline, which
    is not an error. A status instead of a response ends it as well: 503 with NoResponders, any
    other is kept as a response. A response above `limits`, messages and bytes, ends it with
    TooManyReplies.
    """

    __slots__ = ("_limits", "_size", "end", "max_msgs", "replies", "stall")

    def __init__(
        self,
        what: str,
        deadline: float,
        subject: str,
        max_msgs: int = 0,
        stall: float = 0.0,
        limits: tuple[int, int] = (65536, 64 * 1024 * 1024),
    ) -> None:
        super().__init__(what, deadline, subject)
        self._limits = limits
        self._size = 0
        self.end: float = deadline
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
        if status or len(self.replies) == self.max_msgs:
            return self.finish()
        if self.stall:
            self.deadline: float | None = min(self.end, now + self.stall)
        return True

    def _too_many(self) -> TooManyReplies:
        text = "more answers to the request to %s than %d messages or %d bytes: set max_msgs"
        told = (shorten(self.subject), self._limits[0], self._limits[1])
        return TooManyReplies(text % told, self.replies)

    def handle_timer(self, now: float) -> bool:
        return self.finish()


class Receiver(Waitable):
    """What a subscription delivers to: a Mailbox, or a machine that does more than queue.

    `received` counts all messages, `received_before` those before the last SUB; the subscription
    ends when `received` reaches `max_received`. When `ended`, no more messages arrive, and `error`
    says why, unless it was on purpose. A machine adds itself to `busy` when it has effects for the
    connection, or wants its subscription to end (`leaving`) or to be one to its new `subject`
    (`moving`), to `ready` what else callers may be waiting for, and to `dropping` for each message
    that it had no room for. `tokens` are the connection's, for reply subjects.
    """

    __slots__ = (
        "busy",
        "draining",
        "dropping",
        "ended",
        "error",
        "leaving",
        "max_received",
        "moving",
        "queue",
        "ready",
        "received",
        "received_before",
        "sid",
        "subject",
        "tokens",
    )

    tokens: Tokens

    def __init__(self) -> None:
        super().__init__()
        self.sid: int = 0
        self.subject: bytes = b""
        self.queue: bytes = b""
        self.received: int = 0
        self.received_before: int = 0
        self.max_received: int = 0
        self.draining: bool = False
        self.leaving: bool = False
        self.moving: bool = False
        self.ended: bool = False
        self.error: NatsError | None = None
        self.busy: list[Receiver] = []
        self.ready: list[Waitable] = []
        self.dropping: list[Receiver] = []

    def receive(self, msg: Msg, now: float) -> bool:
        """Take a message; True: there is something new for those who wait."""
        raise NotImplementedError

    def receive_all(self, msgs: list[Msg], now: float) -> bool:
        """The same for several that came in a row."""
        new = False
        for msg in msgs:
            if self.receive(msg, now):
                new = True
        return new

    def pending(self) -> int:
        """How many messages wait for the user."""
        raise NotImplementedError

    def end(self, error: NatsError | None = None) -> bool:
        """Nothing more will come; False if that was known."""
        if self.ended:
            return False
        self.ended = True
        self.error = error
        return True

    def take_effects(self) -> list[Publish]:
        """What the connection is to do; a Mailbox wants nothing."""
        return []

    def unsent(self, order: Publish, error: NatsError) -> None:
        """An order that cannot be sent, and why; time-outs find out if nothing is done about it."""

    def connected(self, now: float) -> None:
        """The subscription is in force, for the first time or again."""

    def disconnected(self, now: float) -> None:
        """Nothing comes until `connected`."""


class Mailbox(Receiver):  # SUB-5, SUB-7
    """A bounded queue of messages. What does not fit is dropped, counted and reported.

    Two lists instead of a deque, which needs a fixed length on MicroPython: messages are appended
    to `_fresh`; when `batch` is used up, `_fresh` is turned round and takes its place.
    """

    __slots__ = ("_fresh", "batch", "bytes", "dropped", "max_bytes", "max_msgs")

    def __init__(self, max_msgs: int, max_bytes: int) -> None:
        super().__init__()
        self.max_msgs: int = max_msgs
        self.max_bytes: int = max_bytes
        self.bytes: int = 0
        self.dropped: int = 0
        self._fresh: list[Msg] = []
        self.batch: list[Msg] = []

    def receive(self, msg: Msg, now: float) -> bool:
        fresh = self._fresh
        count = len(fresh) + len(self.batch)
        size = self.bytes + msg.size
        if size > self.max_bytes or count >= self.max_msgs:
            self.dropped += 1
            self.dropping.append(self)
            return False
        self.bytes = size
        fresh.append(msg)
        return not count

    def receive_all(self, msgs: list[Msg], now: float) -> bool:
        count = self.pending()
        size = self.bytes + sum([msg.size for msg in msgs])
        if size > self.max_bytes or count + len(msgs) > self.max_msgs:
            return super().receive_all(msgs, now)  # not all of them fit
        self.bytes = size
        self._fresh += msgs
        return not count

    def pop(self) -> Msg:
        """The oldest message; IndexError if there is none."""
        if not self.batch:
            self.batch, self._fresh = self._fresh, self.batch
            self.batch.reverse()
        msg = self.batch.pop()
        self.bytes -= msg.size
        return msg

    def pending(self) -> int:
        return len(self.batch) + len(self._fresh)
