"""Renames everything that only the packages use: a device keeps each new name in memory.

A name stays if someone else may use it:

- the program: every name that appears in it;
- MicroPython: every name of Python and of the modules of Python that the packages import, and the
  keywords in calls of their functions;
- code that handles names as texts, such as `getattr` and the fields of JSON: every word of a text
  that can be a name or a list of names;
- mappings that are unpacked: the parameters of functions that are called with `**`, because the
  keys may come from a file;
- people: the names of errors and events, which programs show.

All others that the packages define get a new name: one that the firmware contains anyway (see
firmware.py), or else a short one. A name is replaced everywhere, regardless of its meaning at a
place, so two things that had the same name have the same name afterwards. One new name may replace
several old ones if these can never meet (see share.py). So names.txt can be ambiguous, and the line
of a traceback decides.
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

from .firmware import NAMES as FIRMWARE
from .merge import MERGED
from .names import Function, ScopedTransformer, Symbol, bound, parameters
from .share import (
    assigned_elsewhere,
    color,
    families,
    functions,
    identifiers,
    used_in_class_bodies,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

# Names of MicroPython that Python lacks, and one that it always contains.
_MICROPYTHON = {"self", "s", "ticks_ms", "ticks_us", "ticks_diff", "mem_alloc", "mem_free"}
# How much more a use in a module that is always loaded counts than one in another.
_ALWAYS = 10_000
_WORDS = re.compile(r"[\w.: \n]+")
_WORD = re.compile(r"[A-Za-z_]\w*")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def rename(trees: dict[str, ast.Module], programs: list[ast.Module]) -> dict[str, str]:
    """Rename everything that can be renamed; return the new names by the old ones."""
    own = list(trees.values())
    census = _Census()
    for module, tree in trees.items():
        # What is always loaded goes first.
        census.weight = _ALWAYS if module.rpartition(".")[2].startswith(MERGED) else 1
        census.visit(tree)
    kept = _foreign(own) | _shown(own) | {part for name in trees for part in name.split(".")}
    kept |= _unpacked(own, [*own, *programs])
    for tree in [*own, *programs]:
        kept |= _texts(tree)
    for program in programs:
        kept |= set(_identifiers(program))
    renamable = {name for name in _defined(own) - kept if not name.startswith("__")}
    used = {name for tree in [*own, *programs] for name in _identifiers(tree)}
    used |= {word for tree in [*own, *programs] for word in _texts(tree)}
    taken = (kept - set(FIRMWARE)) | used | set(dir(builtins))
    fresh = itertools.chain(sorted(FIRMWARE), _short_names())
    names = census.choose(renamable, (name for name in fresh if name not in taken), own)
    for tree in own:
        _Renamer(names).visit(tree)
    return names


class _Census(ScopedTransformer):
    """Counts names by their use: as attributes and keywords, as locals, and as globals."""

    def __init__(self) -> None:
        super().__init__()
        #: What one use counts for.
        self.weight = 1
        self._attributes: Counter[str] = Counter()
        self._locals: set[str] = set()
        self._parameters: Counter[str] = Counter()
        self._globals: Counter[str] = Counter()

    def choose(
        self, names: set[str], fresh: Iterator[str], trees: list[ast.Module]
    ) -> dict[str, str]:
        """Return a new name for each of these."""
        variables = self._locals | set(self._globals)
        # Attributes that nothing else has the name of, and that only their classes assign.
        plain = names & (set(self._attributes) - variables - assigned_elsewhere(trees))
        hidden = used_in_class_bodies(trees)
        own = [*_by_count(self._attributes, names - plain), *_by_count(self._globals, hidden)]
        own = [name for name in own if name in names]
        chosen = dict(zip(dict.fromkeys(own), fresh))
        others = names - plain - set(chosen)
        outer = _by_count(self._globals, others)
        inner = _by_count(self._parameters, others - set(outer))
        modules = [identifiers(tree) & set(self._globals) for tree in trees]
        shared = color([*outer, *inner], [*functions(trees), *modules], fresh)
        palette = itertools.chain(dict.fromkeys(shared.values()), fresh)
        chosen.update(color(_by_count(self._attributes, plain), families(trees), palette))
        return chosen | shared

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self._attributes[node.attr] += self.weight
        return self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        self._attributes[node.arg or ""] += self.weight
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self._globals[node.name] += self.weight
        self._attributes.update(dict.fromkeys(bound(node.body), self.weight))
        return super().visit_ClassDef(node)

    def locals_of(self, node: Function) -> dict[str, Symbol | None]:
        """Return the names that are local to a function, and count them."""
        if self.at_top:
            self._globals[node.name] += self.weight
        self._parameters.update(dict.fromkeys(parameters(node.args), self.weight))
        found = super().locals_of(node)
        self._locals.update(found)
        return found

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self._parameters.update(dict.fromkeys(parameters(node.args), self.weight))
        self._locals.update(parameters(node.args))
        return super().visit_Lambda(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if self.is_local(node.id):
            self._locals.add(node.id)
        else:
            self._globals[node.id] += self.weight
        return node

    def visit_alias(self, node: ast.alias) -> ast.AST:
        self._globals[node.name] += self.weight
        return node


def _by_count(counts: Counter[str], names: set[str]) -> list[str]:
    """Return these names, as far as they are counted, the most frequent ones first."""
    # By name if the counts are equal: every build must be the same.
    return sorted(names & counts.keys(), key=lambda name: (-counts[name], name))


def _shown(trees: list[ast.Module]) -> set[str]:
    """Return the names of the classes that programs print: errors, events, and their bases."""
    # A list: two modules can have classes with the same name.
    classes = [
        (node.name, {ast.unparse(base) for base in node.bases})
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]
    found = {"Exception", "Event"}
    while True:
        more = {name for name, bases in classes if bases & found} - found
        if not more:
            return found
        found |= more


def _identifiers(tree: ast.Module) -> list[str]:
    """Return all names in a module, each as often as it appears."""
    found: list[str] = []
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "name", "asname"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                found += name.split(".")
        if isinstance(node, (ast.Global, ast.Nonlocal)):
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
            if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
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
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            node.names = [self._names.get(name, name) for name in node.names]
        return super().generic_visit(node)
