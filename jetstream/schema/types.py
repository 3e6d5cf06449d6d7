"""Field types: how values are checked, decoded from JSON and encoded.

Values that users set are checked strictly: a bool is not a number, a str is not a list, and a
number must fit the type that the server uses. Values from a server are only checked for their type.
"""

from __future__ import annotations

from natsproto.durations import in_range, to_seconds
from natsproto.errors import InvalidValue
from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from .fields import Fields
    from .timestamp import Timestamp

    Json: TypeAlias = dict[str, Any]

_NANO = 10**9
MOST_COUNT = 2**63 - 1  # int64
_MOST_SECONDS = MOST_COUNT // _NANO  # 292 years


class TypeMismatch(Exception):
    """A value has the wrong type; the message continues a sentence that starts with the value."""


class FieldType:
    """The type of a field: how its values are checked, decoded and encoded.

    `label` is its name in the reference. If it is `lossy`, the JSON value is kept, because the
    attribute may hold less. If it is `mutable`, each object gets a zero of its own.
    """

    label: str = "any JSON value"
    lossy: bool = False
    mutable: bool = False

    def zero(self) -> Any:
        """Return the value of a field that was not set."""
        return None

    def check(self, value: Any) -> Any:
        """Return the attribute for a value that a user set; raise TypeMismatch if it is invalid."""
        return value

    def decode(self, raw: Any) -> Any:
        """Return the attribute for a JSON value, None if it means "not set".

        Raises TypeMismatch if the value is invalid.
        """
        return self.check(raw)

    def encode(self, value: Any) -> Any:
        """Return the JSON value of an attribute that `check` has accepted."""
        return value


class _Text(FieldType):
    label = "text"

    def zero(self) -> str:
        return ""

    def check(self, value: Any) -> str:
        if not isinstance(value, str):
            raise TypeMismatch("is not a str")
        return value


