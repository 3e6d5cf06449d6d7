from __future__ import annotations

import pytest

from jetstream.errors import ConsumerUnavailable, HeartbeatMissed, PullRefused
from jetstream.errors.api import ConsumerNotFound
from jetstream.machine.probe import Probe
from jetstream.pull.presence import Presence
from tests.jetstream.lookups import HERE, NO_CONSUMER, answer

ABSENT = ConsumerUnavailable(503, "")
LEADER = ConsumerUnavailable(409, "Leadership Change")
REFUSED = PullRefused(409, "Exceeded MaxWaiting")


def presence():
    return Presence(Probe("$JS.API", "S", "C"))


@pytest.mark.rule("D-CONSUME-21")
def test_the_second_503_in_a_row():
    tested = presence()
    assert [tested.absent(now) for now in (1.0, 1.1, 1.2)] == [False, True, False]
    assert tested.due == 2.1
    tested = presence()
    assert not tested.absent(1.0)
    tested.proved()
    assert not tested.absent(2.0)
    assert tested.absent(2.1)


@pytest.mark.rule("D-CONSUME-24")
def test_each_request_has_a_reply_subject_of_its_own():
    tested = presence()
    subject = b"$JS.API.CONSUMER.INFO.S.C"
    for token in (b"x", b"y"):
        reply = b"_INBOX.i.i" + token
        assert tested.request(b"_INBOX.i.", token) == (subject, b"", reply)
        assert tested.reply == reply


@pytest.mark.rule("CONSUME-22")
def test_a_missed_heartbeat():
    tested = presence()
    assert tested.silent(10.0)
    assert (tested.due, tested.doubted) == (11.0, True)


@pytest.mark.rule("D-CONSUME-24")
def test_lookups_at_growing_intervals():
    tested = presence()
    started = []
    for now in range(400):
        if tested.silent(float(now)):
            started.append(now)
            assert tested.receive(answer(HERE)) is None
    assert started == [0, 10, 30, 70, 130, 190, 250, 310, 370]
    tested.proved()
    assert tested.silent(400.0)


@pytest.mark.rule("D-CONSUME-24")
def test_unanswered_lookups():
    tested = presence()
    assert tested.silent(0.0)
    assert not tested.handle_timer(0.9)
    sent = [now for now in range(1, 60) if tested.handle_timer(float(now)) or tested.silent(now)]
    assert sent == [1, 2, 3, 4, 10, 11, 12, 13, 14, 30, 31, 32, 33, 34]


@pytest.mark.rule("D-CONSUME-23")
def test_gone():
    tested = presence()
    tested.silent(0.0)
    assert tested.receive(answer(NO_CONSUMER)) is None
    assert tested.handle_timer(1.0)
    assert isinstance(tested.receive(answer(NO_CONSUMER)), ConsumerNotFound)


@pytest.mark.rule("D-CONSUME-24")
def test_a_lost_connection_ends_the_lookup():
    tested = presence()
    tested.silent(0.0)
    tested.receive(answer(NO_CONSUMER))
    tested.disconnected()
    assert tested.due is None
    tested.connected()
    assert tested.silent(3.0)
    assert tested.receive(answer(NO_CONSUMER)) is None  # it counts from the start


@pytest.mark.rule("CONSUME-25")
def test_without_a_probe_nothing_is_looked_up():
    tested = Presence(None)
    assert [tested.absent(now) for now in (1.0, 2.0, 3.0)] == [False] * 3
    assert not tested.handle_timer(9.0)
    tested.disconnected()
    assert (tested.due, tested.receive(answer(NO_CONSUMER))) == (None, None)


@pytest.mark.rule("D-CONSUME-11")
def test_reports():
    tested = presence()
    assert [tested.reports(each, 0.0) for each in (ABSENT, ABSENT, LEADER, REFUSED, REFUSED)] == [
        True,
        False,
        True,
        True,
        False,
    ]
    tested.proved()
    assert [tested.reports(each, 1.0) for each in (ABSENT, REFUSED)] == [True, False]
    tested.connected()
    assert [tested.reports(each, 2.0) for each in (ABSENT, REFUSED)] == [True, True]
    assert [tested.reports(HeartbeatMissed("x"), now) for now in (2.0, 3.0)] == [True, False]
    tested.proved()
    assert tested.reports(HeartbeatMissed("x"), 4.0)
