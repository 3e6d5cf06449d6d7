"""A table of fields for each object of the API, for decoding, encoding, checks and reference.

A subclass of `Fields` lists its fields in FIELDS, each with a type. The table defines

- the attributes, which are zero where nothing was set, so that each of them always exists;
- the checks of values that users set; the errors name the class, the field and the value;
- `from_json` and `to_json`, in the units and the words of the server;
- docs/jetstream-fields.md.

Decoding and encoding lose nothing: unknown keys of a newer server are kept in `extra`, unknown
choices are kept unchanged, and unchanged durations and times are encoded digit by digit, although
a float cannot represent all of them.
"""

from __future__ import annotations

from jetstream.errors import InvalidResponse
from natsproto.errors import InvalidValue
from natsproto.wire.text import shorten, show

from .types import MAP_OF_ANY, TypeMismatch

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, ClassVar, TypeAlias, TypeVar

    from typing_extensions import Self

    from .types import FieldType, Json

    Owner = TypeVar("Owner", bound="Fields")
    # Rule, the fields that it applies to, the condition that breaks it, and the reason.
    Refusal: TypeAlias = tuple[str, tuple[str, ...], Callable[[Owner], object], str]

# Marks a field that was set and whose JSON value need not be kept; JSON's null never is.
_SET = None
_LONGEST_NAME = 100  # characters of an unknown name that are compared with the known names
# ADR-2: every response has its type, which is not part of the object.
_NOT_OURS = ("type",)


class Field:
    """One field: its name in JSON and Python, its type, and its meaning.

    `since` is the first server version that has it. A field is `always` sent if the default of the
    server differs from ours.
    """

    __slots__ = ("name", "type", "doc", "since", "always")

    def __init__(
        self,
        name: str,
        type: FieldType,
        doc: str,
        since: tuple[int, int] = (2, 2),
        always: bool = False,
    ) -> None:
        self.name: str = name
        self.type: FieldType = type
        self.doc: str = doc
        self.since: tuple[int, int] = since
        self.always: bool = always

    def __repr__(self) -> str:
        return "Field(%r)" % self.name


