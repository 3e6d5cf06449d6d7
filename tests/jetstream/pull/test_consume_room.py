"""Messages beyond those requested are kept within limits, then dropped, counted and reported."""

from __future__ import annotations

import pytest

from jetstream.pull.consume import Consume
from tests.effects import count_drops
from tests.jetstream.consumes import A, consuming
from tests.jetstream.pulls import INBOX, message, ordered, template


@pytest.mark.rule("D-CONSUME-27")
@pytest.mark.parametrize("at_once", [1, 7, 500])
def test_messages(at_once):
    machine = consuming(10, 5)
    for _ in range(0, 20_000, at_once):
        machine.receive_all([A] * at_once, 1.0)
    assert machine.pending() == 84
    assert machine.dropped == count_drops(machine) == -(-20_000 // at_once) * at_once - 84
    assert (machine.refill.received, machine.ledger.messages) == (84, 0)


@pytest.mark.rule("D-CONSUME-27")
def test_bytes():
    machine = consuming(max_bytes=10_000, threshold=5000)
    for _ in range(2000):
        machine.receive(message(1000), 1.0)
    assert (machine.pending(), machine.buffered_bytes, machine.dropped) == (20, 20_000, 1980)
    for _ in range(20):
        machine.pop(2.0)
    assert machine.receive(message(1000), 2.0)


@pytest.mark.rule("D-CONSUME-27")
def test_messages_of_abandoned_pulls():
    """A server that was frozen for six heartbeats serves all pulls, late: nothing is lost."""
    machine = consuming(100, 50)
    for number in range(1, 7):
        machine.handle_timer(number * 10.0)
    assert machine.ledger.late == 600
    machine.receive_all([A] * 700, 61.0)
    assert (machine.pending(), machine.dropped) == (700, 0)
    machine.receive_all([A] * 20_000, 61.0)
    assert machine.pending() == 864


@pytest.mark.rule("D-CONSUME-27")
@pytest.mark.parametrize(("missed", "served"), [(8, 8), (9, 9), (10, 9), (13, 9)])
def test_messages_of_each_abandoned_pull_are_expected_equally_long(missed, served):
    """Each pull, one every 10 s, may be served until 60 s after its end; the first are over."""
    machine = consuming(100, 50)
    for number in range(1, missed + 1):
        machine.handle_timer(number * 10.0)
    machine.receive_all([A] * (served + 1) * 100, missed * 10.0 + 1.0)
    assert (machine.pending(), machine.dropped) == ((served + 1) * 100, 0)


@pytest.mark.rule("D-CONSUME-27")
def test_dropped_messages_do_not_count():
    machine = consuming(10, 5, stop_after=100)
    machine.receive_all([A] * 90, 1.0)
    assert machine.dropped == 6
    for _ in range(84):
        machine.pop(2.0)
    assert not machine.finished
    assert machine.ledger.messages == 6


@pytest.mark.parametrize("at_once", [False, True])
def test_messages_that_come_at_once_are_signs_of_life(at_once):
    """As each of them is: no heartbeat is missed 6 s later."""
    machine = consuming()
    msgs = [message(100, 1), message(100, 2)]
    if at_once:
        machine.receive_all(msgs, 4.0)
    else:
        for msg in msgs:
            machine.receive(msg, 4.0)
    machine.handle_timer(10.0)
    assert machine.events.items == []
    assert machine.deadline == 14.0


def test_a_limit_of_one_byte_is_one():
    machine = Consume(INBOX, template(), max_bytes=1, threshold=1)
    machine.connected(0.0)
    assert [pull["max_bytes"] for pull in ordered(machine)] == [1]
