"""Consume: the machine behind consume(): a buffer that is refilled while it is used.

    asked      what the open pulls may still bring (the ledger)
    buffered   what came and was not taken yet
    level      both together, in messages or in bytes
    limit      max_messages, or max_bytes

The level is never above the limit, and as soon as it falls below the threshold, a pull asks for
all that is missing. So while it is connected and not stopped, there is an open pull, or something
in the buffer, or a pause that will end:

    status of a pull          its rest is free again; pull, at once or after a pause
    silence for 2 heartbeats  all pulls are given up; tell the user; pull
    a status is overdue       its pull is given up; tell the user; pull
    disconnected              all pulls are given up; nothing happens until connected, then pull

Pauses keep a consumer that refuses from being asked all the time: they double from 50 ms while
pulls are refused, and even pulls that end well are 50 ms apart if they bring no message at all.

A consumer that is gone answers as one without a leader: with 503, or before 2.11 with silence. So
after the second 503 in a row, or a missed heartbeat, the consumer is looked up (probe.py); if it is
not found, the machine ends with that error, after the messages in the buffer. Any other answer, or
none, changes nothing: pulls continue, and the consumer is looked up again at growing intervals.

The server may have pulls that were given up here, and deliver what they ask for. More than that and
twice the limit was never asked for: it is dropped, counted and reported (CONSUME-27).

Silence proves nothing if nobody has read: a blocking client reads nothing while the user's code
runs, and a timer that rings late shows it. Then there is one more heartbeat to wait (CONSUME-10).
"""

from __future__ import annotations

from jetstream.errors import HeartbeatMissed
from jetstream.events import Pinned, PullWarning, Unpinned
from jetstream.machine.iteration import Source
from jetstream.machine.status import (
    ABSENT,
    BEAT,
    DONE,
    FAIL,
    LIMIT,
    SIZE,
    UNKNOWN,
    UNPIN,
    Status,
    is_status,
)
from natsproto.errors import TimeoutExpired

from .fetch import LATE
from .ledger import MANY, MARGIN, Ledger, Pull, counted_size, read_pin
from .presence import Presence
from .room import Room

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jetstream.machine.probe import Probe
    from natsproto.errors import NatsError
    from natsproto.wire.frames import Msg

    from .ledger import PullTemplate

SHORTEST_PAUSE = 0.05
LONGEST_PAUSE = 10.0
# For somebody to come back, a leader most of all.
LONGEST_ABSENCE = 2.0


