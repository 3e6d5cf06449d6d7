"""Merges the modules that a program always loads into one module for each package.

Each module has a dict of its own, a table of the names in its code, and entries for everything that
it imports: 40 modules take a tenth of all memory for these. In one module each name is stored once.

There are three kinds of modules afterwards:

- A *bundle*, such as `natsproto.merged`, contains the code of all modules of a package that the
  program always loads. These are the modules that the program imports, the modules that these
  import at their top level, and so on; and the modules that a function imports whenever it is
  called, if the program mentions a function of that name.
- A *facade* has the name of a module that the program imports, and imports from the bundles
  everything that the program can use of it.
- All other modules stay, because they are loaded late or never. They import from the bundles.

While a module is being loaded, it takes a third more memory than afterwards. So a large bundle can
be divided into parts, each of which imports from those before it, and what one leaves behind is
freed before the next is loaded. A function that imports something from a later part does so when it
is called, as it did before.

In a bundle, each symbol (a name and the module that defines it) has exactly one name. It is
different from all other globals of the bundle, from all built-ins, and from the local names
wherever the symbol is used. It is the name from the module if possible, because errors show the
names of classes. So code can be moved into the bundle statement by statement, in the order in which
Python would have executed the modules, with these names in place of imported ones and of
`module.name`. A merged module is not an object anymore, so code that passes a module on cannot be
merged: the build fails.
"""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from .flatten import bottom_up
from .fold import absolute
from .names import Function, Resolver, ScopedTransformer, Symbol, local_names, own_nodes
from .reach import LAZY, lazy_homes

if TYPE_CHECKING:
    from collections.abc import Container

MERGED = "merged"  # the name of the module in each package; its parts have numbers
_PART = 10_000  # nodes of the syntax tree; the heap that a program needs is least with this
_LOADER = "__getattr__"  # of a module: loads its lazy names
_IMPORTS = (ast.Import, ast.ImportFrom)


def merge(
    trees: dict[str, ast.Module], programs: list[ast.Module], *, divide: bool = False
) -> dict[str, ast.Module]:
    """Return the modules after merging, with those that the programs import.

    divide: divide large bundles, for modules that are loaded into memory
    """
    resolver = Resolver(trees)
    used = _used_by(programs, trees, resolver)
    entries = [symbol.module for names in used.values() for symbol in names.values()]
    always = _always_loaded(entries, trees, programs, resolver)
    bundles = _bundles(always, trees, resolver, divide=divide)
    merged = {bundle.name: bundle.tree(bundles) for bundle in dict.fromkeys(bundles.values())}
    for module, tree in trees.items():
        if module not in bundles:
            merged[module] = _Outside(module, resolver, bundles).visit(tree)
    for module, names in used.items():
        if module in bundles or lazy_homes(trees[module]):
            merged[module] = _facade(names, bundles, collect=divide)
    return _needed(merged, list(used))


def _bundles(
    modules: list[str], trees: dict[str, ast.Module], resolver: Resolver, *, divide: bool
) -> dict[str, _Bundle]:
    """Return the bundle of each of these modules; those that others need come first."""
    by_package: dict[str, list[str]] = {}
    for module in modules:
        by_package.setdefault(module.split(".")[0], []).append(module)
    found: dict[str, _Bundle] = {}
    for package, inside in by_package.items():
        parts = _parts(inside, trees) if divide else [inside]
        for number, part in enumerate(parts, 1):
            name = f"{package}.{MERGED}{number if number > 1 else ''}"
            known = {*found, *part}
            hidden = {each for module in part for each in _hidden(module, trees, resolver, known)}
            bundle = _Bundle(name, part, trees, resolver, hidden, known)
            found.update(dict.fromkeys(part, bundle))
    return found


