"""Mailboxes that are just full, and the initial values of every receiver."""

from __future__ import annotations

import pytest

from natsproto.connection.receiver import Mailbox, Receiver
from natsproto.wire.frames import Msg


def message(size=1):
    return Msg(b"s", 1, b"", b"x", None, size)


@pytest.mark.rule("D-SUB-1")
def test_a_receiver_that_is_not_subscribed_has_received_nothing():
    receiver = Receiver()
    assert (receiver.sid, receiver.received, receiver.received_before) == (0, 0, 0)
    assert (receiver.max_received, receiver.deadline) == (0, None)


class Counting(Mailbox):
    """Counts the messages that are received one by one."""

    def __init__(self, max_msgs, max_bytes):
        super().__init__(max_msgs, max_bytes)
        self.singles = 0

    def receive(self, msg, now):
        self.singles += 1
        return super().receive(msg, now)


@pytest.mark.rule("SUB-5", "SUB-7")
@pytest.mark.parametrize(
    ("max_msgs", "max_bytes", "singles", "kept"),
    [(3, 100, 0, 3), (2, 100, 3, 2), (100, 12, 0, 3), (100, 11, 3, 2)],
)
def test_messages_that_just_fit_are_received_together(max_msgs, max_bytes, singles, kept):
    """One by one would cost twice the time: only when some do not fit."""
    mailbox = Counting(max_msgs, max_bytes)
    assert mailbox.receive_all([message(4)] * 3, 0.0)
    assert (mailbox.singles, mailbox.pending(), mailbox.dropped) == (singles, kept, 3 - kept)


@pytest.mark.rule("SUB-5")
def test_messages_that_are_being_taken_count_toward_the_limit():
    """Once the first is taken, the others wait in `batch` and later ones in `fresh`."""
    mailbox = Mailbox(4, 1000)
    mailbox.receive_all([message()] * 4, 0.0)
    mailbox.pop()
    assert not mailbox.receive(message(), 0.0)
    assert (mailbox.pending(), mailbox.dropped) == (4, 0)
    assert not mailbox.receive(message(), 0.0)
    assert (mailbox.pending(), mailbox.dropped) == (4, 1)
