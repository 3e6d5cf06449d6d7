"""Requests with many responses: default limits, and statuses at the edge of their range."""

from __future__ import annotations

import pytest

from natsproto.connection.waitable import MultiRequest, is_status_reply
from natsproto.errors import TooManyReplies
from natsproto.wire.frames import Msg


def message(data=b"x", status=None, size=0):
    block = None if status is None else b"NATS/1.0 %s\r\n\r\n" % status
    return Msg(b"s", 1, b"", data, block, size)


@pytest.mark.rule("REQ-3")
@pytest.mark.parametrize(
    ("msg", "is_status"),
    [
        (message(b""), False),  # an empty message, without headers
        (message(b"", b""), False),  # and with headers
        (message(b"", b"001"), True),
        (message(b"", b"100"), True),
        (message(b"x", b"100"), False),
        (message(b"", b"999"), True),
    ],
)
def test_a_status_has_a_number_and_no_payload(msg, is_status):
    assert is_status_reply(msg) is is_status


@pytest.mark.rule("REQ-7")
@pytest.mark.parametrize(("status", "ends"), [(b"199", False), (b"200", True), (b"201", True)])
def test_statuses_from_200_end_a_gather(status, ends):
    gather = MultiRequest("", 10.0, "a")
    gather.receive(message(b"", status), 1.0)
    assert (gather.done, gather.error, len(gather.replies)) == (ends, None, 1)


@pytest.mark.rule("REQ-8")
def test_by_default_no_pause_ends_a_gather():
    gather = MultiRequest("", 10.0, "a")
    gather.receive(message(), 1.0)
    assert (gather.deadline, gather.stall) == (10.0, 0.0)


@pytest.mark.rule("D-REQ-10")
def test_the_default_limit_of_bytes():
    gather = MultiRequest("", 10.0, "a")
    gather.receive(message(size=67_108_864), 1.0)
    assert gather.done is False
    gather.receive(message(size=1), 1.0)
    assert isinstance(gather.error, TooManyReplies)
    assert "exceed 65536 messages or 67108864 bytes" in str(gather.error)


@pytest.mark.rule("D-REQ-10")
def test_the_default_limit_of_messages():
    gather = MultiRequest("", 10.0, "a")
    reply = message()
    for _ in range(65_536):
        gather.receive(reply, 1.0)
    assert gather.done is False
    gather.receive(reply, 1.0)
    assert isinstance(gather.error, TooManyReplies)


@pytest.mark.rule("D-REQ-13")
def test_after_a_take_there_is_room_for_the_whole_limit_again():
    gather = MultiRequest("", None, "a", 0, 0.0, (2, 100))
    for _ in range(3):
        gather.receive(message(size=100), 1.0)
        assert (gather.error, len(gather.take())) == (None, 1)
