from __future__ import annotations

import pytest

from jetstream.machine.base import Alarm, Machine
from natsproto.connection.effects import Publish


def test_a_machine_says_once_that_it_has_orders():
    machine = Machine()
    busy = machine.busy
    assert (machine.has_effects, machine.take_effects()) == (False, [])
    machine.emit(b"a", b"1", b"r")
    machine.emit(b"b", b"2", b"", b"block")
    assert (machine.has_effects, busy) == (True, [machine])
    assert machine.take_effects() == [
        Publish(b"a", b"1", b"r", None),
        Publish(b"b", b"2", b"", b"block"),
    ]
    assert (machine.has_effects, machine.take_effects()) == (False, [])
    machine.emit(b"a", b"1", b"r")
    assert busy == [machine, machine]


@pytest.mark.parametrize(
    ("asked", "deadline"), [([3.0], 3.0), ([3.0, 2.0], 2.0), ([2.0, 3.0], 2.0), ([], None)]
)
def test_the_earliest_deadline_counts(asked, deadline):
    machine = Machine()
    for each in asked:
        machine.wake_by(each)
    assert machine.deadline == deadline


def test_a_machine_leaves_once():
    machine = Machine()
    machine.leave()
    machine.leave()
    assert (machine.leaving, machine.busy) == (True, [machine])


def test_an_alarm_wakes_those_who_wait_for_the_machine():
    machine = Machine()
    alarm = Alarm(machine)
    alarm.deadline = 3.0
    assert alarm.handle_timer(3.0) is False
    assert (machine.ready, alarm.deadline, machine.deadline) == ([machine], None, None)
