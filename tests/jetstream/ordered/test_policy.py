"""The policy InOrder alone; with its machine: ../pull/test_consume_in_order.py."""

from __future__ import annotations

import json

import pytest

from jetstream.errors import ConsumerDeleted, MessagesMissed, ResetFailed
from jetstream.events import ConsumerReset, StreamRecreated
from jetstream.machine.policy import FULL, GAP, KEEP, SKIP, STALE
from jetstream.machine.status import Status
from jetstream.ordered.cursor import Cursor
from jetstream.ordered.policy import InOrder
from jetstream.ordered.recreate import BACKOFF, CREATING, ENDED, OFFLINE, READY, Recreator
from jetstream.schema.timestamp import Timestamp
from natsproto.errors import ConnectionLost, TimeoutExpired
from natsproto.wire.frames import Msg
from tests.jetstream.pulls import INBOX, status

LOST = ConnectionLost("x")
T = ["2026-01-01T00:00:0%dZ" % second for second in range(6)]


def message(seq, number=None, serial=1):
    reply = b"$JS.ACK.S.o_%d.1.%d.%d.1794786870000000000.0" % (serial, seq, number or seq)
    return Msg(b"s", 1, reply, b"x", None)


def created(serial):
    reply = {"name": "o", "config": {}, "delivered": {"consumer_seq": 0, "stream_seq": 0}}
    return Msg(INBOX + b".c%d" % serial, 1, b"", json.dumps(reply).encode(), None)


def offline(max_attempts=0):
    cursor = Cursor("S", "o", {"deliver_policy": "new"})
    return InOrder(Recreator(cursor, "$JS.API", INBOX, max_attempts=max_attempts))


def using(**options):
    """Return a policy whose first consumer is ready."""
    policy = offline(**options)
    assert (policy.ready, policy.begun, policy.consumer) == (False, False, OFFLINE)
    policy.connected(0.0)
    assert (len(policy.take_effects()), policy.due, policy.consumer) == (1, 5.0, CREATING)
    policy.receive(created(1), 0.0)
    assert policy.consumer == READY
    assert (policy.ready, policy.begun, policy.due) == (True, True, None)
    policy.proved()  # so the next one is created at once
    return policy


VERDICTS = [  # messages, whether there is room, verdicts
    ([message(1), message(2)], True, [KEEP, KEEP]),
    ([message(1), message(3)], True, [KEEP, GAP]),
    ([message(1, serial=7)], True, [STALE]),
    ([message(1)], False, [FULL]),
]


@pytest.mark.rule("ORDERED-13")
@pytest.mark.parametrize(("msgs", "room", "verdicts"), VERDICTS)
def test_verdicts(msgs, room, verdicts):
    policy = using()
    policy.recreator.failures = 3
    assert [policy.admit(msg, room) for msg in msgs] == verdicts
    assert policy.recreator.failures == (0 if verdicts[0] is KEEP else 3)


RUNS = [  # messages, whether they are admitted together
    ([message(1), message(2)], True),
    ([message(1), message(3)], False),
    ([message(1, serial=7)], False),
]


@pytest.mark.rule("ORDERED-13")
@pytest.mark.parametrize(("msgs", "admitted"), RUNS)
def test_a_run_of_messages(msgs, admitted):
    policy = using()
    policy.recreator.failures = 3
    assert policy.admit_all(msgs) is admitted
    assert policy.recreator.failures == (0 if admitted else 3)
    assert policy.cursor.consumer_seq == (len(msgs) if admitted else 0)


@pytest.mark.rule("ORDERED-7")
def test_a_message_seen_before_proves_that_the_consumer_works():
    policy = using()
    policy.cursor.start = 3
    policy.recreator.failures = 3
    assert (policy.admit(message(1), True), policy.recreator.failures) == (SKIP, 0)


def test_the_error_of_a_gap():
    policy = using()
    policy.admit(message(1), True)
    error = policy.gap(message(3))
    assert isinstance(error, MessagesMissed)
    assert str(error).startswith("not the next message after 1 of consumer 'o_1': b'$JS.ACK.S.")


@pytest.mark.rule("ORDERED-13")
@pytest.mark.parametrize(
    ("last", "text"),
    [(None, ""), (0, ""), (1, ""), (2, "consumer 'o_1' is at 2, but 1 arrived last")],
)
def test_heartbeats(last, text):
    policy = using()
    policy.admit(message(1), True)
    policy.recreator.failures = 3
    assert str(policy.heartbeat(last) or "") == text
    assert policy.recreator.failures == 0


