from __future__ import annotations

import pytest

from jetstream.pull.pace import Pace, Pauses, Repeats


@pytest.mark.rule("D-CONSUME-11")
def test_intervals_grow():
    pace = Pace(10.0, 60.0)
    due = [now for now in range(5, 260) if pace.due(float(now))]
    assert due == [5, 15, 35, 75, 135, 195, 255]
    pace.reset()
    assert [now for now in range(256, 300) if pace.due(float(now))] == [256, 266, 286]


@pytest.mark.rule("D-CONSUME-11")
def test_each_cause_has_its_own():
    repeats = Repeats(10.0, 60.0)
    asked = [("a", 0.0), ("a", 9.9), ("b", 9.9), ("a", 10.0), ("b", 19.8), ("b", 19.9)]
    assert [repeats.due(cause, now) for cause, now in asked] == [1, 0, 1, 1, 0, 1]
    repeats.clear()
    assert repeats.due("a", 20.0)


def test_pauses_double_while_pulls_are_refused():
    pauses = Pauses()
    found = []
    for _ in range(10):
        pauses.refused(100.0, False)
        found.append(round(pauses.ends_at - 100.0, 3))
    assert found == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
    pauses.refused(100.0, True)
    assert pauses.ends_at == 102.0
    pauses.restart(103.0)
    assert (pauses.length, pauses.ends_at) == (0.0, 103.0)


@pytest.mark.parametrize(("pulled_at", "ends_at"), [(1.0, 3.0), (2.98, 3.03)])
def test_a_pull_without_a_message_is_followed_by_a_short_pause(pulled_at, ends_at):
    pauses = Pauses()
    pauses.restart(3.0)
    pauses.unproductive(pulled_at)
    assert pauses.ends_at == pytest.approx(ends_at)
