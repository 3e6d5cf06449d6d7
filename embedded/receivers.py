"""The classes of the objects whose attributes the packages use.

A name alone says little: `x.run` may be any of ten methods. If the class of `x` is known, a build
for a program can leave out the other nine. classes.py finds the classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import ast

#: Full names of classes; None if the object may be of any class.
Owners: TypeAlias = "frozenset[str] | None"
#: The name of an attribute or of one of BY_NAME, and where the expression begins and ends. mypy
#: does not say in which module it is: what is in the same place of several modules counts for all.
Place: TypeAlias = "tuple[str, int, int, int | None, int | None]"

#: Functions that take an object and the name of an attribute.
BY_NAME = ("getattr", "hasattr", "setattr")
NO_CLASS: frozenset[str] = frozenset()


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
        return NO_CLASS.union(*[self.families.get(name, NO_CLASS) for name in owners])


#: Nothing is known: a name counts for all classes.
UNKNOWN = Receivers({}, {})
