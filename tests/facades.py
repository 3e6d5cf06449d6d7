"""Write the stubs of the blocking facades: `python -m tests.facades`.

`blocking()` and its relatives (natsproto/port.py) derive the methods of a facade from those of its
asynchronous class. Type checkers infer the result, each in its own way; most editors do not, and
show neither parameters nor docstrings. The stubs spell every method out. tests/typing/test_stubs.py
fails if they are out of date, or if they differ from what is there at run time.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.core import PACKAGES, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

FACADES = [
    "natsproto.blocking",
    "jetstream.blocking",
    "jetstream.blocking.advisories",
    "jetstream.blocking.backup",
    "jetstream.blocking.dead_letters",
    "jetstream.blocking.endpoints",
    "jetstream.blocking.groups",
    "jetstream.blocking.kv",
    "jetstream.blocking.objects",
    "jetstream.blocking.ordered",
    "jetstream.blocking.publish",
    "jetstream.blocking.pull",
    "jetstream.blocking.push",
    "jetstream.blocking.services",
    "jetstream.blocking.stored",
]
HEAD = "# Written by `python -m tests.facades`. Do not edit.\n\n"
# The functions of natsproto.port whose first argument is the class of the result.
TO_FACADE = {"blocking_to", "blocking_next_to", "locked_to"}
SAME_RESULT = {"blocking", "blocking_next", "blocking_unlocked"}
Origin = tuple[str, str]  # a module, and a name in it


class Source:
    """A module: its syntax tree, and the origin of every name in it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.module: ModuleType = importlib.import_module(name)
        path = Path(inspect.getsourcefile(self.module) or "")
        self.is_package = path.name == "__init__.py"
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.exported: set[str] = set()
        self.origins: dict[str, Origin] = dict(self._imports())
        for node in self.statements():
            for defined in _names(node):
                self.origins.setdefault(defined, (name, defined))

    def statements(self) -> Iterator[ast.stmt]:
        """Yield the statements of the module, including those for type checkers alone."""
        for node in self.tree.body:
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                yield from node.body
            else:
                yield node

    def _imports(self) -> Iterator[tuple[str, Origin]]:
        package = self.name.split(".")
        for node in self.statements():
            if isinstance(node, ast.ImportFrom):
                above = package[: len(package) - node.level + self.is_package]
                home = ".".join([*(above if node.level else []), *filter(None, [node.module])])
                for alias in node.names:
                    if alias.name == alias.asname:
                        self.exported.add(alias.name)
                    yield alias.asname or alias.name, (home, alias.name)

    def function(self, qualified: str) -> ast.FunctionDef | ast.AsyncFunctionDef:
        """Return the definition of a function or method."""
        body: list[ast.stmt] = list(self.statements())
        for part in qualified.split("."):
            found = [node for node in body if getattr(node, "name", "") == part]
            body = getattr(found[-1], "body", [])
        assert isinstance(found[-1], (ast.FunctionDef, ast.AsyncFunctionDef))
        return found[-1]

    def type_arguments(self, name: str) -> dict[str, tuple[ast.expr, Source]]:
        """Return the arguments of the generic base of a class, by the names of its parameters.

        Such a base is an alias for type checkers: `_KeyWatcher = Watcher[KeyValueEntry]`.
        """
        values = {
            each: node.value
            for node in self.statements()
            if isinstance(node, ast.Assign)
            for each in _names(node)
        }
        for base in self._class(name).bases:
            alias = values.get(ast.unparse(base))
            if not isinstance(alias, ast.Subscript):
                continue
            home, found = self.origins[ast.unparse(alias.value)]
            if home.partition(".")[0] in PACKAGES:
                (generic,) = Source(home)._class(found).bases
                assert isinstance(generic, ast.Subscript)
                pairs = zip(_items(generic.slice), _items(alias.slice), strict=True)
                return {ast.unparse(name): (value, self) for name, value in pairs}
        return {}

    def _class(self, name: str) -> ast.ClassDef:
        found = [node for node in self.statements() if isinstance(node, ast.ClassDef)]
        return next(node for node in found if node.name == name)


