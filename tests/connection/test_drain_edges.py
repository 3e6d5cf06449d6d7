"""The parts of a drain and a close, at the moments when two things coincide."""

from __future__ import annotations

import pytest

from natsproto.connection.bus import Bus
from natsproto.connection.drain import Drain, Ending
from natsproto.connection.outbound import Outbound
from natsproto.connection.pings import Pings
from natsproto.connection.receiver import Mailbox
from natsproto.wire.frames import Info
from tests.connection.support import PING


def online():
    bus = Bus()
    outbound = Outbound(bus, 1000)
    outbound.learn(Info({}))
    outbound.release()
    bus.online = True
    return bus, outbound, Pings(bus, outbound)


@pytest.mark.parametrize(("receivers", "what"), [(None, "close"), ([], "drain")])
def test_what_a_timeout_of_it_names(receivers, what):
    _, _, pings = online()
    assert Drain(pings, 9.0, receivers).what == what


@pytest.mark.rule("DRAIN-4")
def test_at_its_deadline_the_connection_settles_it():
    """It has no result before the client is closed, so no caller is woken by the timer."""
    _, _, pings = online()
    drain = Drain(pings, 9.0, [])
    assert drain.handle_timer(9.0) is False
    assert (drain.done, drain.deadline, drain.advance()) == (False, None, True)


@pytest.mark.rule("DRAIN-4", "D-DRAIN-10")
def test_after_its_deadline_no_step_is_taken():
    """Neither a flush is started, nor does a late PONG turn the timeout into a success."""
    _, outbound, pings = online()
    mailbox = Mailbox(10, 100)
    drain = Drain(pings, 9.0, [mailbox])
    assert drain.advance() is False
    drain.handle_timer(9.0)
    mailbox.end()
    assert drain.advance() is True
    assert outbound.take() == []
    drain.settle(None, "closed")
    assert str(drain.error) == "drain timed out: 0 messages were not taken"


@pytest.mark.rule("DRAIN-3")
def test_a_complete_drain_takes_no_further_step():
    _, outbound, pings = online()
    drain = Drain(pings, 9.0, [])
    assert drain.advance() is False
    assert outbound.take() == [PING]
    request = pings.pong()
    assert request is not None
    request.finish()
    assert drain.advance() is True
    outbound.publish("late")
    outbound.take()
    assert drain.advance() is True
    assert outbound.take() == []  # no PING for what was published after the end


@pytest.mark.rule("CONN-27")
def test_a_close_at_the_same_deadline_changes_nothing():
    bus, _, pings = online()
    ending = Ending(bus, pings)
    close = ending.start_close(4.0)
    ending.start_close(4.0)
    ending.start_close(8.0)
    assert close.deadline == 4.0
    assert bus.timers.pop_due(4.0) == [close]
