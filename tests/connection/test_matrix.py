"""Every state and input on a real connection: it follows the table and never waits forever."""

from __future__ import annotations

import ast
import random

import pytest

from natsproto.connection import lifecycle
from natsproto.connection.states import (
    CLOSED,
    CONNECTED,
    DIALING,
    INPUTS,
    NEW,
    STATES,
    TRANSITIONS,
    WAITING,
)
from natsproto.errors import InvalidState
from tests.connection.support import PING, PONG, Wire, err, info
from tests.core import ROOT

ARGUMENTS = {"receive_data": [PING]}
KEY = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"


def in_state(state, **options):
    """Return a wire that has reached this state in the shortest way."""
    options = {"servers": ["tls://a", "tls://b"], "max_reconnects": -1, **options}
    if state == "SIGNING":
        options.update(nkey=KEY, sign=print, host_signing=True)
    wire = Wire(**options)
    if state == NEW:
        return wire
    wire.connect()
    if state == CLOSED:
        wire.tell("close")
    elif state != DIALING:
        wire.opened()
        if state != "OPENING":
            wire.data(info(tls_required=True, nonce="n"))
        if state in ("SIGNING", "GREETING", CONNECTED, WAITING):
            wire.secured()
        if state in (CONNECTED, WAITING):
            wire.data(PONG)
        if state == WAITING:
            wire.lost().lost()
    assert wire.state == state
    return wire.forget()


@pytest.mark.rule("D-CONN-23")
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("happened", INPUTS)
def test_every_input_in_every_state(state, happened):
    wire = in_state(state)
    deadline = wire.deadline
    if (state, happened) in TRANSITIONS:
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


@pytest.mark.rule("CONN-7", "D-CLOCK-1")
@pytest.mark.parametrize("state", STATES)
def test_an_early_timer_changes_nothing(state):
    wire = in_state(state)
    for _ in range(3):
        wire.timer()
    assert (wire.state, wire.effects(), wire.sent(), wire.ready()) == (state, [], b"", [])


@pytest.mark.rule("CONN-7")
@pytest.mark.parametrize("state", [state for state in STATES if state not in (NEW, CLOSED)])
@pytest.mark.parametrize("limit", [0, 1, 3])
def test_a_connection_ends_even_if_its_adapter_is_silent_forever(state, limit):
    """If the adapter reports nothing and only the timer fires, the client is closed in the end."""
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
    """Count the attempts of one simulated hour in which every connection is refused at once."""
    wire = Wire(servers=["a", "b", "c"], max_reconnects=-1).up().lost(at=1.0)
    attempts = 0
    while wire.now < 3600.0:
        if wire.state == DIALING:
            attempts += 1
            wire.lost(OSError("refused"))
        else:
            wire.ring()
    assert 200 < attempts < 500
    assert len(wire.connection.bus.timers.heap) < 200
    assert len(wire.connection.lifecycle.attempts._errors) == 3


# The table describes the state completely: every row occurs, and nothing else does.


class Recorder(dict):
    """The table, with a list of the rows that were looked up and found."""

    def __init__(self):
        super().__init__(TRANSITIONS)
        self.rows = []

    def __getitem__(self, row):
        found = super().__getitem__(row)
        self.rows.append(row)
        return found


@pytest.fixture
def recorder(monkeypatch):
    recorder = Recorder()
    monkeypatch.setattr(lifecycle, "TRANSITIONS", recorder)
    return recorder


def give(wire, name):
    """Pass one input or command that the state allows to the wire."""
    data = {
        "info": info(),
        "info tls": info(tls_required=True),
        "info plain": info(tls_required=False, tls_available=False),
        "info ldm": info(ldm=True, connect_urls=["c:4222"]),
        "pong": PONG,
        "ping": PING,
        "refused": err("Authorization Violation"),
        "stale": err("Stale Connection"),
        "part": b"PI",
        "garbage": b"\x00\r\n",
    }
    if name in data:
        wire.data(data[name])
    elif name == "lost":
        wire.lost()
    elif name == "ring":
        if wire.deadline is not None:
            wire.timer(at=wire.deadline)
    else:
        wire.tell(name)


COMMANDS = ["force_reconnect", "close", "ring"]
REPORTS = ["transport_opened", "tls_started", "lost", "info", "info tls", "info plain", "info ldm"]
REPORTS += ["pong", "ping", "refused", "stale", "part", "garbage"]


def wander(seed):
    """Yield a wire after each step of a random walk; illegal inputs are refused on the way."""
    rng = random.Random(seed)
    url = rng.choice(["nats://a", "tls://a", "ws://a", "wss://a"])
    wire = Wire(
        servers=[url, url.replace("//a", "//b")],
        max_reconnects=rng.choice([-1, 0, 2]),
        tls_first=url.startswith("tls") and rng.random() < 0.3,
    )
    for _ in range(60):
        legal = [name for name in INPUTS if (wire.state, name) in TRANSITIONS]
        names = [name for name in REPORTS if name in legal or name not in INPUTS]
        if "receive_data" not in legal:
            names = [name for name in names if name in (*INPUTS, "lost")]
        if wire.state == NEW:
            names = ["connect"]
        if wire.state == CLOSED:
            return
        name = rng.choice(names * 3 + COMMANDS[: 2 if rng.random() < 0.05 else 0] + ["ring"])
        try:
            give(wire, name)
        except InvalidState:
            assert name != "lost" or wire.state in (NEW, WAITING)
        yield wire


@pytest.mark.rule("D-CONN-23")
def test_every_row_of_the_table_happens(recorder):
    for seed in range(300):
        for _ in wander(seed):
            pass
    for state in STATES:
        for happened in INPUTS:
            if (state, happened) in TRANSITIONS:
                wire = in_state(state)
                arguments = ARGUMENTS.get(happened, [])
                wire.lost() if happened == "transport_closed" else wire.tell(happened, *arguments)
        if state not in (NEW, CLOSED):
            in_state(state).tell("close")
    assert set(recorder.rows) == set(TRANSITIONS)


@pytest.mark.rule("D-CONN-23")
def test_rows_follow_each_other_without_a_gap(recorder):
    """The state is always the one that the last row led to, so nothing else changes it."""
    for seed in range(100):
        recorder.rows.clear()
        for wire in wander(seed):
            state = NEW
            for row in recorder.rows:
                assert row[0] == state
                state = TRANSITIONS[row]
            assert wire.state == state


def test_one_line_of_the_package_changes_the_state():
    found = []
    for path in sorted((ROOT / "natsproto").rglob("*.py")):
        if path.name == "health.py":
            continue  # a record with a field of that name
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            targets = node.targets if isinstance(node, ast.Assign) else []
            targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
            names = [each.attr for each in targets if isinstance(each, ast.Attribute)]
            found += [ast.unparse(node)] * names.count("state")
    assert found == ["self.state: str = NEW", "self.state = TRANSITIONS[self.state, what]"]
