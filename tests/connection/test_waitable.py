from __future__ import annotations

import pytest

from natsproto.connection.waitable import (
    MAX_REPORTS,
    Alarm,
    MultiRequest,
    Reports,
    Request,
    Waitable,
    is_status_reply,
)
from natsproto.errors import ConnectionLost, NoResponders, TimeoutExpired, TooManyReplies
from natsproto.events import LameDuck
from natsproto.wire.frames import Msg

STATUS = b"NATS/1.0 %d\r\n\r\n"


def message(data=b"x", status=0, size=0):
    return Msg(b"s", 1, b"", data, STATUS % status if status else None, size)


@pytest.mark.rule("D-LOG-4")
def test_the_newest_events_are_kept_for_the_log():
    reports = Reports("consumer 'w'")
    for number in range(MAX_REPORTS + 3):
        reports.add(LameDuck(str(number)))
    taken = reports.take()
    assert (reports.source, reports.events) == ("consumer 'w'", [])
    assert (len(taken), taken[0], taken[-1]) == (256, LameDuck("3"), LameDuck("258"))
    assert Waitable().reports is None


def test_a_waitable_is_ready_when_its_time_has_come():
    waitable = Waitable()
    waitable.deadline = 1.0
    assert waitable.handle_timer(1.0)
    assert waitable.deadline is None


def test_an_alarm_wakes_callers_that_wait_for_its_target():
    target = Waitable()
    alarm = Alarm(target)
    alarm.deadline = 3.0
    assert alarm.handle_timer(3.0) is True
    assert (alarm.target, alarm.deadline, target.deadline) == (target, None, None)


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
def test_only_503_without_payload_means_no_responders(kind, data, status, fails):
    request = kind("it", 5.0, "who")
    request.receive(message(data, status), 1.0)
    assert isinstance(request.error, NoResponders) is fails
    if fails:
        assert str(request.error) == "no responders on subject 'who'"


@pytest.mark.rule("GET-12")
@pytest.mark.parametrize("status", [204, 404, 503])
def test_a_stored_status_is_an_answer_and_not_the_end(status):
    """Direct get answers with a stored message, whose headers are followed by its position."""
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
def test_the_timeout_names_the_operation():
    request = Request("the request to 'a'", 5.0)
    assert request.handle_timer(5.0)
    assert isinstance(request.error, TimeoutExpired)
    assert str(request.error) == "no answer to the request to 'a' in time"


@pytest.mark.rule("REQ-4")
def test_the_timeout_of_a_request_names_its_subject():
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
def test_a_gather_keeps_replies_within_its_limits(limits, most, sizes, kept, fails):
    gather = MultiRequest("", 10.0, "a", most, 0.0, limits)
    for size in sizes:
        gather.receive(message(size=size), 1.0)
    assert len(gather.replies) == kept
    if fails:
        assert isinstance(gather.error, TooManyReplies)
        assert gather.error.replies is gather.replies
        assert "responses to the request to 'a' exceed 3 messages" in str(gather.error)
    else:
        assert gather.error is None


@pytest.mark.rule("D-REQ-13")
def test_taken_answers_make_room_and_still_count():
    gather = MultiRequest("", None, "a", 4, 1.0, (2, 100))
    gather.receive(message(size=100), 1.0)
    assert (gather.deadline, len(gather.take()), gather.take()) == (2.0, 1, [])
    for _ in range(3):
        gather.receive(message(size=30), 1.0)
    assert (gather.done, gather.error, gather.count, len(gather.take())) == (True, None, 4, 3)


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
def test_no_responders_is_an_error_for_a_gather_even_after_answers():
    gather = MultiRequest("it", 10.0, "s")
    gather.receive(message(), 1.0)
    assert gather.receive(message(b"", 503), 1.0)
    assert isinstance(gather.error, NoResponders)
    assert len(gather.replies) == 1
