"""Workers, and the kinds of callbacks."""

from __future__ import annotations

import pytest

from natsproto.errors import InvalidValue
from natsproto.port import run_sync
from natsproto.workers import NoLock, Workers, check_async, check_callback, check_sync, is_async
from tests.connection.turns import Canceled, TaskPort, Turn


class Countdown(Workers):
    """Each call takes a number and a turn; some numbers raise."""

    rule = "D-SUB-12"

    def __init__(self, *numbers, raises=None):
        super().__init__()
        self.numbers = list(numbers)
        self.raises = raises or {}
        self.log = []

    async def call_all(self):
        while self.numbers:
            number = self.numbers.pop(0)
            self.log.append(number)
            await Turn()
            if number in self.raises:
                raise self.raises[number]

    async def stop(self):
        self.log.append("stop")
        self.numbers.clear()


@pytest.mark.parametrize("concurrency", [1, 2, 5])
def test_all_calls_are_made(concurrency):
    port, workers = TaskPort(), Countdown(1, 2, 3)
    port.run(workers.run(port, concurrency))
    assert workers.log == [1, 2, 3]


@pytest.mark.rule("D-SUB-12")
@pytest.mark.parametrize("concurrency", [0, -1, True, 1.5, "2", None, 2**63])
def test_an_invalid_number_of_workers(concurrency):
    workers = Countdown(1)
    with pytest.raises(InvalidValue, match="concurrency"):
        run_sync(workers.run(TaskPort(), concurrency))
    assert workers.log == []


@pytest.mark.rule("RUN-5")
@pytest.mark.parametrize(("concurrency", "log"), [(1, [1, "stop"]), (2, [1, 2, "stop", "stop"])])
def test_the_first_error_is_raised(concurrency, log):
    workers = Countdown(1, 2, 3, raises={1: KeyError(1), 2: KeyError(2)})
    port = TaskPort()
    with pytest.raises(KeyError, match="1"):
        port.run(workers.run(port, concurrency))
    assert workers.log == log


@pytest.mark.rule("D-RUN-6")
@pytest.mark.parametrize("concurrency", [1, 2])
def test_canceled(concurrency):
    port, workers = TaskPort(), Countdown(1, 2, 3)
    with pytest.raises(Canceled):
        port.run(workers.run(port, concurrency), Canceled)
    assert workers.log[concurrency] == "stop"
    assert 3 not in workers.log


@pytest.mark.rule("D-RUN-9")
def test_a_port_that_runs_one_at_a_time():
    class Alone(TaskPort):
        async def run_all(self, workers):
            raise InvalidValue("one at a time")

    workers = Countdown(1)
    with pytest.raises(InvalidValue, match="one at a time"):
        run_sync(workers.run(Alone(), 2))
    assert workers.log == []


def test_a_subclass_has_both_methods():
    for method in (Workers().call_all, Workers().stop):
        with pytest.raises(NotImplementedError):
            run_sync(method())


def test_no_lock():
    with NoLock().lock:
        pass


@pytest.mark.rule("D-SUB-12")
def test_a_callback_can_be_called():
    check_callback(print, "D-SUB-12")
    with pytest.raises(InvalidValue, match="on_error 3 cannot be called"):
        check_callback(3, "D-SUB-12", "on_error")


def test_is_async():
    def generator():
        yield

    assert is_async(Turn())
    assert is_async(generator())  # a coroutine of MicroPython
    assert not is_async(None)


@pytest.mark.rule("D-SUB-12")
def test_results_of_callbacks():
    assert check_async(Turn(), print, "D-SUB-12") is Turn
    with pytest.raises(InvalidValue, match=r"callback <.*print> is not async: this client is"):
        check_async(None, print, "D-SUB-12")
    check_sync(None, print, "D-SUB-12")
    with pytest.raises(InvalidValue, match=r"handler <.*print> is async: this client is not"):
        check_sync(Turn(), print, "D-SUB-12", "handler")


def test_a_coroutine_that_is_refused_is_closed(recwarn):
    async def callback():
        raise AssertionError

    with pytest.raises(InvalidValue):
        check_sync(callback(), callback, "D-SUB-12")
    assert len(recwarn) == 0
