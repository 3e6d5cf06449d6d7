"""PlainPush: the policy of a push subscription to a consumer that is not replaced.

A consumer numbers its deliveries, so a number that is skipped is a gap, in messages and in
heartbeats alike:

    last       the consumer's sequence of the last message that was queued; None: not known
    sequence   last + 1: as expected. More: a gap. Less: the consumer counts from the start again

The numbers are those of deliveries, not of messages: a redelivery has a number of its own. In a
queue group each member gets some of the deliveries, so the numbers prove nothing.

With a probe (liveness.py) the consumer is looked up when it may be gone (JSSUB-16): after silence,
or, without heartbeats, after each reconnect.
"""

from __future__ import annotations

from jetstream.api.metadata import read_consumer_seq
from jetstream.events import ConsumerSequenceReset, Gap
from jetstream.machine.policy import CONTROL, FULL, KEEP, Policy
from natsproto.connection.effects import Poke

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.connection.effects import MachineEffect
    from natsproto.errors import NatsError
    from natsproto.wire.frames import Msg

    from .liveness import LivenessProbe

FLOW_CONTROL = b"$JS.FC."


class PlainPush(Policy):
    """Keeps all messages, and reports gaps.

    `last` is the consumer's last sequence, if known; 0 if it was created for this subscription.
    `probe_on_reconnect`: there are no heartbeats, which would show that the consumer is gone.
    """

    __slots__ = (
        "_effects",
        "_probe",
        "_probe_on_reconnect",
        "_queue_group",
        "_reconnects",
        "last",
    )

    def __init__(
        self,
        last: int | None = None,
        queue_group: bool = False,
        probe: LivenessProbe | None = None,
        probe_on_reconnect: bool = False,
    ) -> None:
        super().__init__()
        self.last = last
        self._queue_group = queue_group
        self._probe = probe
        self._probe_on_reconnect = probe_on_reconnect
        self._reconnects = False
        self._effects: list[MachineEffect] = []

    def admit(self, msg: Msg, room: bool) -> str:
        if msg.raw_headers is not None and is_control(msg):
            return CONTROL
        if not room:
            return FULL  # D-PUSH-11: it shows as a gap as soon as another message arrives
        if not self._queue_group:
            number = read_consumer_seq(msg.raw_reply)  # PUSH-10
            if number is not None:
                if number - 1 == self.last:
                    self.last = number
                else:
                    self._note(number, number - 1)
        return KEEP

    def admit_all(self, msgs: list[Msg]) -> bool:
        if self._queue_group:
            return True
        for msg in msgs:
            number = read_consumer_seq(msg.raw_reply)
            if number is not None:
                if number - 1 == self.last:
                    self.last = number
                else:
                    self._note(number, number - 1)
        return True

    def heartbeat(self, last: int | None) -> NatsError | None:
        if last is not None and not self._queue_group:
            self._note(last, last)
        return None

    def lost(self, error: NatsError, now: float) -> bool:
        self._look(now)
        return False

    def connected(self, now: float) -> None:
        if self._reconnects and self._probe_on_reconnect:
            self._look(now)
        self._reconnects = True

    def close(self) -> None:
        if self._probe is not None:
            self._probe.leave()
            self._effects.append(Poke(self._probe))

    def take_effects(self) -> list[MachineEffect]:
        effects = self._effects
        self._effects = []
        return effects

    def _look(self, now: float) -> None:
        if self._probe is not None:
            self._probe.look(now)
            self._effects.append(Poke(self._probe))

    def _note(self, number: int, expected: int) -> None:
        """Record the consumer's sequence; `expected` was the last one if nothing was missed."""
        last = self.last
        self.last = number
        if last is None or last == expected:
            return
        if last < expected:
            self.events.add(Gap(last + 1, expected))  # PUSH-5
        else:
            self.events.add(ConsumerSequenceReset(last, number))  # PUSH-6


def is_control(msg: Msg) -> bool:
    """Return whether the server itself sent this: a heartbeat, flow control or another status.

    PUSH-16: servers before 2.12.6 deliver stored status lines unchanged. Only the reply subject
    distinguishes a stored message from a status.
    """
    if msg.data or not msg.status:  # PUSH-13
        return False
    return not msg.raw_reply or msg.raw_reply.startswith(FLOW_CONTROL)
