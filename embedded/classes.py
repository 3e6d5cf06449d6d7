"""Finds the classes of objects with the help of mypy, for receivers.py.

The packages are annotated everywhere, so mypy knows nearly all of them. Where it does not, or where
the class is a protocol, which any class may implement, an attribute counts for all classes.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

from mypy import build, nodes, options, types
from mypy.modulefinder import BuildSource

from .receivers import BY_NAME, NO_CLASS, Owners, Place, Receivers

if TYPE_CHECKING:
    from pathlib import Path


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
        elif isinstance(node, nodes.CallExpr):
            function = node.callee.name if isinstance(node.callee, nodes.NameExpr) else ""
            if function in BY_NAME:
                self._note(function, node, self._owners_of(node.args[0]))

    def _note(self, name: str, node: nodes.Expression, owners: Owners) -> None:
        place = (name, node.line, node.column, node.end_line, node.end_column)
        others = self.owners.get(place, NO_CLASS)
        self.owners[place] = None if owners is None or others is None else owners | others

    def _owners_of(self, receiver: nodes.Expression) -> Owners:
        named = receiver.node if isinstance(receiver, nodes.RefExpr) else None
        if isinstance(named, nodes.MypyFile):
            return None if self._is_ours(named.fullname) else NO_CLASS
        kind = self._known.get(receiver)
        return None if kind is None else self._classes_of(kind)

    def _classes_of(self, kind: types.Type) -> Owners:
        kind = types.get_proper_type(kind)
        if isinstance(kind, types.UnionType):
            each = [self._classes_of(item) for item in kind.items]
            known = [owners for owners in each if owners is not None]
            return NO_CLASS.union(*known) if len(known) == len(each) else None
        if isinstance(kind, types.TypeVarType):
            return self._classes_of(kind.upper_bound)
        if isinstance(kind, types.TypeType):
            return self._classes_of(kind.item)
        if isinstance(kind, types.CallableType) and kind.is_type_obj():
            return self._classes_of(kind.ret_type)
        if isinstance(kind, types.Instance):
            return self._owners_by_class(kind.type)
        if isinstance(kind, (types.NoneType, types.LiteralType, types.TupleType)):
            return NO_CLASS
        return None

    def _owners_by_class(self, info: nodes.TypeInfo) -> Owners:
        if info.is_protocol or info.fullname == "builtins.object":
            return None
        return frozenset([info.fullname]) if self._is_ours(info.fullname) else NO_CLASS

    def _is_ours(self, name: str) -> bool:
        return name.split(".")[0] in self._packages
