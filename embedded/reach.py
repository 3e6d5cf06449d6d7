"""Leaves out what a program cannot reach.

It works by names. A function, class or method stays if its name appears in code that stays, and
the code of the program stays. Where the class of an object is known (receivers.py), the name of an
attribute counts for this class, for its bases and for the classes derived from it. Otherwise, and
in the program, it counts for all classes, so more stays than is needed, and nothing is missing. A
name in a str counts as well: for the classes to whose objects `getattr` and so on are applied with
a name that is computed, and if it is in the program, for all.

A module stays if code that stays imports it, and of its top level the names that others import or
that its own code uses.
"""

from __future__ import annotations

import ast

from .fold import absolute
from .receivers import BY_NAME, UNKNOWN, Owners, Receivers

#: A text with the lazy names of a package, see natsproto/lazy.py.
LAZY = "_HOMES"


# Methods that only this kind of statement calls.
_CALLED_BY: dict[str, type[ast.AST]] = {
    "__aiter__": ast.AsyncFor,
    "__anext__": ast.AsyncFor,
    "__aenter__": ast.AsyncWith,
    "__aexit__": ast.AsyncWith,
}


def reach(
    trees: dict[str, ast.Module],
    programs: list[ast.Module],
    receivers: Receivers = UNKNOWN,
) -> dict[str, ast.Module]:
    """Return the modules that the programs can reach, without what they cannot."""
    search = _Search(trees, receivers)
    for program in programs:
        search.look_at_program(program)
    search.run()
    return {name: _prune(trees[name], search, name) for name in trees if name in search.modules}


