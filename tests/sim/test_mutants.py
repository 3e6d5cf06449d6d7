"""Possible mistakes, each made on purpose: a table or a few hundred seeds find it.

A mutant is a change to the text of one module, applied while a fresh copy of the package is
imported. Nothing on disk is touched.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.mark import ParameterSet

from tests.sim.core_mutants import MUTANTS as CORE_MUTANTS
from tests.sim.fast_mutants import MUTANTS as FAST_MUTANTS
from tests.sim.gone_mutants import MUTANTS as GONE_MUTANTS
from tests.sim.link_mutants import MUTANTS as LINK_MUTANTS
from tests.sim.ordered_mutants import MUTANTS as ORDERED_MUTANTS
from tests.sim.pull_mutants import MUTANTS as PULL_MUTANTS
from tests.sim.push_mutants import MUTANTS as PUSH_MUTANTS
from tests.sim.service_mutants import MUTANTS as SERVICE_MUTANTS
from tests.sim.store_mutants import MUTANTS as STORE_MUTANTS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent.parent
FRESH = ("jetstream", "tests.sim", "tests.jetstream")
# With a mistake in natsproto everything is imported again.
FRESH_CORE = (*FRESH, "natsproto", "tests.connection", "tests.wire", "tests.effects")
SEEDS = 300

MUTANTS = [
    *(PULL_MUTANTS + GONE_MUTANTS + ORDERED_MUTANTS + PUSH_MUTANTS + FAST_MUTANTS),
    *(SERVICE_MUTANTS + STORE_MUTANTS),
]
MUTANTS += CORE_MUTANTS + LINK_MUTANTS


class Mutation(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds one module, and gives it another text."""

    def __init__(self, module: str, old: str, new: str) -> None:
        self.core = module.startswith("natsproto.")
        self._module = module if self.core else f"jetstream.{module}"
        self._path = ROOT.joinpath(*self._module.split(".")).with_suffix(".py")
        text = self._path.read_text(encoding="utf-8")
        assert text.count(old) >= 1, f"{module} does not have {old!r} any more"
        self.text = text.replace(old, new, 1)

    def find_spec(self, name: str, path: object, target: object = None) -> Any:
        return importlib.util.spec_from_loader(name, self) if name == self._module else None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.text, str(self._path), "exec"), module.__dict__)


def is_fresh(name: str, core: bool = True) -> bool:
    return name.startswith(FRESH_CORE if core else FRESH) and name != __name__


@pytest.fixture
def mutate() -> Iterator[Any]:
    """Import again with a mutation; restore everything afterwards."""
    before = {name: module for name, module in sys.modules.items() if is_fresh(name)}
    finders: list[Mutation] = []

    def apply(mutation: Mutation) -> None:
        finders.append(mutation)
        sys.meta_path.insert(0, mutation)
        for name in before:
            if is_fresh(name, mutation.core):
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
            single = isinstance(mark.args[0], str)
            names = [mark.args[0]] if single else list(mark.args[0])
            rows = [
                row.values if isinstance(row, ParameterSet) else (row,) if single else row
                for row in mark.args[1]
            ]
            found = [{**one, **dict(zip(names, row))} for one in found for row in rows]
    return found


def run_tables(name: str) -> None:
    core = name.startswith(("connection.", "wire."))
    module = importlib.import_module(f"tests.{name}" if core else f"tests.jetstream.{name}")
    for test in [each for key, each in vars(module).items() if key.startswith("test_")]:
        if getattr(test, "is_hypothesis_test", False):
            continue  # its examples are random, and it has a time limit
        rows = cases(test)
        if rows and set(inspect.signature(test).parameters) == set(rows[0]):  # no fixtures
            for arguments in rows:
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
    with pytest.raises((Exception, pytest.fail.Exception)) as found:
        run_tables(finder) if "test_" in finder else run_seeds(finder)
    assert not isinstance(found.value, ImportError), found.value


TABLES = sorted({row[-1] for row in MUTANTS if "test_" in row[-1]})
HARMLESS = {
    False: ("pull.pace", "SHORTEST_PAUSE = 0.05", "SHORTEST_PAUSE = 0.050"),
    True: ("natsproto.connection.lame_duck", "self._noticed = False", "self._noticed = not True"),
}


@pytest.mark.parametrize("core", [False, True], ids=["jetstream", "natsproto"])
def test_without_a_mutation_everything_passes(core, mutate):
    """So a table that fails has found the mutation. Those of a test with fixtures are left out."""
    mutate(Mutation(*HARMLESS[core]))
    for name in TABLES:
        if name.startswith(("connection.", "wire.")) == core:
            run_tables(name)


def test_there_are_enough_mutants():
    core = [row for row in MUTANTS if row[1].startswith("natsproto.")]
    assert len(core) >= 60
    assert len(MUTANTS) - len(core) >= 150
    assert len({(row[1], row[2], row[3], row[4]) for row in MUTANTS}) == len(MUTANTS)
