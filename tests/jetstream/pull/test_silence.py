from __future__ import annotations

import pytest

from jetstream.errors import HeartbeatMissed
from jetstream.pull.ledger import Ledger, Pull
from jetstream.pull.silence import LATE, Silence
from natsproto.errors import TimeoutExpired

HEARTBEAT = 5.0


def silence(*ends):
    """Return a Silence with a pull at 0 for each of these ends."""
    ledger = Ledger()
    for number, ends_at in enumerate(ends):
        ledger.add(Pull(b"%d" % number, 10, 0, ends_at))
    tested = Silence(ledger, HEARTBEAT)
    tested.pulled(0.0)
    return tested, ledger


def test_without_a_pull_silence_means_nothing():
    tested, _ = silence()
    assert tested.due is None
    assert tested.check(1000.0) is None


DUE = [  # pulled, heard, ends, due
    (0.0, 0.0, 31.0, 10.0),
    (0.0, 3.0, 31.0, 13.0),
    (4.0, 3.0, 31.0, 14.0),
    (4.0, 3.0, 13.0, 13.0),
]


@pytest.mark.parametrize(("pulled", "heard", "ends", "due"), DUE)
def test_when_to_check(pulled, heard, ends, due):
    tested, _ = silence(ends)
    tested.heard(heard)
    tested.pulled(pulled)
    assert tested.due == due


@pytest.mark.rule("CONSUME-8")
def test_two_missed_heartbeats_close_all_pulls():
    tested, ledger = silence(31.0, 32.0)
    assert tested.check(9.9) is None
    assert len(ledger.open) == 2
    error = tested.check(10.0)
    assert isinstance(error, HeartbeatMissed)
    assert str(error) == "the server was silent for 10 s"
    assert ledger.open == []


def test_an_overdue_status_closes_its_pull():
    tested, ledger = silence(31.0, 41.0)
    tested.heard(30.0)
    error = tested.check(31.0)
    assert isinstance(error, TimeoutExpired)
    assert str(error) == "the server did not end a pull in time"
    assert [pull.token for pull in ledger.open] == [b"1"]
    assert tested.due == 40.0


@pytest.mark.rule("CONSUME-28")
def test_pulls_that_overlap_do_not_hide_silence():
    tested, ledger = silence(11.0, 31.0)
    tested.pulled(9.0)
    assert tested.check(10.0) is None
    assert isinstance(tested.check(11.0), HeartbeatMissed)
    assert ledger.open == []


LATENESS = [  # fired at, error, due
    (10.0, HeartbeatMissed, None),
    (10.0 + LATE - 0.01, HeartbeatMissed, None),
    (10.0 + LATE + 0.01, type(None), 15.0 + LATE + 0.01),
    (60.0, type(None), 65.0),
]


@pytest.mark.rule("D-CONSUME-10")
@pytest.mark.parametrize(("fired_at", "error", "due"), LATENESS)
def test_a_late_timer_waits_for_one_more_heartbeat(fired_at, error, due):
    tested, ledger = silence(31.0)
    assert isinstance(tested.check(fired_at), error)
    assert tested.due == due
    assert [pull.ends_at for pull in ledger.open] == ([] if due is None else [max(31.0, due)])


@pytest.mark.rule("D-CONSUME-10")
def test_the_second_consecutive_late_timer_is_believed():
    tested, _ = silence(1000.0)
    assert tested.check(20.0) is None
    assert isinstance(tested.check(40.0), HeartbeatMissed)


@pytest.mark.rule("D-CONSUME-10")
def test_anything_that_arrives_allows_another_late_timer():
    tested, _ = silence(1000.0)
    assert tested.check(20.0) is None
    tested.heard(21.0)
    assert tested.check(40.0) is None
    assert tested.due == 45.0


@pytest.mark.rule("D-SNAPSHOT-1")
def test_when_anything_was_heard_last():
    tested, _ = silence(31.0)
    assert tested.heard_ago(1.0) is None
    tested.heard(1.0)
    assert tested.heard_ago(4.0) == 3.0
    assert tested.check(12.0) is None  # late: one more heartbeat
    assert tested.heard_ago(13.0) == 12.0
    tested.heard(14.0)
    assert tested.heard_ago(14.0) == 0.0
