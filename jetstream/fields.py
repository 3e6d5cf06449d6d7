"""One table of fields for each object of the API: it drives reading, writing, checks and reference.

A class of `Fields` lists its fields in FIELDS, each with a Kind. From the table come

- the attributes, zeros where nothing was given, so that nobody asks whether one is there;
- the checks of what users set, which name the class, the field and the value;
- `from_json` and `to_json`, in the units and the words of the server;
- docs/jetstream-fields.md.

Nothing gets lost between reading and writing: keys that a newer server has and we do not know stay
in `extra`, unknown choices stay as they are, and durations and times that nobody changed are
written back digit by digit, although a float cannot hold them all.
"""

from __future__ import annotations

import binascii

from natsproto.errors import InvalidValue

from .errors import InvalidResponse
from .timestamp import FIRST, Timestamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias, TypeVar

    from typing_extensions import Self

    Json: TypeAlias = dict[str, Any]
    Owner = TypeVar("Owner", bound="Fields")
    # Rule, the fields that it is about, what must not be, and why.
    Refusal: TypeAlias = tuple[str, tuple[str, ...], Callable[[Owner], object], str]

_NANO = 10**9
_MOST = 2**63 - 1
_MOST_SECONDS = _MOST / _NANO
# What a field was given as, where that need not be remembered.
_SET = object()
# ADR-2: every answer has its type; it is no part of the object.
_NOT_OURS = ("type",)


class Mismatch(Exception):
    """A value is not of its kind; what is wrong with it, to follow the value in a sentence."""


class Kind:
    """How values of one sort are checked, read and written.

    `label` is what the reference calls it. Of a `lossy` kind the JSON value is kept, because the
    attribute may hold less than it. A zero that is `mutable` belongs to one object alone.
    """

    label = "any JSON value"
    lossy = False
    mutable = False

    def zero(self) -> Any:
        return None

    def check(self, value: Any) -> Any:
        """What the user gave, as the attribute will be; Mismatch if it is of another kind."""
        return value

    def decode(self, raw: Any) -> Any:
        """The attribute for this JSON value, None for "not there"; Mismatch if it is wrong."""
        return self.check(raw)

    def encode(self, value: Any) -> Any:
        """The JSON value of an attribute that `check` has seen."""
        return value


class _Text(Kind):
    label = "text"

    def zero(self) -> str:
        return ""

    def check(self, value: Any) -> str:
        if not isinstance(value, str):
            raise Mismatch("is not a str")
        return value


