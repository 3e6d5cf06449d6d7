"""Merges the modules that a program always loads into one for each package.

Each module has a dict of its own, a table of the names in its code, and entries for everything that
it imports: 40 of them take a tenth of all memory. In one module each name is stored once.

What a function imports when it is called stays a module of its own, unless the program calls a
function of that name. Modules that the program
imports by name stay as well, but contain only imports of what the program uses of them.
"""

from __future__ import annotations

import ast
import builtins

from .flatten import bottom_up
from .fold import absolute
from .names import Function, Resolver, ScopedTransformer, Symbol, local_names
from .reach import LAZY, lazy_homes

MERGED = "merged"  # the name of the module in each package
_LOADER = "__getattr__"  # of a module: loads its lazy names
_IMPORTS = (ast.Import, ast.ImportFrom)


def merge(trees: dict[str, ast.Module], programs: list[ast.Module]) -> dict[str, ast.Module]:
    """Return the modules after merging, with those that the programs import."""
    resolver = Resolver(trees)
    used = _used_by(programs, trees)
    entries = [symbol.module for names in used.values() for symbol in names.values()]
    order = _always_loaded(entries, trees, programs)
    packages = dict.fromkeys(module.split(".")[0] for module in order)
    bundles: dict[str, _Bundle] = {}
    for package in packages:
        modules = [module for module in order if module.split(".")[0] == package]
        bundle = _Bundle(f"{package}.{MERGED}", modules, trees, resolver)
        bundles.update(dict.fromkeys(modules, bundle))
    made = {bundle.name: bundle.tree(bundles) for bundle in dict.fromkeys(bundles.values())}
    for module, tree in trees.items():
        if module not in bundles:
            made[module] = _Outside(module, resolver, bundles).visit(tree)
    for module, names in used.items():
        if module in bundles or lazy_homes(trees[module]):
            made[module] = _facade(names, bundles)
    return _needed(made, list(used))


def _always_loaded(
    entries: list[str], trees: dict[str, ast.Module], programs: list[ast.Module]
) -> list[str]:
    """Return what the entries import, and what functions import that the programs call by name."""
    called = {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for program in programs
        for node in ast.walk(program)
        if isinstance(node, (ast.Attribute, ast.Name))
    }
    resolver = Resolver(trees)
    order = bottom_up(entries, trees)
    for module in order:  # which grows
        for node in ast.walk(trees[module]):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name in called:
                found = [symbol.module for symbol in _imports_in(node, module, resolver)]
                order += [name for name in bottom_up(found, trees) if name not in order]
    return order


def _imports_in(node: Function, module: str, resolver: Resolver) -> list[Symbol]:
    """Return what a function imports whenever it is called: not under a condition."""
    found = [
        resolver.find(*target)
        for each in node.body
        if isinstance(each, _IMPORTS)
        for _, target in resolver.imported(module, each)
    ]
    return [symbol for symbol in found if symbol is not None]


def _needed(trees: dict[str, ast.Module], entries: list[str]) -> dict[str, ast.Module]:
    """Return the modules that the entries import, directly or not: packages may be left out."""
    found: set[str] = set()
    todo = [module for module in entries if module in trees]
    while todo:
        module = todo.pop()
        if module in found:
            continue
        found.add(module)
        for node in ast.walk(trees[module]):
            if isinstance(node, ast.Import):
                todo += [alias.name for alias in node.names if alias.name in trees]
            elif isinstance(node, ast.ImportFrom):
                home = absolute(module, trees[module], node)
                for alias in node.names:
                    inner = f"{home}.{alias.name}"
                    todo += [name for name in (inner, home) if name in trees][:1]
    return {module: tree for module, tree in trees.items() if module in found}


