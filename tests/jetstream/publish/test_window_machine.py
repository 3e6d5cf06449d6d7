from __future__ import annotations

import pytest

from jetstream.errors import (
    InvalidResponse,
    NoStreamResponse,
    PublishInDoubt,
    PublishTimeout,
    WrongStream,
)
from jetstream.publish.window_machine import AckWindow, Publication
from jetstream.schema.info import PubAck
from natsproto.errors import ConnectionClosed, PayloadTooLarge
from natsproto.port import run_sync
from natsproto.wire.frames import Msg
from tests.effects import publishes, woken

INBOX = b"_INBOX.p"
ID = b"NATS/1.0\r\nNats-Msg-Id: 1\r\n\r\n"
OTHER = b"NATS/1.0\r\nX-Nats-Msg-Id: 1\r\nA: Nats-Msg-Id: 1\r\n\r\n"
ACK = b'{"stream":"S","seq":7}'
DUPLICATE = b'{"stream":"S","seq":7,"duplicate": true}'
REFUSED = b'{"error":{"code":400,"err_code":10060,"description":"expected stream does not match"}}'


class NoPort:
    """A port that the machine does not use."""

    async def wait(self, waitable):
        raise AssertionError("it is settled")


def window(*publications, max_pending=10, patience=0.0, now=0.0, sent=True):
    """Return a machine with these publications in flight: header blocks, or None."""
    machine = AckWindow(INBOX, max_pending, 5.0, 2, patience)
    made = [Publication(NoPort(), b"s", b"x", block) for block in publications]
    for publication in made:
        machine.submit(publication, now, sent)
    return machine, made


def answer(number, data=ACK, block=None):
    return Msg(b"_INBOX.p.%d" % number, 1, b"", data, block)


def no_responders(number):
    return answer(number, b"", b"NATS/1.0 503\r\nNats-Subject: s\r\n\r\n")


def run(machine, inputs):
    """Pass the inputs to it; return the result of the last one."""
    result = None
    for name, *args in inputs:
        if name == "ack":
            result = machine.receive(answer(*args[:-1]), args[-1])
        elif name == "503":
            result = machine.receive(no_responders(args[0]), args[1])
        else:
            result = getattr(machine, name)(*args)
    return result


def replies(machine):
    """Return the reply subjects of the effects."""
    return [order.reply.decode() for order in publishes(machine)]


