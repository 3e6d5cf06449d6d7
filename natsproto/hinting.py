"""Hinting: classes that answer names of other clients with a hint (D-HINT-1).

The tables of hints are imported only then. Builds for devices leave out everything of this module
(embedded/strip.py): there, memory is worth more than hints.
"""

from __future__ import annotations

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable


def lazy_hints(module: str, table: str) -> Callable[[object, str], object]:
    """Return the `__getattr__` of a class: AttributeError, with a hint from this table."""

    def missing(instance: object, name: str) -> object:
        from .hints import no_attribute

        hints = getattr(__import__(module, None, None, [table]), table)
        raise no_attribute(instance, name, hints)

    return missing


def add_hints(owner: type, module: str, table: str, names: str) -> None:
    """Add properties to a class that only raise AttributeError, with a hint from this table.

    For classes whose attributes are read for every message: `__getattr__` would slow down all of
    them.
    """
    missing = lazy_hints(module, table)
    for name in names.split():
        setattr(owner, name, property(_hint(missing, name)))


def _hint(missing: Callable[[object, str], object], name: str) -> Callable[[object], object]:
    def hint(instance: object) -> object:
        """Raise AttributeError with the name to use instead."""
        return missing(instance, name)

    return hint
