from __future__ import annotations

import math

import pytest

from natsproto.connection.outbound import HIGH_WATER
from natsproto.connection.receiver import Receiver
from natsproto.connection.waitable import Request, Waitable
from natsproto.errors import (
    ConnectionClosed,
    ConnectionLost,
    InvalidState,
    InvalidValue,
    TimeoutExpired,
)
from natsproto.port import run_sync
from natsproto.session import Session, check_count, check_flag
from tests.connection.support import PING, PONG, Wire, msg


class Turns:
    """A port that never suspends: each wait executes the next scripted step."""

    def __init__(self, wire, *steps):
        self.wire = wire
        self.steps = list(steps)
        self.checkpoints = 0

    def now(self):
        return self.wire.now

    async def wait(self, waitable):
        self.steps.pop(0)()

    async def checkpoint(self):
        self.checkpoints += 1

    def flush_soon(self):
        self.wire.look()


def make(*steps):
    """Return a connected wire and its session; a number as a step is when the timer fires."""
    wire = Wire().up()
    turns = [
        (lambda at=step: wire.timer(at=at)) if isinstance(step, float) else step for step in steps
    ]
    return wire, Session(wire.connection, Turns(wire, *turns))


class Told(Receiver):
    """Records when it is connected, and then emits a publish."""

    __slots__ = ("times",)

    def __init__(self):
        super().__init__()
        self.times = []

    def connected(self, now):
        self.times.append(now)
        self.emit(b"hello", b"", b"")


def test_an_attached_machine_is_notified_of_the_present_connection():
    wire, session = make()
    told = Told()
    wire.now = 3.0
    session.attach(told, "a")
    assert told.times == [3.0]
    assert wire.sent() == b"SUB a 1\r\nPUB hello 0\r\n\r\n"


def test_poke_sends_the_effects_of_a_machine():
    wire, session = make()
    told = Told()
    told.emit(b"hello", b"", b"")
    session.poke(told)
    assert wire.sent() == b"PUB hello 0\r\n\r\n"


def test_begin_without_a_connection_defers_the_start():
    wire, session = make()
    wire.lost()
    told = Told()
    wire.connection.subscribe("a", told)
    session.begin(told)
    assert told.times == []


def test_settle_waits_until_the_answer_is_there_however_often_it_is_woken():
    wire, session = make(1.0, 2.0, lambda: wire.data(PONG))
    flush = wire.connection.start_flush(session.deadline(5.0))
    assert run_sync(session.settle(flush)) is None
    assert session.port.steps == []


def test_settle_raises_the_error_of_the_request():
    wire, session = make(1.0, 5.0)
    with pytest.raises(TimeoutExpired, match="no answer to flush in time"):
        run_sync(session.settle(wire.connection.start_flush(session.deadline(5.0))))
    failed = Request("it")
    failed.finish(error=ConnectionLost("x"))
    with pytest.raises(ConnectionLost):
        run_sync(session.settle(failed))


@pytest.mark.rule("REQ-4")
def test_a_canceled_caller_abandons_its_request():
    def cancel():
        raise KeyboardInterrupt

    wire, session = make(cancel)
    request = wire.connection.start_request("a", deadline=9.0)
    with pytest.raises(KeyboardInterrupt):
        run_sync(session.settle(request))
    assert (request.done, wire.connection.requests.inbox.open) == (True, {})


@pytest.mark.rule("D-CLOCK-1")
def test_make_room_waits_until_the_transport_has_taken_it():
    def take():
        wire.writable = True
        wire.look()

    wire, session = make(lambda: None, take)
    wire.connection.publish("a", b"little")
    run_sync(session.make_room())
    assert session.port.checkpoints == 0
    wire.writable = False
    wire.connection.publish("a", bytes(HIGH_WATER))
    run_sync(session.make_room())
    assert session.port.steps == []
    assert not wire.connection.congested
    assert session.port.checkpoints == 1  # a busy publisher lets other tasks run


def test_wait_with_and_without_a_deadline():
    wire, session = make(1.0, 5.0, lambda: None)
    bell = Waitable()
    run_sync(session.wait(bell, 5.0, "bell"))
    assert (wire.now, wire.deadline, bell.deadline) == (1.0, 5.0, None)
    run_sync(session.wait(bell, 5.0, "bell"))
    assert wire.now == 5.0
    with pytest.raises(TimeoutExpired, match="no bell in time"):
        run_sync(session.wait(bell, 5.0, "bell"))
    run_sync(session.wait(bell, None, "bell"))
    assert session.port.steps == []


@pytest.mark.rule("D-CLOCK-1", "D-CONN-24")
def test_sleep_ends_at_its_time_or_with_the_connection():
    wire, session = make(1.0, 2.0, 3.0)
    run_sync(session.sleep(2.5))
    assert wire.now == 3.0
    run_sync(session.sleep(0))
    wire, session = make(1.0, lambda: wire.connection.close(1.0))
    with pytest.raises(ConnectionClosed):
        run_sync(session.sleep(9.0))


def test_a_deadline_is_a_time_from_now():
    wire, session = make()
    wire.now = 7.0
    assert session.deadline(2.5) == 9.5


def test_counts():
    assert [check_count("max_msgs", value) for value in (0, 1, 10**12)] == [0, 1, 10**12]
    for value in (-1, 1.0, True, "1", None):
        with pytest.raises(InvalidValue, match=r"^max_msgs .* is not a whole number from 0$"):
            check_count("max_msgs", value)


def test_counts_with_limits():
    assert [check_count("flow", value, 1, 3) for value in (1, 3)] == [1, 3]
    for value in (0, 4, "2"):
        with pytest.raises(InvalidValue) as error:
            check_count("flow", value, 1, 3, "FAST-3")
        assert str(error.value) == f"flow {value!r} is not a whole number from 1 to 3 (FAST-3)"


def test_flags():
    assert [check_flag("no_wait", value) for value in (True, False)] == [True, False]
    for value in (1, 0, "yes", None):
        with pytest.raises(InvalidValue, match=r"^no_wait .* is neither True nor False$"):
            check_flag("no_wait", value)


@pytest.mark.rule("D-CONN-33")
def test_a_publish_that_the_port_refuses_is_not_queued():
    wire, session = make()

    def refuse():
        raise InvalidState("not here")

    session.port.flush_soon = refuse
    assert wire.connection.publish("a", b"1")
    with pytest.raises(InvalidState, match="not here"):
        run_sync(session.make_room())
    assert (wire.sent(), wire.connection.stats.out_msgs) == (b"", 0)


@pytest.mark.rule("D-REQ-11")
def test_an_answer_takes_time():
    wire, session = make()
    wire.now = 7.0
    assert session.answer_deadline(2) == 9.0
    assert session.deadline(0) == 7.0
    for value in (0, 0.0, -1, "1", math.nan):
        with pytest.raises(InvalidValue, match="timeout"):
            session.answer_deadline(value)


def test_taking_the_last_message_of_what_has_ended_advances_a_drain():
    wire, session = make()
    mailbox = wire.subscribe("a")
    wire.forget()
    drain = wire.connection.start_drain(30.0)
    wire.data(msg("a", 1, b"1") + msg("a", 1, b"2") + PONG).forget()
    assert (session.take(mailbox).data, wire.sent()) == (b"1", b"")
    assert (session.take(mailbox).data, wire.sent()) == (b"2", PING)
    wire.data(PONG)
    assert drain.done
