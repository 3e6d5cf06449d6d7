"""Workers and callbacks on a loop that is a list: each turn resumes every task once."""

from __future__ import annotations

import pytest

from jetstream.blocking.pull import Messages as BlockingMessages
from jetstream.errors import ConsumerDeleted
from natsproto.errors import ConnectionClosed, InvalidValue, NatsError
from natsproto.port import run_sync
from natsproto.workers import NoLock
from tests.connection.support import PONG
from tests.connection.turns import Canceled, TaskPort, Turn
from tests.jetstream.stages import Stage, messages, status


class Loop(TaskPort, Stage):
    """A port with tasks."""

    joins = False


class Work:
    """A callback that takes some turns, and records its calls."""

    def __init__(self, turns=0, **acts):
        self.turns = turns
        self.acts = acts  # by number, as in on_3=...
        self.log = []
        self.at_once = 0
        self.most = 0

    async def __call__(self, msg):
        number = msg.metadata.stream_seq
        self.log.append(number)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            for _ in range(self.turns):
                await Turn()
            act = self.acts.get("on_%d" % number)
            if act is not None:
                await act()
            self.log.append(-number)
        finally:
            self.at_once -= 1


def begin(max_messages=10, stop_after=None, stage=None):
    stage = stage or Loop()
    consuming = stage.puller().consume(max_messages, None, 30.0, 5.0, None, None, stop_after, {})
    stage.sent()
    return stage, consuming


async def boom():
    raise ZeroDivisionError


def nothing():
    pass


@pytest.mark.rule("D-RUN-1")
def test_nak_is_true_or_false():
    _, consuming = begin()
    with pytest.raises(InvalidValue, match="nak 'no' is neither True nor False"):
        run_sync(consuming.run(Work(), nak="no"))


@pytest.mark.rule("D-RUN-1")
@pytest.mark.parametrize(
    ("callback", "concurrency", "text"),
    [
        (None, 1, "callback None cannot be called"),
        (3, 1, "callback 3 cannot be called"),
        (Work(), 0, "concurrency 0 is not a whole number from 1"),
        (Work(), True, "concurrency True"),
        (Work(), 1.5, "concurrency 1.5"),
        (Work(), "2", "concurrency '2'"),
    ],
)
def test_refused(callback, concurrency, text):
    stage, consuming = begin()
    with pytest.raises(InvalidValue, match=text):
        run_sync(consuming.run(callback, concurrency=concurrency))
    if not callable(callback):
        facade = BlockingMessages(consuming, stage)
        with pytest.raises(InvalidValue, match=text):
            facade.run(callback)
    assert (stage.sent(), consuming.closed) == ([], False)


@pytest.mark.rule("D-RUN-1")
def test_a_callback_of_the_wrong_kind():
    stage, consuming = begin()
    messages(stage, 1, 2)()
    with pytest.raises(InvalidValue, match=r"is not async: this client is"):
        stage.run(consuming.run(lambda msg: None))
    assert consuming.closed

    stage, consuming = begin()
    messages(stage, 1, 2)()
    stage.lock = NoLock()
    with pytest.raises(InvalidValue, match=r"is async: this client is not"):
        BlockingMessages(consuming, stage).run(lambda msg: Turn())


@pytest.mark.rule("RUN-2")
@pytest.mark.parametrize(("concurrency", "most"), [(1, 1), (2, 2), (3, 3), (20, 6)])
def test_so_many_at_once(concurrency, most):
    stage, consuming = begin(stop_after=6)
    work = Work(turns=2)
    stage.run(
        consuming.run(work, concurrency=concurrency), messages(stage, 1, 2, 3, 4, 5, 6, 7), nothing
    )
    assert [number for number in work.log if number > 0] == [1, 2, 3, 4, 5, 6]
    assert sorted(-number for number in work.log if number < 0) == [1, 2, 3, 4, 5, 6]
    assert work.most == most
    assert consuming.closed


@pytest.mark.rule("RUN-3")
@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("end", ["stop", "close"])
def test_the_end_waits_for_callbacks(end, concurrency):
    stage, consuming = begin()
    work = Work(turns=5)

    def act():
        assert work.log
        if end == "stop":
            assert len(run_sync(consuming.stop())) == 4 - len(work.log)
        else:
            stage.wire.tell("close")

    stage.run(
        consuming.run(work, concurrency=concurrency), messages(stage, 1, 2, 3, 4), nothing, act
    )
    begun = [number for number in work.log if number > 0]
    assert begun == ([1, 2, 3, 4] if end == "close" else [1, 2, 3][:concurrency])
    assert len(work.log) == 2 * len(begun)


