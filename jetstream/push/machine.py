"""Push: the machine of a push subscription (ADR-15), whose queue the server fills.

    input          effect
    message        queued, unless the queue is full: then it is dropped, counted and reported.
                   Stored messages have a `$JS.ACK.` reply; anyone may have stored a status line
    heartbeat      nothing was missed, if its last consumer sequence is the last one seen
    flow control   answered when every message before it was taken
    silence        for three heartbeats, and then at growing intervals: the consumer is lost
    disconnected   silence means nothing; messages that were sent meanwhile show as a gap

The policy (machine/policy.py) decides which messages are kept, and what the loss of the consumer
means: PlainPush reports it, InOrder replaces the consumer.

Flow control: the server sends up to a window, then a request, and stalls until the request is
answered. The answer means that there is room again, so it is sent when the user has taken all
messages before the request. If a request or its answer is lost, heartbeats repeat the request.

Silence proves nothing if the client has not been reading, as in pull/silence.py: if the timer fires
late, the server gets one more heartbeat interval (D-PUSH-4).
"""

from __future__ import annotations

from jetstream.api.metadata import is_number
from jetstream.errors import ConsumerDeleted, ConsumerUnavailable, HeartbeatMissed, UnknownStatus
from jetstream.events import PushWarning
from jetstream.machine.policy import CONTROL, FULL, GAP, KEEP, SKIP
from jetstream.machine.queue import MessageQueue
from jetstream.machine.snapshot import ConsumerSnapshot, set_times
from jetstream.machine.status import RETRY, Status
from jetstream.pull.presence import FIRST_REPEAT, LONGEST_REPEAT
from jetstream.pull.silence import LATE
from natsproto.connection.effects import Resubscribe
from natsproto.connection.receiver import Receiver

from .policy import FLOW_CONTROL, PlainPush

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.machine.policy import Policy
    from jetstream.machine.queue import EventLog
    from natsproto.connection.waitable import Reports
    from natsproto.errors import NatsError
    from natsproto.wire.frames import Msg

ALARM_AFTER = 3
# As for subscriptions of the connection (Options.max_msgs, max_bytes).
MAX_MESSAGES = 65536
MAX_BYTES = 64 * 1024 * 1024

IDLE = 100
LAST = b"\r\nNats-Last-Consumer: "
STALLED = b"\r\nNats-Consumer-Stalled: "
_LONGEST_SUBJECT = 2048
# False in builds for devices, where memory is worth more than time (embedded/strip.py).
HAS_MEMORY: bool = True


