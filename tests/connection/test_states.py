"""The table; test_matrix.py proves that a Connection follows it."""

from __future__ import annotations

import pytest

from natsproto.connection import states
from natsproto.connection.states import INPUTS, OUTCOMES, STATES, TRANSITIONS, illegal
from natsproto.errors import InvalidState
from tests.connection.support import Wire

pytestmark = pytest.mark.rule("D-CONN-23")


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("what", INPUTS + OUTCOMES)
def test_every_input_and_outcome_is_a_row_or_refused_by_name(state, what):
    wire = Wire()
    wire.connection.lifecycle.state = state
    if (state, what) in TRANSITIONS:
        wire.connection.lifecycle.enter(what)
        assert wire.state == TRANSITIONS[(state, what)]
        return
    with pytest.raises(InvalidState) as caught:
        wire.connection.lifecycle.enter(what)
    assert (wire.state, str(caught.value)) == (state, str(illegal(state, what)))


def test_the_error_names_the_input_or_outcome_and_the_state():
    assert (
        str(illegal("NEW", "receive_data"))
        == "receive_data() is not legal in state NEW (D-CONN-23)"
    )
    assert str(illegal("NEW", "accepted")) == "accepted is not a transition from NEW (D-CONN-23)"


def test_rows_name_known_states_inputs_and_outcomes():
    assert {state for state, _ in TRANSITIONS} == set(STATES)
    assert {what for _, what in TRANSITIONS} == set(INPUTS + OUTCOMES)
    assert set(TRANSITIONS.values()) == set(STATES)


def test_the_timer_is_legal_in_every_state():
    assert all((state, states.TIMER) in TRANSITIONS for state in STATES)


def test_every_state_but_closed_can_be_closed():
    closing = {state for state, what in TRANSITIONS if what == states.CLOSE}
    assert closing == set(STATES) - {states.CLOSED}


def test_nothing_leads_out_of_closed():
    assert {to for (state, _), to in TRANSITIONS.items() if state == states.CLOSED} == {
        states.CLOSED
    }


def test_every_state_is_reachable_from_new():
    reached = {states.NEW}
    for _ in STATES:
        reached |= {to for (state, _), to in TRANSITIONS.items() if state in reached}
    assert reached == set(STATES)