TABLE = [
    # rule, what happens to one publish, its headers; inputs; result, how often it is sent again,
    # deadline of the machine
    ("PUB-1", "nothing yet", None, [], None, 0, 5.0),
    ("PUB-1", "acknowledged", None, [("ack", 1, ACK, 0.1)], 7, 0, 5.0),
    ("PUB-8", "a duplicate", ID, [("ack", 1, DUPLICATE, 0.1)], 7, 0, 5.0),
    ("PUB-2", "refused", None, [("ack", 1, REFUSED, 0.1)], WrongStream, 0, 5.0),
    ("D-PUB-10", "not for it", None, [("ack", 2, ACK, 0.1), ("ack", 11, ACK, 0.1)], None, 0, 5.0),
    ("D-PUB-10", "a second one", None, [("ack", 1, ACK, 0.1), ("ack", 1, REFUSED, 0.2)], 7, 0, 5.0),
    ("PUB-3", "no responders", None, [("503", 1, 0.1)], None, 0, 0.35),
    ("PUB-3", "a look too early", None, [("503", 1, 0.1), ("handle_timer", 0.3)], None, 0, 0.35),
    ("PUB-3", "tried again", None, [("503", 1, 0.1), ("handle_timer", 0.35)], None, 1, 5.35),
    (
        "PUB-3",
        "the second try is acknowledged",
        None,
        [("503", 1, 0.1), ("handle_timer", 0.35), ("ack", 1, ACK, 0.5)],
        7,
        1,
        5.35,
    ),
    (
        "PUB-3",
        "all tries in vain",
        None,
        [("503", 1, 0), ("handle_timer", 0.25), ("503", 1, 0.25), ("handle_timer", 0.5)]
        + [("503", 1, 0.5)],
        NoStreamResponse,
        2,
        5.5,
    ),
    ("D-PUB-12", "no answer", None, [("handle_timer", 5.0)], PublishTimeout, 0, None),
    ("D-PUB-21", "no answer, with an id", ID, [("handle_timer", 5.0)], PublishTimeout, 0, None),
    ("D-PUB-12", "too early", None, [("handle_timer", 4.9)], None, 0, 5.0),
    (
        "D-PUB-12",
        "no answer to the second try",
        None,
        [("503", 1, 0.1), ("handle_timer", 0.35), ("handle_timer", 5.35)],
        PublishTimeout,
        1,
        None,
    ),
    (
        "D-PUB-10",
        "an answer too late",
        None,
        [("handle_timer", 5.0), ("ack", 1, ACK, 5.1)],
        PublishTimeout,
        0,
        None,
    ),
    ("D-PUB-13", "connection lost", None, [("disconnected", 1.0)], PublishInDoubt, 0, None),
    ("D-PUB-13", "lost, other headers", OTHER, [("disconnected", 1.0)], PublishInDoubt, 0, None),
    ("D-PUB-13", "lost, with an id", ID, [("disconnected", 1.0)], None, 0, None),
    (
        "D-PUB-12",
        "time does not count without a connection",
        ID,
        [("disconnected", 1.0), ("handle_timer", 99.0)],
        None,
        0,
        None,
    ),
    (
        "D-PUB-13",
        "sent again, once",
        ID,
        [("disconnected", 1.0), ("connected", 9.0)],
        None,
        1,
        14.0,
    ),
    (
        "D-PUB-13",
        "sent again and acknowledged",
        ID,
        [("disconnected", 1.0), ("connected", 9.0), ("ack", 1, DUPLICATE, 9.1)],
        7,
        1,
        14.0,
    ),
    (
        "D-PUB-13",
        "sent again and not answered",
        ID,
        [("disconnected", 1.0), ("connected", 9.0), ("handle_timer", 14.0)],
        PublishTimeout,
        1,
        None,
    ),
    (
        "D-PUB-13",
        "lost between two tries",
        None,
        [("503", 1, 0.1), ("disconnected", 0.2), ("handle_timer", 0.35), ("connected", 9.0)],
        None,
        1,
        14.0,
    ),
    (
        "PUB-3",
        "refusals are counted again after a reconnect",
        None,
        [("503", 1, 0), ("handle_timer", 0.25), ("503", 1, 0.25), ("disconnected", 0.3)]
        + [("connected", 9.0), ("503", 1, 9.0)],
        None,
        2,
        9.25,
    ),
    (
        "D-PUB-14",
        "no responders after a reconnect proves nothing",
        ID,
        [("disconnected", 1.0), ("connected", 9.0), ("503", 1, 9.0), ("handle_timer", 9.25)]
        + [("503", 1, 9.25), ("handle_timer", 9.5), ("503", 1, 9.5)],
        PublishInDoubt,
        3,
        14.5,
    ),
    (
        "D-PUB-14",
        "lost twice, refused in between",
        ID,
        [("503", 1, 0.1), ("handle_timer", 0.35), ("disconnected", 1.0), ("connected", 2.0)]
        + [("disconnected", 3.0), ("connected", 4.0)],
        None,
        3,
        9.0,
    ),
    ("D-PUB-17", "the end", None, [("end",)], PublishInDoubt, 0, None),
    ("D-PUB-17", "the end, with an id", ID, [("end",), ("end",)], PublishInDoubt, 0, None),
]


