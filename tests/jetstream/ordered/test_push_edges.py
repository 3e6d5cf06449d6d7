"""Messages that were set aside belong to one consumer, and are dropped with it."""

from __future__ import annotations

import pytest

from jetstream.schema.timestamp import Timestamp
from natsproto.errors import ConnectionLost
from natsproto.wire.frames import Msg
from tests.jetstream import pushes
from tests.jetstream.ordered.test_push import created, creating, deliver, message, using


@pytest.mark.rule("D-ORDPUSH-4")
@pytest.mark.parametrize("how", ["lost", "disconnected", "no answer"])
def test_early_messages_of_a_consumer_that_is_replaced(how):
    policy = creating()
    policy.admit(message(1), True)
    assert policy.early_bytes == 1
    if how == "lost":
        policy.lost(ConnectionLost("x"), 1.0)
    elif how == "disconnected":
        policy.disconnected(True)
    else:
        policy.handle_timer(5.0)
        policy.handle_timer(policy.due)
        assert policy.early_bytes == 1  # dropped with the subject that they arrived at
        policy.take_effects()
        assert policy.subject == deliver(2)
    assert (policy.early_bytes, policy.take_early()) == (0, [])


def checking():
    """Return a policy whose second consumer exists, and whose stream is being checked."""
    policy = using()
    policy.cursor._oldest = Timestamp.parse("2026-01-01T00:00:02Z")
    policy.lost(ConnectionLost("x"), 1.0)
    policy.take_effects()
    policy.receive(created(2), 1.1)
    assert policy.consumer == "checking"
    return policy


@pytest.mark.rule("D-ORDPUSH-12")
@pytest.mark.parametrize(
    ("line", "data", "early"),
    [
        (None, b"", False),  # an empty response
        ("", b"", False),  # with headers
        ("001", b"", True),
        ("100 Idle Heartbeat", b"", True),
        ("409 Consumer Deleted", b"", True),
        ("409 Consumer Deleted", b"x", False),
        ("503", b"", False),  # nothing answers STREAM.INFO
    ],
)
def test_what_is_taken_for_the_response_to_stream_info(line, data, early):
    policy = checking()
    if line is None:
        msg = Msg(deliver(2), 1, b"", data, None)
    else:
        msg = pushes.status(line, subject=deliver(2), data=data)
    policy.receive(msg, 1.2)
    assert policy.take_early() == ([msg] if early else [])
    assert (policy.consumer == "checking") is early
