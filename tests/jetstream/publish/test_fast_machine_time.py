"""A fast batch over time and across connections."""

from __future__ import annotations

import pytest

from jetstream.errors import (
    BatchRefused,
    NoStreamResponse,
    PublishInDoubt,
)
from jetstream.publish.fast_machine import (
    APPEND,
    COMMIT,
    END,
    NEW,
    OPEN,
    START,
)
from natsproto.errors import ConnectionClosed, PayloadTooLarge
from tests.effects import publishes, woken
from tests.jetstream.ingests import (
    NOBODY,
    UNKNOWN,
    Batch,
    ack,
    final,
    gap,
    wrong,
)

# Time


MISSES = [
    # election, patience, 503s to the first message; time of the last one, and whether it is refused
    (0.0, 5.0, 2, 0.25, False),
    (0.0, 5.0, 3, 0.5, True),
    (0.0, 0.25, 1, 0.0, True),
    (0.0, 0.26, 1, 0.0, False),
    (0.0, 0.5, 2, 0.25, True),
    (10.0, 10.0, 39, 9.5, False),
    (10.0, 10.0, 40, 9.75, True),
    (10.0, 30.0, 40, 9.75, False),
    (10.0, 30.0, 41, 10.0, True),
]


@pytest.mark.rule("D-FAST-17", "PUB-3", "PUB-4")
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("operation", [START, COMMIT])
@pytest.mark.parametrize(("election", "patience", "misses", "at", "refused"), MISSES)
def test_the_first_message_is_sent_again(election, patience, misses, at, refused, operation, gaps):
    """Whether it only begins the batch, or commits it as well."""
    batch = Batch(election=election, patience=patience, gaps=gaps)
    machine = batch.machine
    batch.send(operation, 100.0)
    place = f"1.{operation}"
    for number in range(misses):
        now = 100.0 + number * 0.25
        if number:
            assert machine.deadline == now
            assert not machine.handle_timer(now)
            assert batch.orders() == [place]
        final_miss = number == misses - 1
        assert batch.answer(1, operation, NOBODY, now) is (final_miss and refused)
    assert now == 100.0 + at
    assert batch.orders() == []
    if refused:
        assert type(machine.failure) is NoStreamResponse
        assert (machine.deadline, machine.leaving, machine.stored) == (None, True, 0)
        return
    assert not machine.handle_timer(now + 0.25)
    assert batch.orders() == [place]
    # The timeout covers all tries. Only a message that commits may be pinged meanwhile.
    silent = 100.0 + patience
    asked = now + 1.25 if operation == COMMIT else silent
    assert machine.deadline == min(silent, asked)
    if operation == COMMIT:
        assert batch.answer(1, COMMIT, final(1), now + 0.3)
        assert (machine.failure, machine.ack.count) == (None, 1)
    else:
        assert batch.answer(1, START, ack(0), now + 0.3)
        assert (machine.state, machine.sent, machine.limit) == (OPEN, 1, 4)


@pytest.mark.rule("D-FAST-17")
def test_the_first_message_is_not_sent_again_once_the_batch_has_begun():
    batch = Batch(1)
    assert batch.answer(1, START, NOBODY, 1.0)
    assert batch.outcome == (0, 1, False, NoStreamResponse)
    assert batch.orders() == []


@pytest.mark.rule("D-FAST-17")
def test_another_try_has_no_answer():
    """That try may have arrived, so the batch is in doubt."""
    batch = Batch()
    machine = batch.machine
    batch.send(START, 10.0)
    batch.answer(1, START, NOBODY, 10.5)
    assert not machine.handle_timer(10.75)
    assert machine.deadline == 15.0
    assert machine.handle_timer(15.0)
    assert batch.outcome == (0, 1, True, None)


@pytest.mark.rule("D-FAST-17")
def test_the_timer_is_late():
    """There is no time left for another try, and no earlier one has arrived."""
    batch = Batch()
    batch.send(START, 10.0)
    batch.answer(1, START, NOBODY, 10.5)
    assert batch.machine.handle_timer(15.0)
    assert type(batch.machine.failure) is NoStreamResponse
    assert batch.orders() == []