class _Flag(Kind):
    label = "true or false"

    def zero(self) -> bool:
        return False

    def check(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise Mismatch("is neither True nor False")
        return value


class _Number(Kind):
    label = "whole number"

    def __init__(self, least: int, most: int) -> None:
        self.least = least
        self.most = most

    def zero(self) -> int:
        return 0

    def check(self, value: Any) -> int:
        number = self.decode(value)
        if not self.least <= number <= self.most:
            raise Mismatch("is not in %d to %d" % (self.least, self.most))
        return number

    def decode(self, raw: Any) -> int:
        if not isinstance(raw, int) or isinstance(raw, bool):
            raise Mismatch("is not a whole number")
        return raw


class _Duration(Kind):
    label = "seconds"
    lossy = True

    def __init__(self, signed: bool = False) -> None:
        self.least = -_MOST_SECONDS if signed else 0

    def zero(self) -> float:
        return 0.0

    def check(self, value: Any) -> float:
        # NaN and infinity are in no range, and a bool is no number.
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise Mismatch("is not a number of seconds")
        if not self.least <= value <= _MOST_SECONDS:
            raise Mismatch("is not a number of seconds from %d to %d" % (self.least, _MOST_SECONDS))
        return float(value)

    def decode(self, raw: Any) -> float:
        if not isinstance(raw, int) or isinstance(raw, bool):
            raise Mismatch("is not a whole number of nanoseconds")
        return raw / _NANO

    def encode(self, value: Any) -> int:
        whole = int(value)
        # Apart, because a float has too few digits for the nanoseconds of many days.
        total: int = whole * _NANO + round((value - whole) * _NANO)
        return min(total, _MOST)


class _Time(Kind):
    label = "time"
    lossy = True

    def check(self, value: Any) -> Timestamp | None:
        try:
            return None if value is None else Timestamp.of(value)
        except InvalidValue as error:
            raise Mismatch("is no time: %s" % error) from None

    def decode(self, raw: Any) -> Timestamp | None:
        try:
            time = Timestamp.parse(raw)
        except InvalidValue as error:
            raise Mismatch("is no time: %s" % error) from None
        return None if time.ns == FIRST else time  # TIME-4

    def encode(self, value: Any) -> str:
        return str(value)


class _Bytes(Kind):
    label = "bytes, in base64"

    def zero(self) -> bytes:
        return b""

    def check(self, value: Any) -> bytes:
        if not isinstance(value, bytes):
            raise Mismatch("is not bytes")
        return value

    def decode(self, raw: Any) -> bytes:
        try:
            return binascii.a2b_base64(raw.encode())
        except (AttributeError, ValueError):
            raise Mismatch("is not base64") from None

    def encode(self, value: Any) -> str:
        return binascii.b2a_base64(value)[:-1].decode()


class Choice(Kind):
    """One of these texts; the first is the zero. A server may answer with others."""

    lossy = True

    def __init__(self, *values: str) -> None:
        self.values = values
        self.label = "one of " + ", ".join(["`%s`" % value for value in values])

    def zero(self) -> str:
        return self.values[0]

    def check(self, value: Any) -> str:
        if value not in self.values:
            raise Mismatch("is none of %s" % ", ".join(self.values))
        return self.decode(value)

    def decode(self, raw: Any) -> str:
        return TEXT.check(raw)


class _List(Kind):
    """A list of values of another kind."""

    mutable = True

    def __init__(self, item: Kind) -> None:
        self.item = item
        self.lossy = item.lossy
        self.label = "list of " + item.label

    def zero(self) -> list[Any]:
        return []

    def check(self, value: Any) -> list[Any]:
        # A str is a sequence of strs: it must not pass for a list of them.
        if not _is(value, (list, tuple)):
            raise Mismatch("is not a list")
        return [_inside(self.item.check, item) for item in value]

    def decode(self, raw: Any) -> list[Any]:
        if not _is(raw, list):
            raise Mismatch("is not a list")
        return [_inside(self.item.decode, item) for item in raw]

    def encode(self, value: Any) -> list[Any]:
        return [self.item.encode(item) for item in value]


class _Map(Kind):
    """Texts, and for each of them a value of another kind."""

    mutable = True

    def __init__(self, item: Kind) -> None:
        self.item = item
        self.label = "map from text to " + item.label

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
            raise Mismatch("is not a dict")
        return {_inside(TEXT.check, key): _inside(look, value[key]) for key in value}


class Object(Kind):
    """Another object of fields; None where there is none. A dict of its keywords will do."""

    def __init__(self, cls: type[Fields]) -> None:
        self.cls = cls
        self.label = cls.__name__

    def check(self, value: Any) -> Fields | None:
        if value is None or isinstance(value, self.cls):
            return value
        if not _is(value, dict):
            raise Mismatch("is neither a %s nor a dict" % self.cls.__name__)
        return self.cls(**value)

    def decode(self, raw: Any) -> Fields:
        return self.cls.from_json(raw)

    def encode(self, value: Any) -> Json:
        json: Json = value.to_json()
        return json


class Part(Object):
    """An object that is always there, if only with zeros."""

    mutable = True

    def zero(self) -> Fields:
        return self.cls()

    def check(self, value: Any) -> Fields:
        found = super().check(value)
        if found is None:
            raise Mismatch("is neither a %s nor a dict" % self.cls.__name__)
        return found


def _is(value: object, cls: Any) -> bool:
    """isinstance that does not make a checker forget that the items are Any."""
    return isinstance(value, cls)


def _inside(look: Any, item: Any) -> Any:
    try:
        return look(item)
    except Mismatch as error:
        raise Mismatch("has %r, which %s" % (item, error)) from None


ANY = Kind()
TEXT = _Text()
FLAG = _Flag()
COUNT = _Number(-_MOST - 1, _MOST)  # int and int64; many have -1 for "no limit"
COUNT32 = _Number(-(2**31), 2**31 - 1)
SEQUENCE = _Number(0, 2**64 - 1)  # uint64
DURATION = _Duration()
SIGNED_DURATION = _Duration(signed=True)
TIME = _Time()
BYTES = _Bytes()
TEXTS = _List(TEXT)
SEQUENCES = _List(SEQUENCE)
DURATIONS = _List(DURATION)
MAP = _Map(TEXT)
COUNTS = _Map(SEQUENCE)


def Objects(cls: type[Fields]) -> Kind:
    return _List(Part(cls))


def ObjectMap(cls: type[Fields]) -> Kind:
    return _Map(Part(cls))


class Field:
    """One field: its key in JSON and name in Python, its kind, and what it means.

    `since` is the first server that has it. One that is `always` written is so because the server's
    default is another than ours.
    """

    __slots__ = ("name", "kind", "doc", "since", "always")

    def __init__(
        self,
        name: str,
        kind: Kind,
        doc: str,
        since: tuple[int, int] = (2, 2),
        always: bool = False,
    ) -> None:
        self.name = name
        self.kind = kind
        self.doc = doc
        self.since = since
        self.always = always

    def __repr__(self) -> str:
        return "Field(%r)" % self.name


class Fields:
    """Base of all objects of the API: attributes as FIELDS says, checked when they are set.

    Times are seconds in attributes and keywords, nanoseconds in JSON. Two objects are equal if all
    their fields are. What is not known stays in `extra` and is written back.
    """

    FIELDS: tuple[Field, ...] = ()

    extra: Json
    _given: dict[str, object]

    def __init__(self, **values: object) -> None:
        _keep(self, "_given", {})
        _keep(self, "extra", {})
        for name in values:
            setattr(self, name, values[name])

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The object that the server sent; InvalidResponse if a field is of another type."""
        if not isinstance(raw, dict):
            raise InvalidResponse("%s: %r is no JSON object" % (cls.__name__, raw))
        made = cls()
        index = _index(cls)
        for key in raw:
            value = raw[key]
            field = index.get(key)
            if field is None:
                if key not in _NOT_OURS:
                    made.extra[key] = value
                continue
            try:
                decoded = None if value is None else field.kind.decode(value)
            except Mismatch as error:
                text = "%s.%s: %r %s" % (cls.__name__, key, value, error)
                raise InvalidResponse(text) from None
            if decoded is not None:
                _keep(made, key, decoded)
                made._given[key] = value if field.kind.lossy else _SET
        return made

    @classmethod
    def of(cls, config: Self | Mapping[str, Any] | None, values: Mapping[str, Any]) -> Self:
        """From an object, the dict that the server speaks or nothing, with these keywords on top.

        What was given stays as it is. InvalidValue if any of it is wrong.
        """
        if config is None:
            made = cls()
        elif isinstance(config, cls):
            made = config.copy()
        elif isinstance(config, dict):
            try:
                made = cls.from_json(config)
            except InvalidResponse as error:
                raise InvalidValue(str(error), "JSAPI-3") from None
        else:
            text = "%r is neither a %s nor a dict" % (config, cls.__name__)
            raise InvalidValue(text, "JSAPI-3")
        for name in values:
            setattr(made, name, values[name])
        return made

    def to_json(self) -> Json:
        """What is sent: the fields that were given, zero or not, and those that are not zero."""
        json: Json = {}
        for field in self._shown():
            json[field.name] = self._encode(field)
        for key in self.extra:
            json[key] = self.extra[key]
        return json

    def copy(self) -> Self:
        """Another object with the same fields, given and extra; nothing is shared."""
        return self.from_json(self.to_json())

    def given_fields(self) -> list[Field]:
        """Those that were set, by keyword, by assignment or by the server."""
        return [field for field in self.FIELDS if field.name in self._given]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fields) or type(other) is not type(self):
            return NotImplemented
        names = [field.name for field in self.FIELDS]
        same = all(getattr(self, name) == getattr(other, name) for name in names)
        return same and self.extra == other.extra

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ["%s=%r" % (field.name, getattr(self, field.name)) for field in self._shown()]
        if self.extra:
            shown.append("extra=%r" % self.extra)
        return "%s(%s)" % (type(self).__name__, ", ".join(shown))

    if TYPE_CHECKING:
        pass  # checkers see the attributes that a class declares, and no others
    else:

        def __getattr__(self, name):
            # Only for what was not set: zeros cost nothing until somebody asks.
            field = _index(type(self)).get(name)
            if field is None:
                raise AttributeError("%s has no field %r" % (type(self).__name__, name))
            value = field.kind.zero()
            if field.kind.mutable:
                _keep(self, name, value)
            return value

        def __setattr__(self, name, value):
            if name == "extra":
                _keep(self, name, MAP_OF_ANY.check(value))
                return
            field = _index(type(self)).get(name)
            if field is None:
                raise _unknown(type(self), name)
            value = _check(self, field, value)
            _keep(self, name, value)
            if value is None:
                self._given.pop(name, None)
            else:
                self._given[name] = _SET

    def _shown(self) -> list[Field]:
        return [
            field
            for field in self.FIELDS
            if field.always
            or field.name in self._given
            or getattr(self, field.name) != field.kind.zero()
        ]

    def _encode(self, field: Field) -> object:
        value = getattr(self, field.name)
        raw = self._given.get(field.name, _SET)
        if raw is not _SET and field.kind.decode(raw) == value:
            return raw
        # Again, because a list may have got anything since it was set.
        return field.kind.encode(_check(self, field, value))


MAP_OF_ANY = _Map(ANY)

# Past Fields.__setattr__.
_keep = object.__setattr__

# Built on first use: there are no hooks for new classes on MicroPython.
_INDEXES: dict[type[Fields], dict[str, Field]] = {}


def _index(cls: type[Fields]) -> dict[str, Field]:
    try:
        return _INDEXES[cls]
    except KeyError:
        _INDEXES[cls] = {field.name: field for field in cls.FIELDS}
        return _INDEXES[cls]


def _check(owner: Fields, field: Field, value: object) -> object:
    try:
        return field.kind.check(value)
    except Mismatch as error:
        text = "%s.%s: %r %s" % (type(owner).__name__, field.name, value, error)
        raise InvalidValue(text, "JSAPI-3") from None


def refuse(owner: Owner, table: list[Refusal[Owner]]) -> None:
    """InvalidValue for the first row of the table that applies."""
    for rule, names, applies, why in table:
        if applies(owner):
            values = ["%s=%r" % (name, getattr(owner, name)) for name in names]
            text = "%s with %s: %s" % (type(owner).__name__, ", ".join(values), why)
            raise InvalidValue(text, rule)


def _unknown(cls: type[Fields], name: str) -> InvalidValue:
    known = [(_distance(name, field.name), field.name) for field in cls.FIELDS]
    close = [pair for pair in known if pair[0] <= len(name) // 2]
    hint = "; do you mean %r?" % min(close)[1] if close else ""
    return InvalidValue("%s has no field %r%s" % (cls.__name__, name, hint), "JSAPI-4")


def _distance(a: str, b: str) -> int:
    """How many letters to insert, remove or replace to get from one to the other."""
    row = list(range(len(b) + 1))
    for i, char in enumerate(a):
        before, row[0] = row[0], i + 1
        for j, other in enumerate(b):
            before, row[j + 1] = (
                row[j + 1],
                min(before + (char != other), row[j] + 1, row[j + 1] + 1),
            )
    return row[-1]
