"""Makes imports shallow: a module that programs import first imports what it needs, bottom up.

Each import within an import takes a kilobyte or more of the stack, which has 8 to 16 KiB on many
boards. With the modules that import nothing first, an import finds everything else loaded already.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .fold import absolute
from .reach import lazy_homes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: The modules that programs import; all others are imported by these, or later.
ENTRIES = ("natsproto", "natsproto.adapters.micropython", "jetstream.context")


def flatten(trees: dict[str, ast.Module]) -> None:
    """Let the entries begin with the imports of all modules that they need, in order."""
    for entry in ENTRIES:
        if entry in trees:
            order = bottom_up([entry], trees)
            imports = [ast.Import([ast.alias(name)]) for name in order if name != entry]
            trees[entry].body[:0] = imports


def bottom_up(entries: Iterable[str], trees: dict[str, ast.Module]) -> list[str]:
    """Return these modules and all that they import, each after those that it imports."""
    order: list[str] = []
    seen: set[str] = set()
    for entry in entries:
        _visit(entry, trees, order, seen)
    return order


def _visit(module: str, trees: dict[str, ast.Module], order: list[str], seen: set[str]) -> None:
    """Append the modules that this one imports at its top level, and the module after them."""
    if module in seen:
        return
    seen.add(module)
    for other in _imported(module, trees):
        _visit(other, trees, order, seen)
    order.append(module)


def _imported(module: str, trees: dict[str, ast.Module]) -> Iterator[str]:
    tree = trees[module]
    for node in tree.body:
        if not isinstance(node, ast.ImportFrom):
            continue
        home = absolute(module, tree, node)
        if home not in trees:
            continue
        lazy = lazy_homes(trees[home])
        for alias in node.names:
            inner = f"{home}.{lazy.get(alias.name, alias.name)}"
            yield inner if inner in trees else home
