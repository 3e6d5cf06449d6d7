"""Consume: the machine of consume(): a buffer that is refilled while it is used.

    asked      what the open pulls may still bring (the ledger)
    buffered   what has arrived and was not taken yet
    level      both together, in messages or in bytes
    limit      max_messages, or max_bytes

The level is never above the limit, and as soon as it falls below the threshold, a pull asks for
all that is missing. So while the machine is connected and not stopped, and its policy has a
consumer, there is an open pull, or a message in the buffer, or a pause that will end:

    input                     the pulls               then
    message                   one is a message less   pull if none is open
    status of a pull          its rest is free again  pull, at once or after a pause
    silence for 2 heartbeats  all are given up        report it; pull
    a status is overdue       it is given up          report it; pull
    disconnected              all are given up        wait for connected
    connected                                         pull
    pop                                               pull if below the threshold
    stop, drain, stop_after                           pull no more

The policy (machine/policy.py) decides which messages are kept, and whether a consumer that is lost
is replaced. If it is, all pulls are given up, and the next consumer is pulled from.

Pauses keep a consumer that refuses from being asked all the time: they double from 50 ms while
pulls are refused, and even pulls that end well are 50 ms apart if they bring no message at all.

A consumer that is gone answers as one without a leader: with 503, or before 2.11 with silence. So
after the second 503 in a row, or a missed heartbeat, the consumer is looked up (presence.py); if it
is not found, the machine ends with that error, after the messages in the buffer. Any other answer,
or none, changes nothing: pulls continue, and the consumer is looked up again at growing intervals.

The server may have pulls that were given up here, and deliver what they ask for. More than that and
twice the limit was never asked for: it is dropped, counted and reported (D-CONSUME-27).

Silence proves nothing if the client has not read: a blocking client does not read while the user's
code runs, and a timer that fires late shows it. Then one more heartbeat is awaited (D-CONSUME-10).
"""

from __future__ import annotations

from jetstream.errors import HeartbeatMissed
from jetstream.events import Pinned, PullWarning, Unpinned
from jetstream.machine.base import Machine
from jetstream.machine.policy import FULL, GAP, KEEP, SKIP, Policy
from jetstream.machine.queue import MessageQueue
from jetstream.machine.status import (
    ABSENT,
    BEAT,
    DONE,
    FAIL,
    LIMIT,
    RETRY,
    SIZE,
    UNKNOWN,
    UNPIN,
    Status,
    header_number,
    is_status,
)
from natsproto.errors import TimeoutExpired

from .fetch import LATE
from .ledger import MANY, MARGIN, Ledger, Pull, counted_size, read_pin
from .pace import Pauses
from .presence import Presence
from .room import Room

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.machine.probe import Probe
    from jetstream.machine.queue import EventLog
    from natsproto.errors import NatsError
    from natsproto.wire.frames import Msg

    from .ledger import PullTemplate

LAST_CONSUMER = b"\r\nNats-Last-Consumer: "


