"""Machine: a receiver that makes decisions. Everything with time or concurrency of its own is one.

Its inputs are messages, the time, and the state of the connection; its effects are publishes, which
the connection carries out. It does no I/O, reads no clock, and calls no other component.
"""

from __future__ import annotations

from natsproto.connection.effects import Publish
from natsproto.connection.tokens import Numbers, Tokens
from natsproto.connection.waitable import Receiver, Waitable


class Machine(Receiver):
    """Base of the machines of this package."""

    __slots__ = ("_effects",)

    def __init__(self) -> None:
        super().__init__()
        self._effects: list[Publish] = []
        self.tokens: Tokens = Numbers()  # until the connection that subscribes it sets its own

    def emit(self, subject: bytes, data: bytes, reply: bytes, block: bytes | None = None) -> None:
        """Have the connection publish a message."""
        if not self._effects:
            self.busy.append(self)
        self._effects.append(Publish(subject, data, reply, block))

    @property
    def has_effects(self) -> bool:
        return bool(self._effects)

    def take_effects(self) -> list[Publish]:
        orders = self._effects
        self._effects = []
        return orders

    def leave(self) -> None:
        """Have the connection end the subscription."""
        if not self.leaving:
            self.leaving = True
            self.busy.append(self)

    def wake_by(self, deadline: float) -> None:
        """Request `handle_timer` at that time, unless it is due earlier."""
        if self.deadline is None or deadline < self.deadline:
            self.deadline: float | None = deadline


class Alarm(Waitable):
    """Wakes the callers that wait for a machine, whose own deadline serves the machine itself."""

    __slots__ = ("_machine",)

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self._machine = machine

    def handle_timer(self, now: float) -> bool:
        self.deadline: float | None = None
        self._machine.ready.append(self._machine)
        return False