@pytest.mark.parametrize(
    ("block", "inputs", "result", "sent", "deadline"),
    [pytest.param(*row[2:], id=row[1], marks=pytest.mark.rule(row[0])) for row in TABLE],
)
def test_outcomes_of_a_publish(block, inputs, result, sent, deadline):
    machine, [publication] = window(block)
    run(machine, inputs)
    assert [order.reply for order in publishes(machine)] == [b"_INBOX.p.1"] * sent
    # A deadline may be too early, but never too late: the timer sets the right one.
    assert machine.deadline == deadline
    assert machine.pending() == (result is None)
    assert publication.done == (result is not None)
    if isinstance(result, int):
        assert publication.ack.seq == result
        assert run_sync(publication.result()).seq == result
        assert machine.take_failed() == []
    elif result is not None:
        assert type(publication.error) is result
        assert publication.ack is None
        assert machine.take_failed() == [publication]
    else:
        assert (publication.ack, publication.error) == (None, None)


@pytest.mark.rule("PUB-4")
@pytest.mark.parametrize(
    ("retries", "patience", "tries"), [(2, 0.0, 3), (2, 10.0, 41), (1, 1.0, 5), (0, 10.0, 1)]
)
def test_patience_while_a_cluster_elects(retries, patience, tries):
    machine = AckWindow(INBOX, 10, 5.0, retries, patience)
    publication = Publication(NoPort(), b"s", b"x", None)
    machine.submit(publication, 100.0)
    now = 100.0
    count = 1
    while True:
        machine.receive(no_responders(1), now)
        if publication.done:
            break
        assert machine.deadline == now + 0.25
        now += 0.25
        machine.handle_timer(now)
        count += len(publishes(machine))
    assert isinstance(publication.error, NoStreamResponse)
    assert (count, now) == (tries, 100.0 + (tries - 1) * 0.25)


@pytest.mark.rule("PUB-4")
def test_patience_restarts_on_a_new_connection():
    machine, [publication] = window(None, patience=1.0)
    machine.receive(no_responders(1), 0.0)
    run(machine, [("disconnected", 0.1), ("connected", 100.0)])
    for now in (100.0, 100.25, 100.5, 100.75):
        machine.receive(no_responders(1), now)
        assert not publication.done
        machine.handle_timer(now + 0.25)
    machine.receive(no_responders(1), 101.0)
    assert isinstance(publication.error, NoStreamResponse)


@pytest.mark.rule("PUB-1", "PUB-3")
def test_a_503_with_a_payload_is_an_invalid_answer():
    machine, [publication] = window(None)
    machine.receive(answer(1, b"x", b"NATS/1.0 503\r\n\r\n"), 0.1)
    assert isinstance(publication.error, InvalidResponse)


@pytest.mark.rule("D-PUB-10")
def test_each_publish_has_a_reply_of_its_own():
    machine, [a, b] = window(None, None)
    assert [a.reply, b.reply] == [b"_INBOX.p.1", b"_INBOX.p.2"]
    machine.receive(answer(2, b'{"stream":"S","seq":1}'), 0.1)
    assert (a.done, b.done) == (False, True)
    machine.receive(answer(1, b'{"stream":"S","seq":2}'), 0.1)
    assert [a.ack, b.ack] == [PubAck(stream="S", seq=2), PubAck(stream="S", seq=1)]


@pytest.mark.rule("D-PUB-12")
def test_submit_returns_whether_to_arm_the_timer():
    machine = AckWindow(INBOX, 10, 5.0, 2, 0.0)

    def submit(now, sent=True):
        return machine.submit(Publication(NoPort(), b"s", b"", None), now, sent)

    assert [submit(1.0), submit(1.0), submit(2.0)] == [True, False, False]
    machine.receive(no_responders(1), 2.0)
    assert (machine.deadline, submit(2.1), machine.deadline) == (2.25, False, 2.25)
    machine.handle_timer(2.25)
    assert machine.deadline == 6.0
    run(machine, [("disconnected", 3.0)])
    assert (submit(3.0, False), machine.deadline) == (False, None)


@pytest.mark.rule("D-PUB-12", "D-PUB-17")
def test_the_timer_is_the_earliest_deadline():
    machine, _ = window(None)
    for number in range(2, 5):
        machine.submit(Publication(NoPort(), b"s", b"", None), float(number))
    assert machine.deadline == 5.0
    machine.receive(answer(1), 1.0)
    machine.receive(answer(3), 3.0)
    assert machine.deadline == 5.0  # too early, because finding the next one would cost more
    assert machine.handle_timer(5.0) is False
    assert machine.deadline == 7.0
    assert machine.handle_timer(7.5) is True
    assert (machine.deadline, machine.pending()) == (9.0, 1)
    assert machine.handle_timer(9.0) is True
    assert (machine.deadline, machine.pending()) == (None, 0)
    assert machine.handle_timer(10.0) is False


