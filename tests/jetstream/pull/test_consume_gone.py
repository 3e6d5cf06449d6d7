"""A consumer that disappears while consume() uses it is looked up, and an error is raised."""

from __future__ import annotations

import pytest

from jetstream.errors.api import ConsumerNotFound, StreamNotFound
from jetstream.machine.probe import Probe
from tests.effects import publishes, will_publish
from tests.jetstream.consumes import A, consuming, event_names
from tests.jetstream.lookups import (
    HERE,
    NO_CONSUMER,
    NO_LEADER,
    NO_RESPONDERS,
    NO_STREAM,
    NONSENSE,
    NOT_ENABLED,
    answer,
)
from tests.jetstream.pulls import INBOX, SUBJECT, beat, status

INFO = b"$JS.API.CONSUMER.INFO.S.C"


class Played:
    """A machine with heartbeats of 5 s whose pulls get 503 or no response; records its requests."""

    def __init__(self, silent=False, **options):
        self.machine = consuming(probe=Probe("$JS.API", "S", "C"), **options)
        self.silent = silent
        self.lookups = []  # when
        self.replies = []
        self.pulls = 1

    def run(self, until, answers=(), start=0.0):
        """Answer each pull with 503 at once, and each lookup with the next of the answers."""
        machine, answers = self.machine, list(answers)
        now = start
        if not self.silent:
            machine.receive(status(self.pulls, "503"), now)
        while not machine.ended:
            for order in publishes(machine):
                if order.subject == INFO:
                    assert order.data == b""
                    self.lookups.append(round(now, 4))
                    self.replies.append(order.reply)
                    data = answers.pop(0) if answers else None
                    if data is not None:
                        machine.receive(answer(data, order.reply), now)
                else:
                    assert order.subject == SUBJECT
                    self.pulls += 1
                    if not self.silent:
                        token = int(order.reply.rpartition(b".")[2])
                        machine.receive(status(token, "503"), now)
            if will_publish(machine):
                continue
            if machine.ended or machine.deadline > until:
                break
            now = machine.deadline
            machine.handle_timer(now)
        return self


TABLE = [  # answers to the lookups (None: there is none), when they were sent, the end, its time
    ("gone", [NO_CONSUMER] * 2, [0.05, 1.05], ConsumerNotFound),
    ("stream gone", [NO_STREAM] * 2, [0.05, 1.05], StreamNotFound),
    ("back in time", [NO_CONSUMER, HERE], [0.05, 1.05], None),
    ("no leader, then gone", [NO_LEADER, NO_STREAM, NO_STREAM], [0.05, 1.05, 2.05], StreamNotFound),
    ("there", [HERE], [0.05], None),
    ("no leader", [NO_LEADER] * 9, [0.05, 1.05, 2.05, 3.05, 4.05], None),
    ("not enabled", [NOT_ENABLED] * 9, [0.05, 1.05, 2.05, 3.05, 4.05], None),
    ("no responders", [NO_RESPONDERS] * 9, [0.05, 1.05, 2.05, 3.05, 4.05], None),
    ("not permitted", [], [0.05, 1.05, 2.05, 3.05, 4.05], None),
    ("nonsense", [NONSENSE] * 9, [0.05, 1.05, 2.05, 3.05, 4.05], None),
]


@pytest.mark.rule("D-CONSUME-21")
@pytest.mark.rule("D-CONSUME-23")
@pytest.mark.rule("D-CONSUME-24")
@pytest.mark.parametrize(("case", "answers", "lookups", "error"), TABLE)
def test_no_responders(case, answers, lookups, error):
    played = Played().run(9.0, answers)
    machine = played.machine
    assert played.lookups == lookups
    assert (machine.ended, machine.leaving) == ((error is not None),) * 2
    assert type(machine.error) is (error or type(None))
    assert len(set(played.replies)) == len(played.replies)
    assert all(reply.startswith(INBOX + b".i") for reply in played.replies)
    if error is None:
        assert machine.deadline is not None
    else:
        assert (machine.deadline, will_publish(machine)) == (None, False)
    assert event_names(machine) == ["ConsumerUnavailable"]


