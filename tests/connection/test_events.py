from __future__ import annotations

import pytest

from natsproto.errors import ConnectionLost
from natsproto.events import (
    AttemptFailed,
    Closed,
    Connected,
    Disconnected,
    Discovered,
    Event,
    EventQueue,
    LameDuck,
    PublishDropped,
    ServerChoiceFailed,
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
        (
            ServerChoiceFailed(ConnectionLost("x")),
            "ServerChoiceFailed(error=ConnectionLost('x'))",
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


LOST = ConnectionLost("reset")
LOGGED = [  # event, level, text
    (Connected("u", False), "info", "connected to u"),
    (Connected("u", True), "info", "reconnected to u"),
    (Disconnected("u", None), "info", "disconnected from u: by the client"),
    (Disconnected("u", LOST), "warning", "disconnected from u: reset"),
    (AttemptFailed("u", LOST), "warning", "could not connect to u: reset"),
    (Discovered(["u", "v"]), "debug", "discovered servers: u, v"),
    (LameDuck("u"), "info", "server u is about to stop (lame duck mode)"),
    (ServerError(LOST), "warning", "server reported an error: reset"),
    (SlowConsumer("s", 1, 2), "warning", "subscription 1 to 's' dropped 2 messages: queue full"),
    (SlowConsumer("", 0, 2), "warning", "several subscriptions dropped 2 messages: queues full"),
    (
        PublishDropped("s", 9),
        "warning",
        "publish to 's' dropped: its 9 bytes exceed the max_payload of the new server",
    ),
    (Closed(None), "info", "closed"),
    (Closed(LOST), "warning", "closed: reset"),
    (Closed(None, 2), "warning", "closed (2 messages are unconfirmed)"),
    (Event(), "warning", "Event()"),
]


@pytest.mark.rule("D-LOG-1")
@pytest.mark.parametrize(("event", "level", "text"), LOGGED)
def test_events_in_the_log(event, level, text):
    assert (event.level, event.text) == (level, text)


@pytest.mark.rule("D-LOG-1")
def test_the_log_sees_every_event_in_addition_to_the_readers():
    queue = EventQueue()
    fill(queue, LameDuck("a"), LameDuck("b"))
    assert queue.reports.take() == [LameDuck("a"), LameDuck("b")] == rest(queue)


def test_events_are_returned_in_order():
    queue = EventQueue()
    fill(queue, LameDuck("a"), LameDuck("b"))
    assert queue.pop() == LameDuck("a")
    fill(queue, LameDuck("c"))
    assert rest(queue) == [LameDuck("b"), LameDuck("c")]
    assert queue.pop() is None


@pytest.mark.rule("D-SUB-6")
def test_unread_drops_of_one_subscription_are_one_event():
    queue = EventQueue()
    fill(queue, SlowConsumer("s", 1, 2), LameDuck("a"), SlowConsumer("t", 2, 1))
    fill(queue, SlowConsumer("s", 1, 3))
    assert rest(queue) == [LameDuck("a"), SlowConsumer("t", 2, 1), SlowConsumer("s", 1, 5)]
    fill(queue, SlowConsumer("s", 1, 4))  # only drops since the last read
    assert rest(queue) == [SlowConsumer("s", 1, 4)]


FLOOD = [  # case, events, those that a queue of three keeps
    ("others", [LameDuck(str(i)) for i in range(9)], [LameDuck("6"), LameDuck("7"), LameDuck("8")]),
    (
        "others before drops",
        [SlowConsumer("s", 1, 2), *[LameDuck(str(i)) for i in range(9)]],
        [SlowConsumer("s", 1, 2), LameDuck("7"), LameDuck("8")],
    ),
    (
        "others before the connection's state",
        [
            Disconnected("a", None),
            ServerError(ConnectionLost("x")),
            AttemptFailed("b", ConnectionLost("x")),
            Connected("a", True),
            *[Discovered([str(i)]) for i in range(9)],
        ],
        [Disconnected("a", None), Connected("a", True), Discovered(["8"])],
    ),
    (
        "drops are added up",
        [SlowConsumer("s", sid, sid) for sid in range(1, 6)],
        [SlowConsumer("", 0, 1 + 2 + 3), SlowConsumer("s", 4, 4), SlowConsumer("s", 5, 5)],
    ),
    (
        "drops of one that was added up before",
        [*[SlowConsumer("s", sid, sid) for sid in range(1, 6)], SlowConsumer("s", 1, 7)],
        [SlowConsumer("", 0, 1 + 2 + 3 + 4), SlowConsumer("s", 5, 5), SlowConsumer("s", 1, 7)],
    ),
    (
        "drops before the connection's state",
        [Disconnected("a", None), *[SlowConsumer("s", sid, 1) for sid in range(1, 6)]],
        [Disconnected("a", None), SlowConsumer("", 0, 4), SlowConsumer("s", 5, 1)],
    ),
    (
        "one drop stays, the oldest state goes",
        [SlowConsumer("s", 1, 2), *[Connected(str(i), True) for i in range(9)]],
        [SlowConsumer("s", 1, 2), Connected("7", True), Connected("8", True)],
    ),
    (
        "Closed stays",
        [Connected("a", False), Disconnected("b", None), Connected("c", True), Closed(None)],
        [Disconnected("b", None), Connected("c", True), Closed(None)],
    ),
]


@pytest.mark.rule("D-EVENT-5", "D-EVENT-9")
@pytest.mark.parametrize(("case", "events", "kept"), FLOOD, ids=[row[0] for row in FLOOD])
def test_the_events_kept_after_a_flood(case, events, kept):
    queue = EventQueue(limit=3)
    fill(queue, *events)
    assert rest(queue) == kept


@pytest.mark.rule("D-EVENT-9")
def test_six_hundred_slow_subscriptions_lose_no_count():
    queue = EventQueue()
    fill(queue, Connected("a", False), *[SlowConsumer("s", sid, 1) for sid in range(1, 601)])
    fill(queue, Disconnected("a", None), Closed(None))
    found = rest(queue)
    assert len(found) == 256
    assert found[0] == Connected("a", False)
    assert found[-2:] == [Disconnected("a", None), Closed(None)]
    assert sum(event.dropped for event in found[1:-2]) == 600


@pytest.mark.rule("D-EVENT-5", "D-EVENT-6")
def test_closed_stays_where_nothing_else_does():
    queue = EventQueue(limit=1)
    fill(queue, SlowConsumer("s", 1, 1), Closed(None))
    assert rest(queue) == [SlowConsumer("s", 1, 1), Closed(None)]


@pytest.mark.rule("D-EVENT-5")
def test_the_default_limit():
    queue = EventQueue()
    fill(queue, *[LameDuck(str(i)) for i in range(1000)])
    assert [event.url for event in rest(queue)] == [str(i) for i in range(744, 1000)]


A, B, C = LameDuck("a"), LameDuck("b"), LameDuck("c")


@pytest.mark.rule("D-EVENT-8")
def test_readers_at_the_same_time_see_every_event():
    queue = EventQueue()
    fill(queue, A)
    one, other = queue.reader(), queue.reader()
    fill(queue, B)
    assert rest(one) == [A, B]
    fill(queue, C)
    assert rest(other) == [A, B, C]
    assert rest(queue) == [A, B, C]
    assert rest(one) == [C]


@pytest.mark.rule("D-EVENT-8")
def test_a_reader_starts_after_the_events_that_others_returned():
    queue = EventQueue()
    fill(queue, A, B, C)
    assert queue.pop() == A
    first = queue.reader()
    assert first.pop() == B
    assert rest(queue.reader()) == [B, C]  # the first one is still available
    first.left = True
    assert rest(queue.reader()) == [C]
    assert rest(queue) == [B, C]
    fill(queue, A)
    assert rest(queue.reader()) == [A]


@pytest.mark.rule("D-EVENT-8")
def test_the_reader_that_got_furthest_counts():
    queue = EventQueue()
    fill(queue, A, B, C)
    far, near = queue.reader(), queue.reader()
    assert [far.pop(), far.pop(), near.pop()] == [A, B, A]
    far.left = near.left = True
    assert rest(queue.reader()) == [C]


@pytest.mark.rule("D-EVENT-8")
def test_readers_that_are_gone_are_forgotten():
    queue = EventQueue()
    for _ in range(1000):
        queue.reader().left = True
    fill(queue, A)
    assert queue._readers == []


@pytest.mark.rule("D-EVENT-8", "D-EVENT-9")
def test_drops_are_added_up_for_each_reader():
    queue = EventQueue()
    one, other = queue.reader(), queue.reader()
    fill(queue, SlowConsumer("s", 1, 2))
    assert rest(one) == [SlowConsumer("s", 1, 2)]
    fill(queue, SlowConsumer("s", 1, 3))
    assert rest(one) == [SlowConsumer("s", 1, 3)]
    assert rest(other) == [SlowConsumer("s", 1, 5)]
    fill(queue, SlowConsumer("s", 1, 4))
    one.left = True
    assert rest(queue.reader()) == [SlowConsumer("s", 1, 4)]
