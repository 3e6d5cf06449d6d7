"""Ordered: consume() over consumers that are made anew: each message once, in order, without gaps.

It is a Consume (pull/consume.py) whose consumer is at times not there. Recreator (recreate.py)
makes the next one; while it does, nothing is pulled. What is in the buffer stays there, for it was
in order; what the lost consumer still sends is dropped. The consumer is lost by

    a gap                   a message whose number is not the next, or a heartbeat with a higher one
    silence                 for two heartbeats
    409 Consumer Deleted    somebody deleted it, or the stream
    409 Server Shutdown     it lives in the memory of that server
    503                     it is not there: deleted, inactive for long, or its server was restarted
    disconnected            what was on its way is lost

    not by a change of leader, which does not concern its memory, nor by what else ends a pull

Each time the user is notified (ConsumerReset), and also if the stream is not the same any more
(StreamRecreated, cursor.py). It ends only by what ends Consume, by an error that creating another
consumer would meet again, and after `max_attempts` tries in a row.
"""

from __future__ import annotations

from jetstream.errors import ConsumerDeleted, MessagesMissed
from jetstream.events import ConsumerReset
from jetstream.machine.status import ABSENT, RETRY, header_number
from jetstream.pull.consume import Consume
from jetstream.pull.ledger import counted_size
from natsproto.errors import ConnectionLost
from natsproto.wire.text import cut_middle, shorten

from .cursor import GAP, NEXT, SEEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jetstream.machine.status import Status
    from jetstream.pull.ledger import Pull, PullTemplate
    from natsproto.errors import NatsError
    from natsproto.wire.frames import Msg

    from .recreate import Recreator

LAST_CONSUMER = b"\r\nNats-Last-Consumer: "


class Ordered(Consume):
    """`recreator` has the cursor; its consumer may be there already."""

    __slots__ = ("_cursor", "_subject", "recreator")

    def __init__(
        self,
        inbox: bytes,
        template: PullTemplate,
        recreator: Recreator,
        *,
        max_messages: int = 0,
        max_bytes: int = 0,
        threshold: int,
        stop_after: int = 0,
    ) -> None:
        super().__init__(
            inbox,
            template,
            max_messages=max_messages,
            max_bytes=max_bytes,
            threshold=threshold,
            stop_after=stop_after,
        )
        self.recreator = recreator
        self._cursor = recreator.cursor
        self._subject = template.subject  # of pulls, but for the name at its end

    # What the API does

    def stop(self) -> list[Msg]:
        self.rewind()
        return super().stop()

    def rewind(self) -> None:
        """ORDERED-19: let the next use of this cursor start with what was not taken."""
        for msg in self._batch[::-1] + self._fresh:
            if self._cursor.rewind(msg.raw_reply):
                return

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
        super().disconnected(now)

    def end(self, error: NatsError | None = None) -> bool:
        self.recreator.close()
        if self.leaving or self.draining:
            self._order_all()  # ORDERED-12
        return super().end(error)

    def receive(self, msg: Msg, now: float) -> bool:
        if msg.raw_subject.startswith(self._prefix) and not msg.raw_reply:
            token = msg.raw_subject[len(self._prefix) :]
            if token[:1] in (b"c", b"s", b"x"):
                return self._active and self._follow(self.recreator.receive(msg, now), now)
            # What becomes of the pulls of the consumer before says nothing about this one.
            return self.ledger.knows(token) and super().receive(msg, now)
        if not self._has_room(counted_size(msg, False) if self._by_bytes else 0):
            return False  # CONSUME-27: before it counts as delivered, so that it shows as a gap
        verdict = self._cursor.admit(msg.raw_reply)
        if verdict == NEXT:
            self.recreator.proved()
            return super().receive(msg, now)
        if verdict == SEEN:
            self._pass_over(msg, now)
        elif verdict == GAP:
            text = "not the next message after %d of consumer %s: %s"
            name = shorten(self._cursor.name)
            known = (self._cursor.consumer_seq, name, cut_middle(repr(msg.raw_reply)))
            return self._reset(MessagesMissed(text % known), now)
        return False

    def handle_timer(self, now: float) -> bool:
        failure = self.recreator.handle_timer(now) if self._active else None
        new = super().handle_timer(now)
        return self._follow(failure, now) or new

    # How it works

    def _reset(self, error: NatsError, now: float) -> bool:
        """The consumer is lost."""
        if not self._active:
            return False
        self.ledger.clear()
        self.tell(ConsumerReset(error))  # ORDERED-14
        self.recreator.reset(error, now)
        self._follow(None, now)
        return True

    def _follow(self, failure: NatsError | None, now: float) -> bool:
        """Do what the recreator wants; emit its events, and why it failed if it did."""
        told = self._told
        self._order_all()
        for event in self.recreator.take_events():
            self.tell(event)
        if failure is not None:
            self.tell(ConsumerReset(failure))
        if self.recreator.error is not None:
            return super()._failed(self.recreator.error, now)
        self._refill(now)
        self._set_deadline()
        return self._told > told

    def _order_all(self) -> None:
        for order in self.recreator.take_orders():
            self.order(*order)

    def _pass_over(self, msg: Msg, now: float) -> None:
        """It was asked for and came; only, the user has had it."""
        self.recreator.proved()
        self._silent_at = now + self._silence
        self._progressed = True
        self.ledger.delivered(counted_size(msg, False) if self._by_bytes else 0)
        if not self.ledger.open:
            self._refill(now)

    def _refill(self, now: float) -> None:
        if self._cursor.ready:
            super()._refill(now)
        else:
            self._waiting = False
            self._free_pops = 0

    def _pull(self, batch: int, size: int, now: float) -> None:
        self._template.subject = self._subject + self._cursor.name.encode()
        super()._pull(batch, size, now)

    def _set_deadline(self) -> None:
        super()._set_deadline()
        if self._active and self.recreator.due is not None:
            self.wake_by(self.recreator.due)

    def _missed(self, error: NatsError, now: float) -> None:
        self._reset(error, now)

    def _beat(self, msg: Msg, now: float) -> bool:
        self.recreator.proved()
        last = header_number(msg.raw_headers or b"", LAST_CONSUMER)
        if last is not None and last > self._cursor.consumer_seq:
            # ORDERED-13: it was delivered, and got lost between two servers.
            text = "consumer %s is at %d, but %d arrived last"
            known = (shorten(self._cursor.name), last, self._cursor.consumer_seq)
            return self._reset(MessagesMissed(text % known), now)
        return super()._beat(msg, now)

    def _failed(self, error: NatsError, now: float) -> bool:
        if isinstance(error, ConsumerDeleted):
            return self._reset(error, now)
        return super()._failed(error, now)

    def _ended(self, pull: Pull, status: Status, now: float) -> None:
        shutdown = status.meaning == RETRY and "shutdown" in status.description.lower()
        if shutdown or status.meaning == ABSENT:
            self._reset(status.error, now)
            return
        if status.meaning != RETRY:
            self.recreator.proved()
        super()._ended(pull, status, now)
