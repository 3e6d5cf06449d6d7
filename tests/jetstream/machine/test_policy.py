from __future__ import annotations

import pytest

from jetstream.machine.policy import FULL, KEEP, Policy
from jetstream.machine.status import Status
from natsproto.errors import ConnectionLost
from tests.jetstream.pulls import message, status


def test_a_plain_policy_keeps_all_messages():
    policy = Policy()
    assert policy.admit_all([message()])
    assert (policy.admit(message(), True), policy.admit(message(), False)) == (KEEP, FULL)
    assert policy.heartbeat(99) is None
    with pytest.raises(NotImplementedError):
        policy.gap(message())


def test_a_plain_policy_replaces_no_consumer():
    policy = Policy()
    policy.connected(0.0)
    policy.handle_timer(1.0)
    policy.receive(message(), 2.0)
    policy.proved()
    policy.rewind([message()])
    assert not policy.disconnected(True)
    assert not policy.loses(Status(status(1, "409 Consumer Deleted")))
    assert not policy.lost(ConnectionLost("x"), 3.0)
    assert not policy.owns(b"c1")
    assert policy.consumer == "ready"
    policy.close()
    assert (policy.recreates, policy.ready, policy.due, policy.error) == (False, True, None, None)
    assert (policy.take_effects(), policy.take_early(), policy.events.items) == ([], [], [])
    assert (policy.subject, policy.pull_subject(b"next.S.C")) == (b"", b"next.S.C")
