from __future__ import annotations

import json

import pytest

from jetstream.errors import (
    BatchRefused,
    FastBatchFailed,
    InvalidResponse,
    MessageTooLarge,
    NoStreamResponse,
    PublishInDoubt,
    WrongLastSequence,
)
from jetstream.ingest import (
    APPEND,
    COMMIT,
    END,
    ENDING,
    FAILING,
    MOST_LOSSES,
    NEW,
    OPEN,
    OVER,
    START,
    STARTING,
    Ingest,
    Loss,
)
from natsproto.errors import ConnectionClosed
from natsproto.frames import Msg

INBOX = b"_INBOX.b"


def ack(number, flow=2):
    return {"type": "ack", "seq": number, "msgs": flow}


def gap(first, seq):
    return {"type": "gap", "last_seq": first, "seq": seq}


def wrong(code, number=0):
    error = {"error": {"code": 400, "err_code": code, "description": "x"}}
    return {"type": "err", "seq": number, **error} if number else {**error, "stream": "S", "seq": 0}


def final(count, batch="b"):
    return {"stream": "S", "seq": 100 + count, "batch": batch, "count": count}


UNKNOWN = wrong(10208)
LARGE = wrong(10054)
REFUSED = wrong(10205)
STALE = 10071
NOBODY = b"NATS/1.0 503\r\n\r\n"


class Batch:
    """The machine with its orders, and with answers as a server writes them."""

    def __init__(self, sent=0, *, gaps=False, flow=2, max_acks=2, patience=5.0, online=True):
        self.machine = Ingest(INBOX, flow, max_acks, gaps, patience)
        self.mode = b"ok" if gaps else b"fail"
        self.flow = flow
        if online:
            self.machine.connected(0.0)
        if sent:
            self.send(START)
            self.answer(1, START, ack(0, flow))
            for _ in range(sent - 1):
                self.send()

    def send(self, operation=APPEND, now=0.0):
        subject = b"s.first" if operation == START else b"s.other"
        self.machine.note_sent(operation, subject, now)

    def answer(self, number, operation, data, now=0.0):
        place = b"%d.%s.%d.%d.$FI" % (self.flow, self.mode, number, operation)
        subject = INBOX + b"." + place
        if data is NOBODY:
            return self.machine.receive(Msg(subject, 1, b"", b"", NOBODY), now)
        raw = data if isinstance(data, bytes) else json.dumps(data).encode()
        return self.machine.receive(Msg(subject, 1, b"", raw, None), now)

    def orders(self):
        """The places of what was ordered: `3.4` is a ping for 3; all go to the first subject."""
        orders = self.machine.take_orders()
        assert all((order.subject, order.data) == (b"s.first", b"") for order in orders)
        base = b"%s.%d.%s." % (INBOX, self.flow, self.mode)
        assert all(order.reply.startswith(base) for order in orders)
        assert all(order.reply.endswith(b".$FI") for order in orders)
        return [order.reply[len(base) : -4].decode() for order in orders]

    @property
    def losses(self):
        """First, last, and the class of the error."""
        return [
            (each.first, each.last, None if each.error is None else type(each.error))
            for each in self.machine.losses
        ]

    @property
    def outcome(self):
        """Stored, sent, in doubt, and the class of the cause."""
        failure = self.machine.failure
        assert self.machine.state == OVER
        assert isinstance(failure, FastBatchFailed)
        cause = None if failure.cause is None else type(failure.cause)
        return failure.stored, failure.sent, failure.in_doubt, cause


@pytest.mark.rule("FAST-1")
def test_reply_subjects():
    batch = Batch(flow=7)
    assert batch.machine.reply(START) == b"_INBOX.b.7.fail.1.0.$FI"
    batch.send(START)
    assert batch.machine.reply(APPEND) == b"_INBOX.b.7.fail.2.1.$FI"
    assert batch.machine.reply(COMMIT) == b"_INBOX.b.7.fail.2.2.$FI"
    assert Batch(gaps=True).machine.reply(START) == b"_INBOX.b.2.ok.1.0.$FI"