class Consume(Source):
    """The buffer and its refill. The API takes messages with `pop`, which may order a pull."""

    __slots__ = (
        "_progressed",
        "_by_bytes",
        "_grace_used",
        "_limit",
        "_name",
        "_online",
        "_pause",
        "_pinned",
        "_prefix",
        "_presence",
        "_pulled_at",
        "_received",
        "_resume_at",
        "_room",
        "_silence",
        "_silent_at",
        "_count_only",
        "_free_pops",
        "_stop_after",
        "_taken",
        "_template",
        "_threshold",
        "_too_small",
        "_waiting",
        "buffered_bytes",
        "dropped",
        "ledger",
        "pin",
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
        probe: Probe | None = None,
        name: str = "",
    ) -> None:
        super().__init__()
        self._prefix = inbox + b"."
        self._template = template
        self._pinned = template.pinned
        self._silence = 2 * template.heartbeat
        self._by_bytes = max_bytes > 0
        self._limit = max_bytes or max_messages
        self._threshold = threshold
        self._stop_after = stop_after  # 0: never
        # Whether messages are no more than counted: heirs look at each of them.
        self._count_only = type(self) is Consume and not self._by_bytes and not self._pinned
        self._free_pops = 0  # how many can be taken before there is anything to be done
        self._received = 0
        self._taken = 0
        self._online = False
        self._pause = 0.0
        self._resume_at = 0.0  # no pull before that time
        self._waiting = False  # a pull is due at that time
        self._too_small = 0  # pulls of so few bytes are of no use: the next message is larger
        self._pulled_at = 0.0
        self._progressed = False  # whether a message came since the last pull
        self._silent_at = 0.0  # when two heartbeats are missing since anything arrived
        self._grace_used = False
        self._name = name  # of the consumer and its stream, for errors
        self._presence = Presence(probe)
        self.buffered_bytes = 0
        self.dropped = 0
        self.ledger = Ledger()
        self._room = Room(self._limit, self._by_bytes, self.ledger)
        self.pin = ""

    # What the API does

    def pop(self, now: float) -> Msg:
        msg = super().pop(now)
        self._taken += 1
        if self._by_bytes:
            self.buffered_bytes -= counted_size(msg, self._pinned)
        if self._taken == self._stop_after:
            self._finish()
        else:
            self._refill(now)
        return msg

    def at_hand(self) -> Msg | None:
        if self._free_pops <= 0 or not self._batch:
            return None
        self._free_pops -= 1
        self._taken += 1
        return self._batch.pop()

    @property
    def unperformed(self) -> bool:
        return self._waiting or super().unperformed

    @property
    def finished(self) -> bool:
        """All that was wanted was taken (stop_after)."""
        return self._stop_after > 0 and self._taken >= self._stop_after

    def stop(self) -> list[Msg]:
        self.buffered_bytes = 0
        return super().stop()

    def start_draining(self) -> None:
        super().start_draining()
        self._waiting = False
        self._free_pops = 0
        self._set_deadline()

    def _finish(self) -> None:
        self.start_draining()
        self.leave()

    # What the connection tells

    def connected(self, now: float) -> None:
        self._online = True
        self._pause = 0.0
        self._resume_at = now
        self._too_small = 0
        self._presence.connected()
        self._refill(now)

    def disconnected(self, now: float) -> None:
        # CONSUME-9: the pulls are gone with the connection, and silence is no news without one.
        self._online = False
        self._free_pops = 0
        self._waiting = False
        self.ledger.clear()
        self._presence.disconnected()
        self._set_deadline()

    def end(self, error: NatsError | None = None) -> bool:
        self._free_pops = 0  # the last message taken is news then
        self.ledger.clear()
        new = super().end(error)
        self._set_deadline()
        return new

    def receive(self, msg: Msg, now: float) -> bool:
        own = msg.raw_subject.startswith(self._prefix) and not msg.raw_reply
        if own and msg.raw_subject == self._presence.reply:
            return self._found(msg, now)
        self._silent_at = now + self._silence
        self._grace_used = False
        if own:
            return is_status(msg) and self._status(msg, now)
        size = counted_size(msg, self._pinned) if self._by_bytes else 0
        if not self._has_room(size):
            return False
        self.buffered_bytes += size
        self.ledger.delivered(size)
        self._received += 1
        self._progressed = True
        self._pause = 0.0
        self._too_small = 0
        if self._presence.doubted:
            self._presence.proved()
        self._fresh.append(msg)
        new = self._pinned and self._note_pin(msg)
        if not self.ledger.open:
            self._refill(now)  # a pull that ends by its messages may leave bytes free
        # The deadline is left as it is: it rings too early, once, instead of being set each time.
        return new or self.pending() == 1

    def receive_all(self, msgs: list[Msg], now: float) -> bool:
        # What has a reply subject is no status. 0.2 us a message, not 0.7.
        count = self.pending()
        full = count + len(msgs) > self._room.most
        if full or not self._count_only or [msg for msg in msgs if not msg.raw_reply]:
            return super().receive_all(msgs, now)
        self._silent_at = now + self._silence
        self._grace_used = False
        self.ledger.delivered_all(len(msgs))
        self._received += len(msgs)
        self._progressed = True
        self._pause = 0.0
        if self._presence.doubted:
            self._presence.proved()
        self._fresh += msgs
        if not self.ledger.open:
            self._refill(now)
        return not count

    def handle_timer(self, now: float) -> bool:
        told = self._told
        if self.ledger.open and self._active:
            due = min(self._silent_by(), self.ledger.ends_at)
            if now - due > LATE and not self._grace_used:
                self._grant_grace(now)
            self._check_silence(now)
        if self._active and self._presence.handle_timer(now):
            self._look_up()
        self._refill(now)
        self._set_deadline()
        return self._told > told

    # How it works

    @property
    def _active(self) -> bool:
        return not (self.stopped or self.draining or self.ended)

    def _level(self) -> int:
        """What is asked for and what is buffered, in messages or bytes."""
        if self._by_bytes:
            return self.ledger.size + self.buffered_bytes
        return self.ledger.messages + self.pending()

    def _refill(self, now: float) -> None:
        self._waiting = False
        self._free_pops = 0
        if not self._online or not self._active:
            return
        level = self._level()
        missing = self._limit - level
        if level >= self._threshold or missing <= self._too_small:
            if not self._by_bytes:
                self._free_pops = level - self._threshold
                if self._stop_after:
                    self._free_pops = min(self._free_pops, self._stop_after - self._taken - 1)
            return
        batch = MANY if self._by_bytes else missing
        if self._stop_after:
            batch = min(batch, self._stop_after - self._received - self.ledger.messages)
            if batch <= 0:
                return
        if now < self._resume_at:
            self._waiting = True
            self._set_deadline()
        else:
            self._pull(batch, missing if self._by_bytes else 0, now)

    def _pull(self, batch: int, size: int, now: float) -> None:
        template = self._template
        self._room.pulled(template.expires, now)
        token = self.tokens.next()
        self.ledger.add(Pull(token, batch, size, now + template.expires + MARGIN, self.pin))
        self._pulled_at = now
        self._progressed = False
        self.order(template.subject, template.body(batch, size, self.pin), self._prefix + token)
        self._set_deadline()

    def _set_deadline(self) -> None:
        self.deadline = None
        if self._active:
            if self._waiting:
                self.deadline = self._resume_at
            if self.ledger.open:
                self.wake_by(min(self._silent_by(), self.ledger.ends_at))
            if self._presence.due is not None:
                self.wake_by(self._presence.due)

    def _grant_grace(self, now: float) -> None:
        """CONSUME-10: the timer rings late; what came meanwhile may still wait to be read."""
        self._grace_used = True
        later = now + self._template.heartbeat
        self._silent_at = max(self._silent_at, later)
        for pull in self.ledger.open:
            pull.ends_at = max(pull.ends_at, later)

    def _silent_by(self) -> float:
        """When a heartbeat is missed: two of them after anything arrived, or a pull was sent."""
        return max(self._silent_at, self._pulled_at + self._silence)

    def _check_silence(self, now: float) -> None:
        overdue = self.ledger.give_up(now)
        # CONSUME-28: without any answer, pulls that overlap must not put this off for ever.
        if now >= self._silent_by() or (overdue and now >= self._silent_at):
            # CONSUME-8: whatever became of these pulls, their answers will not be believed.
            self.ledger.clear()
            self._missed(HeartbeatMissed("the server was silent for %g s" % self._silence), now)
        elif overdue:
            text = "the server did not end a pull in time"
            self.tell(PullWarning(TimeoutExpired(text)))

    def _missed(self, error: NatsError, now: float) -> None:
        self.tell(PullWarning(error))
        if self._presence.silent(now):
            self._look_up()

    def _status(self, msg: Msg, now: float) -> bool:
        status = Status(msg, self._name)
        if status.meaning == BEAT:
            return self._beat(msg, now)
        pull = self.ledger.ended(msg.raw_subject[len(self._prefix) :], status)
        if pull is None or not self._active:
            return False  # PULL-8: late, or a second one: nothing depends on that pull any more
        if status.meaning == FAIL:
            return self._failed(status.error, now)
        told = self._told
        self._ended(pull, status, now)
        self._refill(now)
        self._set_deadline()
        return self._told > told

    def _beat(self, msg: Msg, now: float) -> bool:
        self._presence.proved()
        return False

    def _failed(self, error: NatsError, now: float) -> bool:
        self._finish()
        return self.end(error)

    def _ended(self, pull: Pull, status: Status, now: float) -> None:
        """The pull is over, and that is not the end."""
        meaning = status.meaning
        if meaning == SIZE and (status.bytes or self._limit) < self._limit:
            # CONSUME-12: it would fit if the buffer were not so full.
            self._too_small = status.bytes or 0
            meaning = DONE
        if meaning == DONE:
            self._presence.proved()
        elif meaning == UNPIN:
            if pull.pin == self.pin != "":
                self.pin = ""
                self.tell(Unpinned())
        elif self._presence.reports(status.error, now):
            self.tell(PullWarning(status.error))
        if meaning == ABSENT and self._presence.absent(now):
            self._look_up()
        if meaning in (LIMIT, ABSENT, SIZE, UNKNOWN):
            longest = LONGEST_ABSENCE if meaning == ABSENT else LONGEST_PAUSE
            self._pause = min(max(2 * self._pause, SHORTEST_PAUSE), longest)
            self._resume_at = now + self._pause
        elif not self._progressed:
            self._resume_at = max(self._resume_at, self._pulled_at + SHORTEST_PAUSE)

    def _note_pin(self, msg: Msg) -> bool:
        pin = read_pin(msg)
        if not pin or pin == self.pin:
            return False
        self.pin = pin
        self.tell(Pinned(pin))
        return True

    def _look_up(self) -> None:
        self.order(*self._presence.request(self._prefix, self.tokens.next()))

    def _found(self, msg: Msg, now: float) -> bool:
        error = self._presence.receive(msg) if self._active else None
        if error is not None:
            return self._failed(error, now)
        self._set_deadline()
        return False

    def _has_room(self, size: int) -> bool:
        """CONSUME-27: what no pull can have asked for is dropped, not kept without bounds."""
        if self._room.takes(self.buffered_bytes + size if self._by_bytes else self.pending() + 1):
            return True
        self.dropped += 1
        self.dropping.append(self)
        return False