@pytest.mark.rule("D-PUB-13")
def test_kept_publishes_are_resent_in_order():
    machine, made = window(*[ID] * 12, None, max_pending=20)
    run(machine, [("disconnected", 1.0)])
    late = Publication(NoPort(), b"s", b"late", None)
    machine.submit(late, 2.0, False)
    assert (replies(machine), late.deadline) == ([], None)
    woken(machine).clear()
    machine.connected(3.0)
    assert replies(machine) == [f"_INBOX.p.{n}" for n in [*range(1, 13), 14]]
    assert {publication.deadline for publication in [*made[:12], late]} == {8.0}
    assert isinstance(made[12].error, PublishInDoubt)


@pytest.mark.rule("D-PUB-13")
def test_publishes_of_another_window_are_adopted():
    machine, _ = window(ID)
    others = [Publication(NoPort(), b"s", b"x", block) for block in (ID, None, None)]
    for number, publication in enumerate(others):
        machine.adopt(publication, b"_INBOX.p.other%d" % number, 5.0)
    machine.receive(Msg(b"_INBOX.p.other2", 1, b"", ACK), 0.1)
    run(machine, [("disconnected", 1.0), ("connected", 2.0)])
    assert replies(machine) == ["_INBOX.p.1", "_INBOX.p.other0"]
    assert others[2].ack == PubAck(stream="S", seq=7)
    assert isinstance(others[1].error, PublishInDoubt)


@pytest.mark.rule("D-PUB-13")
def test_publishes_are_numbered_in_their_order():
    machine, made = window(None, None)
    later = Publication(NoPort(), b"s", b"x", None)
    assert later.number == 0
    machine.adopt(later, b"_INBOX.p.other", 5.0)
    machine.submit(Publication(NoPort(), b"s", b"x", None), 0.0)
    assert [each.number for each in [*made, later]] == [1, 2, 3]
    assert machine.open[b"3"].number == 4


@pytest.mark.rule("D-PUB-13")
def test_without_a_connection_publishes_are_kept():
    machine, [publication] = window(None, sent=False)
    assert (machine.deadline, publication.deadline) == (None, None)
    assert machine.handle_timer(100.0) is False
    run(machine, [("disconnected", 1.0)])  # it was never connected: nothing was in flight
    assert not publication.done
    machine.connected(200.0)
    assert (replies(machine), machine.deadline) == (["_INBOX.p.1"], 205.0)


ROOM = [
    # max_pending, in flight, answered at a time, whether waiting callers wake up
    (10, 10, [1] * 10, [False, True] + [False] * 8),
    (10, 10, [3, 3, 3], [True, False, False]),
    (10, 10, [10], [True]),
    (10, 8, [1] * 8, [False] * 8),
    (10, 9, [1] * 9, [True] + [False] * 8),
    (1, 1, [1], [True]),
    (2, 2, [1, 1], [True, False]),
    (3, 3, [1, 1, 1], [True, False, False]),
    (8, 8, [1] * 8, [False, True] + [False] * 6),
]


@pytest.mark.rule("D-PUB-11")
@pytest.mark.parametrize(("max_pending", "count", "answered", "woken"), ROOM)
def test_callers_that_wait_for_room_wake_up_once(max_pending, count, answered, woken):
    machine, _ = window(*[None] * count, max_pending=max_pending)
    assert machine.full == (count == max_pending)
    number = 0
    found = []
    for size in answered:
        msgs = [answer(number + i + 1) for i in range(size)]
        number += size
        found.append(machine.receive_all(msgs, 0.1))
    assert found == woken
    assert not machine.full


