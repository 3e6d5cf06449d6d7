"""Base: the JSON of the JetStream API as dataclasses, and back."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from typing_extensions import Self

_NANOSECOND = 10**9
_FRACTION = re.compile(r"\.(\d+)")


@dataclass
class Base:
    """A part of a request or a response.

    Durations are seconds here and nanoseconds in JSON, and times are datetimes here. A subclass
    names its fields of either kind, and those that are objects themselves or lists of them.
    """

    DURATIONS: ClassVar[tuple[str, ...]] = ()
    TIMES: ClassVar[tuple[str, ...]] = ()
    OBJECTS: ClassVar[dict[str, Any]] = {}
    # Fields that belong to the client, and are not sent.
    LOCAL: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def from_response(cls, resp: dict[str, Any]) -> Self:
        """Return the object in a response. Fields that it does not know are ignored."""
        known = {each.name for each in fields(cls)}
        return cls(**{name: cls._read(name, resp[name]) for name in resp if name in known})

    @classmethod
    def _read(cls, name: str, value: Any) -> Any:
        if value is None or value == []:
            return value
        items = _items(value)
        if name in cls.DURATIONS:
            return [each / _NANOSECOND for each in items] if items else value / _NANOSECOND
        if name in cls.TIMES:
            return cls._parse_utc_iso(value)
        kind = cls.OBJECTS.get(name)
        if kind is None:
            return value
        if items:
            return [kind.from_response(each) for each in items]
        return kind.from_response(value)

    def as_dict(self) -> dict[str, object]:
        """Return the object as it is sent, without the fields that are None."""
        found: dict[str, object] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None and each.name not in self.LOCAL:
                found[each.name] = self._write(each.name, value)
        return found

    def _write(self, name: str, value: Any) -> object:
        items = _items(value)
        if name in self.DURATIONS:
            if items:
                return [self._to_nanoseconds(each) for each in items]
            return self._to_nanoseconds(value)
        if name in self.TIMES and isinstance(value, datetime.datetime):
            return self._to_utc_iso(value)
        if isinstance(value, Base):
            return value.as_dict()
        if items:
            return [each.as_dict() if isinstance(each, Base) else each for each in items]
        return value

    def evolve(self, **params: Any) -> Self:
        """Return a copy with other values of these fields."""
        return replace(self, **params)

    @staticmethod
    def _to_nanoseconds(val: float | None) -> int:
        return int((val or 0) * _NANOSECOND)

    @staticmethod
    def _to_utc_iso(date: datetime.datetime) -> str:
        if date.tzinfo is None:  # without one it is taken for UTC
            date = date.replace(tzinfo=datetime.timezone.utc)
        utc = date.astimezone(datetime.timezone.utc)
        return utc.isoformat().replace("+00:00", "Z")

    @staticmethod
    def _parse_utc_iso(time_string: str) -> datetime.datetime:
        text = time_string.replace("Z", "+00:00")
        # datetime has microseconds, and before Python 3.11 wants all six digits of them.
        text = _FRACTION.sub(lambda found: "." + found[1][:6].ljust(6, "0"), text)
        return datetime.datetime.fromisoformat(text).astimezone(datetime.timezone.utc)


def _items(value: Any) -> list[Any]:
    """Return the items of a list; none for any other value."""
    return [*value] if isinstance(value, list) else []