def _used_by(
    programs: list[ast.Module], trees: dict[str, ast.Module]
) -> dict[str, dict[str, Symbol]]:
    """Return the modules that programs import, with the names they may use and their meanings."""
    resolver = Resolver(trees)
    used: dict[str, dict[str, Symbol]] = {}
    for program in programs:
        for node in ast.walk(program):
            if not isinstance(node, _IMPORTS):
                continue
            for alias in node.names:
                home = node.module or "" if isinstance(node, ast.ImportFrom) else alias.name
                name = alias.name if isinstance(node, ast.ImportFrom) else ""
                found = resolver.find(home, name)
                if found is not None and found.name:
                    used.setdefault(home, {})[name] = found
                elif found is not None:
                    names = used.setdefault(found.module, {})
                    names.update(_all_names(found.module, trees, resolver))
    return used


def _all_names(module: str, trees: dict[str, ast.Module], resolver: Resolver) -> dict[str, Symbol]:
    """Return everything that a program can use of a module that it imports as a whole."""
    listed = [*resolver.defined[module], *lazy_homes(trees[module])]
    found = {name: resolver.find(module, name) for name in listed if name not in (LAZY, _LOADER)}
    return {name: symbol for name, symbol in found.items() if symbol is not None}


def _facade(names: dict[str, Symbol], bundles: dict[str, _Bundle]) -> ast.Module:
    """Return a module that imports these names from where they are now."""
    body: list[ast.stmt] = [
        _import_from(symbol, local, bundles) for local, symbol in sorted(names.items())
    ]
    return ast.Module(body, [])


def _import_from(symbol: Symbol, local: str, bundles: dict[str, _Bundle]) -> ast.ImportFrom:
    bundle = bundles.get(symbol.module)
    if bundle is None:
        home, name = symbol
        if not name:
            home, _, name = symbol.module.rpartition(".")
    elif symbol.name:
        home, name = bundle.name, bundle.name_of(symbol)
    else:
        home, _, name = bundle.name.rpartition(".")
    return ast.ImportFrom(home, [ast.alias(name, local if local != name else None)], 0)


class _Bundle:
    """A merged module: the names of everything in it."""

    def __init__(
        self, name: str, modules: list[str], trees: dict[str, ast.Module], resolver: Resolver
    ) -> None:
        self.name = name
        self._modules = modules
        self._trees = trees
        self._resolver = resolver
        self._names: dict[Symbol, str] = {}
        # Names that would mean something else in a function, and those of other modules.
        self._taken = {name for module in modules for name in local_names(trees[module])}
        self._taken.update(dir(builtins))
        # What other modules and bundles define.
        self._foreign: list[Symbol] = []
        for module in modules:
            for own in sorted(resolver.defined[module] - {LAZY, _LOADER}):
                self._add(Symbol(module, own))

    def name_of(self, symbol: Symbol) -> str:
        """Return the name that stands for this symbol everywhere in the merged module."""
        if symbol not in self._names:
            self._add(symbol)
            self._foreign.append(symbol)
        return self._names[symbol]

    def _add(self, symbol: Symbol) -> None:
        wanted = name = symbol.name or symbol.module
        number = 1
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        self._names[symbol] = name

    def tree(self, bundles: dict[str, _Bundle]) -> ast.Module:
        """Return the merged module."""
        body: list[ast.stmt] = []
        for module in self._modules:
            tree = self._trees[module]
            tree.body = [node for node in tree.body if _is_merged(node)]
            body += _Inside(module, self._resolver, bundles).visit(tree).body
        imports: list[ast.stmt] = []
        for symbol in self._foreign:
            local = self._names[symbol]
            if symbol.name:
                imports.append(_import_from(symbol, local, bundles))
            else:
                short = None if local == symbol.module else local
                imports.append(ast.Import([ast.alias(symbol.module, short)]))
        return ast.Module(imports + body, [])


def _is_merged(node: ast.stmt) -> bool:
    """Return whether a statement stays: lazy names, imports and texts do not."""
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]) not in (LAZY, _LOADER)
    if isinstance(node, ast.Expr):
        return not isinstance(node.value, ast.Constant)
    return not isinstance(node, _IMPORTS) and getattr(node, "name", "") != _LOADER


