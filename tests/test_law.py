"""The law of the core: the modules that it may import.

ruff bans I/O, clocks and randomness by name (pyproject.toml). These tests check the rest: at run
time a core module imports only modules that MicroPython has, and none outside the core.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.core import MODULES, ROOT, SIMULATION, dotted, name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STDLIB = {"__future__", "binascii", "collections", "hashlib", "heapq", "json", "struct"}
CORE = {dotted(path) for path in MODULES}
# Libraries of extras, imported on use by the one module that wraps them; datetime, for those who
# have it.
EXTRAS = {
    "jetstream/kv/aes.py": {"cryptography"},
    "jetstream/schema/timestamp.py": {"datetime"},
    "natsproto/auth/nkeys.py": {"cryptography", "nacl"},
    "natsproto/auth/xkeys.py": {"nacl"},
    "natsproto/websocket.py": {"h11", "wsproto"},
}
HEAVY = {
    "asyncio",
    "dataclasses",
    "enum",
    "json",
    "logging",
    "re",
    "socket",
    "ssl",
    "threading",
    "typing",
}
# Imported by the methods that need them.
LATER = {
    "jetstream.kv.store",
    "jetstream.objects.store",
    "jetstream.ordered.policy",
    "jetstream.publish.atomic",
    "jetstream.publish.fast",
    "jetstream.publish.window_machine",
    "jetstream.pull.consume",
    "jetstream.push.machine",
    "jetstream.schema.consumer_rules",
    "jetstream.schema.stream_rules",
    "jetstream.subscribe.pull",
    "jetstream.subscribe.push",
    "natsproto.connection.machine",
}


def imports(source: str, package: str, lazy: bool = True, types: bool = False) -> Iterator[str]:
    """Yield the modules that the source imports at run time, with dots and in full.

    With `types` also those under `if TYPE_CHECKING:`; without `lazy` none inside a function.
    """
    pending: list[ast.AST] = [ast.parse(source)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not types:
            pending += node.orelse
            continue
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not lazy:
            continue
        pending += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            above = parts[: len(parts) + 1 - node.level] if node.level else []
            origin = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:
                whole = f"{origin}.{alias.name}"
                yield whole if whole in CORE else origin


def imports_of(path: Path, lazy: bool = True, types: bool = False) -> set[str]:
    package = dotted(path.parent / "__init__.py")
    return set(imports(path.read_text(encoding="utf-8"), package, lazy, types))


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_core_modules_import_only_the_core_and_modules_of_micropython(path):
    strangers = imports_of(path) - STDLIB - CORE
    assert {module.partition(".")[0] for module in strangers} <= EXTRAS.get(name(path), set())


@pytest.mark.parametrize("path", SIMULATION, ids=name)
def test_the_simulation_imports_only_the_core_and_modules_of_micropython(path):
    own = {dotted(each) for each in SIMULATION}
    assert imports_of(path) - STDLIB - CORE <= own


@pytest.mark.parametrize("path", [*MODULES, *SIMULATION], ids=name)
def test_jedi_follows_the_imports_for_annotations(path):
    """It skips a block whose condition it can infer: the annotation prevents that."""
    source = path.read_text(encoding="utf-8")
    assert ("\nif TYPE_CHECKING:" in source) == ("\nTYPE_CHECKING: bool = False\n" in source)
    assert "\nTYPE_CHECKING =" not in source


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import json", {"json"}),
        ("import collections.abc", {"collections.abc"}),
        ("from collections.abc import Iterator", {"collections.abc"}),
        ("from . import parser", {"natsproto.wire.parser"}),
        ("from .parser import Parser", {"natsproto.wire.parser"}),
        ("from .. import errors", {"natsproto.errors"}),
        ("from ..errors import NatsError", {"natsproto.errors"}),
        ("from natsproto.testing import Server", {"natsproto.testing"}),
        ("if TYPE_CHECKING:\n    import typing", set()),
        ("if TYPE_CHECKING:\n    import typing\nelse:\n    import time", {"time"}),
        ("def f():\n    import time", {"time"}),
        ("try:\n    import ssl\nexcept ImportError:\n    pass", {"ssl"}),
    ],
)
def test_the_reader_of_imports(source, found):
    assert set(imports(source, "natsproto.wire")) == found


def test_imports_inside_functions_can_be_left_out():
    source = "import json\n\ndef f():\n    import struct"
    assert set(imports(source, "natsproto", lazy=False)) == {"json"}


def test_imports_for_annotations_can_be_included():
    source = "import json\n\nif TYPE_CHECKING:\n    import typing"
    assert set(imports(source, "natsproto", types=True)) == {"json", "typing"}


@pytest.mark.parametrize("package", ["natsproto", "jetstream", "jetstream.context"])
def test_importing_a_package_stays_cheap(package):
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import {package}; print(*sys.modules)"
    # Isolated and without site, which may import anything on its own.
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    assert (HEAVY | LATER).isdisjoint(run.stdout.split())


def test_the_simulation_needs_none_of_the_other_helpers_of_tests():
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import jetstream.testing.sim"
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code + "; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    # json, which is needed, imports re and enum.
    assert (HEAVY - {"json", "re", "enum"} | {"subprocess"}).isdisjoint(run.stdout.split())


@pytest.mark.parametrize(
    "statement",
    [
        "from jetstream import JetStream",
        "from jetstream.blocking import JetStream",
        "from natsproto.adapters.blocking import connect",
        "from natsproto.adapters.threads import connect",
    ],
)
def test_programs_without_an_event_loop_start_without_modules_that_few_need(statement):
    """TLS, misspelled options and JSON import theirs when they occur."""
    code = (
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{statement}\n"
        "rare = ('ssl', 'inspect', 'difflib', 'asyncio', 'logging', 'json', 'typing')\n"
        "print(*[name for name in rare if name in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == []


def slotted_classes() -> list[type]:
    """Return the classes of the core that declare slots."""
    modules = [importlib.import_module(dotted(path)) for path in MODULES]
    found = [each for module in modules for each in vars(module).values() if inspect.isclass(each)]
    return sorted({each for each in found if "__slots__" in vars(each)}, key=repr)


def test_no_class_takes_the_name_of_an_attribute_of_its_base():
    """Both would mean the same attribute: the base would act on a value that is not its own."""
    repeated = [
        f"{cls.__module__}.{cls.__name__}.{name} is declared by {base.__name__}"
        for cls in slotted_classes()
        for base in cls.__mro__[1:]
        for name in set(vars(cls)["__slots__"]) & set(vars(base).get("__slots__", ()))
    ]
    assert repeated == []
