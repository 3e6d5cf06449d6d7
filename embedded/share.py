"""Lets names that never meet share one short name.

MicroPython stores each name once, whatever it stands for. So the fewer different names there are,
the less memory they take. Two names may become the same one if nothing can mistake one for the
other:

- A *global* must differ from the other globals of the modules that define or import it, and from
  the other names in the functions that use it.
- *Parameters* that no call names must differ from the other names in their function.
- *Attributes* belong to a family: classes that inherit from each other, in any number of steps.
  They must differ from the other attributes of the family. An object has no attributes but those
  that its class assigns to `self` or defines; an attribute that other code assigns gets a name of
  its own.
- A global and an attribute never meet, except in the body of a class, where a name can be either.

Everything else gets a name of its own, such as parameters that calls name, and attributes that are
also variables.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .names import bound

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def color(
    names: Iterable[str], groups: Iterable[set[str]], palette: Iterator[str]
) -> dict[str, str]:
    """Return a color for each name, different from those of other names in any of its groups."""
    homes: dict[str, set[int]] = {name: set() for name in names}
    for number, group in enumerate(groups):
        for name in group & homes.keys():
            homes[name].add(number)
    used: dict[str, set[int]] = {}  # the groups in which a color is
    chosen: dict[str, str] = {}
    for name, where in homes.items():
        free = (shade for shade, groups in used.items() if not groups & where)
        shade = next(free, None) or next(palette)
        used.setdefault(shade, set()).update(where)
        chosen[name] = shade
    return chosen


def families(trees: list[ast.Module]) -> list[set[str]]:
    """Return the attributes of each family of classes."""
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    links = [{node.name, *(_last(base) for base in node.bases)} for node in classes]
    links += [
        {alias.name, alias.asname}
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    ]
    return [
        {name for node in classes if node.name in family for name in _attributes(node)}
        for family in _connected(links)
    ]


def _last(base: ast.expr) -> str:
    return ast.unparse(base).rpartition(".")[2]


def _connected(links: list[set[str]]) -> list[set[str]]:
    """Return the sets that arise if those with a common member are joined."""
    found: list[set[str]] = []
    for link in links:
        joined = set(link)
        apart: list[set[str]] = []
        for group in found:
            if group & joined:
                joined |= group
            else:
                apart.append(group)
        found = [*apart, joined]
    return found


def _attributes(node: ast.ClassDef) -> set[str]:
    """Return what a class defines, and what its methods assign to `self`."""
    return bound(node.body) | {each.attr for each in _stores(node) if _is_self(each)}


def assigned_elsewhere(trees: list[ast.Module]) -> set[str]:
    """Return the attributes that are assigned to anything but `self` in a class."""
    inside = {
        each
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for each in _stores(node)
        if _is_self(each)
    }
    return {each.attr for tree in trees for each in _stores(tree) if each not in inside}


def _stores(tree: ast.AST) -> list[ast.Attribute]:
    """Return the attributes that a piece of code assigns or deletes."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
    ]


def _is_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def functions(trees: list[ast.Module]) -> list[set[str]]:
    """Return the names in each function, with those in functions and classes inside it."""
    found: list[set[str]] = []
    todo: list[ast.AST] = list(trees)
    while todo:
        node = todo.pop()
        if isinstance(node, (*_FUNCTIONS, ast.Lambda)):
            found.append(identifiers(node))
        else:
            todo += ast.iter_child_nodes(node)
    return found


def identifiers(tree: ast.AST) -> set[str]:
    """Return all names in a piece of code, except those of attributes and keywords."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found |= {node.name, node.asname or ""}
        elif isinstance(node, ast.ExceptHandler):
            found.add(node.name or "")
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            found.update(node.names)
    return found


def used_in_class_bodies(trees: list[ast.Module]) -> set[str]:
    """Return the names that are evaluated while a class is made, not when a method is called."""
    found: set[str] = set()
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for node in classes:
        todo: list[ast.AST] = list(node.body)
        while todo:
            each = todo.pop()
            if isinstance(each, ast.Name):
                found.add(each.id)
            elif isinstance(each, _FUNCTIONS):
                todo += [*each.decorator_list, *each.args.defaults]
                todo += [default for default in each.args.kw_defaults if default is not None]
            else:
                todo += ast.iter_child_nodes(each)
    return found
