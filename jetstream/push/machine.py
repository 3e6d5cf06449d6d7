"""Push: the machine behind a push subscription (ADR-15), which the server fills by itself.

    message      to the user's queue, unless that is full: then it is dropped, counted, reported.
                 Stored messages have a `$JS.ACK.` reply; anyone may have stored a status line
    heartbeat    nothing was missed, if its last consumer sequence is the last one seen
    flow control answered when every message before it was taken
    silence      for three heartbeats, and then each one more: the user is told
    disconnected silence is no news; what was sent to nobody shows as a gap afterwards

    last         the consumer's sequence of the last message that was queued; None: not known
    sequence     last + 1: all is well. More: a gap. Less: the consumer counts anew

A consumer numbers its deliveries, not its messages: what it delivers again has a number of its own.

Flow control: the server sends up to a window, then a request, and stalls until the request is
answered. The answer says that there is room again, so it waits until the user has come that far.
Should a request get lost, heartbeats name it; should the answer get lost, they name it still.

Silence proves nothing if nobody has read, as in pull/consume.py: a timer that rings late gives the
server one more heartbeat (PUSH-4).
"""

from __future__ import annotations

from jetstream.api.metadata import is_number, read_consumer_seq
from jetstream.errors import ConsumerDeleted, ConsumerUnavailable, HeartbeatMissed, UnknownStatus
from jetstream.events import ConsumerSequenceReset, Gap, PushWarning
from jetstream.machine.iteration import Source
from jetstream.machine.status import RETRY, Status
from jetstream.pull.fetch import LATE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from natsproto.errors import NatsError
    from natsproto.wire.frames import Msg

ALARM_AFTER = 3
# As for subscriptions of the connection (Options.max_msgs, max_bytes).
MAX_MESSAGES = 65536
MAX_BYTES = 64 * 1024 * 1024

IDLE = 100
LAST = b"\r\nNats-Last-Consumer: "
STALLED = b"\r\nNats-Consumer-Stalled: "
FLOW_CONTROL = b"$JS.FC."
_LONGEST_SUBJECT = 2048


