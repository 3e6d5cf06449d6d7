"""Finds what names mean: which module defines a name, and where a name is local to a function."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from .fold import absolute
from .reach import lazy_homes

if TYPE_CHECKING:
    from collections.abc import Iterator

Function: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"
Comprehension: TypeAlias = "ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp"

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES = (*_FUNCTIONS, *_COMPREHENSIONS, ast.ClassDef, ast.Lambda)


class Symbol(NamedTuple):
    """A name that a module defines; "" is the module itself."""

    module: str
    name: str


class Resolver:
    """Follows the imports of these modules to where a name is defined."""

    def __init__(self, trees: dict[str, ast.Module]) -> None:
        self._trees = trees
        self.defined = {module: _defined_by(tree) for module, tree in trees.items()}
        # At once: merging removes them from the modules.
        self._lazy = {module: lazy_homes(tree) for module, tree in trees.items()}
        self._imports = {
            module: {
                local: symbol
                for node in tree.body
                if isinstance(node, (ast.Import, ast.ImportFrom))
                for local, symbol in self.imported(module, node)
            }
            for module, tree in trees.items()
        }

    def imported(
        self, module: str, node: ast.Import | ast.ImportFrom
    ) -> list[tuple[str, tuple[str, str]]]:
        """Return the local names of an import in a module, each with a module and a name in it."""
        if isinstance(node, ast.Import):
            return [
                (alias.asname or alias.name.split(".")[0], (alias.name, "")) for alias in node.names
            ]
        home = absolute(module, self._trees[module], node)
        return [(alias.asname or alias.name, (home, alias.name)) for alias in node.names]

    def find(self, module: str, name: str) -> Symbol | None:
        """Return what a name in a module stands for; None if it is not of these modules."""
        if module not in self._trees:
            return None
        if not name or name in self.defined[module]:
            return Symbol(module, name)
        target = self._imports[module].get(name)
        if target is not None and target != (module, name):  # not a package and its own module
            return self.find(*target)
        home = self._lazy[module].get(name)
        if home is not None:
            return self.find(f"{module}.{home}", name)
        inner = f"{module}.{name}"
        return Symbol(inner, "") if inner in self._trees else None

    def find_or_external(self, module: str, name: str) -> Symbol | None:
        """Return what a name in a module stands for; None if the module does not bind it."""
        found = self.find(module, name) if name in self._names(module) else None
        external = self._imports[module].get(name)
        return found or (None if external is None else Symbol(*external))

    def _names(self, module: str) -> set[str]:
        return self.defined[module] | set(self._imports[module])


def _defined_by(tree: ast.Module) -> set[str]:
    """Return the names that a module binds at its top level, apart from its imports."""
    return bound([node for node in tree.body if not isinstance(node, (ast.Import, ast.ImportFrom))])


def own_nodes(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Return all nodes of these statements, without those in functions, classes and so on."""
    todo: list[ast.AST] = list(body)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, _SCOPES):
            todo.extend(ast.iter_child_nodes(node))


def bound(body: list[ast.stmt]) -> set[str]:
    """Return the names that these statements bind in their own scope."""
    found: set[str] = set()
    outer: set[str] = set()
    for node in own_nodes(body):
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update(alias.asname or alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            outer.update(node.names)
        elif isinstance(node, _COMPREHENSIONS):
            found.update(
                each.target.id for each in ast.walk(node) if isinstance(each, ast.NamedExpr)
            )
    return found - outer


def parameters(arguments: ast.arguments) -> set[str]:
    """Return the names of all parameters."""
    return {each.arg for each in ast.walk(arguments) if isinstance(each, ast.arg)}


def local_names(tree: ast.Module) -> set[str]:
    """Return all names that are local to any function or comprehension of a module."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS):
            found |= parameters(node.args) | bound(node.body)
        elif isinstance(node, ast.Lambda):
            found |= parameters(node.args)
        elif isinstance(node, _COMPREHENSIONS):
            found |= targets(node)
    return found


def targets(node: Comprehension) -> set[str]:
    """Return the names that a comprehension binds."""
    return {
        each.id
        for generator in node.generators
        for each in ast.walk(generator.target)
        if isinstance(each, ast.Name)
    }


class ScopedTransformer(ast.NodeTransformer):
    """Visits a module, and knows at each place which names are local there."""

    def __init__(self) -> None:
        # The local names of each function around this place, with what they are imported from if a
        # subclass wants to know that. Those of a class are not visible in its methods.
        self._scopes: list[dict[str, Symbol | None]] = []
        self._in_class = False

    @property
    def at_top(self) -> bool:
        """Whether this place is outside all functions and classes."""
        return not self._scopes

    def is_local(self, name: str) -> bool:
        """Return whether a function around this place binds the name."""
        return any(name in scope for scope in self._scopes)

    def is_hidden(self, name: str) -> bool:
        """Return whether a function around this place binds the name other than by an import."""
        return any(name in scope and scope[name] is None for scope in self._scopes)

    def imported_here(self, name: str) -> Symbol | None:
        """Return what a local name is imported from, if `locals_of` said so."""
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), None)

    def locals_of(self, node: Function) -> dict[str, Symbol | None]:
        """Return the names that are local to a function."""
        return dict.fromkeys(parameters(node.args) | bound(node.body))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._visit_function(node)

    def _visit_function(self, node: Function) -> ast.AST:
        node.decorator_list = [self.visit(each) for each in node.decorator_list]
        self._visit_defaults(node.args)
        outer = self._scopes
        was, self._in_class = self._in_class, False
        self._scopes = [*(outer[:-1] if was else outer), self.locals_of(node)]
        node.body = self._visit_all(node.body)
        self._scopes, self._in_class = outer, was
        return node

    def _visit_all(self, body: list[ast.stmt]) -> list[ast.stmt]:
        holder = ast.Module(body, [])
        ast.NodeTransformer.generic_visit(self, holder)
        return holder.body or [ast.Pass()]

    def _visit_defaults(self, arguments: ast.arguments) -> None:
        arguments.defaults = [self.visit(each) for each in arguments.defaults]
        arguments.kw_defaults = [each and self.visit(each) for each in arguments.kw_defaults]

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.bases = [self.visit(each) for each in node.bases]
        was, self._in_class = self._in_class, True
        self._scopes.append(dict.fromkeys(bound(node.body)))
        node.body = self._visit_all(node.body)
        self._scopes.pop()
        self._in_class = was
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self._visit_defaults(node.args)
        self._scopes.append(dict.fromkeys(parameters(node.args)))
        node.body = self.visit(node.body)
        self._scopes.pop()
        return node

    def _visit_comprehension(self, node: Comprehension) -> ast.AST:
        self._scopes.append(dict.fromkeys(targets(node)))
        self.generic_visit(node)
        self._scopes.pop()
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _visit_comprehension
