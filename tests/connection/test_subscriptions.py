"""The messages that a subscription keeps and drops; maxima as the server counts them."""

from __future__ import annotations

import pytest

from natsproto.events import SlowConsumer
from tests.connection.support import PONG, Wire, hmsg, msg


def reconnect(wire):
    """Lose the transport and get another; return the data sent after CONNECT and PING."""
    wire.lost(at=wire.now + 10).greet().sent()
    return wire.data(PONG).sent()


AUTO = [
    # what                                    steps (number: messages come; str: command or event)
    ("before any message", ["after 3", 2], b"SUB a 1\r\nUNSUB 1 1\r\n", 1),
    ("after some messages", [2, "after 3"], b"SUB a 1\r\nUNSUB 1 1\r\n", 1),
    ("twice", [2, "after 9", "reconnect", 3], b"SUB a 1\r\nUNSUB 1 4\r\n", 4),
    ("on the second connection", [2, "reconnect", 1, "after 5"], b"SUB a 1\r\nUNSUB 1 2\r\n", 2),
    ("while there was none", [2, "lost", "after 5"], b"SUB a 1\r\nUNSUB 1 3\r\n", 3),
]


@pytest.mark.rule("SUB-2", "SUB-3")
@pytest.mark.parametrize(
    ("steps", "sent", "left"), [pytest.param(*row[1:], id=row[0]) for row in AUTO]
)
def test_the_maximum_over_reconnects(steps, sent, left):
    wire = Wire().up()
    mailbox = wire.subscribe("a")
    for step in steps:
        if isinstance(step, int):
            wire.data(msg("a", 1) * step)
        elif step == "reconnect":
            reconnect(wire)
        elif step == "lost":
            wire.lost()
        else:
            wire.connection.unsubscribe(1, after=int(step.split()[1]))
    if wire.state == "CONNECTED":
        assert reconnect(wire) == sent
    else:
        wire.greet().sent()
        assert wire.data(PONG).sent() == sent
    wire.data(msg("a", 1) * (left - 1))
    assert not mailbox.ended
    wire.data(msg("a", 1) * 2)  # one more than the maximum
    assert (mailbox.ended, mailbox.pending()) == (True, mailbox.max_received)
    assert mailbox in wire.ready()
    assert reconnect(wire) == b""


@pytest.mark.rule("SUB-2")
def test_the_maximum_is_sent_as_the_server_counts():
    wire = Wire().up()
    mailbox = wire.subscribe("a")
    wire.data(msg("a", 1) * 3)
    wire.lost(at=10.0).greet().data(PONG).forget()
    wire.data(msg("a", 1) * 2)
    wire.connection.unsubscribe(1, after=9)
    assert wire.sent() == b"UNSUB 1 6\r\n"  # 2 were counted since this SUB, 4 are due
    wire.connection.unsubscribe(1, after=5)  # which have already arrived
    assert wire.sent() == b"UNSUB 1\r\n"
    assert mailbox.ended


@pytest.mark.rule("SUB-3")
def test_dropped_messages_count_towards_the_maximum():
    wire = Wire().up()
    mailbox = wire.subscribe("a", max_msgs=1)
    wire.connection.unsubscribe(1, after=3)
    wire.data(msg("a", 1) * 3)
    assert (mailbox.ended, mailbox.pending(), mailbox.dropped) == (True, 1, 2)


RUNS = [  # sids in the order of one read (0: a PING), and what the maximum of 3 leaves to the first
    ("one message", [1], [0]),
    ("all in a row", [1, 1, 1, 1, 1], [0, 1, 2]),
    ("by turns", [1, 2, 1, 2, 1, 2, 1], [0, 2, 4]),
    ("in two rows", [1, 1, 2, 2, 1, 1], [0, 1, 4]),
    ("a PING in the row", [1, 1, 0, 1, 1], [0, 1, 3]),
    ("no one is subscribed anymore", [9, 9, 1, 9], [2]),
]


@pytest.mark.rule("SUB-2")
@pytest.mark.parametrize(("sids", "taken"), [row[1:] for row in RUNS], ids=[row[0] for row in RUNS])
def test_messages_keep_their_order_however_they_are_mixed(sids, taken):
    wire = Wire().up()
    first = wire.subscribe("a")
    second = wire.subscribe("b")
    wire.connection.unsubscribe(1, after=3)
    wire.data(
        b"".join(msg("a", sid, b"%d" % i) if sid else b"PING\r\n" for i, sid in enumerate(sids))
    )
    assert [int(first.pop().data) for _ in range(first.pending())] == taken
    assert first.ended == (len(taken) == 3)
    places = [i for i, sid in enumerate(sids) if sid == 2]
    assert [int(second.pop().data) for _ in range(second.pending())] == places
    assert wire.connection.stats.in_msgs == len(sids) - sids.count(0)


@pytest.mark.rule("SUB-5")
def test_limits_are_set_by_the_subscription_or_the_options():
    connection = Wire(max_msgs=3, max_bytes=7).connection
    assert [
        (box.max_msgs, box.max_bytes)
        for box in (connection.mailbox(0, 0), connection.mailbox(5, 0), connection.mailbox(0, 5))
    ] == [(3, 7), (5, 7), (3, 5)]


@pytest.mark.rule("SUB-5", "D-SUB-6")
def test_drops_are_reported_once_per_read_and_add_up():
    wire = Wire().up()
    a = wire.subscribe("a", max_msgs=1)
    b = wire.subscribe("\udcff", max_msgs=2)
    told = {1: 0, 2: 0}
    for count in (1, 4, 2):
        wire.data((msg("a", 1) + msg("x", 2)) * count)
        events = wire.events()
        assert len(events) <= 2
        for event in events:
            assert isinstance(event, SlowConsumer)
            assert event.subject == {1: "a", 2: "\udcff"}[event.sid]
            told[event.sid] += event.dropped
    assert (told[1], told[2]) == (a.dropped, b.dropped) == (6, 5)


@pytest.mark.rule("SUB-5")
def test_headers_count():
    wire = Wire().up()
    mailbox = wire.subscribe("a", max_bytes=1000)
    block = b"NATS/1.0\r\nK: " + b"v" * 300 + b"\r\n\r\n"
    wire.data(hmsg("a", 1, block) * 10)
    assert (mailbox.pending(), mailbox.dropped) == (2, 8)
    assert 600 < mailbox.bytes <= 1000


@pytest.mark.rule("D-HEALTH-1")
def test_slow_subscriptions_are_known_until_they_end():
    wire = Wire().up()
    wire.subscribe("a", max_msgs=1)
    wire.subscribe("b", max_msgs=1)
    wire.data(msg("a", 1) * 3 + msg("b", 2) * 2)
    assert (wire.connection.subscriptions.slow, wire.connection.stats.dropped) == ({1, 2}, 3)
    wire.connection.unsubscribe(1)
    assert wire.connection.subscriptions.slow == {2}
    wire.connection.unsubscribe(2, after=4)
    wire.data(msg("b", 2) * 2)  # the last one is dropped, and ends it
    assert (wire.connection.subscriptions.slow, wire.connection.stats.dropped) == (set(), 5)
