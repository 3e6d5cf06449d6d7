from __future__ import annotations

import pytest

from jetstream.machine.status import ABSENT, DONE, LIMIT, RETRY, SIZE, UNKNOWN, UNPIN
from jetstream.pull.ledger import MANY, Ledger, Pull
from jetstream.pull.refill import Refill


def refill(limit=10, threshold=5, requested=0, **options):
    """Return a Refill with one open pull, unless nothing is requested."""
    ledger = Ledger()
    if requested:
        size = requested if options.get("by_bytes") else 0
        ledger.add(Pull(b"1", MANY if size else requested, size, 31.0))
    return Refill(ledger, limit, threshold, **options)


LEVELS = [  # requested, buffered, pull,      spare
    (0, 0, (10, 0), 0),
    (4, 0, (6, 0), 0),
    (0, 4, (6, 0), 0),
    (2, 2, (6, 0), 0),
    (2, 3, None, 0),
    (5, 3, None, 3),
    (10, 0, None, 5),
    (0, 12, None, 7),
]


@pytest.mark.rule("CONSUME-1")
@pytest.mark.parametrize(("requested", "buffered", "pull", "spare"), LEVELS)
def test_a_pull_requests_the_missing_messages(requested, buffered, pull, spare):
    tested = refill(requested=requested)
    assert tested.next_pull(buffered, 0.0) == pull
    assert (tested.spare, tested.waiting, tested.due) == (spare, False, None)


BYTES = [  # requested, buffered, pull
    (0, 0, (MANY, 1000)),
    (300, 100, (MANY, 600)),
    (300, 200, None),
    (0, 1200, None),
]


@pytest.mark.rule("CONSUME-1")
@pytest.mark.parametrize(("requested", "buffered", "pull"), BYTES)
def test_a_pull_requests_the_missing_bytes(requested, buffered, pull):
    tested = refill(1000, 500, requested, by_bytes=True)
    assert tested.next_pull(buffered, 0.0) == pull
    assert tested.spare == 0


STOPS = [  # received, requested, buffered, stop_after, pull,  spare
    (0, 0, 0, 3, (3, 0), 0),
    (0, 0, 0, 30, (10, 0), 0),
    (0, 3, 0, 3, None, 0),
    (2, 1, 0, 3, None, 0),
    (2, 0, 0, 3, (1, 0), 0),
    (8, 0, 8, 8, None, 3),
    (8, 0, 8, 3, None, 2),
    (9, 0, 8, 2, None, 0),
]


@pytest.mark.rule("CONSUME-16")
@pytest.mark.parametrize(
    ("received", "requested", "buffered", "stop_after", "pull", "spare"), STOPS
)
def test_no_more_than_stop_after_is_pulled_or_spare(
    received, requested, buffered, stop_after, pull, spare
):
    tested = refill(requested=requested, stop_after=stop_after)
    tested.received = received
    assert tested.next_pull(buffered, 0.0) == pull
    assert tested.spare == spare


def test_messages_are_booked_and_counted():
    ledger = Ledger()
    ledger.add(Pull(b"1", 10, 0, 31.0))
    tested = Refill(ledger, 10, 5)
    tested.delivered(0)
    tested.delivered_all(3)
    tested.skipped(0)
    assert (tested.received, ledger.messages) == (4, 5)


@pytest.mark.rule("D-CONSUME-7")
@pytest.mark.rule("CONSUME-26")
@pytest.mark.parametrize("meaning", [LIMIT, ABSENT, SIZE, UNKNOWN])
def test_a_refused_pull_is_followed_by_growing_pauses(meaning):
    tested = refill()
    for pause in (0.05, 0.1, 0.2):
        tested.pulled(100.0)
        tested.ended(meaning, 100.0)
        assert tested.next_pull(0, 100.0) is None
        assert (tested.waiting, tested.due) == (True, pytest.approx(100.0 + pause))
    assert tested.next_pull(0, 100.2) == (10, 0)
    assert (tested.waiting, tested.due) == (False, None)


@pytest.mark.rule("D-CONSUME-7")
@pytest.mark.parametrize(
    "deliver", [lambda tested: tested.delivered(0), lambda t: t.delivered_all(2)]
)
def test_a_message_makes_the_next_pause_short_again(deliver):
    tested = refill()
    for _ in range(5):
        tested.ended(LIMIT, 100.0)
    deliver(tested)
    tested.ended(LIMIT, 200.0)
    assert tested.next_pull(0, 200.0) is None
    assert tested.due == pytest.approx(200.05)


@pytest.mark.parametrize("meaning", [DONE, RETRY, UNPIN])
@pytest.mark.parametrize(
    ("brought", "due"),
    [
        (lambda tested: None, 100.05),
        (lambda tested: tested.delivered(0), None),
        (lambda tested: tested.delivered_all(2), None),
        (lambda tested: tested.skipped(0), None),
    ],
)
def test_pulls_without_a_message_are_apart(meaning, brought, due):
    tested = refill()
    tested.delivered(0)  # by an earlier pull
    tested.pulled(100.0)
    brought(tested)
    tested.ended(meaning, 100.01)
    tested.next_pull(0, 100.01)
    assert tested.due == (due if due is None else pytest.approx(due))


@pytest.mark.parametrize(("left", "fits"), [(0, False), (999, True), (1000, False), (2000, False)])
@pytest.mark.rule("D-CONSUME-12")
def test_only_a_message_below_the_limit_fits_later(left, fits):
    assert refill(1000, 500, by_bytes=True).fits_later(left) == fits


@pytest.mark.rule("D-CONSUME-12")
@pytest.mark.parametrize(
    "again", [lambda tested: tested.delivered(100), lambda tested: tested.connected(1.0)]
)
def test_a_large_message_is_pulled_for_when_it_may_fit(again):
    tested = refill(1000, 900, by_bytes=True)
    assert tested.fits_later(300)
    assert tested.next_pull(700, 1.0) is None
    assert tested.next_pull(699, 1.0) == (MANY, 301)
    again(tested)
    assert tested.next_pull(700, 1.0) == (MANY, 300)


def test_a_connection_ends_the_pause():
    tested = refill()
    tested.ended(LIMIT, 100.0)
    tested.connected(100.01)
    assert tested.next_pull(0, 100.01) == (10, 0)


def test_cancel():
    tested = refill()
    assert tested.next_pull(8, 1.0) is None
    assert tested.spare == 3
    tested.cancel()
    assert tested.spare == 0
    tested.ended(LIMIT, 1.0)
    assert tested.next_pull(0, 1.0) is None
    tested.cancel()
    assert (tested.waiting, tested.due) == (False, None)


@pytest.mark.rule("D-SNAPSHOT-1")
def test_the_level():
    tested = refill()
    assert tested.level(3) == 3
