"""Consumers of a simulated stream: a position, filters, and the engine of a model.

Pulls, statuses and heartbeats are those of pull_model.Model; pushes and flow control those of
push_model.PushConsumer. Transcripts of a real server prove both. What is added here is a stream
that several consumers read, each with its own state.

Modeled: filters, the deliver policies, ack policies none, explicit and all, ack_wait and backoff,
max_deliver, max_ack_pending, NAK with a delay, TERM, WPI, heartbeats, flow control, headers_only,
the limits of pulls, inactive_threshold. Not modeled: priority groups, replay, rate limits, samples.
"""

from __future__ import annotations

import json

from jetstream.schema.timestamp import Timestamp
from natsproto.testing.sim.port import EPOCH, NANO

from .pull_model import Model, Stored
from .push_model import Copy, PushConsumer, PushModel

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from natsproto.testing.sim.peer import Peer

    from .pull_model import Clock, Request
    from .stream import StoredMessage, Stream

#: The inactive_threshold of consumers without a durable name.
EPHEMERAL = 5.0
_ACK_WAIT = 30.0


class Position:
    """Where a consumer is in its stream: which messages are left, and which is the next one."""

    def __init__(self, stream: Stream, config: dict[str, Any]) -> None:
        self.stream: Stream = stream
        self.filters: list[str] = list(config.get("filter_subjects") or [])
        if config.get("filter_subject"):
            self.filters = [config["filter_subject"]]
        self.headers_only: bool = bool(config.get("headers_only"))
        #: Whether too few pending messages are reported, as servers do during writes: on messages
        #: often, in the response to CONSUMER.CREATE once in 1,500 times.
        self.miscounts: bool = False
        #: The sequences to deliver before all others: those of last_per_subject.
        self.first: list[int] = []
        self.next: int = self._start(config)
        self._early: tuple[int, int] = (stream.last_seq + 1, self.next)  # stored later, not wanted
        #: The sequence of the last message that was taken; at first the one before all others.
        self.last: int = (self.first[0] if self.first else self.next) - 1
        self._taken: list[int] = [self.last if stream.release.starts_floor else 0]

    def _start(self, config: dict[str, Any]) -> int:
        stream = self.stream
        policy = config.get("deliver_policy", "all")
        if policy == "all":
            return 1
        if policy == "new":
            return stream.last_seq + 1
        if policy == "by_start_sequence":
            start: int = config["opt_start_seq"]
            return min(start, stream.last_seq + 1) if stream.release.moves_start else start
        if policy == "by_start_time":
            start_ns = Timestamp.parse(config["opt_start_time"]).ns
            later = [each.seq for each in stream.messages if each.time_ns >= start_ns]
            return later[0] if later else stream.last_seq + 1
        found = stream.last(self.filters)
        if policy == "last":
            return found[-1].seq if found else stream.last_seq + 1
        self.first = [each.seq for each in found]
        return stream.last_seq + 1

    def peek(self) -> StoredMessage | None:
        """Return the next message; None if there is none yet."""
        while self.first:
            message = self.stream.at(self.first[0])
            if message is not None:
                return message
            self.first.pop(0)
        return self.stream.following(self.filters, self.next)

    def take(self, seq: int) -> None:
        """Move past the message that `peek` returned."""
        self.last = seq
        self._taken.append(seq)
        if self.first and self.first[0] == seq:
            self.first.pop(0)
        else:
            self.next = seq + 1

    def floor(self, pending: list[int]) -> int:
        """Return the last sequence before which no message is pending."""
        if not pending:
            return self._taken[-1]
        least = min(pending)
        return max([seq for seq in self._taken if seq < least])

    @property
    def awaits_early(self) -> bool:
        """Whether the consumer takes a message before its start for one that is pending."""
        first, end = self._early
        if not self.stream.release.counts_early or first >= end:
            return False
        message = self.stream.following(self.filters, first)
        return message is not None and message.seq < end

    @property
    def left(self) -> int:
        """How many messages are still to be delivered for the first time."""
        early = [seq for seq in self.first if self.stream.at(seq) is not None]
        return len(early) + len(self.stream.select(self.filters, self.next))

    @property
    def reported(self) -> int:
        """How many messages are left, by the words of the API."""
        return 0 if self.miscounts else self.left

    def left_after(self, message: Stored) -> int:
        """Return what the delivery of a message says about those that are left."""
        return 0 if self.miscounts else max(0, self.left - (0 if message.count else 1))

    def copy(self, message: StoredMessage) -> Stored:
        """Return the message as the consumer delivers it."""
        block, data = message.block, message.data
        if self.headers_only:
            head = block[:-2] if block else b"NATS/1.0\r\n"
            block = head + b"Nats-Msg-Size: %d\r\n\r\n" % len(data)
            data = b""
        return Stored(message.seq, data, block, message.subject.encode(), message.time_ns)


