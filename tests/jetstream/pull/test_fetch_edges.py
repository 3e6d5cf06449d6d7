"""Fetch: the last byte that fits, the last moment before an alarm, and what wakes its caller."""

from __future__ import annotations

import pytest

from jetstream.errors import HeartbeatMissed
from jetstream.pull.fetch import SLACK_BYTES, Fetcher
from natsproto.errors import ConnectionClosed
from tests.effects import publishes
from tests.jetstream.pulls import INBOX, beat, message, pinned, status, template

SIZE = "409 Message Size Exceeds MaxBytes"


def fetching(batch=3, size=0, at=0.0, **options):
    fetcher = Fetcher(INBOX)
    fetcher.start(template(**options), batch, size, 30.0, at)
    publishes(fetcher)
    return fetcher


def test_nothing_is_known_before_the_first_fetch():
    made = Fetcher(INBOX).snapshot(1.0)
    assert (made.received, made.pending, made.limit, made.level) == (0, 0, 0, 0)
    assert (made.online, made.ended, made.pulls, made.deadlines) == (False, True, [], {})


@pytest.mark.rule("PULL-8")
@pytest.mark.parametrize(
    "msg", [status(7, "409 Consumer Deleted"), beat(7), beat(1)], ids=["old", "old beat", "beat"]
)
def test_what_wakes_no_caller(msg):
    fetcher = fetching()
    assert fetcher.receive(msg, 1.0) is False
    assert not fetcher.done


@pytest.mark.rule("D-FETCH-15")
@pytest.mark.parametrize(("more", "kept"), [(-1, 2), (0, 2), (1, 1)])
def test_the_last_byte_of_the_room_is_used(more, kept):
    """A fetch that ended keeps what arrives late, up to its own limit and the slack."""
    fetcher = fetching(batch=100, size=400)
    fetcher.receive(message(400), 1.0)
    fetcher.receive(message(SLACK_BYTES + more), 1.0)
    assert (len(fetcher.messages), fetcher.dropped) == (kept, 2 - kept)


@pytest.mark.rule("D-FETCH-15", "PULL-12")
def test_the_room_counts_the_whole_message():
    """Also the id of the pinned client, which the server does not count."""
    fetcher = fetching(batch=100, size=400)
    msg = pinned(size=100)
    room = fetcher._bytes_room
    fetcher.receive(msg, 1.0)
    assert room - fetcher._bytes_room == 100 + len(msg.raw_headers)


@pytest.mark.rule("FETCH-9", "D-SNAPSHOT-1")
def test_messages_of_one_read_count():
    fetcher = fetching(batch=5)
    assert fetcher.receive_all([message(), message()], 1.0) is False
    made = fetcher.snapshot(1.0)
    assert (made.received, made.limit, made.level) == (2, 5, 5)
    fetcher.receive(status(1, SIZE), 2.0)
    assert (fetcher.done, fetcher.failure, len(fetcher.take())) == (True, None, 2)


@pytest.mark.rule("FETCH-6")
@pytest.mark.parametrize(("at", "missed"), [(0.1, True), (0.125, False)], ids=["just", "late"])
def test_a_timer_is_late_after_a_tenth_of_a_second(at, missed):
    """The server is silent for two heartbeats at 0.0."""
    fetcher = fetching(at=-10.0)
    fetcher.handle_timer(at)
    assert isinstance(fetcher.failure, HeartbeatMissed) is missed


@pytest.mark.rule("D-FETCH-7")
def test_the_end_of_the_client_leaves_no_deadline():
    fetcher = fetching()
    fetcher.end()
    assert isinstance(fetcher.failure, ConnectionClosed)
    assert fetcher.deadline is None