@pytest.mark.rule("FAST-2", "FAST-3")
def test_it_begins_with_an_acknowledgement():
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
        ([ack(4), ack(2)], 4, 8),  # it comes late
        ([ack(2, 1)], 2, 4),  # slower
        ([ack(2, 1), ack(3, 2)], 3, 7),  # faster
        ([ack(4), ack(2, 1)], 4, 6),
        ([ack(2, 0)], 2, 4),  # no flow at all would never end
        ([ack(2, -3)], 2, 4),
    ],
)
def test_acknowledgements(answers, stored, limit):
    batch = Batch(4)
    for each in answers:
        batch.answer(2, APPEND, each)
    assert (batch.machine.stored, batch.machine.limit) == (stored, limit)


@pytest.mark.rule("FAST-3")
def test_those_who_wait_are_woken_when_there_is_room():
    batch = Batch(4)
    machine = batch.machine
    assert machine.sent == machine.limit == 4
    assert batch.answer(2, APPEND, ack(2))
    batch.send()
    batch.send()
    assert not batch.answer(3, APPEND, ack(2))  # nothing new
    assert batch.answer(6, APPEND, ack(6))


FIRST = [
    # what comes instead of the acknowledgement
    (REFUSED, BatchRefused),
    (wrong(10054), MessageTooLarge),
    (NOBODY, NoStreamResponse),
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
def test_it_is_refused_after_it_was_begun():
    batch = Batch(2)
    batch.answer(1, START, wrong(STALE))
    batch.answer(2, APPEND, UNKNOWN)
    assert batch.outcome[:3] == (0, 2, False)
    assert batch.machine.failure.cause.err_code == STALE
    assert not batch.orders()


FAILURES = [
    # what comes for which message of 4, of which 2 are acknowledged; pings; outcome
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
        assert not batch.answer(4, APPEND, UNKNOWN)  # it is of no interest any more
        assert batch.outcome == outcome


@pytest.mark.rule("FAST-5")
def test_nothing_more_is_sent_while_it_fails():
    batch = Batch(3)
    machine = batch.machine
    assert not batch.answer(3, APPEND, wrong(STALE, 3))
    assert (machine.state, machine.limit, machine.failure) == (FAILING, 0, None)
    batch.answer(2, APPEND, ack(2))  # what is stored, still comes
    assert (machine.state, machine.limit, machine.stored) == (FAILING, 0, 2)
    batch.answer(3, APPEND, wrong(10054, 3))  # the first error counts
    assert batch.answer(3, APPEND, final(2))
    assert batch.machine.failure.cause.err_code == STALE


@pytest.mark.rule("FAST-6")
def test_with_gaps_it_goes_on():
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
    # what comes, where 2 of 8 are acknowledged; losses
    ([gap(4, 6)], [(4, 5, None)]),
    ([gap(4, 6), gap(6, 8)], [(4, 7, None)]),
    ([gap(4, 6), gap(4, 6)], [(4, 5, None)]),
    ([gap(4, 6), gap(3, 9)], [(4, 5, None), (3, 3, None), (6, 8, None)]),  # another leader
    ([wrong(10054, 5), gap(4, 7)], [(5, 5, MessageTooLarge), (4, 4, None), (6, 6, None)]),
    ([wrong(10054, 4), wrong(10054, 5)], [(4, 4, MessageTooLarge), (5, 5, MessageTooLarge)]),
    ([gap(1, 5)], [(3, 4, None)]),  # what is acknowledged is not lost
    ([gap(7, 10**18)], [(7, 8, None)]),  # nor what was never sent
    ([wrong(10054, 9)], []),
]


@pytest.mark.rule("FAST-6")
@pytest.mark.parametrize(("answers", "losses"), LOSSES)
def test_losses_are_told_once(answers, losses):
    batch = Batch(8, gaps=True, flow=4)
    batch.answer(2, APPEND, ack(2, 4))
    for data in answers:
        batch.answer(8, APPEND, data)
    assert batch.losses == losses
    assert batch.machine.lost == sum(last - first + 1 for first, last, _ in losses)


@pytest.mark.rule("FAST-6")
def test_losses_are_counted_but_not_kept_for_ever():
    batch = Batch(4, gaps=True)
    batch.machine.sent = 3 * MOST_LOSSES
    for number in range(1, MOST_LOSSES + 6):
        batch.answer(number, APPEND, wrong(10054, number))
    assert batch.machine.lost == MOST_LOSSES + 5
    assert [batch.machine.losses[0].first, len(batch.machine.losses)] == [6, MOST_LOSSES]


@pytest.mark.rule("FAST-3", "FAST-6")
def test_what_is_lost_takes_no_room():
    """The server acknowledges no message that it refused, until there is another one."""
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
    # how it is ended; what comes for it; count, or outcome
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
    """A ping says that everything is there but the end."""
    for answer in (LARGE, NOBODY):
        batch = Batch(2)
        batch.send(END, 10.0)
        batch.answer(3, END, answer, 10.1)
        assert batch.orders() == ["3.3"]
        assert batch.machine.deadline == 11.0
        assert not batch.machine.handle_timer(11.0)
        assert batch.orders() == ["2.4"]
        batch.answer(1, 4, ack(0), 11.1)  # to a ping of long ago: it says nothing
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
        ([], 2, (2, 4, False, None)),  # late messages have ended it before its end came
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
def test_a_batch_of_none_may_be_another():
    """A ping for a first message may begin a batch with a server that has forgotten ours."""
    batch = Batch(1)
    batch.answer(1, 4, final(0))
    assert batch.outcome == (0, 1, True, None)


def test_answers_with_odd_subjects():
    """They are not for a message that there is."""
    batch = Batch(3)
    for tail in (b"", b"2.fail.x.1.$FI", b"2.fail.1.y.$FI", b"2.fail.1.4.4.$FI"):
        data = json.dumps(ack(2)).encode()
        batch.machine.receive(Msg(INBOX + b"." + tail, 1, b"", data, None), 0.0)
    assert batch.machine.stored == 2
    assert batch.machine.state == OPEN


# Time


@pytest.mark.rule("FAST-8")
def test_the_first_message_is_not_pinged():
    batch = Batch()
    batch.send(START, 10.0)
    machine = batch.machine
    assert machine.deadline == 15.0
    assert machine.handle_timer(15.0)
    assert batch.outcome == (0, 1, True, None)
    assert batch.orders() == []


@pytest.mark.rule("FAST-8")
def test_who_waits_has_pings_sent():
    batch = Batch(3)
    machine = batch.machine
    batch.send(now=10.0)  # the fourth: two acknowledgements are due
    assert machine.deadline == 11.0
    assert not machine.handle_timer(11.0)
    assert (batch.orders(), machine.deadline) == (["4.4"], 12.0)
    assert not batch.answer(4, 4, ack(0), 11.5)  # it is there, but comes not on
    assert machine.deadline == 12.0
    assert not machine.handle_timer(12.0)
    assert batch.answer(4, 4, ack(2), 12.5)
    assert (batch.orders(), machine.deadline) == (["4.4"], 16.5)


@pytest.mark.rule("FAST-8")
def test_the_flow_becomes_less():
    """Another leader, long after the last acknowledgement: who waits now, waits since now."""
    batch = Batch(6, flow=4)
    machine = batch.machine
    assert machine.limit == 8
    assert not batch.answer(6, APPEND, ack(0, 1), 100.0)
    assert (machine.limit, machine.deadline) == (2, 101.0)
    for now in (101.0, 102.0, 103.0, 104.0):
        assert not machine.handle_timer(now)
    assert machine.deadline == 105.0
    assert machine.handle_timer(105.0)
    assert batch.outcome == (0, 6, True, None)


@pytest.mark.rule("FAST-8")
def test_the_first_answer_is_late():
    batch = Batch(flow=1, max_acks=1)
    batch.send(START, 10.0)
    assert not batch.answer(1, START, ack(0, 1), 14.0)
    assert batch.machine.deadline == 15.0
    for now in (15.0, 16.0, 17.0, 18.0):
        assert not batch.machine.handle_timer(now)
    assert batch.machine.deadline == 19.0


@pytest.mark.rule("FAST-7", "FAST-8")
@pytest.mark.parametrize("answer", [NOBODY, wrong(10167)])
def test_nobody_is_there_for_a_ping(answer):
    batch = Batch(3)
    machine = batch.machine
    batch.answer(3, APPEND, NOBODY, 10.0)
    batch.answer(3, 4, answer, 10.1)
    assert machine.deadline == 10.35
    assert not machine.handle_timer(10.35)
    assert (batch.orders(), machine.deadline) == (["3.4", "3.4"], 11.35)
    assert batch.answer(3, 4, final(2), 10.4)
    assert batch.outcome == (2, 3, False, NoStreamResponse)


@pytest.mark.rule("FAST-8")
@pytest.mark.parametrize(
    ("last", "outcome"), [(APPEND, (0, 4)), (COMMIT, (0, 4)), (END, (0, 3)), (None, (0, 3))]
)
def test_nobody_answers(last, outcome):
    batch = Batch(3, patience=2.5)
    machine = batch.machine
    if last is None:
        batch.answer(3, APPEND, gap(3, 4), 10.0)  # it fails, and the final word does not come
    else:
        batch.send(last, 10.0)
    assert machine.deadline == 11.0
    assert not machine.handle_timer(11.0)
    assert not machine.handle_timer(12.0)
    assert machine.deadline == 12.5
    assert machine.handle_timer(12.5)
    assert batch.outcome == (*outcome, True, None)
    assert (machine.deadline, machine.leaving) == (None, True)


@pytest.mark.rule("FAST-9")
def test_an_idle_batch_is_kept_alive():
    batch = Batch(2, flow=100)
    machine = batch.machine
    assert machine.deadline == 4.0
    machine.sent += 1  # as `add` counts
    assert batch.answer(2, APPEND, ack(2, 100), 3.5)  # stored late: that keeps nothing alive
    for now, pings in [(4.0, []), (8.0, ["3.4"]), (12.0, ["3.4"])]:
        assert not machine.handle_timer(now)
        assert (batch.orders(), machine.deadline) == (pings, now + 4.0)
    assert batch.answer(3, 4, ack(2, 100), 12.5)
    assert machine.deadline == 16.0
    machine.sent += 1
    assert not machine.handle_timer(16.0)
    assert batch.orders() == []


# Connections


def test_before_it_begins_it_waits_for_a_connection():
    batch = Batch(online=False)
    machine = batch.machine
    assert machine.limit == 0
    machine.connected(1.0)
    assert (machine.limit, machine.ready) == (1, [machine])
    machine.disconnected(2.0)
    assert (machine.limit, machine.deadline, machine.state) == (0, None, NEW)
    machine.connected(3.0)
    assert machine.limit == 1
    assert batch.orders() == []


@pytest.mark.rule("FAST-10")
def test_the_first_message_is_lost_with_the_connection():
    batch = Batch()
    batch.send(START)
    batch.machine.disconnected(1.0)
    assert batch.outcome == (0, 1, True, None)
    assert batch.machine.ready[-1] is batch.machine
    batch.machine.connected(2.0)
    assert (batch.orders(), batch.machine.deadline) == ([], None)


AFTER = [
    # answers to the ping on a new connection, where 3 were sent; what then
    ([ack(2)], "goes on"),
    ([gap(3, 4), final(2)], (2, 3, False, None)),
    ([gap(3, 4), ack(0), final(2)], (2, 3, False, None)),
    ([UNKNOWN], (0, 3, True, BatchRefused)),
]


@pytest.mark.rule("FAST-10")
@pytest.mark.parametrize(("answers", "outcome"), AFTER)
def test_a_new_connection(answers, outcome):
    batch = Batch(3)
    machine = batch.machine
    machine.disconnected(10.0)
    assert (machine.limit, machine.deadline) == (0, None)
    machine.connected(20.0)
    assert (batch.orders(), machine.deadline, machine.limit) == (["3.4"], 21.0, 0)
    batch.answer(2, APPEND, ack(0), 20.1)  # on its way before: it says nothing of what came
    assert machine.limit == 0
    for data in answers:
        batch.answer(3, 4, data, 20.5)
    if outcome == "goes on":
        assert (machine.state, machine.limit, machine.deadline) == (OPEN, 6, 24.5)
    else:
        assert batch.outcome == outcome


DOUBTS = [
    # how many of 5 were acknowledged; answers to the ping on a new connection; losses; the limit
    (5, [ack(4)], [], 9),
    (4, [ack(4)], [(5, 5, PublishInDoubt)], 9),
    (2, [ack(4)], [(3, 5, PublishInDoubt)], 9),
    (2, [gap(4, 6), ack(4)], [(4, 5, None), (3, 3, PublishInDoubt)], 9),
    (2, [gap(4, 6)], [(4, 5, None)], 0),
]


@pytest.mark.rule("FAST-6", "FAST-10")
@pytest.mark.parametrize(("stored", "answers", "losses", "limit"), DOUBTS)
def test_a_new_connection_with_gaps(stored, answers, losses, limit):
    """What was said of losses on the last connection may not have come."""
    batch = Batch(4, gaps=True)
    batch.answer(2, APPEND, ack(2))
    batch.send()
    batch.answer(5, APPEND, ack(stored))
    for _ in range(2):  # the second one is lost at once
        batch.machine.disconnected(10.0)
        batch.machine.connected(20.0)
        batch.answer(5, APPEND, ack(4), 20.1)
    for data in answers:
        batch.answer(5, 4, data, 20.5)
    assert (batch.losses, batch.machine.limit) == (losses, limit)


@pytest.mark.rule("FAST-6", "FAST-10")
@pytest.mark.parametrize("last", [final(3), UNKNOWN])
def test_the_end_on_a_new_connection_with_gaps(last):
    batch = Batch(3, gaps=True)
    batch.answer(1, START, ack(1))
    batch.send(END)
    batch.machine.disconnected(10.0)
    batch.machine.connected(20.0)
    batch.answer(2, APPEND, ack(2), 20.5)
    batch.answer(3, 4, last, 20.5)
    assert (batch.machine.failure is None) == (last is not UNKNOWN)
    assert batch.losses == [(2, batch.machine.stored, PublishInDoubt)]


@pytest.mark.rule("FAST-10", "FAST-11")
def test_a_new_connection_at_the_end():
    batch = Batch(3)
    batch.send(END)
    batch.machine.disconnected(10.0)
    batch.machine.connected(20.0)
    assert batch.orders() == ["4.3", "3.4"]
    batch.answer(3, 4, ack(2), 20.5)
    assert batch.orders() == ["4.3"]
    batch.answer(4, END, final(3), 20.6)
    assert batch.machine.failure is None


@pytest.mark.rule("FAST-10")
def test_silence_on_a_new_connection():
    batch = Batch(3)
    batch.machine.disconnected(10.0)
    batch.machine.connected(20.0)
    for now in (21.0, 22.0, 23.0, 24.0):
        assert not batch.machine.handle_timer(now)
    assert batch.machine.handle_timer(25.0)
    assert batch.outcome == (0, 3, True, None)


@pytest.mark.parametrize("error", [None, ConnectionClosed("x")])
def test_the_end_of_the_subscription(error):
    batch = Batch(3)
    batch.answer(2, APPEND, ack(2))
    assert batch.machine.end(error)
    assert batch.outcome == (2, 3, True, None if error is None else ConnectionClosed)
    assert not batch.machine.end(error)
    fresh = Batch()
    assert fresh.machine.end(error)
    assert (fresh.machine.state, fresh.machine.error, fresh.machine.limit) == (NEW, error, 0)
