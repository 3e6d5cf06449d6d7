"""Consume: the machine of consume(): a buffer that is refilled while messages are taken from it.

While the machine is connected and not stopped, and its policy has a consumer, there is an open
pull, or a message in the buffer, or a pause that will end:

    input                     the pulls               then
    message                   one is a message less   pull if none is open
    status of a pull          its rest is free again  pull, at once or after a pause
    silence for 2 heartbeats  all are abandoned       report it; pull
    a status is overdue       it is abandoned         report it; pull
    disconnected              all are abandoned       wait for connected
    connected                                         pull
    pop                                               pull if below the threshold
    stop, drain, stop_after                           pull no more

The machine holds the buffer and connects its parts. Each part has its own state and answers one
question:

    ledger.py           what may the open pulls still bring?
    refill.py           is a pull due, and how large is it?
    silence.py          does the server still answer the open pulls?
    presence.py         does the consumer still exist?
    room.py             can a pull have requested this message?
    machine/policy.py   is this message kept, and is a lost consumer replaced?

If the policy replaces the consumer, all pulls are abandoned, and the next consumer is pulled from.

A deleted consumer answers like one without a leader: with 503, or before 2.11 with silence. So
after the second 503 in a row, or a missed heartbeat, the consumer is looked up; if it is not found,
the machine ends with that error, after the messages in the buffer. Any other answer, or none,
changes nothing: pulls continue, and the consumer is looked up again at growing intervals.
"""

from __future__ import annotations

from jetstream.errors import HeartbeatMissed
from jetstream.events import Pinned, PullWarning, Unpinned
from jetstream.machine.policy import FULL, GAP, KEEP, SKIP, Policy
from jetstream.machine.queue import MessageQueue
from jetstream.machine.status import (
    ABSENT,
    BEAT,
    DONE,
    FAIL,
    RETRY,
    SIZE,
    UNPIN,
    Status,
    header_number,
    is_status,
)
from natsproto.connection.receiver import Receiver

from .ledger import MARGIN, Ledger, Pull, counted_size, read_pin
from .presence import Presence
from .refill import Refill
from .room import Room
from .silence import Silence

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.machine.probe import Probe
    from jetstream.machine.queue import EventLog
    from jetstream.machine.snapshot import ConsumerSnapshot
    from natsproto.connection.waitable import Reports
    from natsproto.errors import NatsError
    from natsproto.wire.frames import Msg

    from .ledger import PullTemplate

LAST_CONSUMER = b"\r\nNats-Last-Consumer: "
# False in builds for devices, where memory is worth more than time (embedded/strip.py).
HAS_MEMORY: bool = True


