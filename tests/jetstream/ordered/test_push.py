"""The policy of ordered push subscriptions; with its machine: ../push/test_machine_in_order.py."""

from __future__ import annotations

import json

import pytest

from jetstream.machine.policy import CONTROL, FULL, GAP, KEEP, STALE
from jetstream.ordered.cursor import Cursor
from jetstream.ordered.push import MAX_EARLY, PushInOrder
from jetstream.ordered.recreate import Recreator
from jetstream.schema.timestamp import Timestamp
from natsproto.errors import ConnectionLost
from natsproto.wire.frames import Msg
from tests.jetstream import pushes

INBOX = b"_INBOX.i"


def deliver(serial):
    return INBOX + b".d%d" % serial


def message(number, serial=1, data=b"x"):
    return pushes.message(number, data, consumer=f"o_{serial}")


def created(serial):
    reply = {"name": "o", "config": {}, "delivered": {"consumer_seq": 0, "stream_seq": 0}}
    return Msg(deliver(serial), 1, b"", json.dumps(reply).encode(), None)


def creating():
    """Return the first consumer is being created."""
    cursor = Cursor("S", "o", {"deliver_policy": "all"})
    policy = PushInOrder(INBOX, Recreator(cursor, "$JS.API", INBOX, delivers=True))
    policy.connected(0.0)
    assert len(policy.take_effects()) == 1
    return policy


def using():
    policy = creating()
    policy.receive(created(1), 0.0)
    assert policy.ready
    policy.proved()  # so the next one is created at once
    return policy


VERDICTS = [  # message, room, verdict
    (message(1), True, KEEP),
    (message(1), False, FULL),
    (message(2), True, GAP),
    (message(1, serial=2), True, STALE),
    (pushes.beat(0, subject=deliver(1)), True, CONTROL),
    (pushes.beat(0, subject=deliver(2)), True, STALE),
]


@pytest.mark.rule("ORDPUSH-3")
@pytest.mark.parametrize(("msg", "room", "verdict"), VERDICTS)
def test_verdicts(msg, room, verdict):
    assert using().admit(msg, room) is verdict
    assert not using().admit_all([msg])  # each needs a verdict


@pytest.mark.rule("ORDPUSH-5")
@pytest.mark.parametrize(("last", "gap"), [(0, True), (1, False), (2, True)])
def test_heartbeats(last, gap):
    policy = using()
    assert policy.admit(message(1), True) is KEEP
    assert (policy.heartbeat(last) is not None) is gap


@pytest.mark.rule("D-ORDPUSH-4")
def test_messages_before_the_consumer_is_ready_are_set_aside():
    policy = creating()
    assert [policy.admit(message(number), True) for number in (1, 2)] == [STALE, STALE]
    beat = pushes.beat(2, subject=deliver(1))
    assert policy.admit(beat, True) is CONTROL
    policy.receive(beat, 0.5)
    policy.receive(created(1), 1.0)
    assert (policy.ready, policy.early_bytes) == (True, 2 + beat.size)
    assert policy.take_early() == [message(1), message(2), beat]
    assert (policy.take_early(), policy.early_bytes) == ([], 0)


@pytest.mark.rule("D-ORDPUSH-4")
def test_only_so_much_is_set_aside():
    policy = creating()
    for number in range(1, 11):
        policy.admit(message(number, data=bytes(MAX_EARLY // 8)), True)
    assert (len(policy.take_early()), policy.early_bytes) == (8, 0)


@pytest.mark.rule("ORDPUSH-2")
@pytest.mark.parametrize("how", ["lost", "disconnected"])
def test_the_next_consumer_has_another_subject(how):
    policy = using()
    assert policy.subject == deliver(1)
    if how == "lost":
        assert policy.lost(ConnectionLost("x"), 1.0)
    else:
        assert policy.disconnected(True)
        policy.admit(message(1), True)  # not set aside: no consumer is being created
        policy.connected(1.0)
    assert len(policy.take_effects()) == 2
    assert (policy.subject, policy.take_early()) == (deliver(2), [])
    assert len(policy.events.items) == 1


@pytest.mark.rule("D-ORDPUSH-12")
def test_statuses_before_the_stream_is_known_are_set_aside():
    policy = using()
    policy.cursor._oldest = Timestamp.parse("2026-01-01T00:00:02Z")
    policy.lost(ConnectionLost("x"), 1.0)
    policy.take_effects()
    policy.receive(created(2), 1.1)
    deleted = pushes.status("409 Consumer Deleted", subject=deliver(2))
    policy.receive(deleted, 1.2)
    assert not policy.ready
    reply = {"config": {}, "created": "2026-01-01T00:00:01Z"}
    policy.receive(Msg(deliver(2), 1, b"", json.dumps(reply).encode(), None), 1.3)
    assert (policy.ready, policy.take_early()) == (True, [deleted])


def test_the_limit_of_messages_that_are_early():
    assert MAX_EARLY == 8 * 1024 * 1024
