from __future__ import annotations

import pytest

from jetstream.services import states

STATES = [states.NEW, states.RUNNING, states.STOPPING, states.STOPPED]
INPUTS = [states.START, states.STOP, states.LOST, states.SETTLED]


@pytest.mark.rule("SERVICE-22", "D-SERVICE-10")
def test_the_table():
    assert {
        (state, what): states.TRANSITIONS.get((state, what))
        for state in STATES
        for what in INPUTS
        if (state, what) in states.TRANSITIONS
    } == {
        ("NEW", "start"): "RUNNING",
        ("NEW", "stop"): "STOPPED",
        ("RUNNING", "stop"): "STOPPING",
        ("RUNNING", "lost"): "STOPPING",
        ("STOPPING", "settled"): "STOPPED",
    }


def test_the_end_is_final():
    assert not [pair for pair in states.TRANSITIONS if pair[0] == states.STOPPED]
