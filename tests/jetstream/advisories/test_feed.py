from __future__ import annotations

import pytest

from jetstream.advisories.feed import Feed, Source
from natsproto.connection.effects import Drop, Wake
from natsproto.errors import ConnectionClosed, PermissionDenied
from natsproto.events import SlowConsumer
from natsproto.wire.frames import Msg
from tests.connection.support import Wire


def msg(data):
    return Msg(b"s", 1, b"", data, None, size=len(data))


def feed_of(count, max_msgs=10, max_bytes=1000):
    feed = Feed(max_msgs, max_bytes)
    return feed, [Source(feed) for _ in range(count)]


def test_messages_of_all_sources_in_order():
    feed, (one, two) = feed_of(2)
    for number, source in enumerate((one, two, one)):
        assert source.receive(msg(b"%d" % number), 0.0) is False
    assert one.effects == [Wake([feed]), Wake([feed])]
    assert two.effects == [Wake([feed])]
    assert (feed.pending(), one.pending(), two.pending()) == (3, 3, 3)
    assert [feed.pop().data for _ in range(3)] == [b"0", b"1", b"2"]
    assert feed.pending() == 0


LIMITS = [
    # max_msgs, max_bytes, payloads, those that are kept
    (2, 1000, [b"a", b"b", b"c"], [b"a", b"b"]),
    (9, 45, [b"a" * 10, b"b" * 40, b"c" * 10], [b"a" * 10, b"c" * 10]),
]


@pytest.mark.rule("D-ADVIS-8")
@pytest.mark.parametrize(("max_msgs", "max_bytes", "payloads", "kept"), LIMITS)
def test_limits(max_msgs, max_bytes, payloads, kept):
    feed, (source,) = feed_of(1, max_msgs, max_bytes)
    for payload in payloads:
        source.receive(msg(payload), 0.0)
    assert feed.dropped == len(payloads) - len(kept)
    assert source.effects.count(Drop()) == feed.dropped
    assert [feed.pop().data for _ in kept] == kept
    source.receive(msg(payloads[0]), 0.0)
    assert feed.pending() == 1
    feed.clear()
    assert feed.pending() == 0
    for payload in kept:
        assert feed.add(msg(payload))


def test_drops_are_reported():
    wire = Wire().up()
    feed, (source,) = feed_of(1, max_msgs=1)
    wire.connection.subscribe("s", source)
    wire.data(b"MSG s 1 1\r\na\r\n" * 3)
    assert wire.events()[-1] == SlowConsumer("s", 1, 2)
    assert feed.dropped == 2


@pytest.mark.rule("D-ADVIS-9")
def test_it_ends_with_its_first_source():
    wire = Wire().up()
    feed, sources = feed_of(3)
    for subject, source in zip("abc", sources, strict=True):
        wire.connection.subscribe(subject, source)
    wire.sent()
    wire.data(b"MSG a 1 1\r\nx\r\n-ERR 'Permissions Violation for Subscription to \"b\"'\r\n")
    assert feed.ended
    assert isinstance(feed.error, PermissionDenied)
    assert wire.sent() == b"UNSUB 1\r\nUNSUB 3\r\n"
    assert [source.ended for source in sources] == [True] * 3
    assert feed in wire.ready()
    assert feed.pending() == 1
    assert feed.end(ConnectionClosed("x")) == []
    assert isinstance(feed.error, PermissionDenied)
    assert sources[1].end() is False


def test_unsubscribing_one_ends_all():
    wire = Wire().up()
    feed, sources = feed_of(2)
    for source in sources:
        wire.connection.subscribe("s", source)
    wire.sent()
    for source in sources:
        wire.connection.unsubscribe(source.sid)
    wire.connection.apply(sources[0])
    assert wire.sent() == b"UNSUB 1\r\nUNSUB 2\r\n"
    assert (feed.ended, feed.error) == (True, None)