class Consume(Receiver):
    """The buffer and its refill. The API takes messages with `pop`, which may emit a pull.

    `stopped`: no more messages are pulled. `dropped` counts messages that no pull has requested.
    `ready` are messages that the API may take by itself, the oldest one last: `poll` has counted
    them as taken. Other calls and inputs put them back into the buffer. `finished`: `stop_after`
    messages were taken; the subscription may not have ended yet.
    """

    # More than the 30 attributes that CPython 3.11 stores without a dict: 5 % a message.
    __slots__ = (
        "_admit",
        "_batch",
        "_by_bytes",
        "_count_only",
        "_fresh",
        "_name",
        "_online",
        "_pinned",
        "_prefix",
        "_presence",
        "_queue",
        "_room",
        "_silence",
        "_status_at",
        "_stop_after",
        "_taken",
        "_template",
        "buffered_bytes",
        "dropped",
        "events",
        "finished",
        "last_status",
        "ledger",
        "pin",
        "policy",
        "ready",
        "refill",
        "reports",
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
        self._by_bytes = max_bytes > 0
        self._stop_after = stop_after  # 0: never
        self._name = name  # of the consumer and its stream, for errors (D-PULL-17)
        # Whether messages are only counted, so that several can be received at once.
        self._count_only = not (self._by_bytes or self._pinned)
        self.policy: Policy = policy
        self._admit = policy.admit
        self.events: EventLog = policy.events
        self.reports: Reports | None = self.events.reports
        self.events.reports.source = name
        self._queue = MessageQueue()
        self._batch = self._queue.batch
        self._fresh = self._queue.fresh
        self.ready: list[Msg] = self._queue.ready
        limit = max_bytes or max_messages
        self.ledger: Ledger = Ledger()
        self.refill: Refill = Refill(
            self.ledger, limit, threshold, by_bytes=self._by_bytes, stop_after=stop_after
        )
        self._room = Room(limit, self._by_bytes, self.ledger)
        self._silence = Silence(self.ledger, template.heartbeat)
        self._presence = Presence(probe)
        self._taken = 0
        self._online = False
        self.buffered_bytes: int = 0
        self.dropped: int = 0
        self.pin: str = ""
        self.stopped: bool = False
        self.finished: bool = False
        self.last_status: Status | None = None
        self._status_at = 0.0

    # Calls of the API

    def pending(self) -> int:
        return len(self.ready) + len(self._batch) + len(self._fresh)

    def pop(self, now: float) -> Msg:
        """Remove and return the oldest message; there must be one. May emit a pull."""
        if HAS_MEMORY:
            self._put_back()
        msg = self._queue.pop()
        self._taken += 1
        if self._by_bytes:
            self.buffered_bytes -= counted_size(msg, self._pinned)
        if self._taken == self._stop_after:  # CONSUME-16
            self.finished = True
            self._finish()
        else:
            self._refill(now)
        return msg

    def poll(self, most: int = 1) -> Msg | None:
        """Remove and return the oldest message if that emits nothing; otherwise None: `pop` it.

        Up to `most` - 1 others that could be taken in the same way are then in `ready`: a message
        of a batch takes 0.2 us less than one that is counted by itself.
        """
        if HAS_MEMORY and self.ready:
            return self.ready.pop()
        refill = self.refill
        batch = self._batch
        fresh = self._fresh
        if refill.spare <= 0 or not (batch or fresh):
            return None
        alone = len(fresh) == 1
        msg = batch.pop() if batch else fresh.pop() if alone else self._queue.pop()
        refill.spare -= 1
        self._taken += 1
        if HAS_MEMORY and most > 1:
            count = len(self._queue.lend(min(most - 1, refill.spare)))
            refill.spare -= count
            self._taken += count
        return msg

    if HAS_MEMORY:

        def _put_back(self) -> None:
            """Put the messages in `ready` back."""
            count = len(self.ready)
            if count:
                self.refill.spare += count
                self._taken -= count
                self._queue.put_back()

    def peek(self, most: int) -> list[Msg]:
        """Return up to `most` messages, oldest first, that `poll` would return now."""
        if HAS_MEMORY:
            self._put_back()
        return self._queue.peek(min(most, self.refill.spare))

    def take(self, count: int) -> None:
        """Remove so many of the messages that `peek` has returned."""
        self._queue.take(count)
        self.refill.spare -= count
        self._taken += count

    @property
    def needs_poke(self) -> bool:
        """Whether the connection has to apply effects or a new deadline."""
        return self.refill.waiting or bool(self.effects)

    def stop(self) -> list[Msg]:  # CONSUME-14
        """End the subscription, and return the messages that were not taken."""
        self.rewind()
        self.buffered_bytes = 0
        rest = self._queue.clear()
        self._finish()
        return rest

    def rewind(self) -> None:
        """Let the policy know that the messages in the buffer will not be taken."""
        if HAS_MEMORY:
            self._put_back()
        self.policy.rewind(self._queue.messages())

    def start_draining(self) -> None:  # CONSUME-15
        """Pull no more; messages in the buffer, and those on their way, can still be taken."""
        self.stopped = True
        self._cancel()
        self._set_deadline()

    def snapshot(self, now: float) -> ConsumerSnapshot:  # D-SNAPSHOT-1
        """Return the current state."""
        from jetstream.machine.snapshot import ConsumerSnapshot, OpenPull, set_status, set_times

        made = ConsumerSnapshot(self._name)
        made.online = self._online
        made.stopped = self.stopped or self.draining
        made.ended = self.ended
        made.error = self.error
        made.pending = self.pending()
        made.pending_bytes = self.buffered_bytes
        made.received = self.refill.received
        made.dropped = self.dropped
        made.unit = "bytes" if self._by_bytes else "messages"
        made.limit = self.refill.limit
        made.threshold = self.refill.threshold
        made.level = self.refill.level(made.pending_bytes if self._by_bytes else made.pending)
        made.pulls = [OpenPull(e.messages, e.bytes, e.ends_at - now) for e in self.ledger.open]
        made.heard_ago = self._silence.heard_ago(now)
        made.consumer = self.policy.consumer
        made.pin = self.pin
        set_status(made, self.last_status, self._status_at, now)
        if self._active:
            silence, lookup = self._silence.due, self._presence.due
            set_times(made, now, pull=self.refill.due, silence=silence, lookup=lookup)
            set_times(made, now, recreate=self.policy.due)
        return made

    def _finish(self) -> None:
        self.start_draining()
        self.leave()

    # Inputs of the connection

    def connected(self, now: float) -> None:
        self._online = True
        self.refill.connected(now)
        self._presence.connected()
        if self._active:
            self.policy.connected(now)
            self._follow(now)

    def disconnected(self, now: float) -> None:
        # CONSUME-9: the pulls are lost with the connection; without one, silence means nothing.
        if self.policy.disconnected(self._active):
            self.wake()
        self._online = False
        self._cancel()
        self.ledger.clear()
        self._presence.disconnected()
        self._set_deadline()

    def end(self, error: NatsError | None = None) -> bool:
        self.policy.close()
        self._collect_effects()  # ORDERED-12
        self._cancel()  # the last message must be taken with `pop`: a drain may wait for it
        self.ledger.clear()
        new = super().end(error)
        self._set_deadline()
        return new

    def receive(self, msg: Msg, now: float) -> bool:
        if not msg.raw_reply and msg.raw_subject.startswith(self._prefix):
            return self._receive_response(msg, now)
        # pending(), without a call
        count = len(self.ready) + len(self._batch) + len(self._fresh)
        if self._by_bytes:
            size = counted_size(msg, self._pinned)
            room = self._room.takes(self.buffered_bytes + size)
        else:
            size = 0
            room = count < self._room.most or self._room.takes(count + 1)
        verdict = self._admit(msg, room)
        if verdict is not KEEP:
            return self._refuse(msg, verdict, size, now)
        self._silence.heard(now)
        self.buffered_bytes += size
        self.refill.delivered(size)
        if self._presence.doubted:
            self._presence.proved()
        self._fresh.append(msg)
        new = self._pinned and self._note_pin(msg)
        if not self.ledger.open:
            self._refill(now)  # a pull that ends by its messages may leave bytes free
        # The deadline is left as it is: it fires too early, once, instead of being set each time.
        return new or not count

    def receive_all(self, msgs: list[Msg], now: float) -> bool:
        # A message with a reply subject is not a status. 0.2 us a message, not 0.7; of an ordered
        # consumer 0.8 us, not 2.
        count = self.pending()
        single = not self._count_only or count + len(msgs) > self._room.most
        if single or [msg for msg in msgs if not msg.raw_reply] or not self.policy.admit_all(msgs):
            return super().receive_all(msgs, now)
        self._silence.heard(now)
        self.refill.delivered_all(len(msgs))
        if self._presence.doubted:
            self._presence.proved()
        # No pull is due: these messages take the room in which they were expected.
        self._fresh += msgs
        return not count

    def handle_timer(self, now: float) -> bool:
        before = self.events.total
        if self._active:
            self.policy.handle_timer(now)
        if self._active:
            error = self._silence.check(now)
            if isinstance(error, HeartbeatMissed):
                self._missed(error, now)
            elif error is not None:
                self.events.add(PullWarning(error))
        if self._active and self._presence.handle_timer(now):
            self._look_up()
        return self._follow(now) or self.events.total > before

    # The policy

    def _receive_response(self, msg: Msg, now: float) -> bool:
        """Handle a message to a reply subject of this machine: a status, or a response."""
        if msg.raw_subject == self._presence.reply:
            return self._found(msg, now)
        token = msg.raw_subject[len(self._prefix) :]
        policy = self.policy
        if policy.owns(token):
            before = self.events.total
            if not self._active:
                return False
            policy.receive(msg, now)
            return self._follow(now) or self.events.total > before
        if policy.recreates and not self.ledger.knows(token):
            return False  # D-ORDERED-15: a pull of an earlier consumer says nothing about this one
        self._silence.heard(now)
        return is_status(msg) and self._status(msg, now)

    def _refuse(self, msg: Msg, verdict: str, size: int, now: float) -> bool:
        """Do what a verdict other than KEEP requires."""
        if verdict is GAP:
            return self._lose(self.policy.gap(msg), now)
        if verdict is FULL:
            # D-CONSUME-27: no pull can have requested it, and the buffer must stay bounded.
            self.dropped += 1
            self.drop()
            if not self.policy.recreates:  # else it may be from an earlier consumer
                self._silence.heard(now)
        elif verdict is SKIP:
            # A pull has brought it, although the user has had it before.
            self._silence.heard(now)
            self.refill.skipped(size)
            if not self.ledger.open:
                self._refill(now)
        return False

    def _lose(self, error: NatsError, now: float) -> bool:
        """Have the policy replace the lost consumer; return False if it does not."""
        if not self._active or not self.policy.lost(error, now):
            return False
        self.ledger.clear()
        self._follow(now)
        return True

    def _follow(self, now: float) -> bool:
        """Apply the policy's effects and its error, then pull; return True if that was the end."""
        self._collect_effects()
        error = self.policy.error
        if error is not None:
            return self._fail(error)
        self._refill(now)
        self._set_deadline()
        return False

    def _collect_effects(self) -> None:
        self.effects.extend(self.policy.take_effects())

    # How it works

    @property
    def _active(self) -> bool:
        return not (self.stopped or self.draining or self.ended)

    def _cancel(self) -> None:
        """Pull no more until `_refill`, and let each message be taken with `pop`."""
        if HAS_MEMORY:
            self._put_back()
        self.refill.cancel()

    def _refill(self, now: float) -> None:
        refill = self.refill
        if HAS_MEMORY:
            self._put_back()
        # _active, without a call: with a limit in bytes, this runs for each message taken.
        stopped = self.stopped or self.draining or self.ended
        if stopped or not self._online or not self.policy.ready:
            refill.cancel()
            return
        pull = refill.next_pull(self.buffered_bytes if self._by_bytes else self.pending(), now)
        if pull is not None:
            self._pull(pull[0], pull[1], now)
        elif refill.waiting:
            self._set_deadline()

    def _pull(self, batch: int, size: int, now: float) -> None:
        template = self._template
        self._room.pulled(now)
        token = self.tokens.next()
        self.ledger.add(Pull(token, batch, size, now + template.expires + MARGIN, self.pin))
        self.refill.pulled(now)
        self._silence.pulled(now)
        subject = self.policy.pull_subject(template.subject)
        self.emit(subject, template.body(batch, size, self.pin), self._prefix + token)
        self._set_deadline()

    def _set_deadline(self) -> None:
        self.deadline: float | None = None
        if self._active:
            for due in (self.refill.due, self._silence.due, self._presence.due, self.policy.due):
                if due is not None:
                    self.wake_by(due)

    def _missed(self, error: NatsError, now: float) -> None:
        if self._lose(error, now):
            return
        if self._presence.reports(error, now):
            self.events.add(PullWarning(error))
        if self._presence.silent(now):
            self._look_up()

    def _status(self, msg: Msg, now: float) -> bool:
        status = Status(msg, self._name)
        if status.meaning == BEAT:
            return self._beat(msg, now)
        self.last_status = status
        self._status_at = now
        pull = self.ledger.ended(msg.raw_subject[len(self._prefix) :], status)
        if pull is None or not self._active:
            return False  # PULL-8: the pull was closed before
        if self.policy.loses(status):
            return self._lose(status.error, now)
        if status.meaning == FAIL:
            return self._fail(status.error)  # CONSUME-6
        before = self.events.total
        self._ended(pull, status, now)
        self._refill(now)
        self._set_deadline()
        return self.events.total > before

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
        """Report how a pull has ended, where the user should know, and pace the next one."""
        meaning = status.meaning
        if meaning != RETRY:
            self.policy.proved()
        if meaning == SIZE and self.refill.fits_later(status.bytes or 0):
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
        self.refill.ended(meaning, now)

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