def _parts(modules: list[str], trees: dict[str, ast.Module]) -> list[list[str]]:
    """Return the modules in the same order, in parts of about the same size."""
    sizes = {module: sum(1 for _ in ast.walk(trees[module])) for module in modules}
    whole = sum(sizes.values())
    count = max(1, round(whole / _PART))
    found: list[list[str]] = [[] for _ in range(count)]
    before = 0
    for module in modules:
        middle = before + sizes[module] // 2
        found[middle * count // whole].append(module)
        before += sizes[module]
    return [part for part in found if part]


def _hidden(
    module: str, trees: dict[str, ast.Module], resolver: Resolver, merged: set[str]
) -> set[str]:
    """Return the names of symbols that are used where a local name is the same."""
    search = _HiddenNames(module, resolver, merged)
    search.visit(trees[module])
    return search.found


def _always_loaded(
    entries: list[str],
    trees: dict[str, ast.Module],
    programs: list[ast.Module],
    resolver: Resolver,
) -> list[str]:
    """Return the modules to merge, each after those that it imports at its top level."""
    mentioned = {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for program in programs
        for node in ast.walk(program)
        if isinstance(node, (ast.Attribute, ast.Name))
    }
    order = bottom_up(entries, trees)
    for module in order:  # it grows in the loop
        for node in ast.walk(trees[module]):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name in mentioned:
                found = [symbol.module for symbol in _imports_in(node, module, resolver)]
                order += [name for name in bottom_up(found, trees) if name not in order]
    return order


def _imports_in(node: Function, module: str, resolver: Resolver) -> list[Symbol]:
    """Return the symbols that a function imports whenever it is called: not under a condition."""
    found = [
        resolver.find(*target)
        for each in node.body
        if isinstance(each, _IMPORTS)
        for _, target in resolver.imported(module, each)
    ]
    return [symbol for symbol in found if symbol is not None]


def _needed(trees: dict[str, ast.Module], entries: list[str]) -> dict[str, ast.Module]:
    """Return the modules that the entries import, directly or not.

    A package without code is left out: MicroPython and Python import its modules without it.
    """
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
    programs: list[ast.Module], trees: dict[str, ast.Module], resolver: Resolver
) -> dict[str, dict[str, Symbol]]:
    """Return the modules that programs import, with the names they can use and their symbols."""
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


def _facade(names: dict[str, Symbol], bundles: dict[str, _Bundle], *, collect: bool) -> ast.Module:
    """Return a module that imports these names from the modules that define them now.

    collect: load one bundle after the other, and free what each leaves behind. Otherwise the last
    one would load the others while it is being loaded itself.
    """
    body: list[ast.stmt] = []
    if collect:
        body.append(_import_module("gc", "gc"))
        for bundle in dict.fromkeys(bundles.values()):
            body += [ast.Import([ast.alias(bundle.name)]), *ast.parse("gc.collect()").body]
    body += [_import_from(symbol, local, bundles) for local, symbol in sorted(names.items())]
    return ast.Module(body, [])


def _import_from(symbol: Symbol, local: str, bundles: dict[str, _Bundle]) -> ast.ImportFrom:
    """Return the import of a symbol under a local name, after merging."""
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


def _import_module(module: str, local: str) -> ast.Import:
    return ast.Import([ast.alias(module, local if local != module else None)])


class _Bundle:
    """A merged module in the making: it gives each symbol its name."""

    def __init__(
        self,
        name: str,
        modules: list[str],
        trees: dict[str, ast.Module],
        resolver: Resolver,
        hidden: set[str],
        known: set[str],
    ) -> None:
        self.name = name
        #: The modules in this bundle and in those before it: their symbols can be used anywhere.
        self.known = known
        self._modules = modules
        self._trees = trees
        self._resolver = resolver
        self._names: dict[Symbol, str] = {}
        # Names that no symbol gets anymore: a local name would hide it, or it would hide another.
        self._taken = {*hidden, *dir(builtins)}
        self._locals = {name for module in modules for name in local_names(trees[module])}
        # Symbols that other modules define; the bundle imports them.
        self._foreign: list[Symbol] = []
        for module in modules:
            for own in sorted(resolver.defined[module] - {LAZY, _LOADER}):
                self._add(Symbol(module, own))

    def name_of(self, symbol: Symbol) -> str:
        """Return the name of this symbol in the bundle; a new one is imported."""
        if symbol not in self._names:
            self._add(symbol)
            self._foreign.append(symbol)
        return self._names[symbol]

    def _add(self, symbol: Symbol) -> None:
        """Give the symbol its own name, with a number if that is taken."""
        wanted = name = symbol.name or symbol.module
        number = 1
        while name in self._taken or (number > 1 and name in self._locals):
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        self._names[symbol] = name

    def tree(self, bundles: dict[str, _Bundle]) -> ast.Module:
        """Return the code of the bundle: its imports, and the modules one after the other."""
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
                imports.append(_import_module(symbol.module, local))
        return ast.Module(imports + body, [])


def _is_merged(node: ast.stmt) -> bool:
    """Return whether a bundle gets this statement of a module.

    It does not get imports and lazy names, which are resolved, and texts without a use.
    """
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]) not in (LAZY, _LOADER)
    if isinstance(node, ast.Expr):
        return not isinstance(node.value, ast.Constant)
    return not isinstance(node, _IMPORTS) and getattr(node, "name", "") != _LOADER