@pytest.mark.rule("RUN-3")
@pytest.mark.parametrize("concurrency", [1, 2])
def test_stop_in_a_callback(concurrency):
    stage, consuming = begin()
    work = Work(turns=1, on_2=lambda: consuming.stop(nak=True))
    stage.run(consuming.run(work, concurrency=concurrency), messages(stage, 1, 2, 3, 4, 5))
    assert {1, -1, 2, -2} <= set(work.log) <= {1, -1, 2, -2, 3, -3}
    assert stage.wire.sent().count(b"-NAK") == 5 - len(work.log) // 2


@pytest.mark.rule("RUN-3")
@pytest.mark.parametrize("concurrency", [1, 2])
def test_drain_in_a_callback(concurrency):
    stage, consuming = begin()
    work = Work(on_1=consuming.drain)

    def fence():
        messages(stage, 4)()
        stage.wire.data(PONG)

    stage.run(
        consuming.run(work, concurrency=concurrency), messages(stage, 1, 2, 3), nothing, fence
    )
    assert sorted(work.log) == [-4, -3, -2, -1, 1, 2, 3, 4]
    assert stage.sent() == ["UNSUB", "PING"]


@pytest.mark.rule("RUN-3")
def test_a_consume_that_has_ended():
    stage, consuming = begin()
    run_sync(consuming.stop())
    for concurrency in (1, 4):
        stage.run(consuming.run(Work(), concurrency=concurrency))


