"""OrderedPush: a push subscription over consumers that are made anew (ADR-17).

It is a Push (push/machine.py) that gets each message once, in order, without gaps: what a Push only
reports ends the consumer here, and Recreator (recreate.py) makes the next one. The queue stays as
it is, for it was in order.

A server delivers only where somebody is subscribed to just that subject; a wildcard does not do. So
the subscription moves with the consumers, to `<inbox>.d<serial>`, which gets

    the answer to the creation of the consumer
    its heartbeats, flow control, statuses
    its messages, under the stream's subject; their reply subject names the consumer

The consumer is lost by a gap, by silence, by 409 Consumer Deleted and Server Shutdown, by 503, and
with the connection. A push consumer begins when it is made, so its first messages may be here
before the answer to its creation: they wait for it, aside (ORDPUSH-4).
"""

from __future__ import annotations

from jetstream.errors import ConsumerDeleted, MessagesMissed
from jetstream.events import ConsumerReset
from jetstream.machine.status import ABSENT, RETRY
from jetstream.push.machine import ALARM_AFTER, IDLE, Push
from natsproto.connection.waitable import NO_RESPONDERS
from natsproto.errors import ConnectionLost
from natsproto.wire.text import cut_middle, shorten

from .cursor import GAP, NEXT, STALE
from .recreate import CHECKING, CREATING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from jetstream.machine.status import Status
    from natsproto.errors import NatsError
    from natsproto.wire.frames import Msg

    from .recreate import Recreator

HEARTBEAT = 5.0
_SECOND = 10**9
# Bytes that may wait for the answer to a creation: the server stalls at 2 MiB.
MAX_EARLY = 8 * 1024 * 1024


def ordered_config(config: dict[str, Any], heartbeat: float = HEARTBEAT) -> dict[str, Any]:
    """The server's JSON of a configuration, with all that an ordered push consumer has (ADR-17)."""
    forced = dict(config)
    forced["flow_control"] = True
    forced["idle_heartbeat"] = round(heartbeat * _SECOND)
    forced["ack_policy"] = "none"
    forced["ack_wait"] = 22 * 3600 * _SECOND
    forced["max_deliver"] = 1
    forced["mem_storage"] = True
    forced["num_replicas"] = 1
    return forced