@pytest.mark.rule("CONSUME-22")
@pytest.mark.parametrize(
    ("answers", "lookups", "error"),
    [
        ([NO_CONSUMER] * 2, [10.0, 11.0], ConsumerNotFound),
        ([HERE] * 9, [10.0, 20.0, 40.0], None),
        ([], [10.0, 11.0, 12.0, 13.0, 14.0, 20.0, 21.0, 22.0, 23.0, 24.0, 40.0], None),
    ],
)
def test_silence(answers, lookups, error):
    """Servers before 2.11 do not respond."""
    played = Played(silent=True).run(40.0, answers)
    assert played.lookups == lookups
    assert type(played.machine.error) is (error or type(None))


@pytest.mark.rule("D-CONSUME-24")
def test_reports_and_lookups_continue_at_growing_intervals():
    played = Played().run(150.0, [HERE] * 99)
    assert not played.machine.ended
    gaps = [b - a for a, b in zip(played.lookups, played.lookups[1:])]
    assert [round(gap / 10) for gap in gaps] == [1, 2, 4, 6]
    assert event_names(played.machine) == ["ConsumerUnavailable"] * 5


@pytest.mark.rule("D-CONSUME-23")
def test_earlier_messages_can_still_be_taken():
    played = Played()
    machine = played.machine
    machine.receive_all([A] * 4, 0.0)
    played.run(9.0, [NO_CONSUMER] * 2)
    assert (machine.ended, machine.pending()) == (True, 4)
    assert [machine.pop(9.0) for _ in range(4)] == [A] * 4


@pytest.mark.rule("D-CONSUME-24")
@pytest.mark.parametrize("proof", [A, beat(2)])
def test_one_503_followed_by_success(proof):
    machine = consuming(probe=Probe("$JS.API", "S", "C"))
    for token in (1, 3, 5):
        machine.receive(status(token, "503"), float(token))
        machine.handle_timer(machine.deadline)
        machine.receive_all([proof], token + 0.5)
        machine.receive(status(token + 1, "408 Request Timeout", 9), token + 1.0)
    assert {order.subject for order in publishes(machine)} == {SUBJECT}


@pytest.mark.rule("D-CONSUME-24")
def test_a_late_answer_to_an_earlier_lookup_does_not_count():
    played = Played().run(1.5, [NO_CONSUMER])
    assert len(played.replies) == 2
    first, second = played.replies
    assert not played.machine.receive(answer(NO_CONSUMER, first), 1.6)
    assert not played.machine.ended
    assert played.machine.receive(answer(NO_CONSUMER, second), 1.6)
    assert isinstance(played.machine.error, ConsumerNotFound)


@pytest.mark.rule("D-CONSUME-24")
def test_an_answer_is_not_a_heartbeat():
    machine = consuming(probe=Probe("$JS.API", "S", "C"))
    machine.handle_timer(10.0)
    lookup = next(order for order in publishes(machine) if order.subject == INFO)
    machine.receive(answer(HERE, lookup.reply), 12.0)
    assert machine.deadline == 20.0


@pytest.mark.rule("D-CONSUME-24")
@pytest.mark.parametrize("what", ["lost", "draining", "stopped"])
def test_nothing_more_is_looked_up(what):
    played = Played().run(0.9, [NO_CONSUMER])
    machine = played.machine
    if what == "lost":
        machine.disconnected(1.0)
    elif what == "draining":
        machine.start_draining()
    else:
        machine.stop()
    assert machine.deadline is None
    machine.handle_timer(1.05)
    assert not machine.receive(answer(NO_CONSUMER, played.replies[-1]), 1.1)
    assert (machine.ended, will_publish(machine)) == (False, False)


@pytest.mark.rule("D-CONSUME-21")
def test_gone_while_away():
    machine = consuming(probe=Probe("$JS.API", "S", "C"))
    machine.disconnected(1.0)
    machine.connected(20.0)
    played = Played()
    played.machine, played.pulls = machine, 2
    publishes(machine)
    played.run(30.0, [NO_CONSUMER] * 2, start=20.0)
    assert played.lookups == [20.05, 21.05]
    assert isinstance(machine.error, ConsumerNotFound)
