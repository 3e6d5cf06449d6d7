"""The public coroutines, found in the classes, and the calls that stand for them in the sweeps.

A sweep needs each coroutine in a state in which it waits for the server. A *call* brings it there:

    @call("Subscription.next")
    async def next_message(on: Stage) -> None:
        sub = await on.client.subscribe("sweep")
        await on(sub.next(on.timeout))
        await sub.unsubscribe()

Only the coroutine that is passed to `on` is swept: canceled at one of its suspensions, or run while
the server is frozen or falls silent. Then each public coroutine in it has to end in time. What
follows it cleans up and checks that no message is lost; it also runs if the coroutine was canceled.
test_coroutines.py fails if a public coroutine has no call.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import TYPE_CHECKING, Any, NamedTuple

import jetstream
import natsproto
from jetstream.ordered.api import OrderedMessages
from natsproto.client import EventReader, Events

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from tests.sweep.stage import Stage

    Work = Callable[[Stage], Coroutine[Any, Any, None]]

# Parts of the packages that are not part of this API, or a facade of it.
PROGRAMS = {"adapters", "blocking", "cli", "compat", "spark", "testing", "tools"}
# The protocols of `async with`, `async for` and `await`.
PROTOCOLS = {"__aenter__", "__aexit__", "__anext__", "__await__"}
#: Each adapter has one.
CONNECT = "connect"


def public_classes() -> list[type]:
    """Return the classes that the packages export, and those that programs only get from them."""
    exported = [
        getattr(package, name) for package in (natsproto, jetstream) for name in package.__all__
    ]
    return [
        *(Events, EventReader, OrderedMessages),
        *(each for each in exported if inspect.isclass(each)),
    ]


def other_classes() -> list[str]:
    """Return the remaining classes with coroutines, by module and name; not of adapters and tools.

    Base classes of public ones are not among them.
    """
    public = public_classes()
    bases = {base for cls in public for base in cls.__mro__}
    found: set[type] = set()
    for package in (natsproto, jetstream):
        for each in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            parts = each.name.split(".")
            if parts[1] in PROGRAMS or parts[-1] == "__main__":
                continue
            module = importlib.import_module(each.name)
            found.update(
                cls
                for cls in vars(module).values()
                if inspect.isclass(cls) and cls.__module__ == each.name and coroutines_of(cls)
            )
    return sorted(f"{cls.__module__}.{cls.__name__}" for cls in found - bases)


def coroutines_of(cls: type) -> list[str]:
    """Return the names of the coroutines of a class that programs call."""
    names = [name for name in dir(cls) if not name.startswith("_") or name in PROTOCOLS]
    return [
        f"{cls.__name__}.{name}"
        for name in names
        if name == "__await__" or _is_awaited(getattr(cls, name))
    ]


def _is_awaited(method: Any) -> bool:
    """Return whether it is a coroutine function, or one that returns a coroutine."""
    returned = str(getattr(method, "__annotations__", {}).get("return", ""))
    return inspect.iscoroutinefunction(method) or returned.startswith(("Awaitable[", "Coroutine["))


def public_coroutines() -> list[str]:
    """Return every public coroutine as `Class.method`, and the `connect` of adapters."""
    return sorted({CONNECT, *(name for cls in public_classes() for name in coroutines_of(cls))})


class Call(NamedTuple):
    """A way to sweep some coroutines.

    local     it sends something at most, and does not wait for an answer
    fails     the server refuses it: it has no cluster
    """

    name: str
    covers: tuple[str, ...]
    work: Work
    local: bool = False
    fails: bool = False


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