class _Flag(FieldType):
    label = "true or false"

    def zero(self) -> bool:
        return False

    def check(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise TypeMismatch("is neither True nor False")
        return value


class _Number(FieldType):
    label = "whole number"

    def __init__(self, least: int, most: int) -> None:
        self.least = least
        self.most = most

    def zero(self) -> int:
        return 0

    def check(self, value: Any) -> int:
        number = self.decode(value)
        if not self.least <= number <= self.most:
            raise TypeMismatch("is not in %d to %d" % (self.least, self.most))
        return number

    def decode(self, raw: Any) -> int:
        if not isinstance(raw, int) or isinstance(raw, bool):
            raise TypeMismatch("is not a whole number")
        return raw


class _Duration(FieldType):
    label = "seconds"
    lossy = True

    def __init__(self, signed: bool = False) -> None:
        self.least = -_MOST_SECONDS if signed else 0

    def zero(self) -> float:
        return 0.0

    def check(self, value: Any) -> float:
        seconds: float = to_seconds(value)
        if not in_range(seconds, self.least, _MOST_SECONDS):
            raise TypeMismatch(
                "is not a number of seconds from %d to %d" % (self.least, _MOST_SECONDS)
            )
        return float(seconds)

    def decode(self, raw: Any) -> float:
        if (
            not isinstance(raw, int)
            or isinstance(raw, bool)
            or not -MOST_COUNT - 1 <= raw <= MOST_COUNT
        ):
            # JSAPI-10: a float does not hold every number that JSON can express.
            raise TypeMismatch("is not a whole number of nanoseconds")
        return raw / _NANO

    def encode(self, value: Any) -> int:
        whole = int(value)
        # Separately, because a float has too few digits for the nanoseconds of many days.
        total: int = whole * _NANO + round((value - whole) * _NANO)
        return total


class _Time(FieldType):
    label = "time"
    lossy = True

    def check(self, value: Any) -> Timestamp | None:
        return None if value is None else self._read(value)

    def decode(self, raw: Any) -> Timestamp | None:
        return self._read(raw, parse=True)

    def _read(self, value: Any, parse: bool = False) -> Timestamp | None:
        # Imported here: acknowledgments of publishes have no times.
        from .timestamp import FIRST, Timestamp

        try:
            time = Timestamp.parse(value) if parse else Timestamp.of(value)
        except InvalidValue as error:
            raise TypeMismatch("is not a time: %s" % error) from None
        return None if time.ns == FIRST else time  # TIME-4

    def encode(self, value: Any) -> str:
        return str(value)


class Choice(FieldType):
    """One of these texts; the first is the zero. A server may send others."""

    lossy = True

    def __init__(self, *values: str) -> None:
        self.values = values
        self.label: str = "one of " + ", ".join(["`%s`" % value for value in values])

    def zero(self) -> str:
        return self.values[0]

    def check(self, value: Any) -> str:
        if value not in self.values:
            raise TypeMismatch("is not one of %s" % ", ".join(self.values))
        return TEXT.check(value)

    def decode(self, raw: Any) -> str:
        return TEXT.check(raw)


class _List(FieldType):
    """A list of values of another type."""

    mutable = True

    def __init__(self, item: FieldType) -> None:
        self.item = item
        self.lossy: bool = item.lossy
        self.label: str = "list of " + item.label

    def zero(self) -> list[Any]:
        return []

    def check(self, value: Any) -> list[Any]:
        # A str is a sequence of strs, but not a list of them.
        if not _is(value, (list, tuple)):
            raise TypeMismatch("is not a list")
        return [_inside(self.item.check, item) for item in value]

    def decode(self, raw: Any) -> list[Any]:
        if not _is(raw, list):
            raise TypeMismatch("is not a list")
        return [_inside(self.item.decode, item) for item in raw]

    def encode(self, value: Any) -> list[Any]:
        return [self.item.encode(item) for item in value]


class _Map(FieldType):
    """A map from text to values of another type."""

    mutable = True

    def __init__(self, item: FieldType) -> None:
        self.item = item
        self.label: str = "map from text to " + item.label

    def zero(self) -> dict[str, Any]:
        return {}

    def check(self, value: Any) -> dict[str, Any]:
        return self._each(value, self.item.check)

    def decode(self, raw: Any) -> dict[str, Any]:
        return self._each(raw, self.item.decode)

    def encode(self, value: Any) -> dict[str, Any]:
        return {key: self.item.encode(value[key]) for key in value}

    def _each(self, value: Any, look: Any) -> dict[str, Any]:
        if not _is(value, dict):
            raise TypeMismatch("is not a dict")
        return {_inside(TEXT.check, key): _inside(look, value[key]) for key in value}


class Object(FieldType):
    """A nested object, or None. A dict of its keywords is accepted as well."""

    def __init__(self, cls: type[Fields]) -> None:
        self.cls = cls
        self.label: str = cls.__name__

    def check(self, value: Any) -> Fields | None:
        if value is None or isinstance(value, self.cls):
            return value
        if not _is(value, dict):
            raise TypeMismatch("is neither a %s nor a dict" % self.cls.__name__)
        return self.cls(**value)

    def decode(self, raw: Any) -> Fields:
        return self.cls.from_json(raw)

    def encode(self, value: Any) -> Json:
        json: Json = value.to_json()
        return json


class Embedded(Object):
    """A nested object that is never None: its fields are zero if it was not set."""

    mutable = True

    def zero(self) -> Fields:
        return self.cls()

    def check(self, value: Any) -> Fields:
        found = super().check(value)
        if found is None:
            raise TypeMismatch("is neither a %s nor a dict" % self.cls.__name__)
        return found


def _is(value: object, cls: Any) -> bool:
    """Call isinstance without narrowing: for type checkers the items stay Any."""
    return isinstance(value, cls)


def _inside(look: Any, item: Any) -> Any:
    try:
        return look(item)
    except TypeMismatch as error:
        raise TypeMismatch("has %s, which %s" % (shorten(item), error)) from None


ANY = FieldType()
TEXT = _Text()
FLAG = _Flag()
COUNT = _Number(-MOST_COUNT - 1, MOST_COUNT)  # int and int64; often -1 means "no limit"
COUNT32 = _Number(-(2**31), 2**31 - 1)
MOST_SEQUENCE = 2**64 - 1  # uint64 (JSAPI-8)
SEQUENCE = _Number(0, MOST_SEQUENCE)
DURATION = _Duration()
SIGNED_DURATION = _Duration(signed=True)
TIME = _Time()
TEXTS = _List(TEXT)
SEQUENCES = _List(SEQUENCE)
DURATIONS = _List(DURATION)
MAP = _Map(TEXT)
COUNTS = _Map(SEQUENCE)
MAP_OF_ANY = _Map(ANY)


def list_of(cls: type[Fields]) -> FieldType:
    """Return the type of a list of these objects."""
    return _List(Embedded(cls))


def map_of(cls: type[Fields]) -> FieldType:
    """Return the type of a map from text to these objects."""
    return _Map(Embedded(cls))