class OrderedPush(Push):
    """`recreator` makes the consumers, for this inbox. To be subscribed to `subject`."""

    __slots__ = (
        "_early",
        "_early_bytes",
        "_cursor",
        "_prefix",
        "last_failure",
        "recreator",
    )

    def __init__(
        self,
        inbox: bytes,
        recreator: Recreator,
        *,
        heartbeat: float = HEARTBEAT,
        alarm_after: float = ALARM_AFTER,
        max_messages: int | None = None,
        max_bytes: int | None = None,
    ) -> None:
        super().__init__(
            heartbeat=heartbeat,
            alarm_after=alarm_after,
            flow_control=True,
            ack_none=True,
            max_messages=max_messages,
            max_bytes=max_bytes,
        )
        self._prefix = inbox + b"."
        self.recreator = recreator
        self._cursor = recreator.cursor
        self._early: list[Msg] = []  # of a consumer whose creation is not yet answered
        self._early_bytes = 0
        #: Why the last try to make a consumer had no success.
        self.last_failure: NatsError | None = None

    @property
    def begun(self) -> bool:
        """Whether there was a consumer at all."""
        return self._cursor.info is not None

    # What the connection tells

    def connected(self, now: float) -> None:
        super().connected(now)
        if self._active:
            self.recreator.connected(now)
            self._follow(None, now)

    def disconnected(self, now: float) -> None:
        if self._active and self._cursor.ready:
            self.tell(ConsumerReset(ConnectionLost("the connection was lost")))
            self.ready.append(self)
        self.recreator.disconnected()
        self._forget()
        super().disconnected(now)

    def end(self, error: NatsError | None = None) -> bool:
        self.recreator.close()
        if self.leaving or self.draining:
            self._order_all()
        return super().end(error)

    def receive(self, msg: Msg, now: float) -> bool:
        if msg.raw_subject.startswith(self._prefix):
            return self._active and self._private(msg, now)
        if not self._cursor.ready:
            self._set_aside(msg)
            return False
        if not self._has_room(msg):
            return False
        verdict = self._cursor.admit(msg.raw_reply)
        if verdict == STALE:
            return False
        if verdict == GAP:
            text = "not the next message after %d of consumer %s: %s"
            name = shorten(self._cursor.name)
            known = (self._cursor.consumer_seq, name, cut_middle(repr(msg.raw_reply)))
            return self._reset(MessagesMissed(text % known), now)
        self._hear(now)
        self.recreator.proved()
        return verdict == NEXT and self._keep(msg)

    def handle_timer(self, now: float) -> bool:
        there = self._cursor.ready
        failure = self.recreator.handle_timer(now) if self._active else None
        new = self._cursor.ready and not there and self._use(now)
        new = super().handle_timer(now) or new
        return self._follow(failure, now) or new

    # How it works

    @property
    def _watching(self) -> bool:
        return self._cursor.ready and super()._watching

    def _set_deadline(self) -> None:
        super()._set_deadline()
        if self._active and self.recreator.due is not None:
            self.wake_by(self.recreator.due)

    def _private(self, msg: Msg, now: float) -> bool:
        """Something that came to the subject of a consumer, and is no message of the stream."""
        if msg.raw_subject != self.subject:
            return False  # ORDPUSH-3: of a consumer before
        beat = msg.status == IDLE and not msg.data
        if self.recreator.state == CHECKING:
            # A status that is not the response waits, like everything else of this consumer.
            beat = msg.status > 0 and msg.status != NO_RESPONDERS and not msg.data
        if self._cursor.ready:
            self._hear(now)
            return msg.status > 0 and not msg.data and self._control(msg, now)
        if beat:
            self._set_aside(msg)
            return False
        return self._answered_by(msg, now)

    def _set_aside(self, msg: Msg) -> None:
        size = self._early_bytes + msg.size
        if self.recreator.state in (CREATING, CHECKING) and size <= MAX_EARLY:
            self._early.append(msg)
            self._early_bytes = size

    def _answered_by(self, msg: Msg, now: float) -> bool:
        failure = self.recreator.receive(msg, now)
        return self._use(now) if self._cursor.ready else self._follow(failure, now)

    def _use(self, now: float) -> bool:
        """The consumer is there: take what arrived from it before that was known."""
        self._hear(now)
        early = self._early
        self._forget()
        for each in early:
            self.receive(each, now)
        self._set_deadline()
        return True

    def _reset(self, error: NatsError, now: float) -> bool:
        """The consumer is lost."""
        if not self._active:
            return False
        self._forget()
        self.tell(ConsumerReset(error))
        self.recreator.reset(error, now)
        self._follow(None, now)
        return True

    def _forget(self) -> None:
        """What came of the consumer before, and is not in the queue, means nothing any more."""
        self._requests = []
        self._answered = b""
        self._early = []
        self._early_bytes = 0

    def _follow(self, failure: NatsError | None, now: float) -> bool:
        """Do what the recreator wants; emit its events, and why it failed if it did."""
        told = self._told
        self._order_all()
        for event in self.recreator.take_events():
            self.tell(event)
        if failure is not None:
            self.last_failure = failure
            self.tell(ConsumerReset(failure))
        if self.recreator.error is not None:
            return self._fail(self.recreator.error)
        self._set_deadline()
        return self._told > told

    def _order_all(self) -> None:
        subject = self.recreator.deliver_subject
        if self.recreator.state == CREATING and self.subject != subject:
            self._forget()
            self.subject = subject
            self.moving = True  # ORDPUSH-2
        for order in self.recreator.take_orders():
            self.order(*order)

    def _alarm(self, error: NatsError, now: float) -> None:
        self._reset(error, now)

    def _beat(self, last: int, now: float) -> bool:
        self.recreator.proved()
        if last == self._cursor.consumer_seq:
            return False
        text = "consumer %s is at %d, but %d arrived last"
        known = (shorten(self._cursor.name), last, self._cursor.consumer_seq)
        return self._reset(MessagesMissed(text % known), now)

    def _status(self, status: Status, now: float) -> bool:
        shutdown = status.meaning == RETRY and "shutdown" in status.description.lower()
        deleted = isinstance(status.error, ConsumerDeleted)
        if shutdown or deleted or status.meaning == ABSENT:
            return self._reset(status.error, now)
        return super()._status(status, now)
