"""Finds the classes of the objects whose attributes the packages use, with the help of mypy.

A name alone says little: `x.run` may be any of ten methods. The packages are annotated everywhere,
so mypy knows what `x` is, and a build for a program can leave out the other nine. Where mypy does
not know it, or where it is a protocol, which any class may implement, the name counts for all
classes. So it does for the code of programs, which mypy does not see.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from mypy import build, nodes, options, types
from mypy.modulefinder import BuildSource

if TYPE_CHECKING:
    import ast
    from pathlib import Path

#: Full names of classes; None if the object may be of any class.
Owners: TypeAlias = "frozenset[str] | None"
#: The name of an attribute or of one of BY_NAME, and where the expression begins and ends. mypy does
#: not say in which module it is: what is in the same place of several modules counts for all.
Place: TypeAlias = "tuple[str, int, int, int | None, int | None]"

#: Functions that take an object and the name of an attribute.
BY_NAME = ("getattr", "hasattr", "setattr")
_NO_CLASS: frozenset[str] = frozenset()


class Receivers(NamedTuple):
    """What is known about the objects whose attributes are used."""

    #: The classes of `x` in `x.name`, and in `getattr(x, name)`.
    owners: dict[Place, Owners]
    #: For each class, all classes in which an attribute of its objects can be defined.
    families: dict[str, frozenset[str]]

    def owners_at(self, name: str, node: ast.expr) -> Owners:
        """Return the classes of the object whose attribute is used at this node."""
        place = (name, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
        return self.owners.get(place)

    def family(self, owners: Owners) -> Owners:
        """Return the classes in which an attribute of such an object can be defined."""
        if owners is None:
            return None
        return _NO_CLASS.union(*[self.families.get(name, _NO_CLASS) for name in owners])


#: Nothing is known: a name counts for all classes.
UNKNOWN = Receivers({}, {})


@functools.cache
def find_receivers(root: Path, files: tuple[str, ...]) -> Receivers:
    """Return what mypy knows about these modules, which are given by their paths below a root."""
    modules = {path[:-3].replace("/", ".").removesuffix(".__init__"): path for path in files}
    chosen = options.Options()
    chosen.export_types = chosen.preserve_asts = True
    chosen.incremental = False
    chosen.cache_dir = os.devnull
    chosen.follow_imports = "silent"
    chosen.ignore_missing_imports = True
    sources = [BuildSource(str(root / path), module) for module, path in modules.items()]
    result = build.build(sources, chosen)
    reader = _Reader(result.types, {module.split(".")[0] for module in modules})
    for node in result.types:
        reader.read(node)
    classes = [
        symbol.node
        for module in modules
        for symbol in result.files[module].names.values()
        if isinstance(symbol.node, nodes.TypeInfo)
    ]
    return Receivers(reader.owners, _families(classes))


def _families(classes: list[nodes.TypeInfo]) -> dict[str, frozenset[str]]:
    """Return for each class its bases, the classes derived from it, and the bases of those."""
    found: dict[str, set[str]] = {}
    for derived in classes:
        bases = [base.fullname for base in derived.mro]
        for base in bases:
            found.setdefault(base, set()).update(bases)
    return {name: frozenset(family) for name, family in found.items()}


class _Reader:
    """Notes the owners of attributes."""

    def __init__(self, known: dict[nodes.Expression, types.Type], packages: set[str]) -> None:
        self._known = known
        self._packages = packages
        self.owners: dict[Place, Owners] = {}

    def read(self, node: nodes.Expression) -> None:
        """Note the owner of the attribute that this expression uses, if it uses one."""
        if isinstance(node, nodes.MemberExpr):
            self._note(node.name, node, self._owners_of(node.expr))
        elif isinstance(node, nodes.SuperExpr) and node.info is not None:
            self._note(node.name, node, self._owners_by_class(node.info))
        elif isinstance(node, nodes.CallExpr) and isinstance(node.callee, nodes.NameExpr):
            if node.callee.name in BY_NAME:
                self._note(node.callee.name, node, self._owners_of(node.args[0]))

    def _note(self, name: str, node: nodes.Expression, owners: Owners) -> None:
        place = (name, node.line, node.column, node.end_line, node.end_column)
        others = self.owners.get(place, _NO_CLASS)
        self.owners[place] = None if owners is None or others is None else owners | others

    def _owners_of(self, receiver: nodes.Expression) -> Owners:
        named = receiver.node if isinstance(receiver, nodes.RefExpr) else None
        if isinstance(named, nodes.MypyFile):
            return None if self._is_ours(named.fullname) else _NO_CLASS
        kind = self._known.get(receiver)
        return None if kind is None else self._classes_of(kind)

    def _classes_of(self, kind: types.Type) -> Owners:
        kind = types.get_proper_type(kind)
        if isinstance(kind, types.UnionType):
            each = [self._classes_of(item) for item in kind.items]
            known = [owners for owners in each if owners is not None]
            return _NO_CLASS.union(*known) if len(known) == len(each) else None
        if isinstance(kind, types.TypeVarType):
            return self._classes_of(kind.upper_bound)
        if isinstance(kind, types.TypeType):
            return self._classes_of(kind.item)
        if isinstance(kind, types.CallableType) and kind.is_type_obj():
            return self._classes_of(kind.ret_type)
        if isinstance(kind, types.Instance):
            return self._owners_by_class(kind.type)
        if isinstance(kind, (types.NoneType, types.LiteralType, types.TupleType)):
            return _NO_CLASS
        return None

    def _owners_by_class(self, info: nodes.TypeInfo) -> Owners:
        if info.is_protocol or info.fullname == "builtins.object":
            return None
        return frozenset([info.fullname]) if self._is_ours(info.fullname) else _NO_CLASS

    def _is_ours(self, name: str) -> bool:
        return name.split(".")[0] in self._packages
