from __future__ import annotations

import pytest

from natsproto.connection.effects import Drop, Publish, Unsubscribe, Wake
from natsproto.connection.receiver import Mailbox, Receiver
from natsproto.errors import ConnectionLost, TimeoutExpired
from natsproto.wire.frames import Msg


def message(data=b"x", size=0):
    return Msg(b"s", 1, b"", data, None, size)


def test_effects_are_taken_once_and_in_their_order():
    receiver = Receiver()
    receiver.emit(b"a", b"1", b"r")
    receiver.drop()
    receiver.wake()
    receiver.emit(b"b", b"2", b"", b"block")
    assert receiver.take_effects() == [
        Publish(b"a", b"1", b"r", None),
        Drop(),
        Wake([receiver]),
        Publish(b"b", b"2", b"", b"block"),
    ]
    assert receiver.take_effects() == []


@pytest.mark.parametrize(
    ("requested", "deadline"), [([3.0], 3.0), ([3.0, 2.0], 2.0), ([2.0, 3.0], 2.0), ([], None)]
)
def test_the_earliest_deadline_counts(requested, deadline):
    receiver = Receiver()
    for each in requested:
        receiver.wake_by(each)
    assert receiver.deadline == deadline


def test_a_receiver_leaves_once():
    receiver = Receiver()
    receiver.leave()
    receiver.leave()
    assert (receiver.leaving, receiver.effects) == (True, [Unsubscribe()])


def test_a_receiver_is_for_others_to_fill_in():
    receiver = Receiver()
    with pytest.raises(NotImplementedError):
        receiver.receive(message(), 0.0)
    with pytest.raises(NotImplementedError):
        receiver.pending()
    assert receiver.take_effects() == []
    receiver.connected(0.0)
    receiver.disconnected(0.0)
    receiver.unsent(Publish(b"s", b"", b"", None), TimeoutExpired("x"))


def test_a_receiver_ends_once_and_keeps_the_first_reason():
    receiver = Receiver()
    reason = ConnectionLost("x")
    assert receiver.end(reason)
    assert not receiver.end()
    assert (receiver.ended, receiver.error) == (True, reason)


@pytest.mark.rule("SUB-7")
def test_a_mailbox_wakes_its_reader_only_when_it_was_empty():
    mailbox = Mailbox(10, 1000)
    assert [mailbox.receive(message(b"%d" % i), 0.0) for i in range(3)] == [True, False, False]
    assert [mailbox.pop().data, mailbox.pop().data] == [b"0", b"1"]
    assert not mailbox.receive(message(b"3"), 0.0)  # "2" was still queued, so no caller waits
    assert [mailbox.pop().data, mailbox.pop().data] == [b"2", b"3"]
    assert mailbox.receive(message(b"4"), 0.0)
    assert mailbox.pending() == 1
    mailbox.pop()
    with pytest.raises(IndexError):
        mailbox.pop()


@pytest.mark.rule("SUB-7")
def test_messages_that_arrive_together_wake_their_reader_once():
    mailbox = Mailbox(3, 1000)
    first, second, third, fourth = (message(b"%d" % i) for i in range(4))
    assert mailbox.receive_all([first, second], 0.0)
    assert not mailbox.receive_all([third, fourth], 0.0)
    assert [mailbox.pop(), mailbox.pop(), mailbox.pop()] == [first, second, third]
    assert mailbox.dropped == 1
    assert mailbox.receive_all([fourth], 0.0)


LIMITS = [
    # what                                     msgs, bytes, sizes offered,        kept
    ("as many as fit", 3, 1000, [1, 1, 1, 1, 1], [1, 1, 1]),
    ("as many bytes as fit", 100, 10, [4, 6, 1], [4, 6]),
    ("a large one is dropped, smaller ones behind it are not", 100, 10, [4, 7, 6], [4, 6]),
    ("larger than the whole mailbox", 100, 10, [11, 1], [1]),
    ("exactly the whole mailbox", 100, 10, [10, 1], [10]),
    ("both limits", 2, 10, [5, 5, 1], [5, 5]),
]


@pytest.mark.rule("SUB-5")
@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize(
    ("max_msgs", "max_bytes", "sizes", "kept"),
    [pytest.param(*row[1:], id=row[0]) for row in LIMITS],
)
def test_the_limits_of_a_mailbox(max_msgs, max_bytes, sizes, kept, together):
    mailbox = Mailbox(max_msgs, max_bytes)
    msgs = [message(size=size) for size in sizes]
    if together:
        assert mailbox.receive_all(msgs, 0.0)
    else:
        for msg in msgs:
            mailbox.receive(msg, 0.0)
    assert mailbox.bytes == sum(kept)
    assert mailbox.dropped == len(sizes) - len(kept)
    assert mailbox.effects == [Drop()] * mailbox.dropped
    assert [mailbox.pop().size for _ in range(mailbox.pending())] == kept
    assert mailbox.bytes == 0


@pytest.mark.rule("SUB-5")
def test_there_is_room_again_after_a_message_was_taken():
    mailbox = Mailbox(2, 10)
    for _ in range(1000):
        mailbox.receive(message(size=5), 0.0)
        mailbox.receive(message(size=5), 0.0)
        mailbox.pop()
        mailbox.pop()
    assert (mailbox.dropped, mailbox.bytes, mailbox.pending()) == (0, 0, 0)
