"""Statuses and silence that consume() survives, and its reports about them."""

from __future__ import annotations

import pytest

from jetstream.errors import ConsumerUnavailable, PullRefused, UnknownStatus
from tests.jetstream.consumes import (
    BATCH,
    FULL,
    GONE,
    LEADER,
    MISSED,
    REFUSED,
    TIMEOUT,
    A,
    consuming,
    event_names,
    play,
)
from tests.jetstream.pulls import batches, beat, status


@pytest.mark.rule("D-CONSUME-11")
@pytest.mark.parametrize("line", ["503", BATCH, LEADER])
def test_warnings_are_repeated(line):
    machine = consuming()
    told_at = []
    for token in range(1, 27):
        now = 10.0 * token
        if machine.receive(status(token, line), now):
            told_at.append(now)
        if not machine.ledger.open:
            machine.handle_timer(machine.deadline)  # the end of the pause
    assert told_at == [10.0, 20.0, 40.0, 80.0, 140.0, 200.0, 260.0]
    assert len(machine.events.items) == len(told_at)


@pytest.mark.rule("D-CONSUME-11")
def test_silence_is_reported_at_growing_intervals():
    machine = consuming()
    reported_at = [now for now in range(10, 270, 10) if machine.handle_timer(float(now))]
    assert reported_at == [10, 20, 40, 80, 140, 200, 260]
    machine.receive(A, 261.0)
    assert machine.handle_timer(271.0)  # a sign of life starts over


@pytest.mark.rule("PULL-16")
@pytest.mark.rule("CONSUME-26")
@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("412 Required Api Level", PullRefused),
        ("499 Whatever", UnknownStatus),
        ("409 Whatever", UnknownStatus),
        ("204 EOB", UnknownStatus),
    ],
)
def test_a_status_that_does_not_end_it(line, error):
    machine = consuming()
    machine.receive(A, 1.0)
    now = 2.0
    for token, pause in [(1, 0.05), (2, 0.1), (3, 0.2)]:
        assert machine.receive(status(token, line), now) is (token == 1)
        assert (machine.ended, machine.pending()) == (False, 1)
        assert machine.deadline == pytest.approx(now + pause)
        now += pause
        machine.handle_timer(now)
        assert batches(machine) == [9]
    [event] = machine.events.items
    assert type(event.error) is error
    machine.receive(A, now)
    machine.receive(status(4, line), now)
    assert machine.deadline == pytest.approx(now + 0.05)  # a message ends the back-off


@pytest.mark.rule("CONSUME-28")
def test_overlapping_pulls_do_not_postpone_silence():
    """Each pull is overdue after the next one was sent; no server answers any of them."""
    machine = consuming(expires=10.0)
    machine.receive_all([A] * 6, 1.0)
    for _ in range(6):
        machine.pop(9.0)
    assert batches(machine) == [6]
    assert machine.deadline == 11.0
    assert machine.handle_timer(11.0) is True
    assert event_names(machine) == MISSED
    assert (batches(machine), machine.deadline) == ([10], 21.0)


@pytest.mark.rule("D-CONSUME-11")
@pytest.mark.parametrize(
    ("steps", "events"),
    [
        ([(1.0, status(1, "503")), ("tick", 2.0), (2.0, status(2, "503"))], GONE),
        ([(1.0, status(1, "503")), ("tick", 2.0), (2.0, status(2, LEADER))], GONE * 2),
        ([(1.0, status(1, LEADER)), (2.0, beat(2)), (3.0, status(2, LEADER))], GONE * 2),
        ([(1.0, status(1, LEADER)), (2.0, A), (3.0, status(2, LEADER))], GONE * 2),
        ([(1.0, status(1, LEADER)), (9.0, status(2, TIMEOUT, 10)), (10.0, status(3, LEADER))],
         GONE * 2),
        ([(1.0, status(1, LEADER)), ("lost", 2.0), ("back", 3.0), (4.0, status(3, LEADER))],
         GONE * 2),
        ([(1.0, status(1, BATCH)), ("tick", 2.0), (2.1, A), (2.1, beat(2)),
          (3.0, status(2, BATCH))], REFUSED),
        ([(1.0, status(1, BATCH)), ("tick", 2.0),
          (3.0, status(2, "409 Exceeded MaxRequestExpires of 2s"))], REFUSED * 2),
        ([(1.0, status(1, FULL)), ("lost", 2.0), ("back", 3.0),
          (4.0, status(2, FULL))], REFUSED * 2),
    ],
)  # fmt: skip
def test_warnings(steps, events):
    machine = consuming()
    play(machine, steps)
    assert event_names(machine) == events


@pytest.mark.rule("D-CONSUME-11")
def test_errors_carry_code_and_text():
    machine = consuming()
    machine.receive(status(1, BATCH), 1.0)
    machine.handle_timer(2.0)
    machine.receive(status(2, "503"), 2.0)
    first, second = [event.error for event in machine.events.items]
    assert (first.code, first.description) == (409, BATCH[4:])
    assert (type(second), second.code, second.description) == (ConsumerUnavailable, 503, "")
