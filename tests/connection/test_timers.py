from __future__ import annotations

import random

import pytest

from natsproto.connection.timers import Timers
from natsproto.connection.waitable import Waitable

pytestmark = pytest.mark.rule("D-CLOCK-1", "CLOCK-2")


def make(*deadlines):
    """Return timers and one armed waitable for each deadline."""
    timers = Timers()
    waitables = []
    for deadline in deadlines:
        waitables.append(Waitable())
        move(timers, waitables[-1], deadline)
    return timers, waitables


def move(timers, waitable, deadline):
    waitable.deadline = deadline
    timers.arm(waitable)


def test_nothing_is_due_without_deadlines():
    timers, [idle] = make(None)
    assert timers.next_deadline() is None
    assert timers.pop_due(1e9) == []
    assert idle.armed is None


def test_due_entries_are_returned_once_and_earliest_first():
    timers, [b, a, c] = make(2.0, 1.0, 3.0)
    assert timers.next_deadline() == 1.0
    assert timers.pop_due(0.9) == []
    assert timers.pop_due(2.0) == [a, b]
    assert timers.pop_due(2.0) == []
    assert timers.next_deadline() == 3.0
    assert timers.pop_due(9.0) == [c]
    assert timers.next_deadline() is None


def test_of_equal_deadlines_the_first_armed_is_first():
    timers, waitables = make(1.0, 1.0, 1.0)
    assert timers.pop_due(1.0) == waitables


def test_a_later_deadline_needs_no_arming():
    timers, [a] = make(1.0)
    a.deadline = 5.0
    assert timers.next_deadline() == 1.0  # too early is harmless
    assert timers.pop_due(1.0) == []
    assert timers.next_deadline() == 5.0
    assert timers.pop_due(5.0) == [a]


def test_an_earlier_deadline_is_found_and_the_old_entry_is_dead():
    timers, [a] = make(5.0)
    move(timers, a, 1.0)
    assert timers.next_deadline() == 1.0
    assert timers.pop_due(1.0) == [a]
    a.deadline = None
    assert timers.pop_due(5.0) == []


def test_a_dead_entry_for_the_same_time_as_a_live_one():
    timers, [a] = make(5.0)
    move(timers, a, 1.0)
    assert timers.pop_due(1.0) == [a]
    move(timers, a, 5.0)
    assert timers.pop_due(5.0) == [a]
    assert timers.pop_due(5.0) == []


def test_a_deadline_that_is_gone_is_not_due():
    timers, [a] = make(1.0)
    a.deadline = None
    assert timers.pop_due(1.0) == []
    assert a.armed is None
    move(timers, a, 2.0)
    assert timers.next_deadline() == 2.0


def test_arming_twice_adds_nothing():
    timers, [a] = make(1.0)
    for _ in range(1000):
        timers.arm(a)
    assert timers.pop_due(1.0) == [a]
    assert timers.next_deadline() is None


def test_clear_returns_the_waiting_entries():
    timers, [a, b] = make(1.0, 2.0)
    move(timers, b, 0.5)
    assert timers.clear() == [b, a]
    assert (a.deadline, a.armed, b.armed) == (None, None, None)
    assert timers.next_deadline() is None
    move(timers, a, 3.0)
    assert timers.pop_due(3.0) == [a]


def test_a_million_settled_requests_leave_nothing():
    timers, [live] = make(1e9)
    for i in range(20_000):
        settled = Waitable()
        move(timers, settled, 1000.0 + i)
        settled.deadline = None
    assert len(timers.heap) < 200
    assert timers.next_deadline() <= 1e9
    assert timers.pop_due(1e9) == [live]


def test_swept_entries_can_be_armed_again():
    timers, waitables = make(*range(10, 74))
    first = waitables[0]
    first.deadline = None
    for i in range(200):
        move(timers, Waitable(), 1000.0 + i)
    assert first.armed is None
    move(timers, first, 10.0)
    assert timers.pop_due(10.0) == [first]


def test_like_a_plain_list_of_deadlines():
    """After random moves, the timers that are due are those of a plain list."""
    rng = random.Random(7)
    timers, waitables = make(*[None] * 50)
    now = 0.0
    for _ in range(5000):
        waitable = rng.choice(waitables)
        move(timers, waitable, rng.choice([None, now + rng.random(), now + 10 * rng.random()]))
        if rng.random() < 0.3:
            now += rng.random() / 10
            expected = {id(w) for w in waitables if w.deadline is not None and w.deadline <= now}
            due = timers.pop_due(now)
            assert {id(w) for w in due} == expected
            for each in due:
                each.deadline = None
        earliest = min([w.deadline for w in waitables if w.deadline is not None], default=None)
        if earliest is not None:
            assert timers.next_deadline() <= earliest
    assert len(timers.heap) <= 200
