"""Strips modules of what MicroPython would load and never use.

That is: imports for type checkers, annotations, docstrings, assertions, `__slots__`, which have no
effect there, methods that only pickle and `dir` call, the texts of fields in the reference, lists
of public names, hints for names of other clients (natsproto/hinting.py), and what saves time but
takes memory (`if HAS_MEMORY`).
"""

from __future__ import annotations

import ast

# What MicroPython needs for `from __future__ import annotations`; stripped files do without.
FUTURE = "__future__"
# Methods that no code on a device calls: there is no pickle.
_UNUSED = ("__reduce__", "__dir__")
# Methods that only show objects to people.
_SHOWING = ("__repr__",)
# What a `__getattr__` calls that only says which name was probably meant.
_HINT = "no_attribute"
# The module whose functions add hints to classes, and these functions.
_HINTING = "natsproto.hinting"
_HINTERS = ("add_hints", "lazy_hints")
# Constants that are false on a device; modules with code that saves time but takes memory have
# one called HAS_MEMORY.
_FALSE_NAMES = ("TYPE_CHECKING", "HAS_MEMORY")
# Conditions that are false on every device: there are no processes to fork, and no hint for
# `natsproto.connect` (natsproto/lazy.py).
_FALSE = (*_FALSE_NAMES, "hasattr(os, 'register_at_fork')", "name == 'connect'")
_DOC = 2  # the position of a field's text among the arguments of Field


def strip(trees: list[ast.Module], *, small: bool = False) -> None:
    """Remove what a device does not need from these modules, which are all that it has.

    small: also remove the methods that only show objects to people, and take the fields of records
    from their `__dict__`, so that they need no `__slots__`
    """
    remover = _Remover(_UNUSED + _SHOWING if small else _UNUSED, hints=not small)
    for tree in trees:
        remover.visit(tree)
        if small:
            _FieldsByDict().visit(tree)
    stripper = _Stripper(_slot_readers(trees))
    for tree in trees:
        stripper.visit(tree)


def _slot_readers(trees: list[ast.Module]) -> set[str]:
    """Return the names of classes that read `__slots__`, as a Record does, and of their subclasses.

    For all others `__slots__` is only a way to save memory, and on MicroPython it is none.
    """
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    readers = {node.name for node in classes if _reads_slots(node)}
    bases = {node.name: {ast.unparse(base) for base in node.bases} for node in classes}
    while True:
        found = {name for name in bases if readers & bases[name]}
        if found <= readers:
            return readers
        readers |= found


def _reads_slots(node: ast.ClassDef) -> bool:
    return any(
        isinstance(each, ast.Attribute) and each.attr == "__slots__" for each in ast.walk(node)
    )


class _Remover(ast.NodeTransformer):
    """Removes methods by name, and those that give hints."""

    def __init__(self, names: tuple[str, ...], *, hints: bool) -> None:
        self._names = names
        self._hints = hints

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
        return None if node.name in self._names or self._is_hint(node) else node

    def _is_hint(self, node: ast.FunctionDef) -> bool:
        return (
            not self._hints
            and node.name == "__getattr__"
            and any(isinstance(each, ast.Name) and each.id == _HINT for each in ast.walk(node))
        )

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        return node


def _is_hinting(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) in _HINTERS


class _FieldsByDict(ast.NodeTransformer):
    """Replaces `for name in x.__slots__` by a loop over the attributes that an object has.

    The `__slots__` of a record are its attributes. Sorted they are in the same order for equal
    objects, which the dict of MicroPython does not promise.
    """

    def visit_For(self, node: ast.For) -> ast.AST:
        node.iter = self._replaced(node.iter)
        return self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        node.iter = self._replaced(node.iter)
        return self.generic_visit(node)

    def _replaced(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Attribute) and node.attr == "__slots__":
            node.attr = "__dict__"
            return ast.Call(ast.Name("sorted", ast.Load()), [node], [])
        return node


class _Stripper(ast.NodeTransformer):
    """Removes from each node what the module's docstring lists."""

    def __init__(self, readers: set[str]) -> None:
        self._readers = readers
        self._class = ""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        return None if node.module in (FUTURE, _HINTING) else node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if _is_hinting(node.value) else self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        test = ast.unparse(node.test)
        if test in _FALSE or test.split(" and ")[0] in _FALSE_NAMES:
            return node.orelse
        return node.body if test == "not TYPE_CHECKING" else node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if node.value is None or ast.unparse(node.target) in _FALSE_NAMES:
            return None
        return self.visit_Assign(ast.Assign(targets=[node.target], value=node.value))

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        target = ast.unparse(node.targets[0])
        if target == "__all__" or (target == "__slots__" and self._class not in self._readers):
            return None
        if _is_hinting(node.value):
            return None
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if ast.unparse(node.func) == "Field" and len(node.args) > _DOC:
            node.args[_DOC] = ast.Constant("")
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._without_docstring(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._without_docstring(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        outer, self._class = self._class, node.name
        stripped = self._without_docstring(node)
        self._class = outer
        return stripped

    def _without_docstring(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    ) -> ast.AST:
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        if not isinstance(node, ast.ClassDef):
            node.returns = None
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        return ast.Pass()
