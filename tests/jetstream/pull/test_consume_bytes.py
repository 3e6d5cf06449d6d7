"""consume() by bytes, and with pins."""

from __future__ import annotations

import pytest

from jetstream.events import Pinned, Unpinned
from tests.jetstream.consumes import (
    REFUSED,
    SIZE,
    TIMEOUT,
    A,
    consuming,
    event_names,
    happen,
)
from tests.jetstream.pulls import (
    PIN,
    message,
    ordered,
    pinned,
    status,
)

# Bytes: a limit of 400

# Three messages, and the fourth does not fit in what is left.
SMALL = [(1.0, A), (1.0, A), (1.0, A), (2.0, status(1, SIZE, 9, 100))]


@pytest.mark.rule("PULL-13")
@pytest.mark.rule("CONSUME-1")
@pytest.mark.rule("D-CONSUME-12")
@pytest.mark.parametrize(
    ("name", "threshold", "steps", "pulls", "asked", "buffered", "deadline", "events"),
    [
        ("nothing", 200, [], [], 400, 0, 10.0, []),
        ("a message", 200, [(1.0, A)], [], 300, 100, 10.0, []),
        ("taken", 200, [(1.0, A), ("pop", 1.0)], [], 300, 0, 10.0, []),
        ("below", 200, [(1.0, A)] * 3 + [("pop", 1.0)] * 3, [300], 400, 0, 11.0, []),
        ("exactly used", 200, [(1.0, A)] * 4, [], 0, 400, 10.0, []),
        ("used and taken", 200, [(1.0, A)] * 4 + [("pop", 2.0)] * 3, [300], 300, 100, 12.0, []),
        ("expired", 200, [(1.0, A), (30.0, status(1, TIMEOUT, 9, 300))], [300], 300, 100, 40.0, []),
        ("full enough",
         200, SMALL, [], 0, 300, None, []),
        ("no room", 400, SMALL, [], 0, 300, None, []),
        ("room", 400, [*SMALL, ("pop", 2.0)], [200], 200, 200, 12.0, []),
        ("still no room", 400,
         [*SMALL, ("pop", 2.0), (2.01, status(2, SIZE, 9, 200)), ("pop", 2.02)],
         [200], 0, 100, 2.05, []),
        ("the last room", 400,
         [*SMALL, ("pop", 2.0), (2.01, status(2, SIZE, 9, 200)), ("pop", 2.02), ("tick", 2.05)],
         [200, 300], 300, 100, 12.05, []),
        ("never room", 200, [(1.0, status(1, SIZE, 9, 400))], [], 0, 0, 1.05, REFUSED),
        ("reported once",
         200, [(1.0, status(1, SIZE, 9, 400)), ("tick", 1.05), (1.06, status(2, SIZE, 9, 400))],
         [400], 0, 0, 1.16, REFUSED),
        ("of unknown size", 200, [(1.0, status(1, SIZE))], [], 0, 0, 1.05, REFUSED),
        ("back",
         400, [*SMALL, ("lost", 3.0), ("back", 4.0)],
         [100], 100, 300, 14.0, []),
    ],
)  # fmt: skip
def test_bytes(name, threshold, steps, pulls, asked, buffered, deadline, events):
    machine = consuming(max_bytes=400, threshold=threshold)
    happen(machine, steps)
    bodies = ordered(machine)
    assert [body["max_bytes"] for body in bodies] == pulls
    assert all(body["batch"] == 1_000_000 for body in bodies)
    assert (machine.ledger.size, machine.buffered_bytes) == (asked, buffered)
    assert machine.deadline == (None if deadline is None else pytest.approx(deadline))
    assert event_names(machine) == events


# Pins


@pytest.mark.rule("PULL-12")
@pytest.mark.rule("CONSUME-13")
def test_pins():
    machine = consuming(pinned=True)
    assert machine.receive(pinned(), 1.0) is True
    assert machine.receive(pinned(), 1.0) is False
    assert machine.receive(message(), 1.0) is False
    assert machine.events.items == [Pinned(PIN)]
    machine.receive(status(1, TIMEOUT, 7), 2.0)
    assert [body["id"] for body in ordered(machine)] == [PIN]
    assert machine.receive(status(2, "423 Nats-Wrong-Pin-Id", 7), 3.0) is True
    assert machine.events.items == [Pinned(PIN), Unpinned()]
    assert [body.get("id") for body in ordered(machine)] == [None]
    assert machine.receive(pinned("x" * 22), 4.0) is True
    assert machine.events.items[2:] == [Pinned("x" * 22)]


@pytest.mark.rule("PULL-12")
def test_a_late_423_is_not_for_the_next_pin():
    machine = consuming(pinned=True)
    machine.receive(pinned(), 1.0)
    for _ in range(5):
        machine.receive(pinned(), 1.0)
    for _ in range(6):
        machine.pop(2.0)
    assert [body["id"] for body in ordered(machine)] == [PIN]  # two pulls are open
    machine.receive(status(2, "423 Nats-Pin-Id mismatch"), 3.0)
    machine.receive(pinned("x" * 22), 3.1)
    assert machine.receive(status(1, "423 Nats-Wrong-Pin-Id", 4), 3.2) is False
    assert machine.pin == "x" * 22


@pytest.mark.rule("PULL-12")
def test_a_publishers_own_pin_means_nothing():
    machine = consuming()
    assert machine.receive(pinned(), 1.0) is True
    assert machine.receive(status(1, "423 Nats-Wrong-Pin-Id", 9), 1.1) is False
    assert (machine.pin, machine.events.items) == ("", [])