class Stub:
    """The stub of one facade module."""

    def __init__(self, name: str) -> None:
        self.facade = Source(name)
        self.arguments: dict[str, tuple[ast.expr, Source]] = {}  # of the current class
        self.imports: dict[str, Origin] = {
            each: self.facade.origins[each] for each in self.facade.exported
        }

    def text(self) -> str:
        """Return the text of the stub, formatted."""
        body = [found for node in self.facade.statements() for found in self._statement(node)]
        imports = [
            f"from {home} import {name} as {local}"
            if local != name or local in self.facade.exported
            else f"from {home} import {name}"
            for local, (home, name) in self.imports.items()
        ]
        text = "\n".join([*imports, "", *map(ast.unparse, body)])
        return _format(HEAD + text)

    def _statement(self, node: ast.stmt) -> Iterator[ast.stmt]:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield self._class(node)
        elif isinstance(node, ast.FunctionDef) and not _is_private(node.name):
            yield self._function(node, self.facade)
        elif isinstance(node, ast.Assign) and _names(node) == ["__all__"]:
            yield node

    def _class(self, node: ast.ClassDef) -> ast.ClassDef:
        body: list[ast.stmt] = [stmt for stmt in node.body[:1] if _is_docstring(stmt)]
        for stmt in node.body:
            if isinstance(stmt, ast.FunctionDef) and not _is_private(stmt.name):
                if stmt.name == "__init__":
                    body += self._attributes(stmt)
                body.append(self._function(stmt, self.facade))
            elif isinstance(stmt, ast.Assign):
                body += self._assignment(stmt)
            elif isinstance(stmt, ast.AnnAssign):
                kept = ast.AnnAssign(stmt.target, self._types(stmt.annotation), None, 1)
                body.append(kept)
        bases = [self._types(base) for base in node.bases]
        return ast.ClassDef(node.name, bases, [], body or [ast.Expr(ast.Constant(...))], [])

    def _attributes(self, init: ast.FunctionDef) -> Iterator[ast.stmt]:
        parameters = {arg.arg: arg.annotation for arg in init.args.args + init.args.kwonlyargs}
        for node in ast.walk(init):
            if isinstance(node, ast.AnnAssign):
                target, annotation = node.target, node.annotation
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
                target, annotation = node.targets[0], parameters.get(node.value.id)
            elif isinstance(node, ast.Assign):
                target, annotation = node.targets[0], None
            else:
                continue
            if not isinstance(target, ast.Attribute) or ast.unparse(target.value) != "self":
                continue
            if not target.attr.startswith("_"):
                assert annotation is not None, f"{self.facade.name}: annotate {target.attr}"
                yield ast.AnnAssign(ast.Name(target.attr), self._types(annotation), None, 1)

    def _assignment(self, node: ast.Assign) -> Iterator[ast.stmt]:
        (name,) = _names(node)
        if name == "__slots__":
            yield node
        elif isinstance(node.value, ast.Call) and not _is_private(name):
            yield self._method(name, node.value)

    def _method(self, name: str, call: ast.Call) -> ast.FunctionDef:
        """Return the definition of a method that a function of natsproto.port makes."""
        wrapper = ast.unparse(call.func)
        assert wrapper in TO_FACADE | SAME_RESULT, wrapper
        method = self._value(call.args[-1])
        source = Source(method.__module__)
        assert isinstance(call.args[-1], ast.Attribute)
        owner = self._value(call.args[-1].value)
        self.arguments = Source(owner.__module__).type_arguments(owner.__name__)
        returns: ast.expr | None = None
        if wrapper in TO_FACADE:
            make = self._value(call.args[0])
            if isinstance(make, type):
                returns = self._types(call.args[0])
            else:
                maker = Source(make.__module__)
                returns = self._types(_result(maker.function(make.__qualname__)), maker)
        definition = source.function(method.__qualname__)
        returns = returns or self._types(_result(definition), source)
        made = self._function(definition, source, name, returns)
        self.arguments = {}
        return made

    def _value(self, node: ast.expr) -> Any:
        return eval(ast.unparse(node), vars(self.facade.module))

    def _function(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef,
        source: Source,
        name: str = "",
        returns: ast.expr | None = None,
    ) -> ast.FunctionDef:
        arguments = deepcopy(node.args)
        given = [arguments.vararg, arguments.kwarg]
        for each in [*arguments.args, *arguments.kwonlyargs, *filter(None, given)]:
            if each.annotation is not None:
                each.annotation = self._types(each.annotation, source)
        arguments.defaults = [_default(each) for each in arguments.defaults]
        arguments.kw_defaults = [each and _default(each) for each in arguments.kw_defaults]
        body: list[ast.stmt] = [stmt for stmt in node.body[:1] if _is_docstring(stmt)]
        return ast.FunctionDef(
            name or node.name,
            arguments,
            [*body, ast.Expr(ast.Constant(...))],
            [each for each in node.decorator_list if ast.unparse(each) != "staticmethod"],
            returns or (node.returns and self._types(node.returns, source)),
            lineno=0,
        )

    def _types(self, annotation: ast.expr, source: Source | None = None) -> ast.expr:
        """Return an annotation of the source for use in the stub, and note its imports."""
        return _Names(self, source or self.facade).visit(deepcopy(annotation))


class _Names(ast.NodeTransformer):
    """Replaces the names of a source by those of a stub."""

    def __init__(self, stub: Stub, source: Source) -> None:
        self.stub = stub
        self.source = source

    def visit_Name(self, node: ast.Name) -> ast.expr:
        stub = self.stub
        if node.id in vars(builtins):
            return node
        if node.id in stub.arguments:
            value, source = stub.arguments[node.id]
            return stub._types(value, source)
        origin = self.source.origins[node.id]
        if origin == (stub.facade.name, node.id):
            return node
        # A facade has the name of its asynchronous class, which is imported under an alias.
        taken = stub.facade.origins.get(node.id, origin) != origin
        name = "_Async" + node.id if taken else node.id
        stub.imports[name] = origin
        return ast.Name(name)


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _items(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def _is_docstring(node: ast.stmt) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _result(node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.expr:
    """Return the annotation of the result of a call, awaited if it is a coroutine."""
    assert node.returns is not None, node.name
    returns = node.returns
    if isinstance(returns, ast.Subscript) and ast.unparse(returns.value) == "Coroutine":
        assert isinstance(returns.slice, ast.Tuple)
        return returns.slice.elts[-1]
    return returns


def _default(node: ast.expr) -> ast.expr:
    """Return a default unchanged if it is a literal, and `...` if it is a name."""
    try:
        ast.literal_eval(node)
    except ValueError:
        return ast.Constant(...)
    return node


def _format(text: str) -> str:
    for command in (["check", "--fix", "--quiet", "--select", "I"], ["format", "--quiet"]):
        run = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", "facade.pyi", "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        )
        text = run.stdout
    return text


def path_of(name: str) -> Path:
    """Return the path of a facade's stub."""
    return Path(Source(name).module.__file__ or "").with_suffix(".pyi")


if __name__ == "__main__":
    for each in FACADES:
        path_of(each).write_text(Stub(each).text(), encoding="utf-8")
