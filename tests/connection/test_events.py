from __future__ import annotations

import pytest

from natsproto.errors import ConnectionLost
from natsproto.events import (
    AttemptFailed,
    Closed,
    Connected,
    Disconnected,
    Discovered,
    EventQueue,
    LameDuck,
    PublishDropped,
    ServerError,
    SlowConsumer,
)


def fill(queue, *events):
    for event in events:
        queue.add(event)


def rest(queue):
    found = []
    while (event := queue.pop()) is not None:
        found.append(event)
    return found


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (Connected("u", True), "Connected(again=True, url='u')"),
        (Disconnected("u", None), "Disconnected(error=None, url='u')"),
        (
            AttemptFailed("u", ConnectionLost("x")),
            "AttemptFailed(error=ConnectionLost('x'), url='u')",
        ),
        (Discovered(["u"]), "Discovered(urls=['u'])"),
        (LameDuck("u"), "LameDuck(url='u')"),
        (ServerError(ConnectionLost("x")), "ServerError(error=ConnectionLost('x'))"),
        (SlowConsumer("s", 1, 2), "SlowConsumer(dropped=2, sid=1, subject='s')"),
        (Closed(None), "Closed(error=None, unconfirmed=0)"),
        (PublishDropped("s", 9), "PublishDropped(size=9, subject='s')"),
    ],
)
def test_events_show_their_fields(event, text):
    assert repr(event) == text


def test_events_come_out_in_the_order_they_went_in():
    queue = EventQueue()
    fill(queue, LameDuck("a"), LameDuck("b"))
    assert queue.pop() == LameDuck("a")
    fill(queue, LameDuck("c"))
    assert rest(queue) == [LameDuck("b"), LameDuck("c")]
    assert queue.pop() is None


@pytest.mark.rule("SUB-6")
def test_unread_drops_of_one_subscription_are_one_event():
    queue = EventQueue()
    fill(queue, SlowConsumer("s", 1, 2), LameDuck("a"), SlowConsumer("t", 2, 1))
    fill(queue, SlowConsumer("s", 1, 3))
    assert rest(queue) == [LameDuck("a"), SlowConsumer("t", 2, 1), SlowConsumer("s", 1, 5)]
    fill(queue, SlowConsumer("s", 1, 4))  # those before were read: this tells of new ones only
    assert rest(queue) == [SlowConsumer("s", 1, 4)]


@pytest.mark.rule("EVENT-5")
def test_the_newest_are_kept_and_drops_before_others():
    queue = EventQueue(limit=3)
    fill(queue, SlowConsumer("s", 1, 2), *[LameDuck(str(i)) for i in range(9)])
    assert rest(queue) == [SlowConsumer("s", 1, 2), LameDuck("7"), LameDuck("8")]


@pytest.mark.rule("EVENT-5")
def test_more_slow_subscriptions_than_events_that_are_kept():
    queue = EventQueue(limit=2)
    fill(queue, *[SlowConsumer("s", sid, 1) for sid in range(5)])
    assert rest(queue) == [SlowConsumer("s", 3, 1), SlowConsumer("s", 4, 1)]


@pytest.mark.rule("EVENT-5")
def test_the_limit_if_not_said_otherwise():
    queue = EventQueue()
    fill(queue, *[LameDuck(str(i)) for i in range(1000)])
    assert [event.url for event in rest(queue)] == [str(i) for i in range(744, 1000)]