@pytest.mark.rule("D-FAST-17")
@pytest.mark.parametrize("operation", [START, COMMIT])
def test_the_connection_is_lost_between_two_tries(operation):
    """The next one is sent on the new connection at once, and has the whole timeout."""
    batch = Batch()
    machine = batch.machine
    batch.send(operation, 10.0)
    batch.answer(1, operation, NOBODY, 11.0)
    machine.disconnected(11.1)
    assert (machine.failure, machine.deadline, batch.orders()) == (None, None, [])
    machine.connected(40.0)
    assert batch.orders() == [f"1.{operation}"]
    assert machine.deadline == (45.0 if operation == START else 41.0)
    batch.answer(1, operation, NOBODY, 40.1)
    assert machine.deadline == 40.35
    assert not machine.handle_timer(40.35)
    assert batch.answer(1, operation, NOBODY, 40.4)
    assert type(machine.failure) is NoStreamResponse


@pytest.mark.rule("D-FAST-17", "D-FAST-10")
def test_the_connection_is_lost_after_another_try():
    batch = Batch()
    batch.send(START, 10.0)
    batch.answer(1, START, NOBODY, 10.0)
    batch.machine.handle_timer(10.25)
    batch.machine.disconnected(10.3)
    assert batch.outcome == (0, 1, True, None)


@pytest.mark.rule("D-FAST-17")
@pytest.mark.parametrize("error", [None, ConnectionClosed("closed")])
def test_the_client_is_closed_between_two_tries(error):
    batch = Batch()
    batch.send(START, 10.0)
    batch.answer(1, START, NOBODY, 10.0)
    batch.machine.end(error)
    if error is None:
        assert batch.outcome == (0, 1, False, None)
    else:
        assert batch.machine.failure is error
    assert batch.machine.deadline is None


@pytest.mark.rule("D-FAST-17")
def test_the_first_message_cannot_be_sent_again():
    """The server of the new connection allows only smaller messages."""
    batch = Batch()
    machine = batch.machine
    batch.send(START, 10.0)
    batch.answer(1, START, NOBODY, 10.0)
    machine.handle_timer(10.25)
    [effect] = publishes(machine)
    error = PayloadTooLarge("too large")
    machine.unsent(effect, error)
    assert (machine.failure, machine.leaving, woken(machine)) == (error, True, [machine])
    batch = Batch(4)
    batch.machine.handle_timer(1.0)
    [ping] = publishes(batch.machine)
    batch.machine.unsent(ping, error)
    assert batch.machine.failure is None


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
def test_pings_are_sent_while_a_caller_waits():
    batch = Batch(3)
    machine = batch.machine
    batch.send(now=10.0)  # the fourth: two acknowledgements are due
    assert machine.deadline == 11.0
    assert not machine.handle_timer(11.0)
    assert (batch.orders(), machine.deadline) == (["4.4"], 12.0)
    assert not batch.answer(4, 4, ack(0), 11.5)  # the server responds, but there is no progress
    assert machine.deadline == 12.0
    assert not machine.handle_timer(12.0)
    assert batch.answer(4, 4, ack(2), 12.5)
    assert (batch.orders(), machine.deadline) == (["4.4"], 16.0)


@pytest.mark.rule("FAST-8")
def test_the_flow_decreases():
    """With another leader, long after the last acknowledgment, the wait starts now."""
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
def test_no_responders_for_a_ping(answer):
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
def test_no_answer_in_time(last, outcome):
    batch = Batch(3, patience=2.5)
    machine = batch.machine
    if last is None:
        batch.answer(3, APPEND, gap(3, 4), 10.0)  # it fails, without a final acknowledgment
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
    assert batch.answer(2, APPEND, ack(2, 100), 3.5)  # stored late, which keeps no batch alive
    for now, pings in [(4.0, []), (8.0, ["3.4"]), (12.0, ["3.4"])]:
        assert not machine.handle_timer(now)
        assert (batch.orders(), machine.deadline) == (pings, now + 4.0)
    assert batch.answer(3, 4, ack(2, 100), 12.5)
    assert machine.deadline == 16.0
    machine.sent += 1
    assert not machine.handle_timer(16.0)
    assert batch.orders() == []


@pytest.mark.rule("FAST-9")
@pytest.mark.parametrize(
    ("now", "pings"), [(4.0, []), (5.0, []), (5.25, ["1.4"])], ids=["in time", "late", "too late"]
)
def test_a_batch_is_not_idle_when_a_message_was_sent(now, pings):
    """Nothing was sent at the last check, so the first message keeps the batch alive until 8.0."""
    batch = Batch(1, flow=100)
    machine = batch.machine
    assert machine.deadline == 4.0
    assert not machine.handle_timer(now)
    assert (batch.orders(), machine.deadline) == (pings, now + 4.0)


