"""Leaving a server that is about to stop, without a connection."""

from __future__ import annotations

import pytest

from natsproto.connection.bus import Bus
from natsproto.connection.lame_duck import LameDuck
from natsproto.events import LameDuck as LameDuckEvent
from tests.connection.support import Script

URL = "nats://a:4222"


def make(*fractions):
    bus = Bus()
    return LameDuck(bus, Script(*fractions)), bus


@pytest.mark.rule("LDM-1", "LDM-2")
def test_the_first_notice_is_reported_and_schedules_the_move():
    duck, bus = make(0.25, 0.75)
    duck.notice(URL, 10.0, True)
    duck.notice(URL, 11.0, True)
    assert (bus.events.pop(), bus.events.pop()) == (LameDuckEvent(URL), None)
    assert (duck.timer.deadline, bus.timers.next_deadline()) == (10.25, 10.25)


def test_without_another_server_it_stays_until_there_is_one():
    duck, bus = make(0.5)
    duck.notice(URL, 10.0, False)
    assert (duck.timer.deadline, len(bus.ready)) == (None, 1)
    duck.notice(URL, 20.0, True)
    assert (duck.timer.deadline, len(bus.ready)) == (20.5, 1)


@pytest.mark.rule("D-LDM-3")
def test_it_is_over_when_the_fence_is_settled():
    duck, bus = make(0.5)
    duck.notice(URL, 10.0, True)
    assert not duck.is_over
    fence = duck.leave(15.0)
    duck.notice(URL, 11.0, True)  # a second time it has no effect
    assert (duck.timer.deadline, duck.fence, duck.is_over) == (None, fence, False)
    assert bus.timers.pop_due(15.0) == [fence]
    fence.finish()
    assert duck.is_over


def test_the_timer_stops_with_the_connection():
    duck, _ = make()
    duck.notice(URL, 10.0, True)
    duck.stop()
    assert duck.timer.deadline is None
