"""The architecture: the order of the rooms, and that every import follows it.

At run time a module imports from its own room and from rooms above it in ORDER, also inside
functions. Imports under `if TYPE_CHECKING:` are exempt: an annotation may name the class of a lower
room. No file of natsproto imports jetstream at all, not even for annotations or in its `testing`.
"""

from __future__ import annotations

import graphlib

import pytest

from tests.core import MODULES, ROOT, dotted, name
from tests.test_law import CORE, imports_of

# A module belongs to the longest entry that it begins with. Where one module of a room is listed
# apart from it, other rooms need that module before the rest of its room.
ORDER = [
    "natsproto.version",
    "natsproto.lazy",
    "natsproto.wire.text",
    "natsproto.wire.record",
    "natsproto.errors",
    "natsproto.wire",
    "natsproto.auth",
    "natsproto.urls",
    "natsproto.options",
    "natsproto.websocket",
    "natsproto.connection.waitable",
    "natsproto.events",
    "natsproto.connection",
    "natsproto.port",
    "natsproto.session",
    "natsproto.subscription",
    "natsproto.client",
    "natsproto.blocking",
    "natsproto.explain",
    "natsproto",
    "jetstream.errors",
    "jetstream.schema",
    "jetstream.config",
    "jetstream.events",
    "jetstream.api",
    "jetstream.message",
    "jetstream.machine",
    "jetstream.pull",
    "jetstream.push",
    "jetstream.ordered",
    "jetstream.publish",
    "jetstream.consumer",
    "jetstream.stream",
    "jetstream.management",
    "jetstream.subscribe",
    "jetstream.kv",
    "jetstream.objects",
    "jetstream.context",
    "jetstream.blocking",
    "jetstream.explain",
    "jetstream",
]


def place(module: str) -> int:
    """Return the index of a module's room in ORDER."""
    parts = module.split(".")
    prefixes = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
    return ORDER.index(next(prefix for prefix in prefixes if prefix in ORDER))


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_imports_from_its_own_room_and_those_above(path):
    here = place(dotted(path))
    assert [each for each in sorted(imports_of(path) & CORE) if place(each) > here] == []


@pytest.mark.parametrize("path", sorted((ROOT / "natsproto").rglob("*.py")), ids=name)
def test_natsproto_does_without_jetstream(path):
    named = {each.partition(".")[0] for each in imports_of(path, types=True)}
    assert "jetstream" not in named


def test_every_room_is_in_the_order_once():
    assert len(set(ORDER)) == len(ORDER)
    assert {place(module) for module in CORE} == set(range(len(ORDER)))


def test_no_module_imports_itself_by_way_of_others():
    graph = {dotted(path): imports_of(path, lazy=False) & CORE for path in MODULES}
    graphlib.TopologicalSorter(graph).prepare()


def test_the_place_of_a_module():
    assert place("natsproto.wire.text") < place("natsproto.errors") < place("natsproto.wire.parser")
    assert place("jetstream.kv") == place("jetstream.kv.store") < place("jetstream.context")