class StreamPull(Model):
    """A pull consumer."""

    def __init__(self, clock: Clock, stream: Stream, name: str, config: dict[str, Any]) -> None:
        super().__init__(
            clock,
            stream.name,
            max_waiting=config.get("max_waiting") or 512,
            max_ack_pending=config.get("max_ack_pending") or 1000,
            max_batch=config.get("max_batch", 0),
            max_expires=config.get("max_expires", 0) / NANO,
            max_bytes=config.get("max_bytes", 0),
            ack_wait=config.get("ack_wait", _ACK_WAIT * NANO) / NANO,
            release=stream.release,
        )
        self.name: str = name
        self.config: dict[str, Any] = config
        self.stream: Stream = stream
        self.created: float = clock.now
        self.position: Position = Position(stream, config)
        self.start: int = self.position.next
        self.policy: str = config.get("ack_policy", "explicit")
        self.max_deliver: int = config.get("max_deliver", -1)
        backoff: list[int] = config.get("backoff") or []
        self.backoff: list[float] = [each / NANO for each in backoff]
        self.touched: float = clock.now
        #: Called for each message that is sent; returns whether it gets lost on its way.
        self.loses: Callable[[], bool] = lambda: False
        #: Called for a message that is acknowledged for good.
        self.on_acked: Callable[[int], object] = lambda seq: None
        self.ended: int = 0  # messages that are acknowledged
        self._ack = ("$JS.ACK.%s.%s." % (stream.name, name)).encode()
        self._next = ("$JS.API.CONSUMER.MSG.NEXT.%s.%s" % (stream.name, name)).encode()

    def pull(self, peer: Peer | None, reply: bytes, data: bytes) -> None:
        """Handle a pull request."""
        self.touched = self._clock.now
        body = data if data.startswith(b"{") else b'{"batch":%d}' % int(data or b"1")
        super().pull(peer, reply, body)

    @property
    def busy(self) -> bool:
        """Whether a client waits for messages."""
        return any(self._interest(each) for each in self.waiting)

    def _ack_pending(self) -> int:
        return len(self.stored)

    def _deliverable(self) -> Stored | None:
        now = self._clock.now
        for message in list(self.stored):
            if message.due > now:
                continue
            if self.max_deliver > 0 and message.count >= self.max_deliver:
                continue
            if self.stream.at(message.seq) is None:
                self.stored.remove(message)
                continue
            return message
        if self.policy != "none" and self._ack_pending() >= self.max_ack_pending:
            return None
        found = self.position.peek()
        return None if found is None else self.position.copy(found)

    def _left_behind(self, message: Stored) -> int:
        return self.position.left_after(message)

    def _end_once(self) -> None:
        if not self.position.awaits_early:
            super()._end_once()

    def _serve(self, request: Request, message: Stored) -> None:
        before = message.count
        peer = request.peer
        if self.loses():
            request.peer = None
        super()._serve(request, message)
        request.peer = peer
        if message.count == before:
            return  # it did not fit
        self.touched = self._clock.now
        if self.backoff:
            index = min(message.count, len(self.backoff)) - 1
            message.due = self._clock.now + self.backoff[index]
            self._clock.at(message.due, self.pump)
        if not before:
            self.position.take(message.seq)
            if self.policy != "none":
                self.stored.append(message)

    def _last(self) -> int:
        return self.position.last

    def acked(self, seq: int, data: bytes) -> None:
        """Handle an acknowledgment of any kind."""
        self.touched = self._clock.now
        found = [each for each in self.stored if each.seq == seq]
        if self.policy == "all":
            found = [each for each in self.stored if each.seq <= seq]
        for message in found:
            if data.startswith(b"-NAK"):
                message.due = self._clock.now + _delay(data)
                self._clock.at(message.due, self.pump)
            elif data.startswith(b"+WPI"):
                message.due = self._clock.now + self.ack_wait
                self._clock.at(message.due, self.pump)
            else:  # +ACK, an empty one, +TERM
                self.stored.remove(message)
                self.ended += 1
                self.on_acked(message.seq)
        self.pump()

    def info(self) -> dict[str, Any]:
        """Return the part of CONSUMER.INFO that is about the state."""
        floor = self.position.floor([each.seq for each in self.stored])
        return {
            "delivered": {"consumer_seq": self.delivered, "stream_seq": self.position.last},
            "ack_floor": {"consumer_seq": self.ended, "stream_seq": floor},
            "num_ack_pending": len(self.stored),
            "num_redelivered": len([each for each in self.stored if each.count > 1]),
            "num_waiting": len([each for each in self.waiting if self._interest(each)]),
            "num_pending": self.position.reported,
        }

    def end(self, line: str) -> None:
        """End all pulls; they get this status line, unless it is empty."""
        self.step_down([line] if line else [])
        self.exists = False


