"""The lifecycle and its traffic without a connection: inputs that change nothing, and the ends."""

from __future__ import annotations

import pytest

from natsproto.connection.effects import Dial, Hangup
from natsproto.connection.receiver import Receiver
from natsproto.connection.waitable import Waitable
from natsproto.errors import InvalidState
from natsproto.events import Connected
from tests.connection.rigs import Rig
from tests.connection.support import names


@pytest.mark.rule("D-CONN-23")
def test_an_input_that_the_table_does_not_have():
    with pytest.raises(InvalidState, match=r"tls_started\(\) is not legal in state NEW"):
        Rig().lifecycle.tls_started(0.0)


INPUTS = [("transport_opened", ()), ("tls_started", ()), ("transport_closed", (None,))]


@pytest.mark.rule("D-CONN-25")
@pytest.mark.parametrize(("name", "args"), INPUTS)
def test_reports_before_the_hangup_is_taken(name, args):
    rig = Rig(max_reconnects=-1).up()
    rig.lifecycle.hang_up(None, 5.0)
    getattr(rig.lifecycle, name)(5.0, *args)
    assert rig.lifecycle.state == "DIALING"
    assert names(rig.effects()) == ["Hangup", "Dial"]


@pytest.mark.rule("D-CONN-24")
@pytest.mark.parametrize(("name", "args"), INPUTS)
def test_reports_after_the_end(name, args):
    rig = Rig().up()
    rig.lifecycle.shut(None)
    assert rig.effects() == [Hangup()]
    getattr(rig.lifecycle, name)(5.0, *args)
    assert (rig.lifecycle.state, rig.effects()) == ("CLOSED", [])


@pytest.mark.rule("PING-2", "PING-3")
def test_pings_that_nothing_answers():
    rig = Rig(ping_interval=10.0, max_pings_out=2).up()
    alarm = rig.lifecycle.alarm
    times = []
    for _ in range(3):
        times.append(alarm.deadline)
        assert rig.lifecycle.handle_timer(alarm, alarm.deadline)
    assert times == [10.0, 20.0, 30.0]
    assert rig.effects() == [Hangup(), Dial("a", 4222, False)]
    assert not rig.lifecycle.handle_timer(Waitable(), 99.0)  # of the traffic


def test_effects_of_machines_are_applied_at_the_end_of_an_input():
    rig = Rig().up()
    machine = Receiver()
    rig.traffic.subscriptions.subscribe("s", machine)
    machine.leave()
    rig.traffic.subscriptions.collect(machine)
    rig.lifecycle.after(1.0)
    assert machine.ended


@pytest.mark.rule("DRAIN-7")
def test_a_drain_that_begins_after_the_end():
    rig = Rig().up()
    assert rig.bus.events.pop() == Connected("nats://a:4222", False)
    rig.lifecycle.shut(None)
    drain = rig.traffic.start_drain(9.0)
    rig.lifecycle.advance_ending()
    assert (drain.done, drain.error) == (True, None)
