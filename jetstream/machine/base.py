"""Machine: a receiver that decides. Everything with time or concurrency of its own is one.

A machine is told of messages, time, and the connection's coming and going, and orders publishes
from the connection. It does no I/O, reads no clock, and calls nobody.
"""

from __future__ import annotations

from natsproto.connection.effects import Publish
from natsproto.connection.tokens import Numbers
from natsproto.connection.waitable import Receiver, Waitable


class Machine(Receiver):
    """Base of the machines of this package."""

    __slots__ = ("_orders",)

    def __init__(self) -> None:
        super().__init__()
        self._orders: list[Publish] = []
        self.tokens = Numbers()  # until the connection that subscribes it sets its own

    def order(self, subject: bytes, data: bytes, reply: bytes, block: bytes | None = None) -> None:
        """Have the connection publish this."""
        if not self._orders:
            self.busy.append(self)
        self._orders.append(Publish(subject, data, reply, block))

    @property
    def has_orders(self) -> bool:
        return bool(self._orders)

    def take_orders(self) -> list[Publish]:
        orders = self._orders
        self._orders = []
        return orders

    def leave(self) -> None:
        """Have the connection end the subscription."""
        if not self.leaving:
            self.leaving = True
            self.busy.append(self)

    def wake_by(self, deadline: float) -> None:
        """Ask for `handle_timer` at that time, unless an earlier one is asked for."""
        if self.deadline is None or deadline < self.deadline:
            self.deadline = deadline


class Alarm(Waitable):
    """Wakes those who wait for a machine: its own deadline is for its own business."""

    __slots__ = ("_machine",)

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self._machine = machine

    def handle_timer(self, now: float) -> bool:
        self.deadline = None
        self._machine.ready.append(self._machine)
        return False