@pytest.mark.rule("D-PUB-11")
def test_failures_make_room_as_well():
    machine, _ = window(None, None, max_pending=2)
    assert machine.receive(answer(1, REFUSED), 0.1) is True
    machine, _ = window(None, None, max_pending=2)
    assert machine.handle_timer(5.0) is True
    machine, _ = window(None, None, max_pending=2)
    run(machine, [("disconnected", 1.0)])
    assert machine in woken(machine)
    machine, _ = window(ID, None, max_pending=2)
    run(machine, [("disconnected", 1.0)])
    assert machine in woken(machine)
    machine, _ = window(ID, max_pending=2)
    run(machine, [("disconnected", 1.0)])
    assert woken(machine) == []


@pytest.mark.rule("D-PUB-10")
def test_a_caller_of_result_wakes_up_for_its_own_answer():
    machine, [a, b, c] = window(None, None, None)
    b.waiters.append(lambda: None)
    machine.receive(answer(1), 0.1)
    assert woken(machine) == []
    machine.receive(answer(2), 0.1)
    assert woken(machine) == [b]
    c.waiters.append(lambda: None)
    machine.receive(answer(3, REFUSED), 0.1)
    assert woken(machine) == [b, c]
    assert repr(a) == "<Publication to 's', acknowledged>"
    assert repr(c) == "<Publication to 's', failed>"


@pytest.mark.rule("D-PUB-10")
def test_result_waits_for_the_answer():
    class Port:
        async def wait(self, waitable):
            assert waitable is publication
            machine.receive(answer(1), 0.1)

    machine = AckWindow(INBOX, 10, 5.0, 2, 0.0)
    publication = Publication(Port(), b"s", b"", None)
    machine.submit(publication, 0.0)
    assert run_sync(publication.result()) == PubAck(stream="S", seq=7)


@pytest.mark.rule("D-PUB-15")
def test_a_publish_that_became_too_large_fails():
    machine, [small, large] = window(ID, ID)
    assert repr(small) == "<Publication to 's', pending>"
    run(machine, [("disconnected", 1.0), ("connected", 2.0)])
    error = PayloadTooLarge("2 bytes exceed the server's max_payload 1")
    machine.unsent(publishes(machine)[1], error)
    assert (small.done, large.error) == (False, error)
    assert woken(machine) == [large, machine]
    assert machine.take_failed() == [large]


@pytest.mark.rule("D-PUB-16")
def test_a_failure_is_reported_once():
    machine, made = window(None, None, None)
    run(machine, [("disconnected", 1.0)])
    for _ in range(2):
        with pytest.raises(
            PublishInDoubt, match="connection was lost: it may or may not be stored"
        ):
            run_sync(made[1].result())
    assert len(machine.failed) == 3
    assert machine.take_failed() == [made[0], made[2]]
    assert machine.take_failed() == []


@pytest.mark.rule("D-PUB-17")
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (None, "the publisher was closed: it may or may not be stored"),
        (ConnectionClosed("no server is left"), "no server is left: it may or may not be stored"),
    ],
)
def test_the_end_settles_everything(error, text):
    machine, made = window(None, ID)
    machine.receive(no_responders(1), 0.1)
    assert machine.end(error) is True
    assert [str(publication.error) for publication in made] == [text, text]
    assert woken(machine) == made
    assert (machine.ended, machine.error, machine.pending()) == (True, error, 0)
    assert machine.deadline is None  # nothing holds a reference to it
    assert machine.end() is False


@pytest.mark.rule("D-PUB-17")
def test_nothing_grows():
    machine = AckWindow(INBOX, 10, 5.0, 2, 0.0)
    for number in range(1, 1001):
        machine.submit(Publication(NoPort(), b"s", b"", None), float(number))
        machine.receive(no_responders(number) if number % 3 else answer(number), float(number))
        machine.handle_timer(number + 0.25)
        publishes(machine)
        machine.receive(answer(number), number + 0.5)
    assert (machine.open, machine.failed, woken(machine)) == ({}, [], [])
    assert machine.effects == []
    machine.handle_timer(10_000.0)
    assert machine.deadline is None
