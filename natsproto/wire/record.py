"""Record: repr and equality for slotted value objects."""

from __future__ import annotations

from .text import show


class Record:
    """Base of small value objects: their `__slots__` are their fields, in order.

    Why not dataclasses: they are missing on MicroPython and cost 17 ms to import elsewhere.
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

    # Fields may change and may be lists or dicts: no record is a key.
    __hash__ = None  # type: ignore[assignment]
