from __future__ import annotations

import pytest

from jetstream.pull.ledger import Ledger, Pull
from jetstream.pull.room import Room


def room(limit=10, by_bytes=False, given_up=0):
    """Return a room and its ledger, which has abandoned this many pulls."""
    ledger = Ledger()
    for _ in range(given_up):
        ledger.add(Pull(b"1", limit, limit if by_bytes else 0, 31.0))
        ledger.clear()
    return Room(limit, by_bytes, ledger), ledger


@pytest.mark.rule("D-CONSUME-27")
@pytest.mark.parametrize(
    ("limit", "by_bytes", "given_up", "most"),
    [
        (1, False, 0, 66),
        (10, False, 0, 84),
        (10, False, 3, 114),
        (10, False, 64, 724),
        (10, False, 65, 724),
        (5000, True, 0, 10_000),
        (5000, True, 2, 20_000),
        (5000, True, 99, 330_000),
    ],
)
def test_how_much_fits(limit, by_bytes, given_up, most):
    tested, _ = room(limit, by_bytes, given_up)
    assert tested.most == 2 * limit + (0 if by_bytes else 64)
    assert tested.takes(most)
    assert not tested.takes(most + 1)


@pytest.mark.rule("D-CONSUME-27")
def test_late_messages_are_expected_for_a_while():
    tested, ledger = room()
    tested.pulled(0.0)
    for token, ends_at in ((b"1", 31.0), (b"2", 41.0)):
        ledger.add(Pull(token, 10, 500, ends_at))
        ledger.clear()
    expected = [(90.9, 20), (91.0, 10), (100.9, 10), (101.0, 0), (200.0, 0)]
    for now, late in expected:
        tested.pulled(now)
        assert (ledger.late, ledger.late_bytes) == (late, 50 * late)
