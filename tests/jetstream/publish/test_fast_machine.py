from __future__ import annotations

import json

import pytest

from jetstream.errors import (
    BatchRefused,
    InvalidResponse,
    MessageTooLarge,
    NoStreamResponse,
    WrongLastSequence,
)
from jetstream.events import Loss
from jetstream.publish.fast_machine import (
    APPEND,
    COMMIT,
    END,
    ENDING,
    FAILING,
    NEW,
    OPEN,
    OVER,
    START,
    STARTING,
)
from natsproto.wire.frames import Msg
from tests.jetstream.ingests import (
    INBOX,
    LARGE,
    NOBODY,
    REFUSED,
    STALE,
    UNKNOWN,
    Batch,
    ack,
    final,
    gap,
    wrong,
)


@pytest.mark.rule("FAST-1")
def test_reply_subjects():
    batch = Batch(flow=7)
    assert batch.machine.reply(START) == b"_INBOX.b.7.fail.1.0.$FI"
    batch.send(START)
    assert batch.machine.reply(APPEND) == b"_INBOX.b.7.fail.2.1.$FI"
    assert batch.machine.reply(COMMIT) == b"_INBOX.b.7.fail.2.2.$FI"
    assert Batch(gaps=True).machine.reply(START) == b"_INBOX.b.2.ok.1.0.$FI"


@pytest.mark.rule("FAST-2", "FAST-3")
def test_a_batch_begins_with_an_acknowledgment():
    batch = Batch()
    machine = batch.machine
    assert (machine.state, machine.limit) == (NEW, 1)
    batch.send(START)
    assert (machine.state, machine.limit, machine.sent) == (STARTING, 0, 1)
    assert batch.answer(1, START, ack(0, 2))
    assert (machine.state, machine.limit, machine.stored) == (OPEN, 4, 0)
    assert machine.pending() == 1
    assert not batch.orders()


@pytest.mark.rule("FAST-3", "FAST-4")
@pytest.mark.parametrize(
    ("answers", "stored", "limit"),
    [
        ([ack(2)], 2, 6),
        ([ack(4)], 4, 8),  # that for 2 was lost
        ([ack(4), ack(2)], 4, 8),  # it arrives late
        ([ack(2, 1)], 2, 4),  # slower
        ([ack(2, 1), ack(3, 2)], 3, 7),  # faster
        ([ack(4), ack(2, 1)], 4, 6),
        ([ack(2, 0)], 2, 4),  # a flow of 0 would never end
        ([ack(2, -3)], 2, 4),
    ],
)
def test_acknowledgments(answers, stored, limit):
    batch = Batch(4)
    for each in answers:
        batch.answer(2, APPEND, each)
    assert (batch.machine.stored, batch.machine.limit) == (stored, limit)


@pytest.mark.rule("FAST-3")
def test_waiting_callers_wake_up_when_there_is_room():
    batch = Batch(4)
    machine = batch.machine
    assert machine.sent == machine.limit == 4
    assert batch.answer(2, APPEND, ack(2))
    batch.send()
    batch.send()
    assert not batch.answer(3, APPEND, ack(2))  # nothing new
    assert batch.answer(6, APPEND, ack(6))


FIRST = [
    # the response instead of the acknowledgment
    (REFUSED, BatchRefused),
    (wrong(10054), MessageTooLarge),
]


@pytest.mark.rule("FAST-2", "FAST-7")
@pytest.mark.parametrize("operation", [START, COMMIT])
@pytest.mark.parametrize(("answer", "error"), FIRST)
def test_the_first_message_is_refused(answer, error, operation):
    batch = Batch()
    batch.send(operation)
    assert batch.answer(1, operation, answer)
    assert batch.machine.state == OVER
    assert type(batch.machine.failure) is error
    assert batch.machine.leaving


@pytest.mark.rule("FAST-7")
def test_the_first_message_is_refused_after_the_batch_began():
    batch = Batch(2)
    batch.answer(1, START, wrong(STALE))
    batch.answer(2, APPEND, UNKNOWN)
    assert batch.outcome[:3] == (0, 2, False)
    assert batch.machine.failure.cause.err_code == STALE
    assert not batch.orders()


