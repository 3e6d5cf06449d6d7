"""ConfigFeed: when the configuration is read."""

from __future__ import annotations

import pytest

from jetstream.pull.groups.feed import ConfigFeed
from natsproto.connection.effects import Wake
from natsproto.connection.waitable import Waitable

pytestmark = pytest.mark.rule("D-GROUP-13")

TABLE = [  # inputs at their times, and when the configuration is read next
    ([], 10.0),
    ([("read", 10.0, True)], 15.0),
    ([("read", 10.0, True), ("hint", 12.0)], 12.0),
    ([("hint", 12.0), ("read", 12.0, False)], 12.1),
    ([("hint", 12.0), ("read", 12.0, False), ("read", 12.1, False)], 12.5),
    ([("hint", 12.0), ("read", 12.3, False)], 12.5),
    ([("hint", 12.0), ("read", 12.0, True)], 17.0),
    ([("hint", 12.0), ("read", 14.0, False)], 19.0),
    ([("read", 10.0, True), ("connected", 11.0)], 11.0),
    ([("failed", 11.0)], 12.0),
]


@pytest.mark.parametrize(("inputs", "next_at"), TABLE)
def test_when_the_configuration_is_read(inputs, next_at):
    feed = ConfigFeed(5.0, 10.0)
    for name, now, *rest in inputs:
        if name == "read":
            feed.was_read(rest[0], now)
        elif name == "hint":
            assert feed.receive(None, now)
        elif name == "connected":
            feed.connected(now)
        else:
            feed.failed(now)
    assert feed.next_at == next_at


def test_a_hint_wakes_the_caller_whatever_it_waits_for():
    feed = ConfigFeed(5.0, 10.0)
    feed.connected(1.0)
    assert feed.take_effects() == [Wake([feed])]
    feed.target = Waitable()
    assert feed.receive(None, 2.0)
    assert feed.take_effects() == [Wake([feed.target])]
    assert feed.pending() == 0
