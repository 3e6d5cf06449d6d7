from __future__ import annotations

import pytest

from natsproto.connection.bus import Bus
from natsproto.connection.requests import Inbox
from natsproto.connection.waitable import MultiRequest, Request
from natsproto.errors import PermissionDenied
from natsproto.wire.frames import Msg


def make(*subjects):
    inbox = Inbox(b"_INBOX.x", Bus())
    requests = [Request("it", 5.0, subject) for subject in subjects]
    return inbox, requests, [register(inbox, request) for request in requests]


def register(inbox, request):
    """Open a request as Requests does; return its reply subject."""
    request.token = b"%d" % (len(inbox.open) + 1)
    inbox.open[request.token] = request
    return inbox.prefix + request.token


def answer(inbox, subject, data=b"x"):
    """Return the waitables that a response on this subject wakes."""
    inbox._bus.ready.clear()
    assert inbox.receive(Msg(subject, 1, b"", data), 1.0) is False
    return list(inbox._bus.ready)


@pytest.mark.rule("REQ-1")
def test_each_request_has_a_subject_of_its_own_under_one_wildcard():
    inbox, [a, b], tokens = make("a", "b")
    assert inbox.subject == b"_INBOX.x.*"
    assert tokens == [b"_INBOX.x.1", b"_INBOX.x.2"]
    assert answer(inbox, tokens[1], b"for b") == [b]
    assert (b.reply.data, a.done) == (b"for b", False)
    assert inbox.pending() == 0


@pytest.mark.rule("REQ-2")
@pytest.mark.parametrize(
    "subject", [b"_INBOX.x.1", b"_INBOX.x.3", b"_INBOX.x.", b"_INBOX.x", b"", b"_INBOX.x.1.1"]
)
def test_responses_without_a_request_are_dropped(subject):
    inbox, [a], tokens = make("a")
    answer(inbox, tokens[0], b"first")
    assert answer(inbox, subject, b"second") == []
    assert (a.reply.data, inbox.open) == (b"first", {})


@pytest.mark.rule("REQ-8")
def test_the_stall_is_armed_if_it_is_before_the_deadline():
    inbox, [], [] = make()
    timers = inbox._bus.timers
    request = MultiRequest("it", 10.0, "a", 0, 0.5)
    subject = register(inbox, request)
    timers.arm(request)
    assert answer(inbox, subject) == [request]
    assert timers.next_deadline() == 1.5
    assert timers.pop_due(1.5) == [request]
    assert len(inbox.open) == 1


@pytest.mark.rule("ERR-6", "ERR-7")
@pytest.mark.parametrize(("subject", "failed"), [("a", [0, 2]), ("b", [1]), ("", [0, 1, 2])])
def test_requests_fail_by_subject_or_all_together(subject, failed):
    inbox, requests, _ = make("a", "b", "a")
    error = PermissionDenied("no")
    inbox.fail(error, subject)
    assert inbox._bus.ready == [requests[i] for i in failed]
    assert [request.error is error for request in requests] == [i in failed for i in range(3)]
    assert len(inbox.open) == 3 - len(failed)
