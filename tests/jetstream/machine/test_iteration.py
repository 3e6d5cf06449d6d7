"""The iteration that consume() and push subscriptions share, on a plain source."""

from __future__ import annotations

import pytest

from jetstream.errors import UnknownStatus
from jetstream.machine.iteration import Iteration, MachineEvents, peek_raw, take_raw
from jetstream.machine.queue import EventLog, MessageQueue
from jetstream.machine.snapshot import ConsumerSnapshot
from natsproto.connection.receiver import Receiver
from natsproto.errors import ConnectionClosed, InvalidState, InvalidValue, TimeoutExpired
from natsproto.port import run_sync
from tests.connection.support import PONG
from tests.jetstream.stages import Cancelled, Stage, cancel, messages, timer


class Plain(Receiver):
    """A queue. The ninth message is an event, too."""

    finished = False
    stopped = False

    def __init__(self):
        super().__init__()
        self.events = EventLog()
        self.ready = []
        self._queue = MessageQueue()

    @property
    def needs_poke(self):
        return bool(self.effects)

    def pending(self):
        return len(self._queue.messages())

    def pop(self, now):
        return self._queue.pop()

    def poll(self, most=1):
        return None

    def receive(self, msg, now):
        self._queue.fresh.append(msg)
        if msg.raw_reply.endswith(b".9.1794786870000000000.0"):
            self.events.add(msg.raw_reply)
        return True

    def start_draining(self):
        self.stopped = True

    def stop(self):
        self.stopped = True
        self.leave()
        return self._queue.clear()


def begin():
    stage = Stage()
    machine = Plain()
    stage.wire.connection.subscribe("d", machine)
    stage.sent()
    return stage, machine, Iteration(stage.session, machine, False)


async def numbers(iteration, most=1000):
    found = []
    async for msg in iteration:
        found.append(msg.metadata.stream_seq)
        if len(found) == most:
            break
    return found


@pytest.mark.rule("CONSUME-1")
def test_iteration():
    stage, machine, iteration = begin()
    assert (iteration.pending, iteration.closed, machine.finished) == (0, False, False)
    found = stage.run(numbers(iteration, 4), messages(stage, 1, 2), messages(stage, 3, 4))
    assert (found, stage.sent()) == ([1, 2, 3, 4], [])


@pytest.mark.rule("CONSUME-1")
def test_others_have_their_turn():
    stage, _, iteration = begin()
    messages(stage, *range(200))()
    stage.run(numbers(iteration, 200))
    assert stage.checkpoints == 3


@pytest.mark.rule("D-CONSUME-17")
def test_next():
    stage, _, iteration = begin()
    msg = stage.run(iteration.next(), messages(stage, 1, at=1.0))
    assert msg.metadata.stream_seq == 1
    result = stage.run(iteration.next(timeout=2.0), timer(stage, 2.9), timer(stage, 3.0))
    assert isinstance(result, TimeoutExpired)
    assert isinstance(stage.run(iteration.next(timeout=2.0), cancel), Cancelled)
    assert stage.wire.connection.bus.timers.pop_due(9.0) == []
    assert stage.run(iteration.next(timeout=2.0), messages(stage, 2)).metadata.stream_seq == 2


@pytest.mark.rule("D-CONSUME-18")
def test_an_error_after_the_last_message():
    stage, machine, iteration = begin()
    messages(stage, 1)()
    machine.end(UnknownStatus(777, "Lucky"))
    assert stage.run(iteration.next()).metadata.stream_seq == 1
    for call in (iteration.next, iteration.__anext__):
        assert isinstance(stage.run(call()), UnknownStatus)


@pytest.mark.rule("CONSUME-14")
@pytest.mark.parametrize("nak", [False, True])
def test_stop(nak):
    stage, _, iteration = begin()
    messages(stage, 1, 2)()
    stage.run(iteration.next())
    messages(stage, 3)()
    rest = stage.run(iteration.stop(nak=nak))
    assert [msg.metadata.stream_seq for msg in rest] == ([] if nak else [2, 3])
    assert stage.wire.sent().count(b"-NAK") == (2 if nak else 0)
    assert stage.wire.connection.subscriptions.by_sid == {}
    assert (iteration.closed, stage.run(iteration.stop())) == (True, [])
    assert isinstance(stage.run(iteration.next()), InvalidState)
    assert stage.run(numbers(iteration)) == []


@pytest.mark.rule("CONSUME-14")
def test_a_block_ends_with_stop():
    stage, _, iteration = begin()

    async def block():
        async with iteration as entered:
            assert entered is iteration

    stage.run(block())
    assert stage.sent() == ["UNSUB"]


