"""The place where parts report."""

from __future__ import annotations

import pytest

from natsproto.connection.bus import Bus
from natsproto.connection.waitable import Waitable
from natsproto.errors import ConnectionClosed
from natsproto.events import Closed


def test_an_event_makes_its_readers_ready():
    bus = Bus()
    bus.emit(Closed(None))
    assert bus.ready == [bus.events]
    assert bus.events.pop() == Closed(None)


def test_a_closed_connection_says_why():
    bus = Bus()
    bus.check_open()
    bus.closed = "the connection is closed: why"
    with pytest.raises(ConnectionClosed, match="why"):
        bus.check_open()


@pytest.mark.rule("D-CLOCK-1")
@pytest.mark.parametrize(
    ("times", "deadline"), [([5.0], 5.0), ([5.0, 7.0], 5.0), ([5.0, 3.0], 3.0)]
)
def test_a_waitable_wakes_at_the_earliest_requested_time(times, deadline):
    bus, waitable = Bus(), Waitable()
    for time in times:
        bus.wake_at(waitable, time)
    assert (waitable.deadline, bus.timers.next_deadline()) == (deadline, deadline)