class Push(Source):
    """A queue that the server fills. The API takes messages with `pop`, which may order an answer.

    `connected` is to be told when the consumer exists: from then on heartbeats are expected.
    `last` is the consumer's last sequence, where that is known: 0 if it was made for this.
    `max_messages` and `max_bytes` limit the queue; None: the default, 0: no limit. With flow
    control the server has a limit of its own, so by default messages are not counted then.
    """

    __slots__ = (
        "_answered",
        "_answered_at",
        "_bytes",
        "_grace_used",
        "_extra",
        "_heard",
        "_heartbeat",
        "_last",
        "_max_bytes",
        "_max_messages",
        "_online",
        "_queue_group",
        "_requests",
        "_silence",
        "_count_only",
        "_taken",
        "ack_none",
        "dropped",
    )

    def __init__(
        self,
        *,
        heartbeat: float = 0.0,
        alarm_after: float = ALARM_AFTER,
        flow_control: bool = False,
        queue: bool = False,
        ack_none: bool = False,
        max_messages: int | None = None,
        max_bytes: int | None = None,
        last: int | None = None,
    ) -> None:
        super().__init__()
        if max_messages is None:
            max_messages = 0 if flow_control else MAX_MESSAGES
        self._max_messages = max_messages
        self._max_bytes = MAX_BYTES if max_bytes is None else max_bytes
        self._heartbeat = heartbeat
        self._silence = alarm_after * heartbeat
        self._queue_group = queue
        # Whether the numbers of messages are all that counts: heirs look at each of them.
        self._count_only = type(self) is Push and not queue
        self._last = last
        self._online = False
        self._heard = 0.0
        self._extra = 0.0  # how much later than usual the next alarm is
        self._grace_used = False
        self._taken = 0
        self._bytes = 0
        # Flow control: where to answer, when so many messages were taken.
        self._requests: list[tuple[bytes, int]] = []
        self._answered = b""
        self._answered_at = 0.0
        self.ack_none = ack_none
        self.dropped = 0

    # What the API does

    def pop(self, now: float) -> Msg:
        msg = super().pop(now)
        self._bytes -= msg.size
        self._taken += 1
        if self._requests:
            self._answer(now)
        return msg

    def at_hand(self) -> Msg | None:
        if not self._batch or self._requests or self.ended:
            return None
        msg = self._batch.pop()
        self._bytes -= msg.size
        self._taken += 1
        return msg

    def stop(self) -> list[Msg]:
        self._bytes = 0
        self._requests = []
        return super().stop()

    def start_draining(self) -> None:
        super().start_draining()
        self._set_deadline()

    # What the connection tells

    def connected(self, now: float) -> None:
        self._online = True
        self._heard = now
        self._extra = 0.0
        self._grace_used = False
        self._answered = b""  # it may be lost with the connection
        self._set_deadline()
        self.busy.append(self)

    def disconnected(self, now: float) -> None:
        # PUSH-3: silence is no news without a connection.
        self._online = False
        self._set_deadline()

    def end(self, error: NatsError | None = None) -> bool:
        new = super().end(error)
        self._set_deadline()
        return new

    def receive(self, msg: Msg, now: float) -> bool:
        self._hear(now)
        if msg.raw_headers is not None and is_control(msg):
            return self._control(msg, now)
        if not self._has_room(msg):
            return False
        new = False
        if not self._queue_group:
            number = read_consumer_seq(msg.raw_reply)
            if number is not None:
                new = self._note(number, number - 1)
        return self._keep(msg) or new

    def receive_all(self, msgs: list[Msg], now: float) -> bool:
        # What has no headers is no status. 0.6 us a message, not 1.8.
        size = self._bytes + sum([msg.size for msg in msgs])
        count = self.pending()
        full = 0 < self._max_messages < count + len(msgs) or 0 < self._max_bytes < size
        if full or not self._count_only or [msg for msg in msgs if msg.raw_headers is not None]:
            return super().receive_all(msgs, now)
        self._hear(now)
        told = self._told
        for msg in msgs:
            number = read_consumer_seq(msg.raw_reply)
            if number is not None:
                if number - 1 == self._last:
                    self._last = number
                else:
                    self._note(number, number - 1)
        self._bytes = size
        self._fresh += msgs
        return not count or self._told > told

    def handle_timer(self, now: float) -> bool:
        told = self._told
        due = self._heard + self._silence + self._extra
        if self._watching and now >= due:
            self._extra = now + self._heartbeat - self._heard - self._silence
            if now - due > LATE and not self._grace_used:
                self._grace_used = True  # PUSH-4: what came meanwhile may still wait to be read
            else:
                text = "the server was silent for %.3g s" % (now - self._heard)
                self._alarm(HeartbeatMissed(text), now)
        self._set_deadline()
        return self._told > told

    # How it works

    @property
    def _active(self) -> bool:
        return not (self.stopped or self.draining or self.ended)

    @property
    def _watching(self) -> bool:
        return self._active and self._online and self._heartbeat > 0

    def _set_deadline(self) -> None:
        self.deadline = self._heard + self._silence + self._extra if self._watching else None

    def _hear(self, now: float) -> None:
        """A sign of life. The deadline is left as it is: it rings too early, once."""
        self._heard = now
        if self._extra:
            self._extra = 0.0
            self._grace_used = False

    def _alarm(self, error: NatsError, now: float) -> None:
        self.tell(PushWarning(error))

    def _has_room(self, msg: Msg) -> bool:
        """PUSH-11: what is dropped shows as a gap as soon as something else comes."""
        full = 0 < self._max_messages <= self.pending()
        if full or 0 < self._max_bytes < self._bytes + msg.size:
            self.dropped += 1
            self.dropping.append(self)
            return False
        return True

    def _keep(self, msg: Msg) -> bool:
        self._bytes += msg.size
        self._fresh.append(msg)
        return self.pending() == 1

    def _note(self, number: int, expected: int) -> bool:
        """The consumer is at this sequence; `expected` was the last one if nothing was missed."""
        last = self._last
        self._last = number
        if last is None or last == expected:
            return False
        if last < expected:
            self.tell(Gap(last + 1, expected))
        else:
            self.tell(ConsumerSequenceReset(last, number))
        return True

    def _control(self, msg: Msg, now: float) -> bool:
        """A status is never for the user, whatever it says."""
        if msg.status != IDLE:
            return self._status(Status(msg), now)
        if msg.raw_reply:
            self._request(msg.raw_reply, now)
            return False
        block = msg.raw_headers or b""
        stalled = header_value(block, STALLED)
        # Anybody may have written this: it must do in a PUB.
        if len(stalled.split()) == 1 and len(stalled) <= _LONGEST_SUBJECT:
            self._request(stalled, now)
        last = header_value(block, LAST)
        if not is_number(last):
            return False
        return self._beat(int(last), now)

    def _beat(self, last: int, now: float) -> bool:
        return not self._queue_group and self._note(last, last)

    def _status(self, status: Status, now: float) -> bool:
        if status.meaning == RETRY:
            self.tell(PushWarning(status.error))
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
            return  # PUSH-17: this client publishes nowhere else on a message's say-so
        if any(subject == known for known, _ in self._requests):
            return
        if subject == self._answered and now - self._answered_at < self._heartbeat:
            return  # PUSH-9: this one may have crossed the answer
        position = self._taken + self.pending()
        if self._requests and self._requests[-1][1] == position:
            self._requests.pop()  # the server knows only the newest
        self._requests.append((subject, position))
        self._answer(now)

    def _answer(self, now: float) -> None:
        while self._requests and self._requests[0][1] <= self._taken:
            self._answered = self._requests.pop(0)[0]
            self._answered_at = now
            if not self.ended:
                self.order(self._answered, b"", b"")


def is_control(msg: Msg) -> bool:
    """Return whether the server itself sent this: a heartbeat, flow control or another status.

    PUSH-16: servers before 2.12.6 deliver stored status lines as they are. Only the reply subject
    tells a stored message from a status.
    """
    if msg.data or not msg.status:
        return False
    return not msg.raw_reply or msg.raw_reply.startswith(FLOW_CONTROL)


def header_value(block: bytes, name: bytes) -> bytes:
    """The value of a header of the server, straight from the block; b"" if there is none."""
    start = block.find(name)
    if start < 0:
        return b""
    start += len(name)
    return block[start : block.find(b"\r", start)].strip()
