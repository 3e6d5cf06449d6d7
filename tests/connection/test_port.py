"""Coroutines that run without an event loop, and the methods derived from them."""

from __future__ import annotations

import inspect

import pytest

from natsproto import port
from natsproto.errors import ConnectionClosed, InvalidState
from natsproto.port import (
    blocking,
    blocking_next,
    blocking_next_to,
    blocking_to,
    blocking_unlocked,
    locked_to,
    run_sync,
)


class Suspends:
    def __await__(self):
        yield self


class Inner:
    def __init__(self) -> None:
        self.log: list[str] = []

    async def add(self, one: int, *, two: int = 2) -> int:
        """Add one and two."""
        self.log.append("add")
        return one + two

    def add_now(self, one: int, *, two: int = 2) -> int:
        """Return at once."""
        self.log.append("add")
        return one + two

    async def __anext__(self) -> int:
        if len(self.log) > 4:
            raise StopAsyncIteration
        self.log.append("next")
        return len(self.log)

    async def fail(self, error: type[BaseException]) -> None:
        raise error

    async def suspend(self) -> None:
        try:
            await Suspends()
        finally:
            self.log.append("closed")


class Port:
    """Its lock writes to the log of the inner object."""

    def __init__(self, log: list[str]) -> None:
        self.lock = self
        self._log = log

    def __enter__(self) -> None:
        self._log.append("locked")

    def __exit__(self, *exc: object) -> None:
        self._log.append("released")

    def pump_soon(self) -> None:
        self._log.append("pump soon")


class Sum:
    def __init__(self, inner: int, port: Port) -> None:
        self.inner = inner
        self.port = port


class Facade:
    add = blocking(Inner.add)
    add_by_itself = blocking_unlocked(Inner.add)
    fail = blocking(Inner.fail)
    suspend = blocking(Inner.suspend)
    sum = blocking_to(Sum, Inner.add)
    sum_now = locked_to(Sum, Inner.add_now)
    __next__ = blocking_next(Inner.__anext__)
    next_sum = blocking_next_to(Sum, Inner.__anext__)

    def __iter__(self):
        return self

    def __init__(self) -> None:
        self.inner = Inner()
        self.port = Port(self.inner.log)


def test_a_call_holds_the_lock():
    facade = Facade()
    assert facade.add(1) == 3
    assert facade.inner.log == ["locked", "add", "released"]


def test_a_method_that_takes_the_lock_by_itself():
    facade = Facade()
    assert facade.add_by_itself(1, two=5) == 6
    assert facade.inner.log == ["add"]


def test_a_method_that_is_not_a_coroutine():
    facade = Facade()
    made = facade.sum_now(1, two=5)
    assert isinstance(made, Sum)
    assert made.port is facade.port
    assert facade.inner.log == ["locked", "add", "released"]
    assert facade.sum_now.__doc__ == "Return at once."


def test_an_iteration():
    facade = Facade()
    assert list(facade) == [2, 5]
    assert facade.inner.log == ["locked", "next", "released"] * 2 + ["locked", "released"]


def test_an_iteration_over_facades():
    facade = Facade()
    sums = [facade.next_sum(), facade.next_sum()]
    assert [(each.inner, each.port) for each in sums] == [(2, facade.port), (5, facade.port)]
    with pytest.raises(StopIteration):
        facade.next_sum()


def test_arguments_are_passed_on():
    assert Facade().add(1, two=5) == 6
    with pytest.raises(TypeError):
        Facade().add(1, 5)


def test_a_result_gets_a_facade():
    facade = Facade()
    result = facade.sum(1, two=1)
    assert isinstance(result, Sum)
    assert (result.inner, result.port) == (2, facade.port)


@pytest.mark.rule("D-CLOCK-4")
@pytest.mark.parametrize(
    ("error", "does"), [(ConnectionClosed, []), (KeyboardInterrupt, ["pump soon"])]
)
def test_errors_propagate_and_the_lock_is_released(error, does):
    """What a signal handler has interrupted is left to the port."""
    facade = Facade()
    with pytest.raises(error):
        facade.fail(error)
    assert facade.inner.log == ["locked", *does, "released"]


def test_a_coroutine_that_suspends_is_closed_and_reported():
    facade = Facade()
    with pytest.raises(InvalidState, match="suspended"):
        facade.suspend()
    assert facade.inner.log == ["locked", "closed", "released"]


def test_run_sync():
    assert run_sync(Inner().add(1)) == 3


@pytest.mark.parametrize("method", [Facade.add, Facade.add_by_itself, Facade.sum])
def test_name_docstring_and_signature_match_the_method(method):
    assert (method.__name__, method.__qualname__) == ("add", "Inner.add")
    assert method.__doc__ == "Add one and two."
    assert list(inspect.signature(method).parameters) == ["self", "one", "two"]


def test_functions_need_not_have_attributes():
    bare = object()  # like a MicroPython function
    assert port._copy_metadata(bare, Inner.add) is bare
