"""The snapshots of a consume(), after each kind of input."""

from __future__ import annotations

import pytest

from jetstream.machine.probe import Probe
from jetstream.machine.snapshot import OpenPull
from natsproto.errors import ConnectionClosed
from tests.jetstream.consumes import FULL, A, consuming, happen
from tests.jetstream.pulls import beat, status

OPEN = OpenPull(10, 0, 29.0)
TABLE = [  # steps until 2.0, pending, level, pulls, last status, heard, deadlines at 2.0
    ([], 0, 10, [OPEN], "", None, {"silence": 8.0}),
    ([(1.5, beat())], 0, 10, [OPEN], "", 0.5, {"silence": 9.5}),
    ([(1.0, A)], 1, 10, [OpenPull(9, 0, 29.0)], "", 1.0, {"silence": 9.0}),
    ([(1.98, status(1, FULL, 10))], 0, 0, [], FULL, 0.02, {"pull": 0.03}),
    ([("lost", 1.0)], 0, 0, [], "", None, {}),
]


@pytest.mark.rule("D-SNAPSHOT-1")
@pytest.mark.parametrize(
    ("steps", "pending", "level", "pulls", "last", "heard", "deadlines"), TABLE
)
def test_what_a_snapshot_shows(steps, pending, level, pulls, last, heard, deadlines):
    machine = consuming()
    happen(machine, steps)
    before = (list(machine.effects), machine.deadline)
    made = machine.snapshot(2.0)
    assert (made.pending, made.level, made.pulls) == (pending, level, pulls)
    assert (made.limit, made.threshold, made.unit) == (10, 5, "messages")
    assert (made.last_status, made.received) == (last, pending)
    assert made.heard_ago == (None if heard is None else pytest.approx(heard))
    assert made.deadlines == pytest.approx(deadlines)
    assert (list(machine.effects), machine.deadline) == before


@pytest.mark.rule("D-SNAPSHOT-1")
def test_a_snapshot_in_bytes():
    machine = consuming(max_bytes=400, threshold=200)
    machine.receive(A, 1.0)
    made = machine.snapshot(1.0)
    assert (made.unit, made.limit, made.level, made.pending_bytes) == ("bytes", 400, 400, 100)
    assert made.pulls == [OpenPull(999_999, 300, 30.0)]


@pytest.mark.rule("D-SNAPSHOT-1")
def test_a_lookup_at_the_end_of_the_subscription():
    machine = consuming(probe=Probe("$JS.API", "S", "w"))
    machine.handle_timer(10.0)
    assert set(machine.snapshot(10.0).deadlines) == {"lookup", "silence"}
    machine.end(ConnectionClosed("closed"))
    made = machine.snapshot(11.0)
    assert (made.ended, made.reason, made.deadlines) == (True, "it has ended: closed", {})
    machine = consuming()
    machine.start_draining()
    assert machine.snapshot(1.0).stopped
