"""The ways in which consume() ends."""

from __future__ import annotations

import pytest

from jetstream.errors import (
    HeartbeatMissed,
)
from natsproto.errors import ConnectionClosed
from tests.jetstream.consumes import (
    LEADER,
    A,
    consuming,
)
from tests.jetstream.pulls import (
    batches,
    message,
    ordered,
    status,
)


@pytest.mark.rule("CONSUME-14")
def test_stop():
    machine = consuming(max_bytes=4000, threshold=2000)
    for number in range(4):
        machine.receive(message(number=number), 1.0)
    machine.pop(1.0)
    machine.receive(message(number=4), 1.0)
    rest = machine.stop()
    assert [int(msg.raw_reply.split(b".")[5]) for msg in rest] == [1, 2, 3, 4]
    assert (machine.pending(), machine.buffered_bytes, machine.deadline) == (0, 0, None)
    assert (machine.leaving, machine.needs_poke) == (True, True)
    machine.end()
    machine.take_effects()
    assert (machine.needs_poke, machine.stop()) == (False, [])
    machine.connected(2.0)
    assert batches(machine) == []


@pytest.mark.rule("CONSUME-15")
@pytest.mark.parametrize("whose", ["own", "client's"])
def test_drain(whose):
    machine = consuming()
    for _ in range(9):
        machine.receive(A, 1.0)
    if whose == "own":
        machine.start_draining()
        assert (machine.leaving, machine.deadline) == (False, None)
    else:
        machine.draining = True
    assert machine.handle_timer(50.0) is False
    machine.receive(A, 50.0)
    assert machine.receive(status(1, "409 Consumer Deleted"), 50.0) is False
    for _ in range(10):
        machine.pop(51.0)
    assert (batches(machine), machine.deadline, machine.events.items) == ([], None, [])


@pytest.mark.rule("CONSUME-16")
@pytest.mark.parametrize(("max_bytes", "threshold"), [(0, 5), (4000, 2000)])
def test_stop_after(max_bytes, threshold):
    machine = consuming(10, threshold, max_bytes=max_bytes, stop_after=6)
    for _ in range(3):
        machine.receive(A, 1.0)
    assert (machine.ledger.messages, machine.finished) == (3, False)
    machine.receive(status(1, LEADER), 2.0)
    assert batches(machine) == [3]
    for _ in range(5):  # two more than requested: late messages of an abandoned pull
        machine.receive(A, 3.0)
    for _ in range(5):
        machine.pop(4.0)
    assert (batches(machine), machine.finished, machine.leaving) == ([], False, False)
    machine.pop(4.0)
    assert (machine.finished, machine.leaving, machine.needs_poke) == (True, True, True)
    assert (len(machine.stop()), batches(machine)) == (2, [])


@pytest.mark.rule("CONSUME-16")
def test_bytes_are_free_once_the_messages_arrived():
    machine = consuming(max_bytes=400, threshold=400, stop_after=3)
    machine.ledger.open[0].messages = 1
    machine.receive(A, 1.0)
    assert [(body["batch"], body["max_bytes"]) for body in ordered(machine)] == [(2, 300)]


@pytest.mark.rule("D-CONSUME-18")
def test_the_end_of_the_client():
    machine = consuming()
    assert machine.end(ConnectionClosed("x")) is True
    assert (machine.deadline, machine.ledger.open, machine.end()) == (None, [], False)


@pytest.mark.rule("D-CONSUME-19")
def test_unread_events():
    machine = consuming()
    reported = sum(machine.handle_timer(machine.deadline) for _ in range(2000))
    assert reported > 256
    assert len(machine.events.items) == 256
    assert isinstance(machine.events.items[0].error, HeartbeatMissed)