FAILURES = [
    # responses to which of 4 messages, 2 of them acknowledged; pings; outcome
    ([(4, APPEND, gap(3, 4)), (4, APPEND, final(2))], [], (2, 4, False, None)),
    ([(3, APPEND, wrong(10054, 3)), (3, APPEND, final(2))], [], (2, 4, False, MessageTooLarge)),
    (
        [(3, APPEND, LARGE), (4, APPEND, UNKNOWN), (4, 4, gap(3, 5)), (4, 4, final(2))],
        ["4.4"],
        (2, 4, False, MessageTooLarge),
    ),
    ([(3, APPEND, LARGE), (4, 4, UNKNOWN)], ["4.4"], (2, 4, True, MessageTooLarge)),
    ([(3, APPEND, NOBODY), (4, APPEND, NOBODY), (4, 4, NOBODY)], ["4.4"], None),
    ([(3, APPEND, NOBODY), (4, 4, final(2))], ["4.4"], (2, 4, False, NoStreamResponse)),
    ([(3, APPEND, LARGE), (4, 4, final(0))], ["4.4"], (2, 4, True, MessageTooLarge)),
    ([(4, APPEND, gap(2, 4)), (4, APPEND, final(1))], [], (2, 4, False, None)),
    ([(4, APPEND, final(3))], [], (3, 4, False, None)),  # without a reason
    ([(4, APPEND, final(5))], [], (2, 4, True, InvalidResponse)),
    ([(4, APPEND, final(2, "other"))], [], (2, 4, True, InvalidResponse)),
    ([(4, APPEND, {"stream": "S", "seq": 1})], [], (2, 4, True, InvalidResponse)),
    ([(4, APPEND, b"+OK")], [], (2, 4, True, InvalidResponse)),
    ([(4, APPEND, ack(5))], [], (2, 4, True, InvalidResponse)),
    ([(4, APPEND, {"type": "ack", "seq": "x"})], [], (2, 4, True, InvalidResponse)),
    ([(4, APPEND, {"error": 5})], [], (2, 4, True, InvalidResponse)),
]


@pytest.mark.rule("FAST-5", "FAST-7", "FAST-11")
@pytest.mark.parametrize(("answers", "pings", "outcome"), FAILURES)
def test_failures(answers, pings, outcome):
    batch = Batch(4)
    batch.answer(2, APPEND, ack(2))
    for number, operation, data in answers:
        batch.answer(number, operation, data)
    assert batch.orders() == pings
    if outcome is None:
        assert (batch.machine.state, batch.machine.limit) == (FAILING, 0)
    else:
        assert batch.outcome == outcome
        assert batch.machine.leaving
        assert not batch.answer(4, APPEND, UNKNOWN)  # it no longer matters
        assert batch.outcome == outcome


@pytest.mark.rule("FAST-5")
def test_a_failing_batch_sends_no_more_messages():
    batch = Batch(3)
    machine = batch.machine
    assert not batch.answer(3, APPEND, wrong(STALE, 3))
    assert (machine.state, machine.limit, machine.failure) == (FAILING, 0, None)
    batch.answer(2, APPEND, ack(2))  # acknowledgments of stored messages still arrive
    assert machine.pending() == 1
    assert (machine.state, machine.limit, machine.stored) == (FAILING, 0, 2)
    batch.answer(3, APPEND, wrong(10054, 3))  # the first error counts
    assert batch.answer(3, APPEND, final(2))
    assert batch.machine.failure.cause.err_code == STALE


@pytest.mark.rule("FAST-6")
def test_with_gaps_the_batch_continues():
    batch = Batch(4, gaps=True)
    machine = batch.machine
    batch.answer(2, APPEND, wrong(STALE, 2))
    batch.answer(3, APPEND, LARGE)
    batch.answer(4, APPEND, gap(3, 4))  # known
    batch.answer(4, APPEND, gap(6, 5))
    batch.answer(3, APPEND, NOBODY)
    assert not batch.orders()
    assert machine.state == OPEN
    assert batch.losses == [(2, 2, WrongLastSequence), (3, 3, MessageTooLarge)]
    assert machine.lost == 2
    assert repr(machine.losses[0]) == "<Loss of 2 to 2: %s>" % machine.losses[0].error
    assert repr(Loss(3, 5)) == "<Loss of 3 to 5: a gap>"
    batch.answer(4, APPEND, ack(4))
    batch.send(END)
    assert batch.orders() == ["5.3"]
    batch.answer(5, END, final(4))
    assert (machine.state, machine.failure, machine.ack.count) == (OVER, None, 4)