class _Search:
    """The names that were found so far. They only become more, so the search ends."""

    def __init__(self, trees: dict[str, ast.Module], receivers: Receivers) -> None:
        self._trees = trees
        self._receivers = receivers
        #: Modules that are imported.
        self.modules: set[str] = set()
        # Attributes of objects that may be of any class.
        self._attributes: set[str] = set()
        # Attributes by the classes that may define them.
        self._members: set[tuple[str, str]] = set()
        # Words in texts, and the classes whose attributes are used by names that are computed.
        self._words: set[str] = set()
        self._open_classes: set[str] = set()
        self._all_open = False
        # Statements that call special methods.
        self._statements: set[type[ast.AST]] = set()
        #: Names by module, which its own code uses or others import.
        self.names: set[tuple[str, str]] = set()
        # Modules that are used as objects, whose names can be attributes.
        self._objects: set[str] = set()
        self._seen: set[ast.AST] = set()
        # Attributes that are set to other attributes, and where: unused until someone reads them.
        self._aliases: list[tuple[ast.Assign, str, ast.Module]] = []

    def run(self) -> None:
        """Follow the names until there are no more."""
        before = -1
        while before != len(self._seen) + len(self.names) + len(self.modules):
            before = len(self._seen) + len(self.names) + len(self.modules)
            for module in sorted(self.modules):
                self._look_into(module)
            for node, module, tree in list(self._aliases):
                if self.keeps_alias(node):
                    self.look_at(node.value, module, tree)

    def keeps(self, module: str, name: str) -> bool:
        """Return whether a name at the top level of a module is used."""
        if name.startswith("__") or (module, name) in self.names:
            return True
        return module in self._objects and (name in self._attributes or name in self._words)

    def _look_into(self, module: str) -> None:
        tree = self._trees[module]
        for node in tree.body:
            names = _defined(node)
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self._follow_import(node, module, tree, top=True)
            elif names == [LAZY]:
                self._follow_lazy(node, module)
            elif names is None or [name for name in names if self.keeps(module, name)]:
                self._keep(node, module, tree)

    def _keep(self, node: ast.stmt, module: str, tree: ast.Module) -> None:
        if not isinstance(node, ast.ClassDef):
            self.look_at(node, module, tree)
            return
        for part in [*node.bases, *node.decorator_list]:
            self.look_at(part, module, tree)
        own = _names_in_body(node)
        for member in node.body:
            if self.keeps_member(member, own, f"{module}.{node.name}"):
                self.look_at(member, module, tree)

    def keeps_member(self, node: ast.stmt, own: set[str], home: str) -> bool:
        """Return whether a statement of a class is used.

        own: names that the class uses
        home: the full name of the class
        """
        names = _defined(node)
        return names is None or any(name in own or self._keeps(name, home) for name in names)

    def _keeps(self, name: str, home: str) -> bool:
        if name in self._attributes or (home, name) in self._members:
            return True
        if name in self._words and (self._all_open or home in self._open_classes):
            return True
        if name in _CALLED_BY:
            return _CALLED_BY[name] in self._statements
        return name.startswith("__")

    def keeps_alias(self, node: ast.AST) -> bool:
        """Return whether code that stays reads the attribute that this statement sets."""
        name = _alias(node)
        typed = {member for _, member in self._members}
        return name in self._attributes or name in self._words or name in typed

    def look_at_program(self, program: ast.Module) -> None:
        """Note all names in a program, whose objects may be of any class."""
        self.look_at(program, "", program)
        self._attributes |= self._words  # `getattr` may be called with any of them
        self._words.clear()

    def look_at(self, node: ast.AST, module: str, tree: ast.Module) -> None:
        """Note all names in code that stays."""
        if node in self._seen:
            return
        self._seen.add(node)
        todo = [node]
        while todo:
            each = todo.pop()
            if isinstance(each, ast.Assign) and _alias(each):
                self._aliases.append((each, module, tree))
                continue
            todo += ast.iter_child_nodes(each)
            loops = isinstance(each, ast.comprehension) and each.is_async
            self._statements.add(ast.AsyncFor if loops else type(each))
            if isinstance(each, ast.Name):
                self.names.add((module, each.id))
            elif isinstance(each, ast.Attribute):
                if not isinstance(each.ctx, ast.Store):
                    self._add_attribute(each, module, tree)
            elif isinstance(each, ast.Constant) and isinstance(each.value, str):
                if each.value.replace(".", "_").isidentifier():
                    self._words.update(each.value.split("."))
            elif isinstance(each, ast.Call):
                self._add_call(each, module)
            elif isinstance(each, (ast.Import, ast.ImportFrom)):
                self._follow_import(each, module, tree, top=False)

    def _add_attribute(self, node: ast.Attribute, module: str, tree: ast.Module) -> None:
        if module:
            self._add_name(node.attr, self._receivers.owners_at(node.attr, node))
        elif not (
            isinstance(node.value, ast.Name) and node.value.id in _foreign(tree, self._trees)
        ):
            self._attributes.add(node.attr)

    def _add_name(self, name: str, owners: Owners) -> None:
        family = self._receivers.family(owners)
        if family is None:
            self._attributes.add(name)
        else:
            self._members.update((home, name) for home in family)

    def _add_call(self, node: ast.Call, module: str) -> None:
        """Note the classes of an object whose attributes are used by name, as by `getattr`."""
        function = node.func.id if isinstance(node.func, ast.Name) else ""
        if not module or function not in BY_NAME:
            return
        owners = self._receivers.owners_at(function, node)
        if isinstance(node.args[1], ast.Constant):
            self._add_name(str(node.args[1].value), owners)
            return
        family = self._receivers.family(owners)
        if family is None:
            self._all_open = True
        else:
            self._open_classes |= family

    def _follow_import(
        self, node: ast.Import | ast.ImportFrom, module: str, tree: ast.Module, *, top: bool
    ) -> None:
        for alias in node.names:
            bound = alias.asname or alias.name.split(".")[0]
            if top and not self.keeps(module, bound):
                continue
            if isinstance(node, ast.Import):
                self._load(alias.name)
                self._objects.add(alias.name)
                continue
            home = absolute(module, tree, node)
            self._load(home)
            inner = "%s.%s" % (home, alias.name)
            if inner in self._trees:
                self._load(inner)
                self._objects.add(inner)
            else:
                self.names.add((home, alias.name))

    def _follow_lazy(self, node: ast.stmt, package: str) -> None:
        for home, names in _read_lazy(node):
            for name in names:
                if self.keeps(package, name):
                    inner = "%s.%s" % (package, home)
                    self._load(inner)
                    self.names.add((inner, name))

    def _load(self, module: str) -> None:
        parts = module.split(".")
        for i in range(len(parts)):
            name = ".".join(parts[: i + 1])
            if name in self._trees:
                self.modules.add(name)


