"""PushInOrder: the policy of an ordered push subscription (ADR-17).

A server delivers only if a client is subscribed to exactly that subject; a wildcard is not enough.
So the subscription moves with the consumers to `<inbox>.d<serial>`, which receives

    the responses to the creation of the consumer, and to STREAM.INFO
    its heartbeats, flow control, statuses
    its messages, under the stream's subject; their reply subject names the consumer

A push consumer delivers as soon as it is created, so its first messages may arrive before the
response to its creation: they are set aside until then (D-ORDPUSH-4).
"""

from __future__ import annotations

from jetstream.machine.policy import CONTROL, STALE
from natsproto.connection.waitable import NO_RESPONDERS

from .policy import InOrder
from .recreate import CHECKING, CREATING

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.connection.effects import MachineEffect
    from natsproto.errors import NatsError
    from natsproto.wire.frames import Msg

    from .recreate import Recreator

_HEARTBEAT_STATUS = 100
# Bytes that may be set aside until the response to a creation: the server stalls at 2 MiB.
MAX_EARLY = 8 * 1024 * 1024


class PushInOrder(InOrder):
    """InOrder for push consumers. The machine must be subscribed to `subject`."""

    __slots__ = ("_early", "_prefix", "early_bytes", "subject")

    def __init__(self, inbox: bytes, recreator: Recreator) -> None:
        super().__init__(recreator)
        self._prefix = inbox + b"."
        self.subject: bytes = inbox + b".d1"
        self._early: list[Msg] = []  # from a consumer that is not ready yet
        self.early_bytes: int = 0

    def admit(self, msg: Msg, room: bool) -> str:
        if msg.raw_subject.startswith(self._prefix):
            return CONTROL if msg.raw_subject == self.subject else STALE  # ORDPUSH-3
        if not self.cursor.ready:
            self._set_aside(msg)
            return STALE
        return InOrder.admit(self, msg, room)  # 0.1 us less than by super() (D-ORDPUSH-6)

    def admit_all(self, msgs: list[Msg]) -> bool:
        return False  # some of them may be responses

    def is_gap(self, last: int) -> bool:
        return last != self.cursor.consumer_seq

    def lost(self, error: NatsError, now: float) -> bool:
        self.take_early()
        return super().lost(error, now)

    def disconnected(self, active: bool) -> bool:
        reported = super().disconnected(active)
        self.take_early()
        return reported

    def receive(self, msg: Msg, now: float) -> None:
        early = msg.status == _HEARTBEAT_STATUS and not msg.data
        if self.recreator.state == CHECKING:
            # A status other than the response is set aside, too (D-ORDPUSH-12).
            early = msg.status > 0 and msg.status != NO_RESPONDERS and not msg.data
        if early:
            self._set_aside(msg)
        else:
            super().receive(msg, now)

    def take_early(self) -> list[Msg]:
        early = self._early
        self._early = []
        self.early_bytes = 0
        return early

    def take_effects(self) -> list[MachineEffect]:
        recreator = self.recreator
        if recreator.state == CREATING and self.subject != recreator.deliver_subject:
            self.take_early()
            self.subject = recreator.deliver_subject
        return super().take_effects()

    def _set_aside(self, msg: Msg) -> None:
        size = self.early_bytes + msg.size
        if self.recreator.state in (CREATING, CHECKING) and size <= MAX_EARLY:
            self._early.append(msg)
            self.early_bytes = size