@pytest.mark.rule("CONSUME-14")
def test_stop_wakes_waiting_callers():
    stage, _, iteration = begin()
    assert isinstance(stage.run(iteration.next(), lambda: run_sync(iteration.stop())), InvalidState)


@pytest.mark.rule("CONSUME-15")
@pytest.mark.parametrize("waiting", [0, 2])
def test_drain(waiting):
    stage, machine, iteration = begin()

    def fence():
        messages(stage, *range(waiting))()
        stage.wire.data(PONG)

    stage.run(iteration.drain(), fence)
    assert stage.sent() == ["UNSUB", "PING"]
    assert (iteration.pending, iteration.closed) == (waiting, not waiting)
    assert stage.run(numbers(iteration)) == list(range(waiting))
    assert (iteration.closed, machine.stopped) == (True, True)


def test_a_wrong_call_ends_nothing():
    stage, machine, iteration = begin()
    for call in (iteration.stop(nak="no"), iteration.drain("5"), iteration.drain(-1)):
        assert isinstance(stage.run(call), InvalidValue)
    assert (stage.sent(), iteration.closed, machine.draining) == ([], False, False)


@pytest.mark.rule("CONSUME-15")
def test_the_client_drains():
    stage, _, iteration = begin()
    messages(stage, 1)()
    drain = stage.wire.connection.start_drain(9.0)
    stage.wire.data(PONG)
    assert stage.run(numbers(iteration)) == [1]
    stage.wire.data(PONG)
    assert (drain.done, drain.error) == (True, None)


@pytest.mark.rule("RUN-3")
def test_run():
    stage, _, iteration = begin()
    seen = []

    async def callback(msg):
        seen.append(msg.metadata.stream_seq)

    stage.run(iteration.run(callback), messages(stage, 1, 2), lambda: run_sync(iteration.stop()))
    assert seen == [1, 2]


def test_remaining_effects_are_applied():
    stage, machine, iteration = begin()
    messages(stage, 1, 2)()
    machine.emit(b"a", b"b", b"")
    assert machine.needs_poke
    stage.run(iteration.next())
    assert (machine.needs_poke, stage.wire.sent()) == (False, b"PUB a 1\r\nb\r\n")


@pytest.mark.rule("D-CONSUME-17")
def test_events():
    stage, machine, iteration = begin()
    events = MachineEvents(stage.session, machine)
    assert stage.run(events.next(), messages(stage, 9)).startswith(b"$JS.ACK")
    result = stage.run(events.next(timeout=1.0), timer(stage, 1.0))
    assert isinstance(result, TimeoutExpired)

    async def all_of_them():
        return [event async for event in events]

    machine.events.add("a")
    stop = lambda: run_sync(iteration.stop())  # noqa: E731
    assert len(stage.run(all_of_them(), messages(stage, 9), stop)) == 2
    assert stage.run(all_of_them()) == []
    assert isinstance(stage.run(events.next()), ConnectionClosed)


class Polled(Plain):
    """Every other message has no consequences."""

    calls = 0

    def poll(self, most=1):
        self.calls += 1
        return self.pop(0.0) if self.calls % 2 and self.pending() else None


def test_its_repr_says_why_it_is_idle():
    stage, machine, iteration = begin()
    machine.snapshot = lambda now: ConsumerSnapshot("")
    assert repr(iteration) == "<Iteration of a consumer: %s>" % iteration.snapshot().reason

    def refuse():
        raise InvalidState("another loop")

    stage.now = refuse
    assert repr(iteration) == "<Iteration: another loop>"


@pytest.mark.rule("CONSUME-1")
def test_poll():
    stage = Stage()
    machine = Polled()
    stage.wire.connection.subscribe("d", machine)
    iteration = Iteration(stage.session, machine, True)
    messages(stage, *range(200))()
    msg = iteration.poll()
    assert (msg.metadata.stream_seq, msg.settled) == (0, True)
    assert iteration.poll() is None
    turn = iteration._turn
    iteration._turn = 1
    assert (iteration.poll(), machine.calls) == (None, 2)  # other tasks run first
    iteration._turn = turn
    assert stage.run(numbers(iteration, 199)) == list(range(1, 200))
    assert stage.checkpoints == 3


@pytest.mark.rule("CONSUME-1")
def test_a_message_that_was_waited_for_is_polled():
    stage = Stage()
    machine = Polled()
    stage.wire.connection.subscribe("d", machine)
    iteration = Iteration(stage.session, machine, True)
    machine.calls = 1  # so that the first one, before the wait, is the one that returns nothing
    msg = stage.run(iteration.__anext__(), messages(stage, 1))
    assert (msg.metadata.stream_seq, msg.settled, machine.calls) == (1, True, 3)


