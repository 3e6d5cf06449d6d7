"""The destination of a subscription's messages: a Mailbox, which queues, or a machine.

Everything with time or concurrency of its own is a machine. Its inputs are messages, the time, and
the state of the connection; its effects are data, which the connection takes and applies at the end
of each input. It does no I/O, reads no clock, and calls neither the connection nor its adapter.
"""

from __future__ import annotations

from .effects import Drop, Publish, Unsubscribe, Wake
from .tokens import Numbers, Tokens
from .waitable import Waitable

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.errors import NatsError
    from natsproto.wire.frames import Msg

    from .effects import MachineEffect


class Receiver(Waitable):
    """The base class of mailboxes and machines.

    `received` counts all messages, `received_before` those before the last SUB; the subscription
    ends when `received` reaches `max_received`. When `ended`, no more messages arrive, and `error`
    says why, unless it was intended. `effects` are those that the connection has not applied yet;
    once `leaving`, the end of the subscription is one of them. `tokens` are for reply subjects, and
    the connection's own as soon as the receiver is subscribed.
    """

    __slots__ = (
        "draining",
        "effects",
        "ended",
        "error",
        "leaving",
        "max_received",
        "queue",
        "received",
        "received_before",
        "sid",
        "subject",
        "tokens",
    )

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
        self.ended: bool = False
        self.error: NatsError | None = None
        self.effects: list[MachineEffect] = []
        self.tokens: Tokens = Numbers()

    # Inputs

    def receive(self, msg: Msg, now: float) -> bool:
        """Accept a message; return True if waiting callers have something new to take."""
        raise NotImplementedError

    def receive_all(self, msgs: list[Msg], now: float) -> bool:
        """Accept several messages that arrived in a row."""
        new = False
        for msg in msgs:
            if self.receive(msg, now):
                new = True
        return new

    def end(self, error: NatsError | None = None) -> bool:
        """Record that no more messages will arrive; return False if that was already known."""
        if self.ended:
            return False
        self.ended = True
        self.error = error
        return True

    def unsent(self, effect: Publish, error: NatsError) -> None:
        """Record that a publish cannot be sent, and why; by default, a deadline reveals it."""

    def connected(self, now: float) -> None:
        """Record that the subscription is active, for the first time or again."""

    def disconnected(self, now: float) -> None:
        """Record that no messages arrive until `connected`."""

    # Outputs

    def pending(self) -> int:
        """Return how many messages wait for the user."""
        raise NotImplementedError

    def take_effects(self) -> list[MachineEffect]:
        """Remove and return the effects for the connection, in order."""
        effects = self.effects
        self.effects = []
        return effects

    # What a machine uses to produce effects

    def emit(self, subject: bytes, data: bytes, reply: bytes, block: bytes | None = None) -> None:
        """Have the connection publish a message."""
        self.effects.append(Publish(subject, data, reply, block))

    def wake(self) -> None:
        """Have waiting callers woken after an input that does not return True."""
        self.effects.append(Wake([self]))

    def drop(self) -> None:
        """Have the connection report that there was no room for a message."""
        self.effects.append(Drop())

    def leave(self) -> None:
        """Have the connection end the subscription."""
        if not self.leaving:
            self.leaving = True
            self.effects.append(Unsubscribe())

    def wake_by(self, deadline: float) -> None:
        """Request `handle_timer` at that time, unless it is due earlier."""
        if self.deadline is None or deadline < self.deadline:
            self.deadline: float | None = deadline


class Mailbox(Receiver):  # SUB-5, SUB-7
    """A bounded queue of messages. Those that do not fit are dropped, counted and reported.

    Two lists instead of a deque, which needs a fixed length on MicroPython: messages are appended
    to `fresh`; when `batch` is empty, `fresh` is reversed and takes its place.
    """

    __slots__ = ("batch", "bytes", "dropped", "fresh", "max_bytes", "max_msgs")

    def __init__(self, max_msgs: int, max_bytes: int) -> None:
        super().__init__()
        self.max_msgs: int = max_msgs
        self.max_bytes: int = max_bytes
        self.bytes: int = 0
        self.dropped: int = 0
        self.fresh: list[Msg] = []
        self.batch: list[Msg] = []

    def receive(self, msg: Msg, now: float) -> bool:
        fresh = self.fresh
        count = len(fresh) + len(self.batch)
        size = self.bytes + msg.size
        if size > self.max_bytes or count >= self.max_msgs:
            self.dropped += 1
            self.drop()
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
        self.fresh += msgs
        return not count

    def pop(self) -> Msg:
        """Remove and return the oldest message; raise IndexError if there is none."""
        if not self.batch:
            self.batch, self.fresh = self.fresh, self.batch
            self.batch.reverse()
        msg = self.batch.pop()
        self.bytes -= msg.size
        return msg

    def pending(self) -> int:
        return len(self.batch) + len(self.fresh)
