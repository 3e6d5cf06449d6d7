"""Consume: the machine behind consume(): a buffer that is refilled while it is used.

    asked      what the open pulls may still bring (the ledger)
    buffered   what came and was not taken yet
    limit      max_messages, or max_bytes

It never has more asked and buffered than the limit, and asks for what is missing as soon as both
together fall below the threshold. So while it is connected and not stopped, there is always an open
pull, or more in the buffer than the threshold, or a pause that will end:

    status of a pull          its rest is free again; pull, at once or after a pause (status.py)
    silence for 2 heartbeats  all pulls are given up; tell the user; pull
    disconnected              all pulls are given up; nothing happens until connected, then pull

Pauses keep a consumer that refuses from being asked all the time: they double from 50 ms to 10 s
while pulls are refused, and even pulls that end well bring at least 50 ms of pause if they brought
no message at all.
"""

from __future__ import annotations

from natsproto._record import Record

from .errors import HeartbeatMissed
from .machine import Machine
from .pull import Ledger, Pull, counted_size, is_status, read_pin
from .status import BEAT, FAIL, LIMIT, RETRY, UNPIN, Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from natsproto.frames import Msg

    from .errors import JetStreamError
    from .pull import PullTemplate

SHORTEST_PAUSE = 0.05
LONGEST_PAUSE = 10.0
# In byte mode the number of messages is not to be the limit (ADR-37).
MANY = 1_000_000


class PullWarning(Record):
    """A pull ended with this error, which is not the end of consume(): it pulls again."""

    __slots__ = ("error",)

    def __init__(self, error: JetStreamError) -> None:
        self.error = error


class Pinned(Record):
    """This client is the pinned one of its priority group now."""

    __slots__ = ("id",)

    def __init__(self, id: str) -> None:
        self.id = id


class Unpinned(Record):
    """This client is no longer the pinned one of its priority group."""

    __slots__ = ()


