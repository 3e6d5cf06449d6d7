"""The table; that a Connection obeys it is proved by test_matrix.py."""

from __future__ import annotations

import pytest

from natsproto.connection.states import CLOSED, DATA, INPUTS, LEGAL, NEW, STATES, TIMER, check
from natsproto.errors import InvalidState

pytestmark = pytest.mark.rule("CONN-23")


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("happened", INPUTS)
def test_every_input_is_legal_or_refused_by_name(state, happened):
    if happened in LEGAL[state]:
        assert check(state, happened) is (state != CLOSED)
    else:
        with pytest.raises(InvalidState, match=rf"{happened}\(\) is not legal in state {state}"):
            check(state, happened)


def test_the_table_is_complete():
    assert set(LEGAL) == set(STATES)
    assert all(TIMER in inputs for inputs in LEGAL.values())
    assert DATA not in LEGAL[NEW]
