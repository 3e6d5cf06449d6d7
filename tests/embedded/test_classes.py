"""The name of an attribute counts for the class of its object, if mypy knows the class."""

from __future__ import annotations

import ast
import builtins

import pytest

from embedded import build
from embedded.classes import find_receivers
from embedded.reach import reach

SOURCE = """
import json
from typing import Any, Protocol

class Base:
    def run(self) -> None: ...
    def stop(self) -> None: ...

class Derived(Base):
    def run(self) -> None:
        super().stop()

class Other:
    name: str = ""
    def run(self) -> None: ...
    def stop(self) -> None: ...
    def loads(self) -> None: ...

class Runs(Protocol):
    def run(self) -> None: ...

"""
FUNCTION = """
def start_%d(%s) -> object:
    return %s
"""
ALL = {"Base.run", "Derived.run", "Other.run"}
CASES = [  # parameter, expression, methods that stay
    ("x: Base", "x.run()", {"Base.run", "Derived.run", "Base.stop"}),
    ("x: Derived", "x.run()", {"Base.run", "Derived.run", "Base.stop"}),
    ("x: Other", "x.run()", {"Other.run"}),
    ("x: Other | None", "x and x.run()", {"Other.run"}),
    ("x: Other | Base", "x.run()", {*ALL, "Base.stop"}),
    ("x: type[Other]", "x.run", {"Other.run"}),
    ("x: int", "Other.run", {"Other.run"}),
    ("x: Any", "x.run()", {*ALL, "Base.stop"}),
    ("x: Any | Other", "x.run()", {*ALL, "Base.stop"}),
    ("x: Runs", "x.run()", {*ALL, "Base.stop"}),
    ("x: object", "getattr(x, 'run')()", {*ALL, "Base.stop"}),
    ("x: Other", "getattr(x, 'run')", {"Other.run"}),
    ("x: Other", "[getattr(x, name) for name in ('stop',)]", {"Other.stop"}),
    ("x: Any", "[getattr(x, name) for name in ('stop',)]", {"Base.stop", "Other.stop"}),
    ("x: str", "[x, 'stop']", set()),
    ("x: str", "json.loads(x)", set()),
    ("x: str", "x.run()", set()),  # an error for mypy, and no method of ours
]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Write a package with all cases, and return its root and its source."""
    root = tmp_path_factory.mktemp("package")
    (root / "p").mkdir()
    (root / "p/__init__.py").touch()
    functions = [FUNCTION % (number, *case[:2]) for number, case in enumerate(CASES)]
    source = SOURCE + "".join(functions)
    (root / "p/m.py").write_text(source)
    return root, source


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{x[0]} - {x[1]}" for x in CASES])
def test_methods_that_stay(package, number):
    root, source = package
    stays = CASES[number][2]
    program = ast.parse(f"from p.m import Base, Derived, Other, start_{number}")
    receivers = find_receivers(root, ("p/__init__.py", "p/m.py"))
    found = reach({"p": ast.parse(""), "p.m": ast.parse(source)}, [program], receivers)["p.m"]
    kept = {
        f"{each.name}.{member.name}"
        for each in found.body
        if isinstance(each, ast.ClassDef) and each.name != "Runs"
        for member in each.body
        if isinstance(member, ast.FunctionDef)
    }
    assert kept == stays


def test_mypy_is_missing(monkeypatch):
    find = builtins.__import__

    def without_mypy(name, *args):
        if name == "" and args[2] == ("classes",):
            raise ImportError
        return find(name, *args)

    monkeypatch.setattr(builtins, "__import__", without_mypy)
    with pytest.raises(SystemExit, match="pip install mypy"):
        build.find_receivers()
