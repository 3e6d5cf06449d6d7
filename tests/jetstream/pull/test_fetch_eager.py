"""Fetches without waiting, fetches that are iterated, pulls that stay open, and bounds."""

from __future__ import annotations

import json

import pytest

from jetstream.errors import ConsumerUnavailable, HeartbeatMissed
from jetstream.pull.fetch import QUIET, SLACK_BYTES, SLACK_MESSAGES, Fetcher
from jetstream.pull.silence import LATE
from natsproto.errors import ConnectionLost, TimeoutExpired
from tests.effects import count_drops, publishes, will_publish
from tests.jetstream.pulls import INBOX, SUBJECT, beat, message, ordered, status, template

A, B, C = message(100, 1), message(100, 2), message(100, 3)
FULL = "408 Request Timeout"  # the answer to the probe


def eager(batch=3, expires=0.0, patience=5.0, online=True):
    fetcher = Fetcher(INBOX)
    fetcher.start(template(expires, 0.0), batch, 0, patience, 0.0, online, eager=True)
    publishes(fetcher)
    return fetcher


def play(fetcher, steps):
    for at, step in steps:
        if step == "tick":
            fetcher.handle_timer(at)
        elif isinstance(step, str):
            getattr(fetcher, step)(at)
        else:
            fetcher.receive(step, at)


TABLE = [  # case, inputs, probes, done, messages, failure, open, deadline
    ("nothing yet", [], 0, False, 0, None, False, QUIET),
    ("too early", [(0.04, "tick")], 0, False, 0, None, False, QUIET),
    ("silence: a probe", [(0.05, "tick")], 1, False, 0, None, False, 6.0),
    ("answered", [(0.05, "tick"), (0.06, status(2, FULL, 1))], 1, False, 0, None, False, 0.11),
    (
        "and quiet: the end",
        [(0.05, "tick"), (0.06, status(2, FULL, 1)), (0.11, "tick")],
        1, True, 0, None, True, 30.11,
    ),
    ("messages", [(0.01, A), (0.02, B)], 0, False, 2, None, False, 0.07),
    (
        "some, then silence",
        [(0.01, A), (0.061, "tick"), (0.07, status(2, FULL, 1)), (0.121, "tick")],
        1, True, 1, None, True, 30.121,
    ),
    (
        "a message behind the probe: its answer proves nothing",
        [(0.05, "tick"), (0.06, A), (0.07, status(2, FULL, 1))],
        1, False, 1, None, False, 0.11,
    ),
    (
        "a message behind the answer: another probe",
        [(0.05, "tick"), (0.06, status(2, FULL, 1)), (0.07, A), (0.121, "tick")],
        2, False, 1, None, False, 6.0,
    ),
    (
        "no answer",
        [(0.05, "tick"), (6.0, "tick")],
        1, True, 0, TimeoutExpired, True, 36.0,
    ),
    ("404", [(0.01, A), (0.02, status(1, "404 No Messages"))], 0, True, 1, None, False, 30.02),
    ("404, late", [(0.05, "tick"), (0.06, status(1, "404 x"))], 1, True, 0, None, False, 30.06),
    ("nobody", [(0.01, status(1, "503"))], 0, True, 0, ConsumerUnavailable, False, 30.01),
    (
        "any answer will do",
        [(0.05, "tick"), (0.06, status(2, "409 Exceeded MaxWaiting")), (0.11, "tick")],
        1, True, 0, None, True, 30.11,
    ),
    ("all", [(0.01, A), (0.02, B), (0.03, C)], 0, True, 3, None, False, 30.03),
    ("lost", [(0.01, A), (0.02, "disconnected")], 0, True, 1, ConnectionLost, True, 30.02),
    ("the client has not read", [(0.05 + LATE + 0.01, "tick")], 0, False, 0, None, False, 0.21),
    ("excused once", [(0.16, "tick"), (0.32, "tick")], 1, False, 0, None, False, 6.0),
    ("cancelled", [(0.01, A), (0.02, "give_up")], 0, True, 0, None, True, 30.02),
]  # fmt: skip


@pytest.mark.rule("FETCH-12")
@pytest.mark.rule("FETCH-13")
@pytest.mark.parametrize(
    ("name", "steps", "probes", "done", "count", "failure", "left_open", "deadline"),
    TABLE,
    ids=[row[0] for row in TABLE],
)
def test_without_waiting(name, steps, probes, done, count, failure, left_open, deadline):
    fetcher = eager()
    play(fetcher, steps)
    orders = publishes(fetcher)
    assert [(each.subject, json.loads(each.data)) for each in orders] == [
        (SUBJECT, {"batch": 1, "expires": 1})
    ] * probes
    assert [each.reply for each in orders] == [INBOX + b".%d" % (n + 2) for n in range(probes)]
    assert (fetcher.done, fetcher.pending(), fetcher.open) == (done, count, left_open)
    assert type(fetcher.failure) is (failure or type(None))
    assert fetcher.deadline == pytest.approx(deadline)


