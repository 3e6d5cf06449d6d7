"""Subscription.run on a loop that is a list: each turn resumes every worker once."""

from __future__ import annotations

import pytest

from natsproto.callbacks import _TURN
from natsproto.client import Client
from natsproto.errors import ConnectionClosed, InvalidValue, PermissionDenied
from natsproto.port import run_sync
from natsproto.subscription import Subscription
from tests.connection.support import Wire, err, msg
from tests.connection.turns import Canceled, TaskPort, Turn


class Loop(TaskPort):
    """A port with tasks, and a client with one subscription, `sub`."""

    def __init__(self) -> None:
        self.wire = Wire().up().forget()
        self.checkpoints = 0
        self.client = Client(self.wire.connection, self)
        self.sub: Subscription = run_sync(self.client.subscribe("a"))
        self.wire.forget()

    def now(self):
        return self.wire.now

    def flush_soon(self):
        self.wire.look()

    async def checkpoint(self):
        self.checkpoints += 1

    def receive(self, *numbers: int) -> None:
        self.wire.data(b"".join([msg("a", self.sub.sid, b"%d" % each) for each in numbers]))

    def end(self) -> None:
        run_sync(self.sub.unsubscribe())


class Work:
    """A callback that takes some turns, and records its calls; some raise."""

    def __init__(self, turns: int = 0, fails: tuple[int, ...] = ()) -> None:
        self.turns = turns
        self.fails = fails
        self.log: list[int] = []
        self.running = 0
        self.most = 0

    async def __call__(self, message) -> None:
        number = int(message.data)
        self.log.append(number)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            for _ in range(self.turns):
                await Turn()
            if number in self.fails:
                raise ZeroDivisionError(number)
        finally:
            self.running -= 1


@pytest.mark.rule("D-SUB-12")
@pytest.mark.parametrize(
    ("callback", "options", "text"),
    [
        (None, {}, "callback None cannot be called"),
        (3, {}, "callback 3 cannot be called"),
        (Work(), {"on_error": 3}, "on_error 3 cannot be called"),
        (Work(), {"concurrency": 0}, "concurrency 0 is not a whole number from 1"),
        (Work(), {"concurrency": True}, "concurrency True"),
        (Work(), {"concurrency": 1.5}, "concurrency 1.5"),
    ],
)
def test_invalid_arguments(callback, options, text):
    loop = Loop()
    with pytest.raises(InvalidValue, match=text):
        run_sync(loop.sub.run(callback, **options))
    assert loop.wire.sent() == b""


@pytest.mark.rule("D-SUB-12")
def test_a_port_that_runs_one_worker_only():
    loop = Loop()

    async def refuse(workers):
        raise InvalidValue("one at a time")

    loop.run_all = refuse
    loop.receive(1)
    with pytest.raises(InvalidValue, match="one at a time"):
        run_sync(loop.sub.run(Work(), concurrency=2))
    assert (loop.sub.pending, loop.wire.sent()) == (1, b"")  # no callback has begun


@pytest.mark.rule("D-SUB-12")
def test_a_callback_that_is_not_async():
    loop = Loop()
    loop.receive(1, 2)
    with pytest.raises(InvalidValue, match=r"callback .* is not async: this client is"):
        run_sync(loop.sub.run(lambda message: None, on_error=Work()))
    assert (loop.sub.pending, loop.wire.sent()) == (1, b"UNSUB 1\r\n")


@pytest.mark.rule("D-SUB-12")
def test_an_on_error_that_is_not_async():
    loop = Loop()
    loop.receive(1, 2)
    with pytest.raises(InvalidValue, match=r"on_error .* is not async: this client is"):
        run_sync(loop.sub.run(Work(fails=(1,)), on_error=lambda message, error: None))


@pytest.mark.rule("D-SUB-10")
@pytest.mark.parametrize("count", [1, 3, 3 * _TURN])
def test_each_message_in_order_until_the_end(count):
    loop, work = Loop(), Work()
    numbers = list(range(count))
    loop.receive(*numbers[:1])
    loop.run(loop.sub.run(work), lambda: loop.receive(*numbers[1:]), loop.end)
    assert work.log == numbers
    assert loop.checkpoints == count // _TURN


