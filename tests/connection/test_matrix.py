"""Every state and every input, on a real connection; and that no state waits for ever."""

from __future__ import annotations

import pytest

from natsproto.connection.states import (
    CLOSED,
    CONNECTED,
    DIALING,
    INPUTS,
    LEGAL,
    NEW,
    STATES,
    WAITING,
)
from natsproto.errors import InvalidState
from tests.connection.support import PING, PONG, Wire, info

ARGUMENTS = {"receive_data": [PING]}


def in_state(state, **options):
    """A wire that has come to this state in the shortest way."""
    options = {"servers": ["tls://a", "tls://b"], "max_reconnects": -1, **options}
    wire = Wire(**options)
    if state == NEW:
        return wire
    wire.connect()
    if state == CLOSED:
        wire.tell("close")
    elif state != DIALING:
        wire.opened()
        if state != "OPENING":
            wire.data(info(tls_required=True))
        if state in ("GREETING", CONNECTED, WAITING):
            wire.secured()
        if state in (CONNECTED, WAITING):
            wire.data(PONG)
        if state == WAITING:
            wire.lost().lost()
    assert wire.state == state
    return wire.forget()


@pytest.mark.rule("CONN-23")
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("happened", INPUTS)
def test_every_input_in_every_state(state, happened):
    wire = in_state(state)
    deadline = wire.deadline
    if happened in LEGAL[state]:
        wire.tell(happened, *ARGUMENTS.get(happened, [])) if happened != "transport_closed" else (
            wire.lost()
        )
    else:
        with pytest.raises(InvalidState, match=rf"{happened}\(\) is not legal in state {state}"):
            wire.tell(happened, *ARGUMENTS.get(happened, []))
        # A refused input changes nothing.
        assert (wire.state, wire.deadline) == (state, deadline)
        assert (wire.effects(), wire.sent(), wire.ready(), wire.events()) == ([], b"", [], [])


@pytest.mark.rule("CONN-7")
@pytest.mark.parametrize("state", [state for state in STATES if state not in (NEW, CLOSED)])
def test_every_state_is_left_without_any_further_input(state):
    wire = in_state(state)
    assert wire.deadline is not None
    wire.ring()
    assert wire.effects() or wire.sent() == PING


@pytest.mark.rule("CONN-7", "CLOCK-1")
@pytest.mark.parametrize("state", STATES)
def test_an_early_timer_changes_nothing(state):
    wire = in_state(state)
    for _ in range(3):
        wire.timer()
    assert (wire.state, wire.effects(), wire.sent(), wire.ready()) == (state, [], b"", [])


@pytest.mark.rule("CONN-7")
@pytest.mark.parametrize("state", [state for state in STATES if state not in (NEW, CLOSED)])
@pytest.mark.parametrize("limit", [0, 1, 3])
def test_with_an_adapter_that_is_silent_for_ever_it_comes_to_an_end(state, limit):
    """Nothing is ever reported; only the timer rings: then the client is closed in the end."""
    wire = in_state(state, max_reconnects=limit or 1, ping_interval=10.0)
    for _ in range(100):
        if wire.state == CLOSED:
            break
        assert wire.deadline is not None
        wire.timer(at=wire.deadline)
    assert wire.state == CLOSED
    assert wire.deadline is None


@pytest.mark.rule("RECON-1", "CONN-7")
def test_no_hot_loop_when_nothing_can_be_reached():
    """Attempts in the first simulated hour, with everything refused at once."""
    wire = Wire(servers=["a", "b", "c"], max_reconnects=-1).up().lost(at=1.0)
    attempts = 0
    while wire.now < 3600.0:
        if wire.state == DIALING:
            attempts += 1
            wire.lost(OSError("refused"))
        else:
            wire.ring()
    assert 200 < attempts < 500
    assert len(wire.connection._timers._heap) < 200
    assert len(wire.connection._errors) == 3