class _Mover(ScopedTransformer):
    """Rewrites a module after others have moved."""

    def __init__(self, module: str, resolver: Resolver, bundles: dict[str, _Bundle]) -> None:
        super().__init__()
        self._module = module
        self._resolver = resolver
        self._bundles = bundles

    def _imported(self, node: ast.Import | ast.ImportFrom) -> list[tuple[str, Symbol]]:
        """Return the local names of an import, with the symbols of these packages or others."""
        return [
            (local, self._resolver.find(home, name) or Symbol(home, name))
            for local, (home, name) in self._resolver.imported(self._module, node)
        ]

    def _meaning(self, name: str) -> Symbol | None:
        """Return what a name at this place stands for, unless it is local or built in."""
        if self.is_local(name):
            return self.imported_here(name)
        return self._resolver.find_or_external(self._module, name)

    def _module_of(self, node: ast.expr) -> str:
        """Return the merged module that a name at this place stands for, or ""."""
        symbol = self._meaning(node.id) if isinstance(node, ast.Name) else None
        merged = symbol is not None and not symbol.name and symbol.module in self._bundles
        return symbol.module if symbol is not None and merged else ""

    def _attribute(self, module: str, name: str) -> Symbol:
        found = self._resolver.find(module, name)
        if found is None:
            raise ValueError(f"{self._module} uses {module}.{name}, which does not exist")
        return found


class _Inside(_Mover):
    """Rewrites a module that is merged itself."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        symbol = self._meaning(node.id)
        if symbol is not None:
            if self._module_of(node):
                raise ValueError(f"{self._module} uses the module {symbol.module} as an object")
            node.id = self._bundles[self._module].name_of(symbol)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        module = self._module_of(node.value)
        if not module:
            return self.generic_visit(node)
        symbol = self._attribute(module, node.attr)
        return ast.Name(self._bundles[self._module].name_of(symbol), node.ctx)

    def visit_Global(self, node: ast.Global) -> ast.AST:
        node.names = [self._own(name) for name in node.names]
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        if self.at_top:
            node.name = self._own(node.name)
        return super().visit_ClassDef(node)

    def _visit_function(self, node: Function) -> ast.AST:
        if self.at_top:
            node.name = self._own(node.name)
        return super()._visit_function(node)

    def _own(self, name: str) -> str:
        return self._bundles[self._module].name_of(Symbol(self._module, name))

    def locals_of(self, node: Function) -> dict[str, Symbol | None]:
        """Return the names of a function; those that it imports from merged modules are aliases."""
        found = super().locals_of(node)
        for each in ast.walk(node):
            if isinstance(each, _IMPORTS):
                for local, symbol in self._imported(each):
                    if symbol.module in self._bundles:
                        found[local] = symbol
        return found

    def visit_Import(self, node: ast.Import) -> ast.AST | list[ast.stmt] | None:
        return self._visit_import(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.stmt] | None:
        return self._visit_import(node)

    def _visit_import(self, node: ast.Import | ast.ImportFrom) -> ast.AST | list[ast.stmt] | None:
        if self.at_top:  # one in a `try`: of a module that may be missing
            return node
        kept: list[ast.stmt] = []
        for local, symbol in self._imported(node):
            if symbol.module in self._bundles:
                continue
            if symbol.name or "." in symbol.module:
                kept.append(_import_from(symbol, local, self._bundles))
            else:
                short = None if local == symbol.module else local
                kept.append(ast.Import([ast.alias(symbol.module, short)]))
        return kept or None


class _Outside(_Mover):
    """Rewrites a module that stays: it imports from the merged ones."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        module = self._module_of(node.value)
        if module:
            symbol = self._attribute(module, node.attr)
            node.attr = self._bundles[symbol.module].name_of(symbol)
        return self.generic_visit(node)

    def locals_of(self, node: Function) -> dict[str, Symbol | None]:
        """Return the names of a function; it may import modules that are merged."""
        found = super().locals_of(node)
        for each in ast.walk(node):
            if isinstance(each, _IMPORTS):
                found.update(self._imported(each))
        return found

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.stmt]:
        return [
            _import_from(symbol, local, self._bundles) for local, symbol in self._imported(node)
        ]
