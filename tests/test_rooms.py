"""The architecture: the order of the rooms, and that every import follows it.

A module imports from its own room and from rooms above it in ORDER, even inside functions and for
annotations. EXCEPTIONS lists the imports for annotations that do not; it may only become shorter.
No file of natsproto imports jetstream at all, not even in its `testing`. The one exception is
natsproto/compat, which is a program on top of both packages: nothing of them imports it.
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
    "natsproto.hints",
    "natsproto.hinting",
    "natsproto.lazy",
    "natsproto.wire.text",
    "natsproto.wire.record",
    "natsproto.errors",
    "natsproto.durations",
    "natsproto.wire",
    "natsproto.secret",
    "natsproto.auth",
    "natsproto.urls",
    "natsproto.choice",
    "natsproto.options",
    "natsproto.websocket",
    "natsproto.connection.waitable",
    "natsproto.events",
    "natsproto.connection",
    "natsproto.health",
    "natsproto.port",
    "natsproto.session",
    "natsproto.workers",
    "natsproto.callbacks",
    "natsproto.subscription",
    "natsproto.paths",
    "natsproto.replies",
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
    "jetstream.advisories",
    "jetstream.dead_letters",
    "jetstream.streams",
    "jetstream.subscribe",
    "jetstream.kv",
    "jetstream.objects",
    "jetstream.services",
    "jetstream.context",
    "jetstream.pull.groups",
    "jetstream.blocking",
    "jetstream.tools.explain",
    "jetstream",
]

# Imports for annotations of a class in a room below.
EXCEPTIONS = {
    # Errors carry the object that they are about.
    ("natsproto.errors", "natsproto.wire.frames"),
    ("jetstream.errors", "jetstream.publish.window_machine"),
    ("jetstream.errors.kv", "jetstream.kv.entry"),
    # Messages and PushMessages share Iteration, which runs either machine.
    ("jetstream.machine.iteration", "jetstream.pull.consume"),
    ("jetstream.machine.iteration", "jetstream.push.machine"),
    # An ordered push subscription is a PushMessages with a cursor.
    ("jetstream.push.api", "jetstream.ordered.cursor"),
}


def place(module: str) -> int:
    """Return the index of a module's room in ORDER."""
    parts = module.split(".")
    prefixes = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
    return ORDER.index(next(prefix for prefix in prefixes if prefix in ORDER))


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_imports_only_from_its_own_room_and_rooms_above(path):
    here = place(dotted(path))
    assert [each for each in sorted(imports_of(path) & CORE) if place(each) > here] == []


def test_imports_for_annotations_follow_the_order_with_the_listed_exceptions():
    """A new one fails, and so does an entry of EXCEPTIONS that the code no longer needs."""
    found = {
        (dotted(path), each)
        for path in MODULES
        for each in imports_of(path, types=True) & CORE
        if place(each) > place(dotted(path))
    }
    assert found == EXCEPTIONS


# On top of both packages.
COMPAT = "natsproto/compat/"
BELOW = [
    path
    for package in ("natsproto", "jetstream")
    for path in sorted((ROOT / package).rglob("*.py"))
    if not name(path).startswith(COMPAT)
]


@pytest.mark.parametrize(
    "path", [path for path in BELOW if name(path).startswith("natsproto/")], ids=name
)
def test_natsproto_does_without_jetstream(path):
    named = {each.partition(".")[0] for each in imports_of(path, types=True)}
    assert "jetstream" not in named


@pytest.mark.parametrize("path", BELOW, ids=name)
def test_nothing_imports_the_compatibility_layer(path):
    named = imports_of(path, types=True)
    assert [each for each in named if each.startswith("natsproto.compat")] == []


def test_every_room_is_in_the_order_once():
    assert len(set(ORDER)) == len(ORDER)
    assert {place(module) for module in CORE} == set(range(len(ORDER)))


def test_no_module_imports_itself_by_way_of_others():
    graph = {dotted(path): imports_of(path, lazy=False) & CORE for path in MODULES}
    graphlib.TopologicalSorter(graph).prepare()


def test_the_place_of_a_module():
    assert place("natsproto.wire.text") < place("natsproto.errors") < place("natsproto.wire.parser")
    assert place("jetstream.kv") == place("jetstream.kv.store") < place("jetstream.context")


def test_the_top_level_of_jetstream_is_short():
    entries = [each.name for each in (ROOT / "jetstream").iterdir() if each.name != "__pycache__"]
    assert len(entries) <= 25, sorted(entries)