@pytest.mark.rule("PSUB-5")
def test_until_the_first_message():
    fetcher = eager(expires=2.0, patience=2.0)
    assert fetcher.deadline == 3.0  # as long as there is no message, silence is expected
    fetcher.receive(A, 1.0)
    assert fetcher.deadline == 1.0 + QUIET
    fetcher.handle_timer(1.05)
    assert [body["expires"] for body in ordered(fetcher)] == [1]


@pytest.mark.rule("PSUB-5")
def test_until_the_first_message_that_is_here_already():
    fetcher = Fetcher(INBOX)
    fetcher.receive(A, 0.0)
    fetcher.start(template(2.0, 0.0), 3, 0, 2.0, 0.0, eager=True)
    assert (fetcher.done, will_publish(fetcher), fetcher.take()) == (True, False, [A])


@pytest.mark.rule("FETCH-12")
def test_without_waiting_and_without_a_connection():
    fetcher = eager(online=False)
    assert fetcher.deadline == 6.0
    fetcher.connected(1.0)
    assert (len(publishes(fetcher)), fetcher.deadline) == (1, 1.0 + QUIET)


@pytest.mark.rule("FETCH-13")
@pytest.mark.parametrize(
    ("step", "at", "failure", "left_open"),
    [
        ("give_up", 2.0, None, True),
        ("handle_timer", 10.0, HeartbeatMissed, True),
        ("handle_timer", 31.0, TimeoutExpired, True),
        ("disconnected", 2.0, ConnectionLost, True),
    ],
)
def test_pulls_that_the_server_may_still_have(step, at, failure, left_open):
    fetcher = Fetcher(INBOX, "consumer 'C'")
    fetcher.start(template(), 3, 0, 30.0, 0.0)
    getattr(fetcher, step)(at)
    assert (fetcher.done, fetcher.open) == (True, left_open)
    assert type(fetcher.failure) is (failure or type(None))
    assert failure is None or "consumer 'C'" in str(fetcher.failure)
    fetcher.start(template(), 3, 0, 30.0, at)
    fetcher.receive(status(2, "404 No Messages"), at)
    assert fetcher.open is False


@pytest.mark.rule("FETCH-14")
@pytest.mark.parametrize("together", [False, True])
def test_an_iteration_is_woken_for_each_message(together):
    fetcher = Fetcher(INBOX)
    fetcher.start(template(), 3, 0, 30.0, 0.0, streaming=True)

    def receive(msg):
        return fetcher.receive_all([msg], 1.0) if together else fetcher.receive(msg, 1.0)

    assert receive(A) is True
    assert (fetcher.take(), fetcher.pending(), fetcher.done) == ([A], 0, False)
    assert receive(beat()) is False
    assert receive(B) is True
    assert receive(status(1, "409 Message Size Exceeds MaxBytes", 1)) is True
    assert (fetcher.failure, fetcher.take()) == (None, [B])  # FETCH-9: it is not the first one


@pytest.mark.rule("D-FETCH-15")
@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("done", [False, True])
def test_at_most_the_requested_messages_are_kept(together, done):
    fetcher = Fetcher(INBOX)
    fetcher.start(template(), 3, 0, 30.0, 0.0)
    if done:
        fetcher.receive(status(1, "404 No Messages"), 1.0)
    flood = [message(100, number) for number in range(1000)]
    if together:
        fetcher.receive_all(flood, 2.0)
    else:
        for msg in flood:
            fetcher.receive(msg, 2.0)
    assert len(fetcher.messages) == 3 + SLACK_MESSAGES
    assert fetcher.dropped == count_drops(fetcher) == 1000 - 3 - SLACK_MESSAGES
    fetcher.start(template(), 3, 0, 30.0, 3.0)
    assert fetcher.take() == flood[:3]


@pytest.mark.rule("D-FETCH-15")
def test_at_most_the_requested_bytes_are_kept():
    fetcher = Fetcher(INBOX)
    fetcher.start(template(), 1_000_000, 1000, 30.0, 0.0)
    size = SLACK_BYTES // 2
    taken = [fetcher.receive(message(size), 1.0) for _ in range(5)]
    assert (taken[0], len(fetcher.messages), fetcher.dropped) == (True, 2, 3)


@pytest.mark.rule("D-FETCH-15")
def test_before_the_first_fetch_next_to_nothing_is_kept():
    fetcher = Fetcher(INBOX)
    fetcher.receive_all([A] * 1000, 0.0)
    assert len(fetcher.messages) == SLACK_MESSAGES


def test_the_answer_to_the_probe_wakes_no_caller():
    fetcher = eager()
    play(fetcher, [(0.05, "tick")])
    assert fetcher.receive(status(2, FULL), 0.06) is False
    assert not fetcher.done