@pytest.mark.rule("D-RUN-4")
@pytest.mark.rule("D-CONSUME-30")
@pytest.mark.parametrize(("nak", "on_exit"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_callback_that_fails(concurrency, nak, on_exit):
    stage, consuming = begin()
    consuming.nak_on_exit = on_exit
    work = Work(turns=2, on_1=boom, on_2=boom)
    with pytest.raises(ZeroDivisionError):
        stage.run(
            consuming.run(work, concurrency=concurrency, nak=nak),
            messages(stage, 1, 2, 3, 4, 5),
        )
    assert work.log == ([1] if concurrency == 1 else [1, 2, 3, -3])
    assert stage.wire.sent().count(b"-NAK") == (5 - concurrency if nak or on_exit else 0)
    assert consuming.closed
    assert stage.wire.connection.subscriptions.by_sid == {}


@pytest.mark.rule("D-RUN-4")
def test_a_failure_wakes_waiting_workers():
    stage, consuming = begin()
    with pytest.raises(ZeroDivisionError):
        stage.run(consuming.run(Work(on_1=boom), concurrency=5), nothing, messages(stage, 1))


@pytest.mark.rule("D-RUN-4")
def test_messages_that_cannot_be_returned():
    stage, consuming = begin()

    async def close():
        stage.wire.tell("close")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        stage.run(consuming.run(Work(on_1=close), nak=True), messages(stage, 1, 2))
    with pytest.raises(ConnectionClosed):
        stage.wire.connection.respond(b"a", b"")


@pytest.mark.rule("RUN-5")
@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_consumer_that_is_deleted(concurrency):
    stage, consuming = begin()
    work = Work(turns=3)
    with pytest.raises(ConsumerDeleted):
        stage.run(
            consuming.run(work, concurrency=concurrency),
            messages(stage, 1, 2),
            status(stage, 1, "409 Consumer Deleted"),
        )
    assert sorted(work.log) == [-2, -1, 1, 2]


@pytest.mark.rule("D-RUN-6")
@pytest.mark.parametrize("concurrency", [1, 3])
def test_canceled(concurrency):
    stage, consuming = begin()
    work = Work(turns=9)
    with pytest.raises(Canceled):
        stage.run(
            consuming.run(work, concurrency=concurrency, nak=True),
            messages(stage, 1, 2, 3, 4),
            nothing,
            Canceled,
        )
    assert work.log == [1, 2, 3][:concurrency]
    assert work.at_once == 0
    assert consuming.closed
    assert stage.wire.sent().count(b"-NAK") == 4 - concurrency


@pytest.mark.rule("D-RUN-6")
def test_canceled_while_no_message_arrives():
    stage, consuming = begin()
    for concurrency in (1, 3):
        with pytest.raises(Canceled):
            stage.run(consuming.run(Work(), concurrency=concurrency), Canceled)
    assert consuming.closed


class Held:
    """A lock that knows whether it is held."""

    def __init__(self):
        self.held = 0

    def __enter__(self):
        self.held += 1

    def __exit__(self, *exc):
        self.held -= 1


@pytest.mark.rule("D-RUN-7")
@pytest.mark.parametrize("concurrency", [1, 2])
def test_the_lock_is_free_during_callbacks(concurrency):
    stage, consuming = begin(stop_after=3, stage=Loop())
    stage.lock = Held()
    stage.alone = False
    seen = []

    async def run_all(workers):
        for worker in workers:
            await worker()

    stage.run_all = run_all
    messages(stage, 1, 2, 3)()

    def callback(msg):
        assert stage.lock.held == 0
        seen.append(msg.metadata.stream_seq)
        msg.ack()

    BlockingMessages(consuming, stage).run(callback, concurrency=concurrency)
    assert seen == [1, 2, 3]
    assert stage.lock.held == 0
    assert stage.wire.sent().count(b"+ACK") == 3


@pytest.mark.rule("D-RUN-9")
def test_a_port_that_has_one_thread():
    stage, consuming = begin()

    async def run_all(workers):
        raise InvalidValue("%d at once" % len(workers))

    stage.run_all = run_all
    messages(stage, 1)()
    with pytest.raises(NatsError, match="2 at once"):
        stage.run(consuming.run(Work(), concurrency=2))
    assert (consuming.closed, consuming.pending) == (False, 1)


@pytest.mark.rule("RUN-8")
def test_a_slow_callback_is_not_silence():
    stage, consuming = begin(stop_after=2)

    async def slow():
        # Nothing was read for 25 s: first the timer fires, far too late, then the heartbeats are
        # read.
        stage.wire.timer(at=25.0)
        status(stage, 1, "100 Idle Heartbeat", at=25.1)()
        stage.wire.timer(at=30.1)

    stage.run(consuming.run(Work(on_1=slow)), messages(stage, 1), messages(stage, 2))
    assert consuming._machine.events.items == []


@pytest.mark.rule("D-RUN-6")
def test_a_port_that_cannot_begin():
    stage, consuming = begin()

    async def run_all(workers):
        raise RuntimeError("can't start new thread")

    stage.run_all = run_all
    with pytest.raises(RuntimeError, match="new thread"):
        stage.run(consuming.run(Work(), concurrency=2))
    assert consuming.closed


@pytest.mark.rule("D-RUN-10")
@pytest.mark.parametrize("concurrency", [1, 3])
def test_on_error(concurrency):
    stage, consuming = begin(stop_after=5)
    work = Work(on_1=boom, on_3=boom)
    seen = []

    async def on_error(msg, error):
        seen.append((msg.metadata.stream_seq, type(error)))
        await Turn()
        await msg.nak()

    stage.run(
        consuming.run(work, concurrency=concurrency, on_error=on_error),
        messages(stage, 1, 2, 3, 4, 5),
    )
    assert sorted(seen) == [(1, ZeroDivisionError), (3, ZeroDivisionError)]
    assert sorted(number for number in work.log if number > 0) == [1, 2, 3, 4, 5]
    assert stage.wire.sent().count(b"-NAK") == 2


@pytest.mark.rule("D-RUN-11")
@pytest.mark.parametrize("concurrency", [1, 3])
def test_on_error_that_fails(concurrency):
    stage, consuming = begin()

    async def on_error(msg, error):
        raise KeyError from error

    with pytest.raises(KeyError):
        stage.run(
            consuming.run(Work(on_1=boom), concurrency=concurrency, on_error=on_error),
            messages(stage, 1, 2, 3, 4, 5),
        )
    assert consuming.closed


@pytest.mark.rule("D-RUN-10")
def test_errors_that_are_not_passed_to_on_error():
    async def on_error(msg, error):
        raise AssertionError(error)

    stage, consuming = begin()
    with pytest.raises(InvalidValue, match="is not async"):
        stage.run(consuming.run(lambda msg: None, on_error=on_error), messages(stage, 1))
    stage, consuming = begin()
    with pytest.raises(ConsumerDeleted):
        stage.run(
            consuming.run(Work(), on_error=on_error), status(stage, 1, "409 Consumer Deleted")
        )
    with pytest.raises(InvalidValue, match="on_error 3 cannot be called"):
        run_sync(begin()[1].run(Work(), on_error=3))
    stage, consuming = begin()
    with pytest.raises(InvalidValue, match=r"on_error .* is not async"):
        stage.run(consuming.run(Work(on_1=boom), on_error=lambda *_: None), messages(stage, 1))
