from __future__ import annotations

import pytest

from natsproto.connection.replies import Replies
from natsproto.connection.timers import Timers
from natsproto.connection.tokens import Numbers
from natsproto.connection.waitable import Gather, Request
from natsproto.errors import PermissionDenied
from natsproto.wire.frames import Msg


def make(*subjects):
    replies = Replies(b"_INBOX.x", Timers(), Numbers())
    requests = [Request("it", 5.0, subject) for subject in subjects]
    tokens = [replies.register(request) for request in requests]
    return replies, requests, tokens


def answer(replies, subject, data=b"x"):
    """Whether anybody was woken by an answer on this subject."""
    replies.ready.clear()
    assert replies.receive(Msg(subject, 1, b"", data), 1.0) is False
    return list(replies.ready)


@pytest.mark.rule("REQ-1")
def test_each_request_has_a_subject_of_its_own_under_one_wildcard():
    replies, [a, b], tokens = make("a", "b")
    assert replies.subject == b"_INBOX.x.*"
    assert tokens == [b"_INBOX.x.1", b"_INBOX.x.2"]
    assert answer(replies, tokens[1], b"for b") == [b]
    assert (b.reply.data, a.done) == (b"for b", False)
    assert replies.pending() == 0


@pytest.mark.rule("REQ-2")
@pytest.mark.parametrize(
    "subject", [b"_INBOX.x.1", b"_INBOX.x.3", b"_INBOX.x.", b"_INBOX.x", b"", b"_INBOX.x.1.1"]
)
def test_answers_for_nobody_are_dropped(subject):
    replies, [a], tokens = make("a")
    answer(replies, tokens[0], b"first")
    assert answer(replies, subject, b"second") == []
    assert (a.reply.data, replies.open) == (b"first", {})


@pytest.mark.rule("REQ-4")
def test_a_forgotten_request_gets_nothing():
    replies, [a, b], tokens = make("a", "b")
    replies.forget(a)
    replies.forget(a)
    replies.forget(Request("never registered"))
    assert answer(replies, tokens[0]) == []
    assert (a.done, list(replies.open.values())) == (False, [b])


@pytest.mark.rule("REQ-8")
def test_the_stall_is_armed_when_it_comes_before_the_deadline():
    timers = Timers()
    replies = Replies(b"_INBOX.x", timers, Numbers())
    gather = Gather("it", 10.0, "a", 0, 0.5)
    subject = replies.register(gather)
    timers.arm(gather)
    assert answer(replies, subject) == [gather]
    assert timers.next_deadline() == 1.5
    assert timers.pop_due(1.5) == [gather]
    assert len(replies.open) == 1


@pytest.mark.rule("ERR-6", "ERR-7")
@pytest.mark.parametrize(("subject", "failed"), [("a", [0, 2]), ("b", [1]), ("", [0, 1, 2])])
def test_requests_fail_by_subject_or_all_together(subject, failed):
    replies, requests, _ = make("a", "b", "a")
    error = PermissionDenied("no")
    replies.fail(error, subject)
    assert replies.ready == [requests[i] for i in failed]
    assert [request.error is error for request in requests] == [i in failed for i in range(3)]
    assert len(replies.open) == 3 - len(failed)
