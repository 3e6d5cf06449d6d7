"""Each row of rows.py in each state, in one read, in pieces, and with more data after it."""

from __future__ import annotations

import pytest

from natsproto.events import AttemptFailed, Disconnected
from tests.connection.support import PING, PONG, Wire, info
from tests.hostile.rows import GOES_ON, ROWS, STUCK

STATES = ["OPENING", "GREETING", "CONNECTED"]


def in_state(state):
    """Return a client with a subscription, on its second connection: the first one was good."""
    wire = Wire(servers=["nats://a", "nats://b"], max_reconnects=-1, ping_interval=10.0)
    mailbox = wire.subscribe("a", max_msgs=100)
    wire.up().lost(at=100.0).opened()
    if state != "OPENING":
        wire.data(info())
    if state == "CONNECTED":
        wire.data(PONG)
    assert wire.state == state
    wire.now = 200.0 if state == "CONNECTED" else 101.0
    return wire.forget(), mailbox


def pieces(data, size):
    return [data[i : i + size] for i in range(0, len(data), size)]


def feed(wire, chunks):
    """Feed the data until the client hangs up, and check the memory in use after each read."""
    state = wire.state
    for chunk in chunks:
        wire.data(chunk)
        transport = wire.connection.transport
        assert transport is None or transport.parser._kept.size <= 1024 * 1024 + len(chunk)
        assert wire.connection.outbound.size == 0
        if wire.effects() or (state, wire.state) == ("CONNECTED", "DIALING"):
            return True
    return False


def listens(wire):
    """Return whether the client has completed, or now completes, the handshake and answers PING."""
    if wire.state == "OPENING":
        wire.data(info())
    if wire.state == "GREETING":
        wire.data(PONG)
    wire.sent()
    return wire.state == "CONNECTED" and wire.data(PING).sent() == PONG


def comes_back(wire):
    """Return whether the client dials again and the next transport works."""
    assert wire.state in ("DIALING", "WAITING")
    if wire.state == "WAITING":
        wire.ring()
    return listens(wire.opened())


def last_error(wire):
    events = wire.events()
    assert len(repr(events)) < 20_000
    errors = [e.error for e in events if isinstance(e, (AttemptFailed, Disconnected))]
    return type(errors[-1]) if errors else None


@pytest.mark.rule("CONN-2", "D-CONN-3", "D-CONN-20", "ERR-2", "ERR-3", "ERR-9")
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row(row, state):
    outcome = getattr(row, state.lower())
    size = 1 if len(row.data) < 200 else 16 * 1024
    tail = b"" if outcome == STUCK else PING  # it would complete a partial line
    for chunks in ([row.data], pieces(row.data, size), [row.data + tail]):
        wire, mailbox = in_state(state)
        hung_up = feed(wire, chunks)
        assert mailbox.pending() == 0 or state == "CONNECTED"
        if outcome == STUCK:
            assert not hung_up
            while not hung_up:  # the deadline ends it
                wire.ring()
                hung_up = bool(wire.effects())
            assert wire.now <= 250.0
            assert comes_back(wire)
        elif outcome == GOES_ON:
            assert not hung_up
            assert listens(wire)
        else:
            assert hung_up
            assert last_error(wire) is outcome
            assert comes_back(wire)


def test_the_table():
    assert len(ROWS) >= 55
    assert len({row.name for row in ROWS}) == len(ROWS)
