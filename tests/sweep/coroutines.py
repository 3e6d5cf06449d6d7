"""The public coroutines, found in the classes, and the calls that stand for them in the sweeps.

A sweep needs each coroutine in a state in which it waits for the server. A *call* brings it there:

    @call("Subscription.next")
    async def next_message(on: Stage) -> None:
        sub = await on.client.subscribe("sweep")
        await on(sub.next(on.timeout))
        await sub.unsubscribe()

Only the coroutine that is passed to `on` is swept: canceled at one of its suspensions, or run while
the server is frozen or falls silent. What follows it cleans up and checks that no message is lost;
it also runs if the coroutine was canceled. test_coroutines.py fails if a public coroutine has no
call.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, NamedTuple

import jetstream
import natsproto
from natsproto.client import EventReader, Events

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from tests.sweep.stage import Stage

    Work = Callable[[Stage], Coroutine[Any, Any, None]]

# The protocols of `async with`, `async for` and `await`.
PROTOCOLS = {"__aenter__", "__aexit__", "__anext__", "__await__"}


def public_classes() -> list[type]:
    """Return the classes that the packages export, and those of `client.events`."""
    exported = [
        getattr(package, name) for package in (natsproto, jetstream) for name in package.__all__
    ]
    return [Events, EventReader, *(each for each in exported if inspect.isclass(each))]


def coroutines_of(cls: type) -> list[str]:
    """Return the names of the coroutines of a class that programs call."""
    names = [name for name in dir(cls) if not name.startswith("_") or name in PROTOCOLS]
    return [
        f"{cls.__name__}.{name}"
        for name in names
        if inspect.iscoroutinefunction(getattr(cls, name)) or name == "__await__"
    ]


def public_coroutines() -> list[str]:
    """Return every public coroutine as `Class.method`."""
    return sorted({name for cls in public_classes() for name in coroutines_of(cls)})


class Call(NamedTuple):
    """A way to sweep some coroutines.

    waits     it waits for as long as there is nothing: there is no timeout that could end it
    local     it sends something at most, and does not wait for an answer
    fails     the server refuses it: it has no cluster
    timeouts  how many timeouts it may take if the server does not answer
    midway    how many if the server falls silent in the middle of the dialogue: the ends of blocks
              and `finally` make calls of their own
    grace     how many seconds more, as documented: a fetch gives the server one
    """

    name: str
    covers: tuple[str, ...]
    work: Work
    waits: bool = False
    local: bool = False
    fails: bool = False
    timeouts: int = 1
    midway: int = 0
    grace: float = 0.0


CALLS: dict[str, Call] = {}


def call(*covers: str, **options: Any) -> Callable[[Work], Work]:
    """Add a function to the calls, under its name, with the options of Call."""

    def add(work: Work) -> Work:
        name = work.__name__
        assert name not in CALLS, name
        CALLS[name] = Call(name, covers, work, **options)
        return work

    return add


def plain(calls: dict[str, Callable[[Stage], Any]], **options: Any) -> None:
    """Add calls that need no preparation and leave nothing, by the coroutine they cover."""
    for covered, make in calls.items():
        work = _just(make)
        work.__name__ = covered.replace(".", "_").lower()
        call(covered, **options)(work)


def _just(make: Callable[[Stage], Any]) -> Work:
    async def work(on: Stage) -> None:
        await on(make(on))

    return work