@pytest.mark.rule("D-SUB-10")
def test_messages_that_arrived_before_the_end_are_handled():
    loop, work = Loop(), Work()
    loop.receive(1, 2, 3)
    loop.end()
    run_sync(loop.sub.run(work))
    assert work.log == [1, 2, 3]


@pytest.mark.rule("D-SUB-10")
def test_several_at_once():
    loop, work = Loop(), Work(turns=2)
    loop.receive(*range(10))
    loop.end()
    loop.run(loop.sub.run(work, concurrency=3))
    assert (work.log, work.most, work.running) == (list(range(10)), 3, 0)


@pytest.mark.rule("D-SUB-11")
@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_callback_that_raises_ends_run(concurrency):
    loop, work = Loop(), Work(turns=2, fails=(2, 3))
    loop.receive(*range(10))
    with pytest.raises(ZeroDivisionError, match="2"):
        loop.run(loop.sub.run(work, concurrency=concurrency))
    assert work.running == 0
    assert loop.wire.sent() == b"UNSUB 1\r\n"
    assert loop.sub.pending == 10 - len(work.log)  # the others can still be taken
    assert len(work.log) in (3, 4, 5)


@pytest.mark.rule("D-SUB-11")
def test_workers_that_wait_end_when_another_one_fails():
    loop, work = Loop(), Work(turns=1, fails=(1,))
    with pytest.raises(ZeroDivisionError):
        loop.run(loop.sub.run(work, concurrency=3), lambda: loop.receive(1))
    assert work.log == [1]


@pytest.mark.rule("D-SUB-11")
def test_on_error_handles_the_errors_of_callbacks():
    loop, work = Loop(), Work(fails=(1, 3))
    handled = []

    async def on_error(message, error):
        handled.append((message.data, type(error)))

    loop.receive(1, 2, 3, 4)
    loop.end()
    run_sync(loop.sub.run(work, on_error=on_error))
    assert work.log == [1, 2, 3, 4]
    assert handled == [(b"1", ZeroDivisionError), (b"3", ZeroDivisionError)]


@pytest.mark.rule("D-SUB-11")
def test_an_error_of_on_error_ends_run():
    loop, work = Loop(), Work(fails=(1,))

    async def on_error(message, error):
        raise KeyError("mine") from error

    loop.receive(1, 2)
    with pytest.raises(KeyError, match="mine"):
        run_sync(loop.sub.run(work, on_error=on_error))
    assert (work.log, loop.sub.pending) == ([1], 1)


@pytest.mark.rule("D-SUB-11")
@pytest.mark.parametrize("concurrency", [1, 2])
def test_canceled(concurrency):
    loop, work = Loop(), Work(turns=5)
    loop.receive(1, 2, 3)
    with pytest.raises(Canceled):
        loop.run(loop.sub.run(work, concurrency=concurrency), Canceled)
    assert (work.running, loop.wire.sent()) == (0, b"UNSUB 1\r\n")


def test_the_error_of_the_subscription_is_raised():
    loop, work = Loop(), Work()
    loop.receive(1)
    denied = err('Permissions Violation for Subscription to "a"')
    with pytest.raises(PermissionDenied):
        loop.run(loop.sub.run(work), lambda: loop.wire.data(denied))
    assert work.log == [1]


def test_the_end_of_the_client():
    loop, work = Loop(), Work(fails=(2,))
    loop.receive(1, 2)
    loop.wire.connection.close(loop.now())
    with pytest.raises(ZeroDivisionError):
        run_sync(loop.sub.run(work))
    assert work.log == [1, 2]


@pytest.mark.rule("D-SUB-11")
def test_a_port_that_refuses_does_not_hide_the_error_of_a_callback():
    loop = Loop()
    loop.wire.data(msg("a", 1, b"1"))

    def refuse():
        raise ConnectionClosed("the loop is closed")

    async def callback(message):
        loop.flush_soon = refuse
        raise ValueError(message.data)

    with pytest.raises(ValueError, match="1"):
        run_sync(loop.sub.run(callback))