class Fields:
    """Base class of all objects of the API; FIELDS defines their attributes.

    Attributes are checked when they are set. Durations are seconds in attributes and keywords,
    nanoseconds in JSON. Two objects are equal if all their fields are. Unknown keys are kept in
    `extra` and sent back.
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
        """Decode an object of the server; raise InvalidResponse if a field has another type."""
        if not isinstance(raw, dict):
            raise InvalidResponse("%s: %s is not a JSON object" % (cls.__name__, shorten(raw)))
        made = cls()
        index = _index(cls)
        for key in raw:
            value = raw[key]
            field = index.get(key)
            if field is None:
                if key not in _NOT_OURS:
                    made.extra[key] = value  # JSAPI-2
                continue
            try:
                decoded = None if value is None else field.type.decode(value)
            except TypeMismatch as error:
                text = "%s.%s: %s %s" % (cls.__name__, key, shorten(value), error)
                raise InvalidResponse(text) from None  # JSAPI-6
            if decoded is not None:
                _keep(made, key, decoded)
                made._given[key] = value if field.type.lossy else _SET
        return made

    @classmethod
    def of(cls, config: Self | Mapping[str, Any] | None, values: Mapping[str, Any]) -> Self:
        """Return a new object from an object, a dict in the server's form, or None, and keywords.

        The arguments are not changed. Raises InvalidValue if any of them is invalid.
        """
        if config is None:
            made = cls()
        elif isinstance(config, cls):
            made = config.copy()  # D-JSAPI-7
        elif isinstance(config, dict):
            try:
                made = cls.from_json(config)
            except InvalidResponse as error:
                raise InvalidValue(str(error), "D-JSAPI-3") from None
        else:
            text = "%s is neither a %s nor a dict" % (shorten(config), cls.__name__)
            if isinstance(config, str):
                text += "; pass a name as a keyword: %s=%s" % (cls.FIELDS[0].name, shorten(config))
            raise InvalidValue(text, "D-JSAPI-3")
        for name in values:
            setattr(made, name, values[name])
        return made

    def to_json(self) -> Json:
        """Encode the fields that were set, even to zero, and those that are not zero."""
        json: Json = {}
        for field in self._shown():
            json[field.name] = self._encode(field)
        for key in self.extra:
            json[key] = self.extra[key]
        return json

    def copy(self) -> Self:
        """Return another object with the same fields and `extra`."""
        return self.from_json(self.to_json())

    def with_value(self, name: str, value: object) -> Self:
        """Return a copy with another value of one field, which is not checked."""
        # For objects that arrive by the million, such as PubAck: 1 us instead of the 7 us of
        # `copy`.
        made = _new(type(self))
        given = self._given
        _keep(made, "_given", dict(given))
        _keep(made, "extra", dict(self.extra))
        for key in given:
            _keep(made, key, getattr(self, key))
        _keep(made, name, value)
        return made

    def given_fields(self) -> list[Field]:
        """Return the fields that were set by keyword, by assignment or by the server."""
        return [field for field in self.FIELDS if field.name in self._given]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fields) or type(other) is not type(self):
            return NotImplemented
        names = [field.name for field in self.FIELDS]
        same = all(getattr(self, name) == getattr(other, name) for name in names)
        return same and self.extra == other.extra

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = [
            "%s=%s" % (field.name, _show(getattr(self, field.name))) for field in self._shown()
        ]
        if self.extra:
            shown.append("extra=%s" % show(self.extra))
        return "%s(%s)" % (type(self).__name__, ", ".join(shown))

    if TYPE_CHECKING:
        pass  # type checkers see only the attributes that a class declares
    else:

        def __getattr__(self, name):
            # Called only for fields that were not set: zeros cost nothing until they are read.
            field = _index(type(self)).get(name)
            if field is None:
                raise AttributeError("%s has no field %s" % (type(self).__name__, shorten(name)))
            value = field.type.zero()
            if field.type.mutable:
                _keep(self, name, value)
            return value

        def __setattr__(self, name, value):
            if name == "extra":
                _keep(self, name, _check(self, _EXTRA, value))
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

    def _shown(self) -> list[Field]:  # JSAPI-5
        return [
            field
            for field in self.FIELDS
            if field.always
            or field.name in self._given
            or getattr(self, field.name) != field.type.zero()
        ]

    def _encode(self, field: Field) -> object:
        value = getattr(self, field.name)
        raw = self._given.get(field.name)
        if raw is not _SET and field.type.decode(raw) == value:  # JSAPI-1
            return raw
        # Check again, because a list may have changed since it was set.
        return field.type.encode(_check(self, field, value))


_EXTRA = Field("extra", MAP_OF_ANY, "Unknown keys of a newer server.")

# Without Fields.__setattr__ and Fields.__init__.
_keep = object.__setattr__
_new = object.__new__

# Built on first use, because MicroPython has no hooks for new classes.
_INDEXES: dict[type[Fields], dict[str, Field]] = {}


def _index(cls: type[Fields]) -> dict[str, Field]:
    try:
        return _INDEXES[cls]
    except KeyError:
        _INDEXES[cls] = {field.name: field for field in cls.FIELDS}
        return _INDEXES[cls]


def _check(owner: Fields, field: Field, value: object) -> object:
    try:
        return field.type.check(value)
    except TypeMismatch as error:
        text = "%s.%s: %s %s" % (type(owner).__name__, field.name, shorten(value), error)
        raise InvalidValue(text, "D-JSAPI-3") from None


def refuse(owner: Owner, table: list[Refusal[Owner]]) -> None:
    """Raise InvalidValue for the first row of the table that applies."""
    for rule, names, applies, why in table:
        if applies(owner):
            values = ["%s=%s" % (name, shorten(getattr(owner, name))) for name in names]
            text = "%s with %s: %s" % (type(owner).__name__, ", ".join(values), why)
            raise InvalidValue(text, rule)


def _show(value: object) -> str:
    # The fields of a nested object are shortened one by one.
    return repr(value) if isinstance(value, Fields) else show(value)


def _unknown(cls: type[Fields], name: str) -> InvalidValue:
    near = name[:_LONGEST_NAME]  # a comparison takes the product of both lengths
    known = [(_distance(near, field.name), field.name) for field in cls.FIELDS]
    close = [pair for pair in known if pair[0] <= len(name) // 2 or name in pair[1].split("_")]
    hint = "; did you mean %r?" % min(close)[1] if close else ""
    return InvalidValue("%s has no field %s%s" % (cls.__name__, shorten(name), hint), "D-JSAPI-4")


def _distance(a: str, b: str) -> int:
    """Return the edit distance: the number of letters to insert, remove or replace."""
    row = list(range(len(b) + 1))
    for i, char in enumerate(a):
        before, row[0] = row[0], i + 1
        for j, other in enumerate(b):
            before, row[j + 1] = (
                row[j + 1],
                min(before + (char != other), row[j] + 1, row[j + 1] + 1),
            )
    return row[-1]