LOSSES = [
    # responses, after 2 of 8 messages are acknowledged; losses
    ([gap(4, 6)], [(4, 5, None)]),
    ([gap(4, 6), gap(6, 8)], [(4, 7, None)]),
    ([gap(4, 6), gap(4, 6)], [(4, 5, None)]),
    ([gap(4, 6), gap(3, 9)], [(4, 5, None), (3, 3, None), (6, 8, None)]),  # another leader
    ([wrong(10054, 5), gap(4, 7)], [(5, 5, MessageTooLarge), (4, 4, None), (6, 6, None)]),
    ([wrong(10054, 4), wrong(10054, 5)], [(4, 4, MessageTooLarge), (5, 5, MessageTooLarge)]),
    ([gap(1, 5)], [(3, 4, None)]),  # acknowledged messages are not lost
    ([gap(7, 10**18)], [(7, 8, None)]),  # nor are messages that were never sent
    ([wrong(10054, 9)], []),
]


@pytest.mark.rule("FAST-6")
@pytest.mark.parametrize(("answers", "losses"), LOSSES)
def test_losses_are_reported_once(answers, losses):
    batch = Batch(8, gaps=True, flow=4)
    batch.answer(2, APPEND, ack(2, 4))
    for data in answers:
        batch.answer(8, APPEND, data)
    assert batch.losses == losses
    assert batch.machine.lost == sum(last - first + 1 for first, last, _ in losses)


@pytest.mark.rule("FAST-6")
def test_all_losses_are_counted_but_only_the_last_are_kept():
    batch = Batch(4, gaps=True)
    batch.machine.sent = 3000
    for number in range(1, 1006):
        batch.answer(number, APPEND, wrong(10054, number))
    assert batch.machine.lost == 1005
    assert [batch.machine.losses[0].first, len(batch.machine.losses)] == [6, 1000]


@pytest.mark.rule("FAST-3", "FAST-6")
def test_lost_messages_take_no_room_in_the_window():
    """The server does not acknowledge a refused message until there is another one."""
    batch = Batch(4, gaps=True)
    machine = batch.machine
    assert machine.limit == 4
    assert batch.answer(4, APPEND, wrong(STALE, 4))
    assert machine.limit == 5
    batch.send()
    assert batch.answer(5, APPEND, ack(4))
    assert machine.limit == 8


@pytest.mark.rule("FAST-6", "FAST-7")
def test_with_gaps_an_unknown_batch_is_over():
    batch = Batch(2, gaps=True)
    batch.answer(2, APPEND, LARGE)
    batch.answer(2, 4, UNKNOWN)
    assert batch.outcome == (0, 2, True, MessageTooLarge)


ENDS = [
    # the operation that ends it; the response; count, or outcome
    (COMMIT, [final(3)], 3),
    (COMMIT, [ack(2), final(3)], 3),
    (COMMIT, [gap(2, 3), final(1)], (1, 3, False, None)),
    (COMMIT, [wrong(10054, 3), final(2)], (2, 3, False, MessageTooLarge)),
    (COMMIT, [final(2)], (2, 3, False, None)),
    (END, [final(2)], 2),
    (END, [gap(2, 3), final(1)], (1, 2, False, None)),
    (END, [final(1)], (1, 2, False, None)),
    (END, [ack(2), gap(2, 3), final(1)], 1),  # all are stored, and the leader knows of one
]


@pytest.mark.rule("FAST-1", "FAST-5", "FAST-11", "FAST-14")
@pytest.mark.parametrize(("operation", "answers", "outcome"), ENDS)
def test_ends(operation, answers, outcome):
    batch = Batch(2)
    batch.send(operation)
    machine = batch.machine
    assert (machine.state, machine.limit) == (ENDING, 0)
    assert batch.orders() == (["3.3"] if operation == END else [])
    woken = [batch.answer(3, operation, data) for data in answers]
    assert woken == [False] * (len(answers) - 1) + [True]
    if isinstance(outcome, int):
        assert (machine.state, machine.failure, machine.ack.count) == (OVER, None, outcome)
        assert machine.leaving
    else:
        assert batch.outcome == outcome


