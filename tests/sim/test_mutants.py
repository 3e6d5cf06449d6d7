"""Possible mistakes, each made on purpose: a table or a few hundred seeds find it.

A mutant is a change to the text of one module, applied while a fresh copy of the package is
imported. Nothing on disk is touched.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.mark import ParameterSet

from tests.sim.fast_mutants import MUTANTS as FAST_MUTANTS
from tests.sim.gone_mutants import MUTANTS as GONE_MUTANTS
from tests.sim.ordered_mutants import MUTANTS as ORDERED_MUTANTS
from tests.sim.pull_mutants import MUTANTS as PULL_MUTANTS
from tests.sim.push_mutants import MUTANTS as PUSH_MUTANTS
from tests.sim.service_mutants import MUTANTS as SERVICE_MUTANTS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent.parent
FRESH = ("jetstream", "tests.sim", "tests.jetstream")
SEEDS = 300

MUTANTS = (
    PULL_MUTANTS + GONE_MUTANTS + ORDERED_MUTANTS + PUSH_MUTANTS + FAST_MUTANTS + SERVICE_MUTANTS
)


class Mutation(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds one module, and gives it another text."""

    def __init__(self, module: str, old: str, new: str) -> None:
        self._module = f"jetstream.{module}"
        self._path = ROOT.joinpath("jetstream", *module.split(".")).with_suffix(".py")
        text = self._path.read_text(encoding="utf-8")
        assert text.count(old) >= 1, f"{module} does not have {old!r} any more"
        self._text = text.replace(old, new, 1)

    def find_spec(self, name: str, path: object, target: object = None) -> Any:
        return importlib.util.spec_from_loader(name, self) if name == self._module else None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self._text, str(self._path), "exec"), module.__dict__)


def is_fresh(name: str) -> bool:
    return name.startswith(FRESH) and name != __name__


@pytest.fixture
def mutate() -> Iterator[Any]:
    """Import again with a mutation; restore everything afterwards."""
    before = {name: module for name, module in sys.modules.items() if is_fresh(name)}
    finders: list[Mutation] = []

    def apply(mutation: Mutation) -> None:
        finders.append(mutation)
        sys.meta_path.insert(0, mutation)
        for name in before:
            del sys.modules[name]

    yield apply
    for finder in finders:
        sys.meta_path.remove(finder)
    for name in [name for name in sys.modules if is_fresh(name)]:
        del sys.modules[name]
    sys.modules.update(before)


def cases(test: Any) -> list[dict[str, Any]]:
    """The arguments of a test, one by one."""
    found: list[dict[str, Any]] = [{}]
    for mark in getattr(test, "pytestmark", []):
        if mark.name == "parametrize":
            names = [mark.args[0]] if isinstance(mark.args[0], str) else list(mark.args[0])
            rows = [row.values if isinstance(row, ParameterSet) else row for row in mark.args[1]]
            if isinstance(mark.args[0], str):
                rows = [row if isinstance(row, tuple) else (row,) for row in rows]
            found = [{**one, **dict(zip(names, row))} for one in found for row in rows]
    return found


def run_tables(name: str) -> None:
    module = importlib.import_module(f"tests.jetstream.{name}")
    for test in [each for key, each in vars(module).items() if key.startswith("test_")]:
        for arguments in cases(test):
            test(**arguments)


def run_seeds(mode: str) -> None:
    modes = importlib.import_module("tests.sim.modes").MODES
    for seed in range(SEEDS):
        modes[mode](seed).run()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("module", "old", "new", "finder"),
    [row[1:] for row in MUTANTS],
    ids=[f"{row[1]}: {row[0]}" for row in MUTANTS],
)
def test_mutant(module, old, new, finder, mutate):
    mutate(Mutation(module, old, new))
    with pytest.raises(Exception) as found:  # noqa: PT011 - whatever it is, it was found
        run_tables(finder) if "test_" in finder else run_seeds(finder)
    assert not isinstance(found.value, ImportError), found.value


@pytest.mark.parametrize(
    ("mutation", "tables"),
    [
        (
            ("pull.pace", "SHORTEST_PAUSE = 0.05", "SHORTEST_PAUSE = 0.050"),
            [
                "pull.test_consume",
                "pull.test_consume_bytes",
                "pull.test_consume_ends",
                "pull.test_consume_gone",
                "pull.test_consume_room",
                "pull.test_consume_statuses",
                "pull.test_messages",
                "pull.test_presence",
                "pull.test_fetch",
                "machine.test_probe",
                "machine.test_status",
                "ordered.test_recreate",
                "ordered.test_cursor",
                "ordered.test_policy",
                "pull.test_consume_in_order",
                "ordered.test_api",
                "ordered.test_api_fetch",
                "ordered.test_api_ends",
            ],
        ),
        (
            ("push.machine", "ALARM_AFTER = 3", "ALARM_AFTER = 3 + 0"),
            ["push.test_machine", "push.test_machine_in_order", "ordered.test_push"],
        ),
        (
            ("publish.fast_machine", "PING_WAIT = 1.0", "PING_WAIT = 1.00"),
            ["publish.test_fast_machine", "publish.test_fast_machine_time"],
        ),
        (
            ("services.machine", "_MAX_WAITING = 256", "_MAX_WAITING = 256 + 0"),
            [
                "services.test_counters",
                "services.test_machine",
                "services.test_queue",
                "services.test_request",
                "services.test_runner",
                "services.test_service",
            ],
        ),
    ],
    ids=["pull", "push", "fast", "service"],
)
def test_without_a_mutation_everything_passes(mutation, tables, mutate):
    mutate(Mutation(*mutation))
    for name in tables:
        run_tables(name)
