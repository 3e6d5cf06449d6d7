"""Gives short names to what only the packages use: MicroPython keeps every name in memory.

A name is replaced everywhere, whatever it stands for at a place, so two things that had the same
name still have. It stays if the packages do not define it, or if others may use it: the program,
MicroPython, and everything that reads names as texts, such as `getattr` and the fields of JSON.
Classes keep their names, because errors and `repr` show them.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import itertools
import keyword
import re
import string
from collections import Counter

# Names of MicroPython that Python lacks.
_MICROPYTHON = {"s", "ticks_ms", "ticks_us", "ticks_diff", "mem_alloc", "mem_free"}
_WORDS = re.compile(r"[\w.: \n]+")
_WORD = re.compile(r"[A-Za-z_]\w*")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def rename(trees: dict[str, ast.Module], programs: list[ast.Module]) -> dict[str, str]:
    """Rename what can be renamed; return the old names by the new ones."""
    own = list(trees.values())
    used = Counter(name for tree in own for name in _identifiers(tree))
    kept = _foreign(own) | {part for module in trees for part in module.split(".")}
    for tree in [*own, *programs]:
        kept |= _texts(tree)
    for program in programs:
        kept |= set(_identifiers(program))
    renamable = _defined(own) - kept
    wanted = [name for name, _ in used.most_common() if name in renamable]
    fresh = (name for name in _short_names() if name not in kept and name not in used)
    names = {name: short for name, short in zip(wanted, fresh) if len(short) < len(name)}
    for tree in own:
        _Renamer(names).visit(tree)
    return {short: name for name, short in names.items()}


def _identifiers(tree: ast.Module) -> list[str]:
    """Return all names in a module, each as often as it appears."""
    found: list[str] = []
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "name", "asname"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                found += name.split(".")
        if isinstance(node, ast.Global):
            found += node.names
    return found


def _texts(tree: ast.Module) -> set[str]:
    """Return the words of all texts that can be names, or lists of names."""
    return {
        word
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if " " not in node.value or ":" in node.value
        if _WORDS.fullmatch(node.value)
        for word in _WORD.findall(node.value)
    }


def _defined(trees: list[ast.Module]) -> set[str]:
    """Return the names that the packages define, apart from classes and special methods."""
    found: set[str] = set()
    classes: set[str] = set()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, _FUNCTIONS):
                found.add(node.name)
            elif isinstance(node, ast.ClassDef):
                classes.add(node.name)
            elif isinstance(node, ast.arg):
                found.add(node.arg)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                found.add(node.attr)
    return {name for name in found - classes if not name.startswith("__")}


def _foreign(trees: list[ast.Module]) -> set[str]:
    """Return the names of Python and of the modules of Python that these modules import."""
    found = {*dir(builtins), *keyword.kwlist, *_MICROPYTHON}
    modules: set[str] = set()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                modules.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                modules.add(node.module or "")
    values: list[object] = [getattr(builtins, name) for name in dir(builtins)]
    for name in sorted(modules):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue  # of these packages, or of MicroPython alone
        if name.split(".")[0] not in ("natsproto", "jetstream"):
            values += [module, *vars(module).values()]
    for value in values:
        found.update(dir(value))
    return found | modules | _keywords_of(trees, found)


def _keywords_of(trees: list[ast.Module], foreign: set[str]) -> set[str]:
    """Return the keywords in calls of functions with these names."""
    return {
        each.arg
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        if getattr(node.func, "id", getattr(node.func, "attr", "")) in foreign
        for each in node.keywords
        if each.arg
    }


def _short_names() -> itertools.chain[str]:
    letters = string.ascii_letters
    pairs = (first + second for first in letters for second in letters + string.digits)
    return itertools.chain(letters, pairs)


class _Renamer(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field in ("id", "attr", "arg", "name", "asname"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                setattr(node, field, self._names.get(name, name))
        if isinstance(node, ast.Global):
            node.names = [self._names.get(name, name) for name in node.names]
        return super().generic_visit(node)