class Consume(Machine):
    """The buffer and its refill. The API takes messages with `pop`, which may order a pull."""

    __slots__ = (
        "_batch",
        "_brought",
        "_by_bytes",
        "_count",
        "_fresh",
        "_left",
        "_limit",
        "_online",
        "_pause",
        "_resume_at",
        "_prefix",
        "_pulled_at",
        "_silent_at",
        "_template",
        "_threshold",
        "buffered_bytes",
        "ledger",
        "news",
        "pin",
        "stopped",
    )

    def __init__(
        self,
        inbox: bytes,
        template: PullTemplate,
        *,
        max_messages: int = 0,
        max_bytes: int = 0,
        threshold: int,
        stop_after: int = 0,
    ) -> None:
        super().__init__()
        self._prefix = inbox + b"."
        self._template = template
        self._by_bytes = max_bytes > 0
        self._limit = max_bytes or max_messages
        self._threshold = threshold
        self._left = stop_after or None  # how many messages may still be asked for; None: any
        self._count = 0
        self._online = False
        self._pause = 0.0
        self._resume_at = 0.0  # no pull before that time
        self._pulled_at = 0.0
        self._brought = False  # whether a message came since the last pull
        self._silent_at = 0.0
        self._batch: list[Msg] = []
        self._fresh: list[Msg] = []
        self.buffered_bytes = 0
        self.ledger = Ledger()
        self.pin = ""
        self.stopped = False
        self.news: list[Record] = []  # for the user, oldest first

    # What the API does

    def pending(self) -> int:
        return len(self._batch) + len(self._fresh)

    def pop(self, now: float) -> Msg:
        """The oldest message; there must be one. May order a pull."""
        if not self._batch:
            self._batch, self._fresh = self._fresh, self._batch
            self._batch.reverse()
        msg = self._batch.pop()
        if self._by_bytes:
            self.buffered_bytes -= counted_size(msg)
        self._refill(now)
        return msg

    def stop(self) -> list[Msg]:
        """Pull no more; returns what was not taken. The subscription is the caller's to end."""
        self.stopped = True
        self.deadline = None
        self._batch.reverse()
        rest = self._batch + self._fresh
        self._batch = []
        self._fresh = []
        self.buffered_bytes = 0
        return rest

    def start_draining(self) -> None:
        """Pull no more; what has come can still be taken."""
        self.stopped = True
        self.deadline = None

    # What the connection tells

    def connected(self, now: float) -> None:
        self._online = True
        self._pause = 0.0
        self._resume_at = now
        self._refill(now)

    def disconnected(self, now: float) -> None:
        # CONSUME-9: the pulls are gone with the connection, and silence is no news without one.
        self._online = False
        self._give_up_pulls()
        self.deadline = None

    def receive(self, msg: Msg, now: float) -> bool:
        self._silent_at = now + 2 * self._template.heartbeat
        if is_status(msg, self._prefix):
            return self._status(msg, now)
        size = 0
        if self._by_bytes:
            size = counted_size(msg)
            self.buffered_bytes += size
        self.ledger.delivered(size)
        self._brought = True
        self._pause = 0.0
        self._fresh.append(msg)
        self._note_pin(msg)
        self._set_deadline()
        return self.pending() == 1

    def handle_timer(self, now: float) -> bool:
        self.deadline = None
        missed = bool(self.ledger.open) and now >= self._silent_at
        if missed:
            # CONSUME-8: whatever became of these pulls, their answers will not be believed.
            self._give_up_pulls()
            silence = 2 * self._template.heartbeat
            self.news.append(PullWarning(HeartbeatMissed("silence for %g s" % silence)))
        self._refill(now)
        self._set_deadline()
        return missed

    # How it works

    def _level(self) -> int:
        """What is asked for and what is buffered, in messages or bytes."""
        if self._by_bytes:
            return self.ledger.size + self.buffered_bytes
        return self.ledger.messages + self.pending()

    def _refill(self, now: float) -> None:
        level = self._level()
        if level >= self._threshold or self.stopped or not self._online or self._left == 0:
            return
        if now < self._resume_at:
            self.wake_by(self._resume_at)
            return
        missing = self._limit - level
        batch = MANY if self._by_bytes else missing
        if self._left is not None:
            batch = min(batch, self._left)
            self._left -= batch
        self._count += 1
        token = b"%d" % self._count
        size = missing if self._by_bytes else 0
        self.ledger.add(Pull(token, batch, size))
        self._pulled_at = now
        self._brought = False
        self._silent_at = now + 2 * self._template.heartbeat
        body = self._template.body(batch, size, self.pin)
        self.order(self._template.subject, body, self._prefix + token)
        self._set_deadline()

    def _give_up_pulls(self) -> None:
        if self._left is not None:
            self._left += self.ledger.messages
        self.ledger.clear()

    def _set_deadline(self) -> None:
        if self.ledger.open and not self.stopped:
            self.wake_by(self._silent_at)

    def _status(self, msg: Msg, now: float) -> bool:
        status = Status(msg)
        if status.meaning == BEAT:
            self._set_deadline()
            return False
        asked = self.ledger.messages
        if not self.ledger.ended(msg.raw_subject[len(self._prefix) :], status):
            return False  # late, or a second one: nothing depends on that pull any more
        if self._left is not None:
            self._left += asked - self.ledger.messages
        if status.meaning == FAIL:
            self.stopped = True
            self.deadline = None
            return self.end(status.error)
        told = self._tell(status)
        self._slow_down(status, now)
        self._refill(now)
        self._set_deadline()
        return told

    def _tell(self, status: Status) -> bool:
        """News for the user; True if there is any."""
        if status.meaning == UNPIN:
            self.pin = ""
            self.news.append(Unpinned())
        elif status.meaning in (RETRY, LIMIT) and not (status.ends_a_batch and self._brought):
            self.news.append(PullWarning(status.error))
        else:
            return False
        return True

    def _slow_down(self, status: Status, now: float) -> None:
        """CONSUME-7: at most 20 pulls a second that bring nothing, fewer and fewer if refused."""
        if self._brought:
            return
        if status.meaning == LIMIT:
            self._pause = min(max(2 * self._pause, SHORTEST_PAUSE), LONGEST_PAUSE)
            self._resume_at = now + self._pause
        else:
            self._resume_at = max(self._resume_at, self._pulled_at + SHORTEST_PAUSE)

    def _note_pin(self, msg: Msg) -> None:
        if msg.raw_headers is not None:
            pin = read_pin(msg)
            if pin and pin != self.pin:
                self.pin = pin
                self.news.append(Pinned(pin))

    @property
    def finished(self) -> bool:
        """All that was wanted has come (stop_after)."""
        return self._left == 0 and not self.ledger.open
