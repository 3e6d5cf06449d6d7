"""A consuming machine, its inputs, and its events."""

from __future__ import annotations

from jetstream.events import PullWarning
from jetstream.pull.consume import Consume
from tests.effects import publishes
from tests.jetstream.pulls import (
    INBOX,
    batches,
    message,
    template,
)

TIMEOUT = "408 Request Timeout"
LEADER = "409 Leadership Change"
FULL = "409 Exceeded MaxWaiting"
BATCH = "409 Exceeded MaxRequestBatch of 5"
SIZE = "409 Message Size Exceeds MaxBytes"
A = message(100)
GONE = ["ConsumerUnavailable"]
REFUSED = ["PullRefused"]
MISSED = ["HeartbeatMissed"]
INPUTS = {"tick": "handle_timer", "lost": "disconnected", "back": "connected", "pop": "pop"}


def consuming(
    max_messages=10, threshold=5, at=0.0, max_bytes=0, stop_after=0, probe=None, **options
):
    """Return a connected machine after its first pull: expires 30 s, heartbeat 5 s."""
    machine = Consume(
        INBOX,
        template(**options),
        max_messages=0 if max_bytes else max_messages,
        max_bytes=max_bytes,
        threshold=threshold,
        stop_after=stop_after,
        probe=probe,
    )
    machine.connected(at)
    publishes(machine)
    return machine


def happen(machine, steps):
    """Play the steps: (time, message), ("pop", time) and the like."""
    for first, second in steps:
        if isinstance(first, str):
            getattr(machine, INPUTS[first])(second)
        else:
            machine.receive(second, first)
        assert machine.ledger.messages >= 0


def play(machine, steps):
    """Return the batches of the pulls that were sent in the meantime."""
    happen(machine, steps)
    return batches(machine)


def event_names(machine):
    """Return the names of all events, with those of the errors of warnings."""
    names = [
        type(event.error if isinstance(event, PullWarning) else event).__name__
        for event in machine.events.items
    ]
    machine.events.items.clear()
    return names
