"""Consume: several messages of one read, in bytes, with pins, statuses alone, and snapshots."""

from __future__ import annotations

import pytest

from jetstream.machine.probe import Probe
from tests.effects import count_drops, publishes
from tests.jetstream.consumes import FULL, LEADER, consuming
from tests.jetstream.pull import test_consume_in_order as in_order
from tests.jetstream.pulls import PIN, batches, beat, message, ordered, pinned, status


@pytest.mark.rule("CONSUME-1", "PULL-11")
def test_bytes_of_messages_in_one_read_are_counted():
    machine = consuming(max_bytes=1000, threshold=500)
    assert machine.receive_all([message(100), message(120), message(140)], 1.0)
    assert (machine.buffered_bytes, machine.ledger.size, machine.pending()) == (360, 640, 3)
    for _ in range(3):
        machine.pop(2.0)
    assert machine.buffered_bytes == 0


@pytest.mark.rule("CONSUME-1")
@pytest.mark.parametrize("together", [False, True])
def test_bytes_are_not_counted_if_messages_are(together):
    machine = consuming()
    msgs = [message(100), message(120)]
    if together:
        machine.receive_all(msgs, 1.0)
    else:
        for msg in msgs:
            machine.receive(msg, 1.0)
    assert (machine.buffered_bytes, machine.ledger.messages, machine.pending()) == (0, 8, 2)
    assert machine.refill.received == 2


@pytest.mark.rule("PULL-12")
def test_a_pin_in_one_of_several_messages():
    machine = consuming(pinned=True)
    assert machine.receive_all([message(), pinned(), message()], 1.0)
    assert (machine.pin, machine.pending()) == (PIN, 3)


@pytest.mark.rule("PULL-8", "CONSUME-5")
def test_statuses_without_any_message_in_one_read():
    machine = consuming()
    assert machine.receive_all([beat(), status(1, LEADER)], 1.0)
    assert (machine.pending(), batches(machine)) == (0, [10])


@pytest.mark.rule("CONSUME-8")
@pytest.mark.parametrize("together", [False, True])
def test_messages_are_a_sign_of_life(together):
    machine = consuming()
    msgs = [message(), message()]
    if together:
        machine.receive_all(msgs, 4.0)
    else:
        for msg in msgs:
            machine.receive(msg, 4.0)
    machine.handle_timer(10.0)
    assert (machine.deadline, machine.events.items) == (14.0, [])


@pytest.mark.rule("D-CONSUME-27")
def test_a_message_that_no_pull_requested_is_dropped_but_a_sign_of_life():
    machine = consuming(max_messages=1, threshold=1)
    for _ in range(100):
        machine.receive(message(), 1.0)
    dropped = machine.dropped
    assert dropped > 0
    assert machine._silence.heard_ago(4.0) == 3.0
    machine.receive(message(), 4.0)
    assert machine._silence.heard_ago(4.0) == 0.0
    assert machine.dropped == dropped + 1
    assert (count_drops(machine), machine.pending() + machine.dropped) == (machine.dropped, 101)


@pytest.mark.rule("CONSUME-8")
def test_a_heartbeat_wakes_no_caller():
    machine = consuming()
    assert machine.receive(beat(), 5.0) is False


@pytest.mark.rule("D-SNAPSHOT-1")
def test_a_snapshot_shows_the_last_status_and_the_next_actions():
    machine = consuming()
    before = machine.snapshot(1.0)
    assert (before.last_status, before.last_status_ago) == ("", None)
    assert before.deadlines == {"silence": 9.0}
    machine.receive(status(1, FULL), 2.0)
    made = machine.snapshot(2.03)
    assert (made.last_status, made.last_status_ago) == (FULL, pytest.approx(0.03))
    assert made.deadlines == {"pull": pytest.approx(0.02)}
    machine.handle_timer(2.05)
    assert [body["batch"] for body in ordered(machine)] == [10]


@pytest.mark.rule("D-CONSUME-21")
@pytest.mark.parametrize("together", [False, True])
def test_messages_prove_that_the_consumer_exists(together):
    """It is looked up after the second 503 in a row, and these two are not."""
    machine = consuming(probe=Probe("$JS.API", "S", "C"))
    machine.receive(status(1, "503"), 1.0)
    machine.handle_timer(1.05)
    msgs = [message(), message()]
    if together:
        machine.receive_all(msgs, 1.1)
    else:
        for msg in msgs:
            machine.receive(msg, 1.1)
    publishes(machine)
    machine.receive(status(2, "503"), 1.2)
    assert publishes(machine) == []


@pytest.mark.rule("D-SNAPSHOT-1")
def test_a_snapshot_shows_when_the_next_consumer_is_overdue():
    machine = in_order.new()
    machine.connected(0.0)
    machine.receive(in_order.message(2), 1.0)  # a gap: the next consumer is created at once
    assert machine.snapshot(1.5).deadlines == {"recreate": 4.5}  # if there is no response


def test_without_a_consumer_no_pull_is_due():
    """Its timer would fire at once, again and again."""
    machine = in_order.new()
    machine.connected(0.0)
    machine.receive(status(1, FULL), 1.0)
    assert machine.snapshot(1.0).deadlines["pull"] == pytest.approx(0.05)
    machine.receive(in_order.message(2), 1.01)  # a gap: the next consumer is created at once
    assert list(machine.snapshot(1.02).deadlines) == ["recreate"]


@pytest.mark.rule("D-SNAPSHOT-1", "CONSUME-9")
def test_without_a_connection_no_pull_is_due():
    machine = consuming()
    machine.receive(status(1, "503"), 1.0)
    assert machine.snapshot(1.0).deadlines == {"pull": pytest.approx(0.05)}
    machine.disconnected(1.01)
    assert machine.snapshot(1.02).deadlines == {}


@pytest.mark.rule("D-CONSUME-27", "ORDERED-4")
def test_a_message_beyond_the_limit_may_be_from_an_earlier_consumer():
    """So it is no sign of life of the current one."""
    machine = in_order.new(max_messages=1)
    machine.connected(0.0)
    for number in range(1, 67):
        machine.receive(in_order.message(number), 1.0)
    assert (machine.pending(), machine.dropped) == (66, 0)
    machine.receive(in_order.message(67), 4.0)
    assert (machine.dropped, machine._silence.heard_ago(4.0)) == (1, 3.0)


@pytest.mark.rule("D-CONSUME-27")
def test_an_abandoned_pull_is_forgotten_a_minute_after_its_end():
    machine = consuming(100, 50)
    for number in range(1, 7):
        machine.handle_timer(number * 10.0)
    machine.receive(status(7, "408 Request Timeout", 100), 90.0)
    assert machine.ledger.late == 600
    machine.receive(status(8, "408 Request Timeout", 100), 91.0)  # the first ended at 31.0
    assert machine.ledger.late == 500
