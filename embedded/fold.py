"""Replaces constants by their values: MicroPython then needs no global variable for them.

A constant is a name in capitals that a module assigns once, at its top level, and whose value is a
number or a short str. A longer str would be stored once in every module that uses it.
"""

from __future__ import annotations

import ast
import re
from typing import TypeAlias

Value: TypeAlias = "int | float | str"
#: The constants of each module by their names.
Constants: TypeAlias = "dict[str, dict[str, Value]]"

_NAME = re.compile(r"_?[A-Z][A-Z0-9_]*")
# MicroPython stores a str up to this length only once, however many modules contain it.
_LONGEST = 10
_FOLDABLE = (
    ast.Constant,
    ast.Name,
    ast.Load,
    ast.BinOp,
    ast.UnaryOp,
    ast.operator,
    ast.unaryop,
)


def fold(trees: dict[str, ast.Module]) -> None:
    """Replace the constants of these modules, which may import them from each other."""
    modules = {name: _Module(name, tree) for name, tree in trees.items()}
    constants: Constants = {name: {} for name in trees}
    # A constant may be made from one of another module, so one pass over them is not enough.
    found = True
    while found:
        found = False
        for name, module in modules.items():
            now = module.constants(constants)
            found = found or len(now) > len(constants[name])
            constants[name] = now
    imported = {
        alias.name
        for module in modules.values()
        for _, node in module.imports
        for alias in node.names
    }
    for module in modules.values():
        _Folder(module, constants).fold(imported)


def absolute(module: str, tree: ast.Module, node: ast.ImportFrom) -> str:
    """Return the full name of the module that an import names, from within this module."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    # `tree.is_package` is set by the reader of the files.
    level = node.level - 1 if getattr(tree, "is_package", False) else node.level
    parts = parts[: len(parts) - level]
    return ".".join(parts + ([node.module] if node.module else []))


class _Module:
    """A module: its imports, each with the full name of its home, and what may be a constant."""

    def __init__(self, name: str, tree: ast.Module) -> None:
        self.name = name
        self.tree = tree
        self.imports: list[tuple[str, ast.ImportFrom]] = []
        stores: list[str] = []
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                self.imports.append((absolute(name, tree, node), node))
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                stores.append(node.id)
        self._candidates = [
            (target, node.value)
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in [ast.unparse(node.targets[0])]
            if _NAME.fullmatch(target) and stores.count(target) == 1
        ]

    def constants(self, others: Constants) -> dict[str, Value]:
        """Return the constants that this module assigns, as far as those of others are known."""
        known = self.imported(others)
        found: dict[str, Value] = {}
        for name, node in self._candidates:
            value = _value(node, known)
            if value is not None:
                found[name] = known[name] = value
        return found

    def imported(self, others: Constants) -> dict[str, Value]:
        """Return the constants that this module imports by name, anywhere in it."""
        visible: dict[str, Value] = {}
        for home, node in self.imports:
            known = others.get(home, {})
            for alias in node.names:
                if alias.name in known:
                    visible[alias.asname or alias.name] = known[alias.name]
        return visible


def _value(node: ast.expr, known: dict[str, Value]) -> Value | None:
    """Return the value of an expression of literals and known constants, if it is a short one."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and each.id not in known:
            return None
        if not isinstance(each, _FOLDABLE):
            return None
    code = compile(ast.Expression(node), "constant", "eval")
    value = eval(code, {"__builtins__": {}}, known)
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    short = len(value) <= _LONGEST if isinstance(value, str) else abs(value) < 1 << 64
    return value if short else None


class _Folder(ast.NodeTransformer):
    """Replaces the constants in one module, and removes what is not needed any more."""

    def __init__(self, module: _Module, constants: Constants) -> None:
        self._tree = module.tree
        self._own = constants[module.name]
        self._known = {**module.imported(constants), **self._own}
        # Modules that are used by their names, as in `states.CLOSED`.
        self._modules: dict[str, dict[str, Value]] = {}
        # Names that need not be imported any more. A package may import them for others.
        self._folded: dict[ast.ImportFrom, dict[str, Value]] = {}
        for home, node in module.imports:
            if not getattr(module.tree, "is_package", False):
                self._folded[node] = constants.get(home, {})
            for alias in node.names:
                known = constants.get(f"{home}.{alias.name}")
                if known:
                    self._modules[alias.asname or alias.name] = known

    def fold(self, imported: set[str]) -> None:
        """Change the tree. A public constant stays, because a program may import it."""
        self.visit(self._tree)
        gone = {name for name in self._own if name.startswith("_")} - imported
        self._tree.body = [
            node
            for node in self._tree.body
            if not (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in gone)
        ]

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id in self._known:
            return ast.Constant(self._known[node.id])
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and isinstance(node.ctx, ast.Load):
            known = self._modules.get(node.value.id, {})
            if node.attr in known:
                return ast.Constant(known[node.attr])
        return self.generic_visit(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        folded = self._folded.get(node, {})
        node.names = [alias for alias in node.names if alias.name not in folded]
        return node if node.names else None