@pytest.mark.rule("ORDERED-14")
@pytest.mark.parametrize(
    ("line", "loses"),
    [
        ("409 Consumer Deleted", True),
        ("409 Server Shutdown", True),
        ("503", True),
        ("409 Leadership Change", False),
        ("408 Request Timeout", False),
        ("409 Exceeded MaxWaiting", False),
        ("400 Bad Request", False),
    ],
)
def test_statuses_that_lose_the_consumer(line, loses):
    assert using().loses(Status(status(1, line))) is loses


@pytest.mark.rule("ORDERED-14")
def test_a_lost_consumer_is_replaced():
    policy = using()
    assert policy.lost(LOST, 1.0)
    assert policy.events.items == [ConsumerReset(LOST)]
    assert (policy.recreator.state, policy.ready, len(policy.take_effects())) == (
        CREATING,
        False,
        2,
    )
    assert policy.pull_subject(b"next.S.") == b"next.S.o_2"
    policy.receive(created(2), 1.1)
    assert (policy.recreator.state, policy.failure, policy.error) == (READY, None, None)


def test_a_consumer_that_is_not_created_in_time():
    policy = using()
    policy.lost(LOST, 1.0)
    policy.handle_timer(5.9)
    assert policy.failure is None
    policy.handle_timer(6.0)
    assert isinstance(policy.failure, TimeoutExpired)
    assert policy.events.items[1:] == [ConsumerReset(policy.failure)]
    assert (policy.recreator.state, policy.due, policy.error) == (BACKOFF, 7.0, None)


@pytest.mark.rule("ORDERED-11")
def test_no_more_attempts():
    policy = using(max_attempts=1)
    for serial in (1, 2):
        policy.lost(ConsumerDeleted(409, "Consumer Deleted"), 1.0)
        policy.receive(created(serial + 1), 1.0)
    assert isinstance(policy.error, ResetFailed)


@pytest.mark.rule("D-ORDERED-31")
def test_the_stream_was_recreated():
    policy = using()
    policy.cursor._oldest = Timestamp.parse(T[2])
    policy.lost(LOST, 1.0)
    policy.receive(created(2), 1.1)
    reply = {"config": {}, "created": T[4]}
    policy.receive(Msg(INBOX + b".s2", 1, b"", json.dumps(reply).encode(), None), 1.2)
    event = StreamRecreated("S", Timestamp.parse(T[2]), Timestamp.parse(T[4]))
    assert policy.events.items == [ConsumerReset(LOST), event]


@pytest.mark.rule("ORDERED-8")
@pytest.mark.parametrize("active", [True, False])
def test_disconnected(active):
    policy = using()
    assert policy.disconnected(active) is active
    assert len(policy.events.items) == active
    assert not policy.disconnected(active)
    assert (policy.recreator.state, policy.take_effects()) == (OFFLINE, [])


def test_close_deletes_the_consumer():
    policy = using()
    policy.close()
    assert (policy.recreator.state, len(policy.take_effects())) == (ENDED, 1)


@pytest.mark.rule("D-ORDERED-19")
def test_rewind():
    policy = using()
    msgs = [message(7, 1), message(8, 2)]
    for msg in msgs:
        policy.admit(msg, True)
    policy.rewind([])
    assert policy.cursor.start == 9
    policy.rewind(msgs)
    assert policy.cursor.start == 7
    policy.cursor._eldest = 2
    policy.rewind(msgs)
    assert policy.cursor.start == 7


@pytest.mark.rule("ORDERED-9")
def test_proved():
    policy = using()
    policy.recreator.failures = 3
    policy.proved()
    assert policy.recreator.failures == 0


def test_responses_have_tokens_of_their_own():
    policy = using()
    assert [policy.owns(token) for token in (b"c1", b"s1", b"x", b"1", b"i1", b"")] == [
        *[True] * 3,
        *[False] * 3,
    ]


@pytest.mark.rule("ORDERED-8")
def test_its_machine_knows_that_it_replaces_consumers():
    """Statuses of unknown pulls, and messages without room, may be from an earlier consumer."""
    assert using().recreates