def _foreign(program: ast.Module, trees: dict[str, ast.Module]) -> set[str]:
    """Return the names of modules in a program that are not of these, as in `asyncio.run`."""
    imported: set[str] = set()
    bound: set[str] = set()
    for node in ast.walk(program):
        if isinstance(node, ast.Import):
            for alias in node.names:
                known = alias.name.split(".")[0] in trees
                (bound if known else imported).add(alias.asname or alias.name.split(".")[0])
        elif isinstance(node, ast.ImportFrom):
            bound.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            bound.add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
    return imported - bound


def _alias(node: ast.AST) -> str:
    """Return the attribute that a statement like `self.a = self.b.c` sets; "" if it is another."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Attribute):
        return ""
    value: ast.expr = node.value
    while isinstance(value, ast.Attribute):
        value = value.value
    [*others, target] = node.targets
    if others or not isinstance(value, ast.Name) or not isinstance(target, ast.Attribute):
        return ""
    return target.attr if ast.unparse(target.value) == "self" else ""


class _WithoutAliases(ast.NodeTransformer):
    """Removes attributes that nothing reads."""

    def __init__(self, search: _Search) -> None:
        self._search = search

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        unused = _alias(node) and not self._search.keeps_alias(node)
        return ast.Pass() if unused else node


def _names_in_body(node: ast.ClassDef) -> set[str]:
    """Return the names that the statements of a class use, apart from its methods."""
    return {
        each.id
        for part in node.body
        if not isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))
        for each in ast.walk(part)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
    }


def _defined(node: ast.stmt) -> list[str] | None:
    """Return the names that a statement defines; None if it may do anything else as well."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        known = ("property", "classmethod", "staticmethod")
        plain = all(ast.unparse(each) in known for each in node.decorator_list)
        return [node.name] if plain else None
    if isinstance(node, ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        targets = node.targets[0]
        if isinstance(targets, ast.Name):
            return [targets.id]
    return None


def lazy_homes(tree: ast.Module) -> dict[str, str]:
    """Return the modules of the lazy names of a package, without the name of the package."""
    return {
        name: home
        for node in tree.body
        if _defined(node) == [LAZY]
        for home, names in _read_lazy(node)
        for name in names
    }


def _read_lazy(node: ast.stmt) -> list[tuple[str, list[str]]]:
    assert isinstance(node, ast.Assign)
    lines = str(ast.literal_eval(node.value)).split("\n")
    parts = [line.partition(":") for line in lines if ":" in line]
    return [(home.strip(), names.split()) for home, _, names in parts]


def _prune(tree: ast.Module, search: _Search, module: str) -> ast.Module:
    body: list[ast.stmt] = []
    for node in tree.body:
        names = _defined(node)
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            node.names = [
                alias
                for alias in node.names
                if search.keeps(module, alias.asname or alias.name.split(".")[0])
            ]
            if node.names:
                body.append(node)
        elif names == [LAZY]:
            body.append(_prune_lazy(node, search, module))
        elif names is None or [name for name in names if search.keeps(module, name)]:
            is_class = isinstance(node, ast.ClassDef)
            body.append(_prune_class(node, search, module) if is_class else node)
    tree.body = body
    _WithoutAliases(search).visit(tree)
    return tree


def _prune_lazy(node: ast.stmt, search: _Search, package: str) -> ast.stmt:
    lines = [
        "%s:%s" % (home, " ".join(kept))
        for home, names in _read_lazy(node)
        for kept in [[name for name in names if search.keeps(package, name)]]
        if kept
    ]
    assert isinstance(node, ast.Assign)
    node.value = ast.Constant("\n".join(lines))
    return node


def _prune_class(node: ast.ClassDef, search: _Search, module: str) -> ast.ClassDef:
    own = _names_in_body(node)
    home = f"{module}.{node.name}"
    node.body = [part for part in node.body if search.keeps_member(part, own, home)] or [ast.Pass()]
    return node