@pytest.mark.rule("FAST-9")
def test_acknowledgments_do_not_delay_the_ping_of_an_idle_batch():
    """They may close and open the window, but only messages keep a batch alive."""
    batch = Batch(4, flow=3, max_acks=2)
    machine = batch.machine
    assert (machine.limit, machine.deadline) == (6, 4.0)
    assert not batch.answer(2, APPEND, ack(2, 1), 3.5)
    assert (machine.limit, machine.deadline) == (4, 4.5)  # a caller would wait
    assert batch.answer(3, APPEND, ack(3, 1), 3.5)
    assert (machine.limit, machine.deadline) == (5, 4.0)
    for now, pings in [(4.0, []), (8.0, ["4.4"]), (12.0, ["4.4"])]:
        assert not machine.handle_timer(now)
        assert (batch.orders(), machine.deadline) == (pings, now + 4.0)


@pytest.mark.rule("FAST-9")
def test_a_ping_for_a_caller_also_keeps_the_batch_alive():
    batch = Batch(4, flow=3, max_acks=2)
    machine = batch.machine
    batch.answer(2, APPEND, ack(2, 1), 3.5)
    assert not machine.handle_timer(4.5)
    assert batch.orders() == ["4.4"]
    assert batch.answer(3, APPEND, ack(3, 1), 4.6)
    assert machine.deadline == 8.5


@pytest.mark.rule("FAST-9")
def test_a_batch_that_was_silent_for_long_is_pinged_at_once():
    """As when the program was suspended while a caller waited."""
    batch = Batch(4, flow=3, max_acks=2)
    machine = batch.machine
    batch.answer(2, APPEND, ack(2, 1), 3.5)
    assert batch.answer(3, APPEND, ack(3, 1), 9.0)
    assert machine.deadline == 9.0
    assert not machine.handle_timer(9.0)
    assert (batch.orders(), machine.deadline) == (["4.4"], 13.0)


# Connections


def test_before_it_begins_it_waits_for_a_connection():
    batch = Batch(online=False)
    machine = batch.machine
    assert machine.limit == 0
    machine.connected(1.0)
    assert (machine.limit, woken(machine)) == (1, [machine])
    machine.disconnected(2.0)
    assert (machine.limit, machine.deadline, machine.state) == (0, None, NEW)
    machine.connected(3.0)
    assert machine.limit == 1
    assert batch.orders() == []


@pytest.mark.rule("D-FAST-10")
def test_the_first_message_is_lost_with_the_connection():
    batch = Batch()
    batch.send(START)
    assert woken(batch.machine) == [batch.machine]  # by the first connection
    batch.machine.effects.clear()
    batch.machine.disconnected(1.0)
    assert batch.outcome == (0, 1, True, None)
    assert woken(batch.machine) == [batch.machine]
    batch.machine.connected(2.0)
    assert (batch.orders(), batch.machine.deadline) == ([], None)


AFTER = [
    # answers to the ping on a new connection, where 3 were sent; what then
    ([ack(2)], "continues"),
    ([gap(3, 4), final(2)], (2, 3, False, None)),
    ([gap(3, 4), ack(0), final(2)], (2, 3, False, None)),
    ([UNKNOWN], (0, 3, True, BatchRefused)),
]


@pytest.mark.rule("D-FAST-10")
@pytest.mark.parametrize(("answers", "outcome"), AFTER)
def test_a_new_connection(answers, outcome):
    batch = Batch(3)
    machine = batch.machine
    machine.disconnected(10.0)
    assert (machine.limit, machine.deadline) == (0, None)
    machine.connected(20.0)
    assert (batch.orders(), machine.deadline, machine.limit) == (["3.4"], 21.0, 0)
    batch.answer(2, APPEND, ack(0), 20.1)  # sent earlier, so it says nothing about 3
    assert machine.limit == 0
    for data in answers:
        batch.answer(3, 4, data, 20.5)
    if outcome == "continues":
        assert (machine.state, machine.limit, machine.deadline) == (OPEN, 6, 24.0)
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


@pytest.mark.rule("FAST-6", "D-FAST-10")
@pytest.mark.parametrize(("stored", "answers", "losses", "limit"), DOUBTS)
def test_a_new_connection_with_gaps(stored, answers, losses, limit):
    """Reports of losses on the previous connection may be lost."""
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


@pytest.mark.rule("FAST-6", "D-FAST-10")
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


@pytest.mark.rule("D-FAST-10", "FAST-11")
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


@pytest.mark.rule("D-FAST-10")
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
