from __future__ import annotations

import pytest

from jetstream.pull.pace import Pace, Repeats


@pytest.mark.rule("CONSUME-11")
def test_intervals_grow():
    pace = Pace(10.0, 60.0)
    due = [now for now in range(5, 260) if pace.due(float(now))]
    assert due == [5, 15, 35, 75, 135, 195, 255]
    pace.reset()
    assert [now for now in range(256, 300) if pace.due(float(now))] == [256, 266, 286]


@pytest.mark.rule("CONSUME-11")
def test_each_cause_has_its_own():
    repeats = Repeats(10.0, 60.0)
    asked = [("a", 0.0), ("a", 9.9), ("b", 9.9), ("a", 10.0), ("b", 19.8), ("b", 19.9)]
    assert [repeats.due(cause, now) for cause, now in asked] == [1, 0, 1, 1, 0, 1]
    repeats.clear()
    assert repeats.due("a", 20.0)
