"""The transitions of a machine, as its own tests make it go through them.

`python -m docs.generate.observe jetstream.ordered.recreate` runs the tests of that module with a
descriptor in the place of `state`, and prints each change of it with the input that caused it: the
first method of the machine on the stack. These tests run every line and branch of the module
(`make cover`), so each statement that changes the state is observed. An input in a state that no
test tries is not.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from types import ModuleType
from typing import Any

import pytest

from tests.rules import ROOT

STATE = "state"


class Watched:
    """Takes the place of the slot `state` and records its changes."""

    def __init__(self, slot: Any, names: dict[object, str]) -> None:
        self._slot = slot
        self._names = names
        self.changes: set[tuple[str, str, str]] = set()
        self.first: set[str] = set()

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return self if owner is None else self._slot.__get__(owner, kind)

    def __set__(self, owner: Any, value: object) -> None:
        old = self._old(owner)
        self._slot.__set__(owner, value)
        if old is None:
            self.first.add(self._names[value])
        elif old != value:
            self.changes.add((self._names[old], _cause(owner), self._names[value]))

    def _old(self, owner: Any) -> Any:
        try:
            return self._slot.__get__(owner)
        except AttributeError:
            return None


def _cause(owner: object) -> str:
    """Return the outermost method of this object that is running, or "test"."""
    frame, name = sys._getframe(2), ""
    while frame is not None:
        if frame.f_locals.get("self") is owner:
            name = frame.f_code.co_name
        frame = frame.f_back  # type: ignore[assignment]
    return name or "test"


def machine_of(module: ModuleType) -> type:
    """Return the class of a module that has a state."""
    (found,) = [
        each
        for each in vars(module).values()
        if isinstance(each, type)
        and each.__module__ == module.__name__
        and STATE in each.__dict__.get("__slots__", ())
    ]
    return found


def names_of(module: ModuleType) -> dict[object, str]:
    """Return the names of the constants of a module by their values."""
    return {
        value: name
        for name, value in vars(module).items()
        if name.isupper() and not name.startswith("_") and isinstance(value, (str, int))
    }


def observe(module_name: str) -> dict[str, list[Any]]:
    """Run the tests of a module; return its first states and its changes of state."""
    module = importlib.import_module(module_name)
    machine = machine_of(module)
    watched = Watched(machine.__dict__[STATE], names_of(module))
    setattr(machine, STATE, watched)
    folder = ROOT.joinpath("tests", *module_name.split(".")[:-1])
    tests = sorted(folder.glob(f"test_{module_name.rpartition('.')[2]}*.py"))
    with redirect_stdout(StringIO()) as output:
        code = pytest.main(["-q", "-p", "no:cacheprovider", *map(str, tests)])
    if code != pytest.ExitCode.OK:
        raise RuntimeError(output.getvalue())
    return {"first": sorted(watched.first), "changes": sorted(map(list, watched.changes))}


def in_process(module_name: str) -> dict[str, list[Any]]:
    """Observe in another process: the descriptor must not stay."""
    command = [sys.executable, "-m", "docs.generate.observe", module_name]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return dict(json.loads(run.stdout))


if __name__ == "__main__":
    print(json.dumps(observe(sys.argv[1])))