@pytest.mark.rule("FAST-7", "FAST-11")
def test_the_end_is_lost():
    """A ping shows that everything arrived except the end."""
    for answer in (LARGE, NOBODY):
        batch = Batch(2)
        batch.send(END, 10.0)
        batch.answer(3, END, answer, 10.1)
        assert batch.orders() == ["3.3"]
        assert batch.machine.deadline == 11.0
        assert not batch.machine.handle_timer(11.0)
        assert batch.orders() == ["2.4"]
        batch.answer(1, 4, ack(0), 11.1)  # the response to an old ping proves nothing
        assert batch.orders() == []
        batch.answer(2, 4, ack(2), 11.2)
        assert batch.orders() == ["3.3"]
        assert batch.answer(3, END, final(2), 11.3)
        assert batch.machine.failure is None


@pytest.mark.rule("FAST-7", "FAST-11")
def test_the_last_message_is_refused():
    batch = Batch(2)
    batch.send(COMMIT)
    batch.answer(3, COMMIT, LARGE)
    assert batch.orders() == ["3.4"]
    batch.answer(3, 4, ack(0))
    assert batch.orders() == []
    batch.answer(3, 4, final(2))
    assert batch.outcome == (2, 3, False, MessageTooLarge)


@pytest.mark.rule("FAST-6", "FAST-7", "FAST-11")
def test_with_gaps_the_last_message_is_refused():
    batch = Batch(2, gaps=True)
    batch.send(COMMIT)
    batch.answer(3, COMMIT, LARGE)
    assert batch.orders() == ["4.3"]
    batch.answer(4, END, gap(3, 4))
    batch.answer(4, END, final(3))
    assert batch.machine.failure is None
    assert batch.losses == [(3, 3, MessageTooLarge)]


@pytest.mark.rule("FAST-6", "FAST-11")
@pytest.mark.parametrize(
    ("losses", "count", "outcome"),
    [
        ([], 4, None),
        ([wrong(10054, 4)], 3, None),  # the last one
        ([gap(3, 4)], 4, None),
        ([gap(3, 4)], 3, (3, 4, False, None)),
        ([], 2, (2, 4, False, None)),  # late messages ended it before its end arrived
    ],
)
def test_with_gaps_the_count_may_be_less(losses, count, outcome):
    batch = Batch(3, gaps=True)
    batch.send(COMMIT)
    for data in losses:
        batch.answer(4, COMMIT, data)
    batch.answer(4, COMMIT, final(count))
    assert (outcome or batch.machine.failure) is outcome
    assert outcome is None or batch.outcome == outcome


@pytest.mark.rule("FAST-6", "FAST-11")
def test_with_gaps_the_last_message_is_lost():
    batch = Batch(2, gaps=True)
    batch.send(COMMIT)
    batch.answer(3, 4, gap(3, 4))
    assert batch.orders() == []
    batch.answer(3, 4, ack(2))
    assert batch.orders() == ["4.3"]
    batch.answer(4, END, final(3))
    assert batch.machine.failure is None
    assert batch.losses == [(3, 3, None)]


@pytest.mark.rule("FAST-2", "FAST-11")
def test_a_batch_of_one():
    batch = Batch()
    batch.send(COMMIT)
    assert batch.answer(1, COMMIT, final(1))
    assert (batch.machine.failure, batch.machine.ack.count) == (None, 1)


@pytest.mark.rule("FAST-7")
def test_an_empty_batch_may_be_another_one():
    """A ping for a first message may begin a batch with a server that has forgotten ours."""
    batch = Batch(1)
    batch.answer(1, 4, final(0))
    assert batch.outcome == (0, 1, True, None)


@pytest.mark.rule("D-FAST-16")
def test_answers_with_invalid_subjects():
    """They do not name a message of the batch."""
    batch = Batch(3)
    long = b"9" * 5000
    tails = (b"", b"2.fail.x.1.$FI", b"2.fail.1.y.$FI", b"2.fail.1.4.4.$FI")
    tails += (b"2.fail.%s.1.$FI" % long, b"2.fail.1.%s.$FI" % long)
    for tail in tails:
        data = json.dumps(ack(2)).encode()
        batch.machine.receive(Msg(INBOX + b"." + tail, 1, b"", data, None), 0.0)
    assert batch.machine.stored == 2
    assert batch.machine.state == OPEN


@pytest.mark.rule("D-FAST-16", "FAST-7")
def test_an_error_with_an_invalid_subject():
    """It is not about the first message, which would end the batch at once."""
    batch = Batch(3)
    batch.machine.receive(Msg(INBOX + b".x", 1, b"", json.dumps(LARGE).encode(), None), 0.0)
    assert batch.machine.state == FAILING
    assert batch.orders() == ["3.4"]
