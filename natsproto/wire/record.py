"""Record: repr and equality for slotted value objects."""

from __future__ import annotations

from .text import show

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import ClassVar


class Record:
    """Base class of small value objects: their `__slots__` are their fields, in order.

    Dataclasses are not used, because MicroPython lacks them and they take 17 ms to import
    elsewhere.
    """

    __slots__: tuple[str, ...] = ()

    def _fields(self) -> list[tuple[str, object]]:
        return [(name, getattr(self, name)) for name in self.__slots__]

    def __repr__(self) -> str:
        fields = ", ".join(["%s=%s" % (name, show(value)) for name, value in self._fields()])
        return "%s(%s)" % (self.__class__.__name__, fields)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Record) and other.__class__ is self.__class__:
            return self._fields() == other._fields()
        return NotImplemented

    # Fields may change, and may be lists or dicts.
    __hash__: ClassVar[None] = None  # type: ignore[assignment]