class _Mover(ScopedTransformer):
    """Rewrites the names of one module; subclasses decide what becomes of them."""

    def __init__(self, module: str, resolver: Resolver, merged: Container[str]) -> None:
        super().__init__()
        self._module = module
        self._resolver = resolver
        self._merged = merged

    def locals_of(self, node: Function) -> dict[str, Symbol | None]:
        """Return the local names, with the symbols of those imported from modules to be merged."""
        found = super().locals_of(node)
        for each in own_nodes(node.body):
            if isinstance(each, _IMPORTS):
                for local, symbol in self._imported(each):
                    if symbol.module in self._merged:
                        found[local] = symbol
        return found

    def _imported(self, node: ast.Import | ast.ImportFrom) -> list[tuple[str, Symbol]]:
        """Return the local names of an import, with their symbols in any package."""
        return [
            (local, self._resolver.find(home, name) or Symbol(home, name))
            for local, (home, name) in self._resolver.imported(self._module, node)
        ]

    def _meaning(self, name: str) -> Symbol | None:
        """Return the symbol of a name at this place; None if it is local or built in."""
        if self.is_local(name):
            return self.imported_here(name)
        return self._resolver.find_or_external(self._module, name)

    def _module_of(self, node: ast.expr) -> str:
        """Return the module to be merged that is the value of a name at this place, or ""."""
        symbol = self._meaning(node.id) if isinstance(node, ast.Name) else None
        merged = symbol is not None and not symbol.name and symbol.module in self._merged
        return symbol.module if symbol is not None and merged else ""

    def _attribute(self, module: str, name: str) -> Symbol:
        """Return the symbol of `module.name`."""
        found = self._resolver.find(module, name)
        if found is None:
            raise ValueError(f"{self._module} uses {module}.{name}, which does not exist")
        return found


class _HiddenNames(_Mover):
    """Finds symbols that are used where their own name is that of something local."""

    def __init__(self, module: str, resolver: Resolver, merged: Container[str]) -> None:
        super().__init__(module, resolver, merged)
        self.found: set[str] = set()

    def visit_Name(self, node: ast.Name) -> ast.AST:
        self._note(self._meaning(node.id))
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        module = self._module_of(node.value)
        self._note(self._attribute(module, node.attr) if module else None)
        return self.generic_visit(node)

    def _note(self, symbol: Symbol | None) -> None:
        name = "" if symbol is None else symbol.name or symbol.module
        if self.is_hidden(name):
            self.found.add(name)


class _Inside(_Mover):
    """Rewrites a module for its bundle."""

    def __init__(self, module: str, resolver: Resolver, bundles: dict[str, _Bundle]) -> None:
        super().__init__(module, resolver, bundles[module].known)
        self._bundles = bundles

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

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        if self.at_top and node.name:
            node.name = self._own(node.name)
        return self.generic_visit(node)

    def _own(self, name: str) -> str:
        """Return the name in the bundle of something that this module defines."""
        return self._bundles[self._module].name_of(Symbol(self._module, name))

    def visit_Import(self, node: ast.Import) -> ast.AST | list[ast.stmt] | None:
        return self._visit_import(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.stmt] | None:
        return self._visit_import(node)

    def _visit_import(self, node: ast.Import | ast.ImportFrom) -> ast.AST | list[ast.stmt] | None:
        if self.at_top:  # an import in a `try`, because the module may be missing
            for alias, (local, _) in zip(node.names, self._resolver.imported(self._module, node)):
                if self._own(local) != local:
                    alias.asname = self._own(local)
            return node
        kept: list[ast.stmt] = []
        for local, symbol in self._imported(node):
            if symbol.module in self._merged:
                continue
            if symbol.module in self._bundles and not symbol.name:
                raise ValueError(f"{self._module} imports {symbol.module} from a later part")
            if symbol.name or "." in symbol.module:
                kept.append(_import_from(symbol, local, self._bundles))
            else:
                kept.append(_import_module(symbol.module, local))
        return kept or None


class _Outside(_Mover):
    """Rewrites the imports of a module that stays: they become imports from bundles."""

    def __init__(self, module: str, resolver: Resolver, bundles: dict[str, _Bundle]) -> None:
        super().__init__(module, resolver, bundles)
        self._bundles = bundles

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        module = self._module_of(node.value)
        if module:
            symbol = self._attribute(module, node.attr)
            node.attr = self._bundles[symbol.module].name_of(symbol)
        return self.generic_visit(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.stmt]:
        return [
            _import_from(symbol, local, self._bundles) for local, symbol in self._imported(node)
        ]
