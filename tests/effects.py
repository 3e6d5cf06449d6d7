"""Queries about the effects of a machine, for tests."""

from __future__ import annotations

from natsproto.connection.effects import Drop, Publish, Wake

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.connection.receiver import Receiver
    from natsproto.connection.waitable import Waitable


def publishes(machine: Receiver) -> list[Publish]:
    """Take all effects; return the publishes."""
    return [each for each in machine.take_effects() if isinstance(each, Publish)]


def will_publish(machine: Receiver) -> bool:
    """Return whether any effect is a publish."""
    return any(isinstance(each, Publish) for each in machine.effects)


def woken(machine: Receiver) -> list[Waitable]:
    """Return what callers may be waiting for that is to be woken."""
    wakes = [each for each in machine.effects if isinstance(each, Wake)]
    return [waitable for wake in wakes for waitable in wake.waitables]


def count_drops(machine: Receiver) -> int:
    """Return how many messages are to be reported as dropped."""
    return sum(isinstance(each, Drop) for each in machine.effects)