class Ready(Plain):
    """Messages are made ready several at a time, as many as the caller wants."""

    def poll(self, most=1):
        self.calls.append(most)
        msgs = [self._queue.pop() for _ in range(min(most, len(self._queue.messages())))]
        self.ready += msgs[:0:-1]
        return msgs[0] if msgs else None

    def peek(self, most):
        self._queue.batch += self.ready
        self.ready.clear()
        return self._queue.messages()[: max(0, most)]


@pytest.mark.rule("CONSUME-1")
@pytest.mark.parametrize("has_memory", [True, False])
def test_messages_that_are_ready(has_memory, monkeypatch):
    monkeypatch.setattr("jetstream.machine.iteration.HAS_MEMORY", has_memory)
    stage = Stage()
    machine = Ready()
    machine.calls = []
    stage.wire.connection.subscribe("d", machine)
    iteration = Iteration(stage.session, machine, True)
    messages(stage, *range(200))()
    msg = stage.run(iteration.__anext__())
    assert (msg.metadata.stream_seq, msg.settled) == (0, True)
    msg = stage.run(iteration.__anext__())
    assert (msg.metadata.stream_seq, msg.settled, machine.calls) == (1, True, [63])
    if has_memory:
        assert (iteration.poll().metadata.stream_seq, len(machine.ready)) == (2, 60)
    else:
        assert iteration._ready.pop().raw_reply.split(b".")[5] == b"2"
    assert machine.calls == [63]
    assert len(peek_raw(iteration)) == 60  # 63 of them, of which three were taken
    assert stage.run(numbers(iteration, 197)) == list(range(3, 200))
    assert stage.checkpoints == 3
    messages(stage, *range(200, 203))()
    assert iteration.poll().metadata.stream_seq == 200


class Peeked(Plain):
    """Messages have no consequences."""

    def peek(self, most):
        return self._queue.messages()[: max(0, most)]

    def take(self, count):
        for _ in range(count):
            self._queue.pop()


def test_many_messages_that_need_no_acknowledgment():
    stage = Stage()
    machine = Peeked()
    stage.wire.connection.subscribe("d", machine)
    iteration = Iteration(stage.session, machine, True)
    messages(stage, *range(100))()
    assert len(peek_raw(iteration)) == 63  # then others get their turn
    take_raw(iteration, 60)
    assert [msg.raw_reply.split(b".")[5] for msg in peek_raw(iteration)] == [b"60", b"61", b"62"]
    take_raw(iteration, 3)
    assert (peek_raw(iteration), machine.pending()) == ([], 37)


@pytest.mark.rule("D-CONSUME-29")
@pytest.mark.parametrize(
    ("nak", "ack_none", "naks"), [(False, False, 0), (True, False, 2), (True, True, 0)]
)
def test_an_iteration_that_is_dropped(nak, ack_none, naks):
    stage, machine, _ = begin()
    stage.later.clear()
    stage.warned.clear()
    iteration = Iteration(stage.session, machine, ack_none)
    iteration.nak_on_exit = nak
    messages(stage, 1, 2)()
    del iteration
    [text], [stop] = stage.warned, stage.later
    assert text.startswith("the iteration was garbage-collected while in use")
    assert (machine.stopped, stage.sent()) == (False, [])  # nothing is done at that moment
    stop()
    assert (machine.stopped, machine.ended, machine.pending()) == (True, True, 0)
    assert stage.wire.sent().count(b"-NAK") == naks
    stop()
    assert stage.sent() == []


@pytest.mark.rule("D-CONSUME-29")
def test_a_dropped_iteration_whose_client_has_closed_since():
    stage, machine, _ = begin()
    stage.later.clear()
    stage.warned.clear()
    iteration = Iteration(stage.session, machine, False)
    iteration.nak_on_exit = True
    messages(stage, 1)()
    del iteration
    stage.wire.tell("close")
    [stop] = stage.later
    stop()
    assert machine.pending() == 0


@pytest.mark.rule("D-CONSUME-29")
@pytest.mark.parametrize("how", ["stopped", "draining", "ended"])
def test_an_iteration_that_has_ended_causes_no_warning(how):
    stage, machine, iteration = begin()
    setattr(machine, how, True)
    del iteration
    assert (stage.warned, stage.later) == ([], [])


@pytest.mark.rule("D-CONSUME-29")
def test_an_iteration_that_was_never_made():
    Iteration.__new__(Iteration).__del__()


@pytest.mark.rule("D-CONSUME-30")
@pytest.mark.parametrize("nak", [False, True])
def test_the_end_of_a_block(nak):
    stage, _, iteration = begin()
    iteration.nak_on_exit = nak

    async def block():
        async with iteration:
            messages(stage, 1, 2)()

    stage.run(block())
    assert stage.wire.sent().count(b"-NAK") == (2 if nak else 0)
