from __future__ import annotations

import pytest

from natsproto.connection.effects import Publish
from natsproto.connection.waitable import (
    Fence,
    Mailbox,
    MultiRequest,
    Receiver,
    Request,
    Waitable,
    is_status_reply,
)
from natsproto.errors import ConnectionLost, NoResponders, TimeoutExpired, TooManyReplies
from natsproto.wire.frames import Msg

STATUS = b"NATS/1.0 %d\r\n\r\n"


def message(data=b"x", status=0, size=0):
    return Msg(b"s", 1, b"", data, STATUS % status if status else None, size)


def test_a_waitable_is_ready_when_its_time_has_come():
    waitable = Waitable()
    waitable.deadline = 1.0
    assert waitable.handle_timer(1.0)
    assert waitable.deadline is None


@pytest.mark.rule("REQ-2")
def test_a_request_is_settled_once():
    request = Request("it", 5.0, "s")
    first, second = message(b"1"), message(b"2")
    assert request.receive(first, 1.0)
    assert (request.done, request.reply, request.error, request.deadline) == (
        True,
        first,
        None,
        None,
    )
    assert not request.receive(second, 2.0)
    assert not request.finish(error=ConnectionLost("late"))
    assert not request.handle_timer(5.0)
    assert (request.reply, request.error) == (first, None)


@pytest.mark.rule("REQ-3")
@pytest.mark.parametrize(
    ("data", "status", "fails"),
    [(b"", 503, True), (b"x", 503, False), (b"", 0, False), (b"", 404, False)],
)
@pytest.mark.parametrize("kind", [Request, MultiRequest])
def test_only_503_without_payload_means_nobody(kind, data, status, fails):
    request = kind("it", 5.0, "who")
    request.receive(message(data, status), 1.0)
    assert isinstance(request.error, NoResponders) is fails
    if fails:
        assert str(request.error) == "no responders on subject 'who'"


@pytest.mark.rule("GET-12")
@pytest.mark.parametrize("status", [204, 404, 503])
def test_a_stored_status_is_an_answer_and_not_the_end(status):
    """Direct get answers with a stored message, whose headers are followed by its place."""
    block = b"NATS/1.0 %d\r\nNats-Stream: S\r\nNats-Sequence: 7\r\n\r\n" % status
    stored = Msg(b"s", 1, b"", b"", block)
    assert not is_status_reply(stored)
    request = Request("it", 5.0, "who")
    request.receive(stored, 1.0)
    assert (request.reply, request.error) == (stored, None)
    gather = MultiRequest("it", 5.0, "who")
    gather.receive(stored, 1.0)
    assert (gather.done, gather.replies, gather.error) == (False, [stored], None)


@pytest.mark.rule("REQ-4")
def test_the_time_out_names_what_was_waited_for():
    request = Request("the request to 'a'", 5.0)
    assert request.handle_timer(5.0)
    assert isinstance(request.error, TimeoutExpired)
    assert str(request.error) == "no answer to the request to 'a' in time"


@pytest.mark.rule("REQ-4")
def test_the_time_out_of_a_request_names_its_subject():
    request = Request("", 5.0, "a" * 1000)
    assert request.handle_timer(5.0)
    text = "no answer to the request to 'aaaaa"
    assert str(request.error).startswith(text)
    assert len(str(request.error)) < 200


LIMITS = [  # limits, most, sizes of the answers, how many are kept, whether it fails
    ((3, 100), 0, [1, 1, 1], 3, False),
    ((3, 100), 0, [1, 1, 1, 1], 3, True),
    ((3, 100), 5, [1, 1, 1, 1, 1], 5, False),
    ((3, 100), 0, [50, 50], 2, False),
    ((3, 100), 0, [50, 51], 1, True),
    ((3, 100), 5, [101], 0, True),
]


@pytest.mark.rule("D-REQ-10")
@pytest.mark.parametrize(("limits", "most", "sizes", "kept", "fails"), LIMITS)
def test_a_gather_keeps_what_is_within_its_limits(limits, most, sizes, kept, fails):
    gather = MultiRequest("", 10.0, "a", most, 0.0, limits)
    for size in sizes:
        gather.receive(message(size=size), 1.0)
    assert len(gather.replies) == kept
    if fails:
        assert isinstance(gather.error, TooManyReplies)
        assert gather.error.replies is gather.replies
        assert "more answers to the request to 'a' than 3 messages" in str(gather.error)
    else:
        assert gather.error is None


def test_a_fence_knows_its_receivers():
    receivers = [Receiver()]
    assert Fence("drain", None, receivers).receivers is receivers


GATHER = [
    # rule,     what,                          most, stall, arrivals,                      ends at
    ("REQ-6", "nothing comes", 0, 0.0, [], 10.0),
    ("REQ-6", "some come", 0, 0.0, [(1.0, 0), (9.0, 0)], 10.0),
    ("REQ-6", "the maximum comes", 2, 0.0, [(1.0, 0), (2.0, 0)], 2.0),
    ("REQ-6", "the maximum does not come", 3, 0.0, [(1.0, 0), (2.0, 0)], 10.0),
    ("REQ-8", "no stall before the first", 0, 1.0, [], 10.0),
    ("REQ-8", "a stall after the first", 0, 1.0, [(5.0, 0)], 6.0),
    ("REQ-8", "each answer begins a new stall", 0, 1.0, [(5.0, 0), (5.9, 0), (6.8, 0)], 7.8),
    ("REQ-8", "no stall goes beyond the deadline", 0, 1.0, [(9.5, 0)], 10.0),
    ("REQ-8", "the maximum before the stall", 2, 1.0, [(5.0, 0), (5.5, 0)], 5.5),
    ("REQ-7", "a status is the end", 0, 0.0, [(1.0, 0), (2.0, 204)], 2.0),
    ("REQ-7", "an informational status is none", 0, 0.0, [(1.0, 0), (2.0, 100)], 10.0),
]


@pytest.mark.parametrize(
    ("most", "stall", "arrivals", "ends"),
    [pytest.param(*row[2:], id=row[1], marks=pytest.mark.rule(row[0])) for row in GATHER],
)
def test_when_a_gather_ends(most, stall, arrivals, ends):
    gather = MultiRequest("it", 10.0, "s", most, stall)
    now = 0.0
    for now, status in arrivals:
        assert not gather.done
        assert gather.receive(message(b"" if status else b"x", status), now)
    if gather.done:
        assert now == ends
    else:
        assert gather.deadline == ends
        assert gather.handle_timer(ends)
    assert (gather.done, gather.error, len(gather.replies)) == (True, None, len(arrivals))


@pytest.mark.rule("REQ-7")
def test_nobody_is_an_error_for_a_gather_too_even_behind_answers():
    gather = MultiRequest("it", 10.0, "s")
    gather.receive(message(), 1.0)
    assert gather.receive(message(b"", 503), 1.0)
    assert isinstance(gather.error, NoResponders)
    assert len(gather.replies) == 1


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
    assert not mailbox.receive(message(b"3"), 0.0)  # "2" was still there: nobody waits
    assert [mailbox.pop().data, mailbox.pop().data] == [b"2", b"3"]
    assert mailbox.receive(message(b"4"), 0.0)
    assert mailbox.pending() == 1
    mailbox.pop()
    with pytest.raises(IndexError):
        mailbox.pop()


@pytest.mark.rule("SUB-7")
def test_messages_that_come_together_wake_their_reader_once():
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
    assert mailbox.dropping == [mailbox] * mailbox.dropped
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