class StreamPush(PushConsumer):
    """A push consumer."""

    def __init__(self, model: PushModel, stream: Stream, name: str, config: dict[str, Any]) -> None:
        super().__init__(model, name, config)
        self.stream: Stream = stream
        self.created: float = model.now
        self.position: Position = Position(stream, config)
        self.next: int = self.position.next
        self.start: int = self.next
        self.max_deliver: int = config.get("max_deliver", -1)
        self.max_ack_pending: int = config.get("max_ack_pending") or 1000
        self.touched: float = model.now
        self.on_acked: Callable[[int], object] = lambda seq: None

    @property
    def busy(self) -> bool:
        """Whether a client is subscribed."""
        return self._model.listener(self.target) is not None

    def _deliverable(self) -> Stored | None:
        model = self._model
        pending = 0
        for seq, copy in self.copies.items():
            if not copy.acked:
                pending += 1
                again = self.max_deliver <= 0 or copy.count < self.max_deliver
                message = self.stream.at(seq)
                if copy.due <= model.now and again and message is not None:
                    return self.position.copy(message)
        if self.acks and pending >= self.max_ack_pending:
            return None
        found = self.position.peek()
        return None if found is None else self.position.copy(found)

    def _left(self) -> int:
        return self.position.reported

    def _deliver(self, message: Stored) -> None:
        self.touched = self._model.now
        if message.seq not in self.copies:
            self.position.take(message.seq)
        super()._deliver(message)
        self.next = self.position.next

    def acked(self, seq: int, data: bytes) -> None:
        """Handle an acknowledgment of any kind."""
        self.touched = self._model.now
        copy: Copy | None = self.copies.get(seq)
        if copy is None or copy.acked:
            return
        if data.startswith(b"-NAK"):
            copy.due = self._model.now + _delay(data)
            self._model.clock.at(copy.due, self.pump)
        elif data.startswith(b"+WPI"):
            copy.due = self._model.now + self.ack_wait
            self._model.clock.at(copy.due, self.pump)
        else:
            copy.acked = True
            self.on_acked(seq)
        self.pump()

    def info(self) -> dict[str, Any]:
        """Return the part of CONSUMER.INFO that is about the state."""
        pending = [seq for seq in self.copies if not self.copies[seq].acked]
        floor = self.position.floor(pending)
        return {
            "delivered": {"consumer_seq": self.delivered, "stream_seq": self.position.last},
            "ack_floor": {"consumer_seq": 0, "stream_seq": floor},
            "num_ack_pending": len(pending),
            "num_redelivered": len([seq for seq in pending if self.copies[seq].count > 1]),
            "num_waiting": 0,
            "num_pending": self.position.reported,
            "push_bound": self.busy,
        }

    def end(self, line: str) -> None:
        """End the consumer: its client gets no notice, whatever the reason."""
        self.gone = True


def _delay(data: bytes) -> float:
    """Return the delay of a NAK, in seconds."""
    body = data[4:].strip()
    delay: float = json.loads(body).get("delay", 0) / NANO if body else 0.0
    return delay


def stamp(time: float) -> str:
    """Return a simulated time as servers write it."""
    return str(Timestamp(EPOCH + int(time * NANO)))