class Consume(Machine):
    """The buffer and its refill. The API takes messages with `pop`, which may order a pull.

    `stopped`: it wants no more messages.
    """

    # More than the 30 attributes that CPython 3.11 stores without a dict: 5 % a message.
    __slots__ = (
        "_admit",
        "_batch",
        "_by_bytes",
        "_count_only",
        "_free_pops",
        "_fresh",
        "_grace_used",
        "_limit",
        "_name",
        "_online",
        "_pauses",
        "_pinned",
        "_prefix",
        "_presence",
        "_progressed",
        "_pulled_at",
        "_queue",
        "_received",
        "_room",
        "_silence",
        "_silent_at",
        "_stop_after",
        "_taken",
        "_template",
        "_threshold",
        "_too_small",
        "_waiting",
        "buffered_bytes",
        "dropped",
        "events",
        "ledger",
        "pin",
        "policy",
        "stopped",
    )

    def __init__(
        self,
        inbox: bytes,
        template: PullTemplate,
        policy: Policy | None = None,
        *,
        max_messages: int = 0,
        max_bytes: int = 0,
        threshold: int,
        stop_after: int = 0,
        probe: Probe | None = None,
        name: str = "",
    ) -> None:
        super().__init__()
        policy = policy or Policy()
        self._prefix = inbox + b"."
        self._template = template
        self._pinned = template.pinned
        self._silence = 2 * template.heartbeat
        self._by_bytes = max_bytes > 0
        self._limit = max_bytes or max_messages
        self._threshold = threshold
        self._stop_after = stop_after  # 0: never
        self._name = name  # of the consumer and its stream, for errors (D-PULL-17)
        # Whether messages are no more than counted, and can be taken all at once.
        self._count_only = not (policy.recreates or self._by_bytes or self._pinned)
        self.policy: Policy = policy
        self._admit = policy.admit
        self.events: EventLog = policy.events
        self._queue = MessageQueue()
        self._batch = self._queue.batch
        self._fresh = self._queue.fresh
        self.ledger: Ledger = Ledger()
        self._room = Room(self._limit, self._by_bytes, self.ledger)
        self._presence = Presence(probe)
        self._free_pops = 0  # how many can be taken before there is anything to be done
        self._received = 0
        self._taken = 0
        self._online = False
        self._pauses = Pauses()
        self._waiting = False  # a pull is due at the end of a pause
        self._too_small = 0  # pulls of so few bytes are of no use: the next message is larger
        self._pulled_at = 0.0
        self._progressed = False  # whether a message arrived since the last pull
        self._silent_at = 0.0  # when two heartbeats are missing since anything arrived
        self._grace_used = False
        self.buffered_bytes: int = 0
        self.dropped: int = 0
        self.pin: str = ""
        self.stopped: bool = False

    # Calls of the API

    def pending(self) -> int:
        return len(self._batch) + len(self._fresh)

    def pop(self, now: float) -> Msg:
        """Remove and return the oldest message; there must be one. May order a pull."""
        msg = self._queue.pop()
        self._taken += 1
        if self._by_bytes:
            self.buffered_bytes -= counted_size(msg, self._pinned)
        if self._taken == self._stop_after:  # CONSUME-16
            self._finish()
        else:
            self._refill(now)
        return msg

    def poll(self) -> Msg | None:
        """Remove and return the oldest message if that has no consequences; else None: `pop` it."""
        if self._free_pops <= 0 or not self._batch:
            return None
        self._free_pops -= 1
        self._taken += 1
        return self._batch.pop()

    @property
    def unperformed(self) -> bool:
        """Whether the connection has to look: for orders, a new deadline, or our leaving."""
        return self._waiting or self.has_effects or (self.leaving and not self.ended)

    @property
    def finished(self) -> bool:
        """Whether all that was wanted was taken (stop_after), before the subscription has ended."""
        return self._stop_after > 0 and self._taken >= self._stop_after

    def stop(self) -> list[Msg]:  # CONSUME-14
        """End the subscription, and return the messages that were not taken."""
        self.rewind()
        self.buffered_bytes = 0
        rest = self._queue.clear()
        self._finish()
        return rest

    def rewind(self) -> None:
        """Let the policy know which messages are in the buffer, where no one will take them."""
        self.policy.rewind(self._queue.messages())

    def start_draining(self) -> None:  # CONSUME-15
        """Want no more; messages in the buffer, and those on their way, can still be taken."""
        self.stopped = True
        self._waiting = False
        self._free_pops = 0
        self._set_deadline()

    def _finish(self) -> None:
        self.start_draining()
        self.leave()

    # Inputs of the connection

    def connected(self, now: float) -> None:
        self._online = True
        self._pauses.restart(now)
        self._too_small = 0
        self._presence.connected()
        if self._active:
            self.policy.connected(now)
            self._follow(now)

    def disconnected(self, now: float) -> None:
        # CONSUME-9: the pulls are gone with the connection, and silence is no news without one.
        if self.policy.disconnected(self._active):
            self.ready.append(self)
        self._online = False
        self._free_pops = 0
        self._waiting = False
        self.ledger.clear()
        self._presence.disconnected()
        self._set_deadline()

    def end(self, error: NatsError | None = None) -> bool:
        self.policy.close()
        if self.leaving or self.draining:
            self._order_all()  # ORDERED-12
        self._free_pops = 0  # whoever takes the last message has to notify the connection
        self.ledger.clear()
        new = super().end(error)
        self._set_deadline()
        return new

    def receive(self, msg: Msg, now: float) -> bool:
        if msg.raw_subject.startswith(self._prefix) and not msg.raw_reply:
            return self._receive_response(msg, now)
        by_bytes = self._by_bytes
        size = counted_size(msg, self._pinned) if by_bytes else 0
        room = self._room.takes(self.buffered_bytes + size if by_bytes else self.pending() + 1)
        verdict = self._admit(msg, room)
        if verdict is not KEEP:
            return self._refuse(msg, verdict, size, now)
        self._silent_at = now + self._silence
        self._grace_used = False
        self.buffered_bytes += size
        self.ledger.delivered(size)
        self._received += 1
        self._progressed = True
        self._pauses.length = 0.0
        self._too_small = 0
        if self._presence.doubted:
            self._presence.proved()
        self._fresh.append(msg)
        new = self._pinned and self._note_pin(msg)
        if not self.ledger.open:
            self._refill(now)  # a pull that ends by its messages may leave bytes free
        # The deadline is left as it is: it fires too early, once, instead of being set each time.
        return new or self.pending() == 1

    def receive_all(self, msgs: list[Msg], now: float) -> bool:
        # A message with a reply subject is not a status. 0.2 us a message, not 0.7.
        count = self.pending()
        full = count + len(msgs) > self._room.most
        if full or not self._count_only or [msg for msg in msgs if not msg.raw_reply]:
            return super().receive_all(msgs, now)
        self._silent_at = now + self._silence
        self._grace_used = False
        self.ledger.delivered_all(len(msgs))
        self._received += len(msgs)
        self._progressed = True
        self._pauses.length = 0.0
        if self._presence.doubted:
            self._presence.proved()
        self._fresh += msgs
        if not self.ledger.open:
            self._refill(now)
        return not count

    def handle_timer(self, now: float) -> bool:
        told = self.events.total
        if self._active:
            self.policy.handle_timer(now)
        if self.ledger.open and self._active:
            due = min(self._silent_by(), self.ledger.ends_at)
            if now - due > LATE and not self._grace_used:
                self._grant_grace(now)
            self._check_silence(now)
        if self._active and self._presence.handle_timer(now):
            self._look_up()
        return self._follow(now) or self.events.total > told

    # The policy

    def _receive_response(self, msg: Msg, now: float) -> bool:
        """Take a message to a reply subject of this machine: a status, or a response."""
        if msg.raw_subject == self._presence.reply:
            return self._found(msg, now)
        token = msg.raw_subject[len(self._prefix) :]
        policy = self.policy
        if policy.owns(token):
            told = self.events.total
            if not self._active:
                return False
            policy.receive(msg, now)
            return self._follow(now) or self.events.total > told
        if policy.recreates and not self.ledger.knows(token):  # D-ORDERED-15
            return False  # D-ORDERED-15: a pull of an earlier consumer says nothing about this one
        self._silent_at = now + self._silence
        self._grace_used = False
        return is_status(msg) and self._status(msg, now)

    def _refuse(self, msg: Msg, verdict: str, size: int, now: float) -> bool:
        """Do what a verdict other than KEEP requires."""
        if verdict is GAP:
            return self._lose(self.policy.gap(msg), now)
        if verdict is FULL:
            # D-CONSUME-27: what no pull can have asked for is dropped, not kept without bounds.
            self.dropped += 1
            self.dropping.append(self)
            if not self.policy.recreates:  # else it may be from an earlier consumer
                self._silent_at = now + self._silence
                self._grace_used = False
        elif verdict is SKIP:
            # It was asked for and arrived; only, the user has had it.
            self._silent_at = now + self._silence
            self._progressed = True
            self.ledger.delivered(size)
            if not self.ledger.open:
                self._refill(now)
        return False

    def _lose(self, error: NatsError, now: float) -> bool:
        """Have the policy replace the consumer, which is of no use any more; False if it cannot."""
        if not self._active or not self.policy.lost(error, now):
            return False
        self.ledger.clear()
        self._follow(now)
        return True

    def _follow(self, now: float) -> bool:
        """Do what the policy wants; True: that was the end."""
        self._order_all()
        error = self.policy.error
        if error is not None:
            return self._fail(error)
        self._refill(now)
        self._set_deadline()
        return False

    def _order_all(self) -> None:
        for effect in self.policy.take_effects():
            self.emit(*effect)

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
        if not self._online or not self._active or not self.policy.ready:
            return
        level = self._level()
        missing = self._limit - level  # CONSUME-1
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
        if now < self._pauses.ends_at:
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
        subject = self.policy.pull_subject(template.subject)
        self.emit(subject, template.body(batch, size, self.pin), self._prefix + token)
        self._set_deadline()

    def _set_deadline(self) -> None:
        self.deadline = None
        if self._active:
            if self._waiting:
                self.deadline = self._pauses.ends_at
            if self.ledger.open:
                self.wake_by(min(self._silent_by(), self.ledger.ends_at))
            for due in (self._presence.due, self.policy.due):
                if due is not None:
                    self.wake_by(due)

    def _grant_grace(self, now: float) -> None:
        """D-CONSUME-10: the timer fires late; messages may have arrived and wait to be read."""
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
            self.events.add(PullWarning(TimeoutExpired(text)))

    def _missed(self, error: NatsError, now: float) -> None:
        if self._lose(error, now):
            return
        self.events.add(PullWarning(error))
        if self._presence.silent(now):
            self._look_up()

    def _status(self, msg: Msg, now: float) -> bool:
        status = Status(msg, self._name)
        if status.meaning == BEAT:
            return self._beat(msg, now)
        pull = self.ledger.ended(msg.raw_subject[len(self._prefix) :], status)
        if pull is None or not self._active:
            return False  # PULL-8: late, or a second one: nothing depends on that pull any more
        if self.policy.loses(status):
            return self._lose(status.error, now)
        if status.meaning == FAIL:
            return self._fail(status.error)  # CONSUME-6
        told = self.events.total
        self._ended(pull, status, now)
        self._refill(now)
        self._set_deadline()
        return self.events.total > told

    def _beat(self, msg: Msg, now: float) -> bool:
        last = header_number(msg.raw_headers or b"", LAST_CONSUMER)
        missed = self.policy.heartbeat(last)
        if missed is not None:
            return self._lose(missed, now)
        self._presence.proved()
        return False

    def _fail(self, error: NatsError) -> bool:
        self._finish()
        return self.end(error)

    def _ended(self, pull: Pull, status: Status, now: float) -> None:  # CONSUME-5
        """Note that a pull has ended, and whether to pause before the next one."""
        meaning = status.meaning
        if meaning != RETRY:
            self.policy.proved()
        if meaning == SIZE and (status.bytes or self._limit) < self._limit:
            # D-CONSUME-12: it would fit if the buffer were not so full.
            self._too_small = status.bytes or 0
            meaning = DONE
        if meaning == DONE:
            self._presence.proved()
        elif meaning == UNPIN:
            if pull.pin == self.pin != "":
                self.pin = ""
                self.events.add(Unpinned())
        elif self._presence.reports(status.error, now):
            self.events.add(PullWarning(status.error))
        if meaning == ABSENT and self._presence.absent(now):
            self._look_up()
        if meaning in (LIMIT, ABSENT, SIZE, UNKNOWN):  # CONSUME-26
            self._pauses.refused(now, meaning == ABSENT)
        elif not self._progressed:
            self._pauses.unproductive(self._pulled_at)

    def _note_pin(self, msg: Msg) -> bool:
        pin = read_pin(msg)
        if not pin or pin == self.pin:
            return False
        self.pin = pin
        self.events.add(Pinned(pin))  # CONSUME-13
        return True

    def _look_up(self) -> None:
        self.emit(*self._presence.request(self._prefix, self.tokens.next()))

    def _found(self, msg: Msg, now: float) -> bool:
        error = self._presence.receive(msg) if self._active else None
        if error is not None:
            return self._fail(error)
        self._set_deadline()
        return False