class Push(Receiver):
    """A queue that the server fills. The API takes messages with `pop`, which may emit an answer.

    Call `connected` when the consumer exists: from then on heartbeats are expected. `max_messages`
    and `max_bytes` limit the queue; None: the default, 0: no limit. With flow control the server
    has its own limit, so by default messages are then not counted. `name` is that of the consumer
    and its stream, for the log. `stopped` means that no more messages are queued for the user.
    `ready` is as in Consume: messages that the API may take by itself.
    """

    #: There is no `stop_after`.
    finished = False

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        heartbeat: float = 0.0,
        alarm_after: float = ALARM_AFTER,
        flow_control: bool = False,
        ack_none: bool = False,
        max_messages: int | None = None,
        max_bytes: int | None = None,
        name: str = "",
    ) -> None:
        super().__init__()
        if max_messages is None:
            max_messages = 0 if flow_control else MAX_MESSAGES
        self._max_messages = max_messages
        self._max_bytes = MAX_BYTES if max_bytes is None else max_bytes
        self._heartbeat = heartbeat
        self._silence = alarm_after * heartbeat  # PUSH-1
        self.policy: Policy | PlainPush = policy or PlainPush()
        self._admit = self.policy.admit
        self.events: EventLog = self.policy.events
        self.reports: Reports | None = self.events.reports
        self.events.reports.source = name
        self._name = name
        self._queue = MessageQueue()
        self._batch = self._queue.batch
        self._fresh = self._queue.fresh
        self.ready: list[Msg] = self._queue.ready
        self._online = False
        self._heard = 0.0
        self._extra = 0.0  # how much later than usual the next alarm is
        self._repeat = self._first_repeat = max(FIRST_REPEAT, heartbeat)
        self._grace_used = False
        self._taken = 0
        self._bytes = 0
        # Flow control: where to answer, and after how many messages were taken.
        self._requests: list[tuple[bytes, int]] = []
        self._answered = b""
        self._answered_at = 0.0
        self.ack_none = ack_none
        self.dropped: int = 0
        self.stopped: bool = False

    # Calls of the API

    def pending(self) -> int:
        return len(self.ready) + len(self._batch) + len(self._fresh)

    def pop(self, now: float) -> Msg:
        """Remove and return the oldest message; there must be one. May emit an answer."""
        if HAS_MEMORY:
            self._put_back()
        msg = self._queue.pop()
        self._bytes -= msg.size
        self._taken += 1
        if self._requests:
            self._answer(now)
        return msg

    def poll(self, most: int = 1) -> Msg | None:
        """Remove and return the oldest message if that emits nothing; otherwise None: use `pop`.

        Up to `most` - 1 others are then in `ready`: such a message takes half of the time.
        """
        if HAS_MEMORY and self.ready:
            return self.ready.pop()
        if not self._batch or self._requests or self.ended:
            return None
        msg = self._batch.pop()
        self._bytes -= msg.size
        self._taken += 1
        if HAS_MEMORY:
            lent = self._queue.lend(most - 1)
            self._bytes -= _size(lent)
            self._taken += len(lent)
        return msg

    if HAS_MEMORY:

        def _put_back(self) -> None:
            """Put the messages in `ready` back."""
            ready = self.ready
            if ready:
                self._bytes += _size(ready)
                self._taken -= len(ready)
                self._queue.put_back()

    def peek(self, most: int) -> list[Msg]:
        """Return up to `most` messages, oldest first, that `poll` would return now."""
        if HAS_MEMORY:
            self._put_back()
        return [] if self._requests or self.ended else self._queue.peek(most)

    def take(self, count: int) -> None:
        """Remove so many of the messages that `peek` has returned."""
        self._bytes -= _size(self._queue.peek(count))
        self._queue.take(count)
        self._taken += count

    @property
    def needs_poke(self) -> bool:
        """Whether the connection has to apply effects."""
        return bool(self.effects)

    def stop(self) -> list[Msg]:
        """End the subscription, and return the messages that were not taken."""
        if HAS_MEMORY:
            self._put_back()
        self._bytes = 0
        self._requests = []
        rest = self._queue.clear()
        self.start_draining()
        self.leave()
        return rest

    def start_draining(self) -> None:  # PUSH-14
        """Stop, but let queued messages and those in flight be taken."""
        self.stopped = True
        self._set_deadline()

    def snapshot(self, now: float) -> ConsumerSnapshot:  # D-SNAPSHOT-1
        """Return the current state."""
        if HAS_MEMORY:
            self._put_back()
        made = ConsumerSnapshot(self._name)
        made.online = self._online
        made.stopped = self.stopped or self.draining
        made.ended = self.ended
        made.error = self.error
        made.pending = made.level = self.pending()
        made.pending_bytes = self._bytes
        made.received = self._taken + made.pending
        made.dropped = self.dropped
        made.limit = self._max_messages
        if self._max_bytes and not made.limit:
            made.unit, made.limit, made.level = "bytes", self._max_bytes, self._bytes
        made.heard_ago = now - self._heard if self._heard else None
        made.consumer = self.policy.consumer
        silence = self._heard + self._silence + self._extra
        set_times(made, now, silence=silence if self._watching else None)
        set_times(made, now, recreate=self.policy.due if self._active else None)
        return made

    def lose(self, error: NatsError) -> None:
        """End because the consumer was deleted; messages in the queue can still be taken."""
        if self._active:
            self._fail(error)
            self.wake()

    # Inputs of the connection

    def connected(self, now: float) -> None:
        self._online = True
        self._hear(now)
        self._answered = b""  # it may be lost with the connection
        if self._active:
            self.policy.connected(now)
            self._follow()

    def disconnected(self, now: float) -> None:
        # PUSH-3: silence means nothing without a connection.
        if self.policy.disconnected(self._active):
            self.wake()
        if self.policy.recreates:
            self._forget_requests()
        self._online = False
        self._set_deadline()

    def end(self, error: NatsError | None = None) -> bool:
        if HAS_MEMORY:
            self._put_back()  # the last message must be taken with `pop`: a drain may wait for it
        self.policy.close()
        self._collect_effects()
        new = super().end(error)
        self._set_deadline()
        return new

    def receive(self, msg: Msg, now: float) -> bool:
        if HAS_MEMORY:
            self._put_back()
        size = self._bytes + msg.size
        full = 0 < self._max_messages <= self.pending() or 0 < self._max_bytes < size
        before = self.events.total
        verdict = self._admit(msg, not full)
        if verdict is not KEEP:
            return self._refuse(msg, verdict, now)
        self._hear(now)
        self._bytes = size
        self._fresh.append(msg)
        return self.pending() == 1 or self.events.total > before

    def receive_all(self, msgs: list[Msg], now: float) -> bool:
        if HAS_MEMORY:
            self._put_back()
        # A message without headers is not a status. 0.6 us a message, not 1.8.
        size = self._bytes + _size(msgs)
        count = self.pending()
        full = 0 < self._max_messages < count + len(msgs) or 0 < self._max_bytes < size
        before = self.events.total
        if full or [msg for msg in msgs if msg.raw_headers is not None]:
            return super().receive_all(msgs, now)
        if not self.policy.admit_all(msgs):
            return super().receive_all(msgs, now)
        self._hear(now)
        self._bytes = size
        self._fresh += msgs
        return not count or self.events.total > before

    def handle_timer(self, now: float) -> bool:
        before = self.events.total
        ready = self.policy.ready
        if self._active:
            self.policy.handle_timer(now)
        new = self.policy.ready and not ready and self._use(now)
        due = self._heard + self._silence + self._extra
        if self._watching and now >= due:
            if now - due > LATE and not self._grace_used:
                self._grace_used = True  # D-PUSH-4: messages may have arrived and wait to be read
                self._postpone(now + self._heartbeat)
            else:
                self._postpone(now + self._repeat)
                self._repeat = min(2 * self._repeat, max(LONGEST_REPEAT, self._heartbeat))
                text = "the server was silent for %.3g s" % (now - self._heard)
                self._alarm(HeartbeatMissed(text), now)
        return self._follow() or new or self.events.total > before

    # The policy

    def _refuse(self, msg: Msg, verdict: str, now: float) -> bool:
        """Handle a verdict other than KEEP."""
        if verdict is CONTROL:
            return self._control(msg, now)
        if verdict is GAP:
            return self._lose(self.policy.gap(msg), now)
        if verdict is FULL:
            self.dropped += 1
            self.drop()
        if verdict is SKIP or (verdict is FULL and not self.policy.recreates):
            self._hear(now)
        return False

    def _use(self, now: float) -> bool:
        """Process the messages that arrived from a consumer before it was ready."""
        self._hear(now)
        for msg in self.policy.take_early():
            self.receive(msg, now)
        self._set_deadline()
        return True

    def _lose(self, error: NatsError, now: float) -> bool:
        """Have the policy replace the lost consumer; return False if it cannot."""
        if not self._active or not self.policy.lost(error, now):
            return False
        self._forget_requests()
        self._follow()
        return True

    def _follow(self) -> bool:
        """Apply the policy's effects and its error; return True if the subscription ended."""
        self._collect_effects()
        error = self.policy.error
        if error is not None:
            return self._fail(error)
        self._set_deadline()
        return False

    def _collect_effects(self) -> None:
        effects = self.policy.take_effects()
        subject = self.policy.subject
        if subject and self.subject != subject:
            self.subject = subject
            self.effects.append(Resubscribe())  # ORDPUSH-2
        self.effects.extend(effects)

    def _forget_requests(self) -> None:
        """D-ORDPUSH-7: flow control of an earlier consumer is no longer answered."""
        self._requests = []
        self._answered = b""

    # How it works

    @property
    def _active(self) -> bool:
        return not (self.stopped or self.draining or self.ended)

    @property
    def _watching(self) -> bool:
        active = self._active and self._online and self._heartbeat > 0
        return active and self.policy.ready

    def _set_deadline(self) -> None:
        self.deadline: float | None = (
            self._heard + self._silence + self._extra if self._watching else None
        )
        due = self.policy.due
        if due is not None and self._active:
            self.wake_by(due)

    def _hear(self, now: float) -> None:  # PUSH-2, RUN-8
        """Note a sign of life. The deadline is left as it is: it fires too early, once.

        After an alarm it would fire too late.
        """
        self._heard = now
        if self._extra:
            self._extra = 0.0
            self._repeat = self._first_repeat
            self._grace_used = False
            self._set_deadline()

    def _postpone(self, alarm: float) -> None:  # D-PUSH-18
        self._extra = alarm - self._heard - self._silence

    def _alarm(self, error: NatsError, now: float) -> None:
        if not self._lose(error, now):
            self.events.add(PushWarning(error))

    def _control(self, msg: Msg, now: float) -> bool:  # PUSH-12
        """Handle a message from the server itself, which is never delivered to the user."""
        policy = self.policy
        if policy.recreates and not self._active:
            return False
        if not policy.ready:
            before = self.events.total
            policy.receive(msg, now)
            return self._use(now) if policy.ready else self._follow() or self.events.total > before
        self._hear(now)
        if not msg.status or msg.data:
            return False
        if msg.status != IDLE:
            return self._status(Status(msg), now)
        if msg.raw_reply:
            self._request(msg.raw_reply, now)
            return False
        block = msg.raw_headers or b""
        stalled = header_value(block, STALLED)  # PUSH-8
        # Anyone may have written this: it must fit in a PUB.
        if len(stalled.split()) == 1 and len(stalled) <= _LONGEST_SUBJECT:
            self._request(stalled, now)
        last = header_value(block, LAST)
        if not is_number(last):
            return False
        return self._beat(int(last), now)

    def _beat(self, last: int, now: float) -> bool:
        before = self.events.total
        missed = self.policy.heartbeat(last)
        if missed is not None:
            return self._lose(missed, now)
        return self.events.total > before

    def _status(self, status: Status, now: float) -> bool:  # ORDPUSH-8
        if self.policy.loses(status):
            return self._lose(status.error, now)
        if status.meaning == RETRY:
            self.events.add(PushWarning(status.error))
            return True
        if isinstance(status.error, (ConsumerDeleted, ConsumerUnavailable)):
            return self._fail(status.error)
        return self._fail(UnknownStatus(status.code, status.description))

    def _fail(self, error: NatsError) -> bool:
        self.start_draining()
        self.leave()
        return self.end(error)

    def _request(self, subject: bytes, now: float) -> None:
        """Answer a flow control request once all messages before it were taken (PUSH-7)."""
        if not subject.startswith(FLOW_CONTROL):
            return  # D-PUSH-17: a message must not make this client publish elsewhere
        if any(subject == known for known, _ in self._requests):
            return
        if subject == self._answered and now - self._answered_at < self._heartbeat:
            return  # PUSH-9: the heartbeat may have crossed the answer
        position = self._taken + self.pending()
        if self._requests and self._requests[-1][1] == position:
            self._requests.pop()  # the server accepts only the newest
        self._requests.append((subject, position))
        self._answer(now)

    def _answer(self, now: float) -> None:
        while self._requests and self._requests[0][1] <= self._taken:
            self._answered = self._requests.pop(0)[0]
            self._answered_at = now
            if not self.ended:
                self.emit(self._answered, b"", b"")


def _size(msgs: list[Msg]) -> int:
    return sum([msg.size for msg in msgs])


def header_value(block: bytes, name: bytes) -> bytes:
    """Return the value of a header, read from the block; b"" if there is none."""
    start = block.find(name)
    if start < 0:
        return b""
    start += len(name)
    return block[start : block.find(b"\r", start)].strip()
