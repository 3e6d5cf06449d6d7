"""Gives short names to everything that only the packages use: a device keeps each name in memory.

A name stays if someone else may use it:

- the program: every name that appears in it;
- MicroPython: every name of Python and of the modules of Python that the packages import, and the
  keywords in calls of their functions;
- code that handles names as texts, such as `getattr` and the fields of JSON: every word of a text
  that can be a name or a list of names;
- mappings that are unpacked: the parameters of functions that are called with `**`, because the
  keys may come from a file;
- people: the names of classes, which errors and tracebacks show.

All others that the packages define get a new name. A name is replaced everywhere, regardless of its
meaning at a place, so two things that had the same name have the same name afterwards. The most
frequent ones become the shortest, and one short name may replace several long ones if these can
never meet (see _Census). So names.txt can be ambiguous, and the line of a traceback decides.
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
from typing import TYPE_CHECKING

from .names import Function, ScopedTransformer, Symbol, bound, parameters

if TYPE_CHECKING:
    from collections.abc import Iterator

# Names of MicroPython that Python lacks, and one that it always contains.
_MICROPYTHON = {"self", "s", "ticks_ms", "ticks_us", "ticks_diff", "mem_alloc", "mem_free"}
_WORDS = re.compile(r"[\w.: \n]+")
_WORD = re.compile(r"[A-Za-z_]\w*")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def rename(trees: dict[str, ast.Module], programs: list[ast.Module]) -> dict[str, str]:
    """Rename everything that can be renamed; return the new names by the old ones."""
    own = list(trees.values())
    census = _Census()
    for tree in own:
        census.visit(tree)
    kept = _foreign(own) | census.classes | {part for name in trees for part in name.split(".")}
    kept |= _unpacked(own, [*own, *programs])
    for tree in [*own, *programs]:
        kept |= _texts(tree)
    for program in programs:
        kept |= set(_identifiers(program))
    renamable = {name for name in _defined(own) - kept if not name.startswith("__")}
    taken = kept | {name for tree in own for name in _identifiers(tree)}
    names = census.choose(renamable, (name for name in _short_names() if name not in taken))
    for tree in own:
        _Renamer(names).visit(tree)
    return names


class _Census(ScopedTransformer):
    """Counts names by their use: as attributes and keywords, as locals, and as globals.

    Each attribute gets a short name of its own. A name that is only a parameter, or only a global,
    can share the short name of an attribute that is nothing else: an attribute is looked up in an
    object, the others are not. MicroPython then stores one name for both.
    """

    def __init__(self) -> None:
        super().__init__()
        self.classes: set[str] = set()
        self._attributes: Counter[str] = Counter()
        self._locals: set[str] = set()
        self._parameters: Counter[str] = Counter()
        self._globals: Counter[str] = Counter()

    def choose(self, names: set[str], fresh: Iterator[str]) -> dict[str, str]:
        """Return a new name for each of these, where it is shorter."""
        chosen = dict(zip(_by_count(self._attributes, names), fresh))
        # Not those that are local or global elsewhere: one could hide the other there.
        only = [name for name in chosen if name not in self._locals and name not in self._globals]
        shared = (chosen[name] for name in only)
        others = _by_count(self._parameters, names - set(self._attributes) - set(self._globals))
        others += _by_count(self._globals, names - set(self._attributes) - self._locals)
        chosen.update(zip(others, itertools.chain(shared, fresh)))
        return {name: short for name, short in chosen.items() if len(short) <= len(name)}

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self._attributes[node.attr] += 1
        return self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        self._attributes[node.arg or ""] += 1
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self.classes.add(node.name)
        self._attributes.update(bound(node.body))
        return super().visit_ClassDef(node)

    def locals_of(self, node: Function) -> dict[str, Symbol | None]:
        """Return the names that are local to a function, and count them."""
        if self.at_top:
            self._globals[node.name] += 1
        self._parameters.update(parameters(node.args))
        found = super().locals_of(node)
        self._locals.update(found)
        return found

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self._parameters.update(parameters(node.args))
        self._locals.update(parameters(node.args))
        return super().visit_Lambda(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if self.is_local(node.id):
            self._locals.add(node.id)
        else:
            self._globals[node.id] += 1
        return node

    def visit_alias(self, node: ast.alias) -> ast.AST:
        self._globals[node.name] += 1
        return node


def _by_count(counts: Counter[str], names: set[str]) -> list[str]:
    """Return these names, as far as they are counted, the most frequent ones first."""
    return [name for name, _ in counts.most_common() if name in names]


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
    """Return the names that the packages define."""
    found: set[str] = set()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, _FUNCTIONS):
                found.add(node.name)
            elif isinstance(node, ast.arg):
                found.add(node.arg)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                found.add(node.attr)
    return found


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
            continue  # it is one of the merged modules, or only MicroPython has it
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


def _unpacked(own: list[ast.Module], callers: list[ast.Module]) -> set[str]:
    """Return the parameters of functions and classes that a module calls with `**`."""
    called = {
        getattr(node.func, "id", getattr(node.func, "attr", ""))
        for tree in callers
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and any(each.arg is None for each in node.keywords)
    }
    found: set[str] = set()
    for node in itertools.chain.from_iterable(map(ast.walk, own)):
        if isinstance(node, _FUNCTIONS) and node.name in called:
            found |= parameters(node.args)
        elif isinstance(node, ast.ClassDef) and node.name in called:
            for each in node.body:
                if isinstance(each, _FUNCTIONS) and each.name == "__init__":
                    found |= parameters(each.args)
    return found


def _short_names() -> itertools.chain[str]:
    """Return all names of one character, and then all of two."""
    letters = string.ascii_letters
    pairs = (first + second for first in letters for second in letters + string.digits)
    return itertools.chain(letters, pairs)


class _Renamer(ast.NodeTransformer):
    """Replaces names wherever they appear."""

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
