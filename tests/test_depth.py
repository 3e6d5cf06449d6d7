"""Composition before inheritance: no class of the packages is more than three classes deep.

`object` does not count, nor do classes of other packages. Exceptions are exempt: their tree is how
callers catch them. The source is read, not imported: some modules need libraries of extras.
"""

from __future__ import annotations

import ast
import builtins

import pytest

from tests.core import PACKAGES, ROOT, dotted

MOST = 3


def read_classes(source: str, package: str, module: str) -> dict[str, list[str]]:
    """Return the classes of a module by their full names, with the full names of their bases."""
    known: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            above = parts[: len(parts) + 1 - node.level] if node.level else []
            origin = ".".join([*above, *filter(None, [node.module])])
            known.update({each.asname or each.name: f"{origin}.{each.name}" for each in node.names})
        elif isinstance(node, ast.Import):
            known.update({each.asname: each.name for each in node.names if each.asname})
        elif isinstance(node, ast.ClassDef):
            known[node.name] = f"{module}.{node.name}"
            found[known[node.name]] = [ast.unparse(base) for base in node.bases]
    for name, bases in found.items():
        found[name] = [resolve(base, known) for base in bases]
    return found


def resolve(base: str, known: dict[str, str]) -> str:
    """Return the full name of a base class; of `Base[int]` that of `Base`."""
    first, dot, rest = base.partition("[")[0].partition(".")
    return known.get(first, first) + dot + rest


def depth(name: str, classes: dict[str, list[str]]) -> int:
    """Return how many classes of the packages the longest chain has; 0 for exceptions."""
    if name not in classes or is_exception(name, classes):
        return 0
    return 1 + max([depth(base, classes) for base in classes[name]], default=0)


def is_exception(name: str, classes: dict[str, list[str]]) -> bool:
    if name in classes:
        return any(is_exception(base, classes) for base in classes[name])
    cls = getattr(builtins, name, None)
    return isinstance(cls, type) and issubclass(cls, BaseException)


def test_no_class_is_deeper_than_three():
    classes: dict[str, list[str]] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            above = dotted(path.parent / "__init__.py")
            classes.update(read_classes(source, above, dotted(path)))
    depths = {name: depth(name, classes) for name in classes}
    assert max(depths.values()) == MOST


SOURCE = """
from .a import A
from . import b as _b
class B(A): pass
class C(B, _b.D): pass
class E(Exception): pass
class F(E): pass
class G(Protocol[int]): pass
"""


@pytest.mark.parametrize(
    ("name", "bases", "count"),
    [
        ("B", ["p.a.A"], 2),
        ("C", ["p.m.B", "p.b.D"], 3),
        ("F", ["p.m.E"], 0),
        ("G", ["Protocol"], 1),
    ],
)
def test_the_reader_of_classes(name, bases, count):
    classes = read_classes(SOURCE, "p", "p.m")
    assert classes[f"p.m.{name}"] == bases
    classes.update({"p.a.A": [], "p.b.D": ["object"]})
    assert depth(f"p.m.{name}", classes) == count
