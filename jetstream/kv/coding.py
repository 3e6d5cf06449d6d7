"""Plain and Coded: how a bucket stores the keys and values of its callers.

KeyValue passes every key, filter, value and entry through one of them. Plain checks the names and
changes nothing. Coded applies codecs, and then checks the result: the stored keys follow the same
rules in both.
"""

from __future__ import annotations

from jetstream.errors.kv import CodecError
from natsproto.errors import InvalidName, InvalidValue, LocalError
from natsproto.wire.encode import check_data
from natsproto.wire.text import cut_middle, shorten

from .entry import PUT, KeyValueEntry
from .names import ALL_KEYS, check_filters, check_key, filters_of

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from natsproto.wire.encode import BytesLike

    from .codecs import KeyCodec, ValueCodec

_KEY_CALLS = ("encode_key", "decode_key")
_VALUE_CALLS = ("encode_value", "decode_value")


class Plain:
    """Store keys and values unchanged."""

    def key(self, key: str, *, write: bool = False) -> str:
        """Return the stored form of a key; raise InvalidName."""
        return check_key(key, write=write)

    def filters(self, filters: str | Sequence[str]) -> list[str]:
        """Return the stored form of filters; raise InvalidName or InvalidValue."""
        return check_filters(filters)

    def value(self, value: BytesLike, stored: str) -> BytesLike:
        """Return the stored form of a value for this stored key."""
        return value

    def entry(
        self, entry: KeyValueEntry, key: str | None = None, *, has_value: bool = True
    ) -> KeyValueEntry:
        """Return an entry of the stream as callers see it; `key`: the caller's key, if known."""
        return entry


PLAIN = Plain()


class Coded(Plain):
    """Store keys and values as codecs encode them; several codecs apply one after the other."""

    def __init__(
        self,
        keys: KeyCodec | Sequence[KeyCodec] | None,
        values: ValueCodec | Sequence[ValueCodec] | None,
    ) -> None:
        self._keys: list[Any] = _codecs("keys", keys, _KEY_CALLS)
        self._values: list[Any] = _codecs("values", values, _VALUE_CALLS)

    def key(self, key: str, *, write: bool = False) -> str:
        """Return the stored form of a key; raise InvalidName or CodecError."""
        if not self._keys:
            return check_key(key, write=write)
        stored = _check_text("key", key)
        for codec in self._keys:  # KVCODEC-5
            stored = _apply(codec, "encode_key", "key %s" % shorten(key), (stored,))
        try:
            return check_key(stored, write=write)  # D-KVCODEC-9
        except InvalidName as error:
            raise _unusable("key", key, error) from None

    def filters(self, filters: str | Sequence[str]) -> list[str]:
        """Return the stored form of filters; raise InvalidName, InvalidValue or CodecError."""
        if not self._keys:
            return check_filters(filters)
        return [self._filter(each) for each in filters_of(filters)]

    def _filter(self, pattern: str) -> str:
        stored = _check_text("filter", pattern)
        if pattern == ALL_KEYS:
            return pattern
        for codec in self._keys:
            call = "encode_filter" if hasattr(codec, "encode_filter") else "encode_key"
            if call == "encode_key" and ("*" in pattern or ">" in pattern):  # KVCODEC-6
                text = "filter has wildcards, but codec %s has no encode_filter: %s; use '>'"
                raise InvalidValue(text % (_name_of(codec), shorten(pattern)), "KVCODEC-6")
            stored = _apply(codec, call, "filter %s" % shorten(pattern), (stored,))
        try:
            return check_filters(stored)[0]
        except InvalidName as error:
            raise _unusable("filter", pattern, error) from None

    def value(self, value: BytesLike, stored: str) -> BytesLike:
        """Return the stored form of a value for this stored key; raise CodecError."""
        if not self._values:
            return value
        data = check_data(value)
        what = "value of key %s" % shorten(stored)
        for codec in self._values:
            data = _apply(codec, "encode_value", what, (data, stored))
        return data

    def entry(
        self, entry: KeyValueEntry, key: str | None = None, *, has_value: bool = True
    ) -> KeyValueEntry:
        """Return an entry with its key and value decoded; raise CodecError (D-KVCODEC-7)."""
        stored, value = entry.key, entry.value
        name = stored if key is None else key
        if key is None:
            for codec in reversed(self._keys):  # KVCODEC-5
                name = _apply(codec, "decode_key", "key %s" % shorten(stored), (name,), entry)
        if has_value and entry.operation == PUT:
            what = "value of key %s" % shorten(stored)
            for codec in reversed(self._values):
                value = _apply(codec, "decode_value", what, (value, stored), entry)
        created, delta, operation = entry.created, entry.delta, entry.operation
        return KeyValueEntry(entry.bucket, name, value, entry.revision, created, delta, operation)


def _codecs(what: str, given: Any, calls: tuple[str, ...]) -> list[Any]:
    """Return one or several codecs as a list; raise InvalidValue unless they have these calls."""
    if given is None:
        return []
    several = bool(isinstance(given, (list, tuple)))
    codecs: list[Any] = list(given) if several else [given]
    if not codecs:
        raise InvalidValue("%s is an empty list of codecs" % what, "KVCODEC-1")
    for codec in codecs:
        for call in calls:
            if isinstance(codec, type) or not hasattr(codec, call):
                text = "%s is not a codec with %s: %s"
                values = (what, " and ".join(calls), shorten(codec))
                raise InvalidValue(text % values, "KVCODEC-1")
    return codecs


def _check_text(what: str, text: str) -> str:
    if not isinstance(text, str):
        raise InvalidName("%s %s is not a str" % (what, shorten(text)), "KV-2")
    return text


def _apply(
    codec: Any, call: str, what: str, given: tuple[Any, ...], entry: KeyValueEntry | None = None
) -> Any:
    """Call a codec; raise CodecError if it fails, or returns a value of another type."""
    try:
        result = getattr(codec, call)(*given)
        if not isinstance(result, type(given[0])):
            text = "it returned %s, not %s"
            raise TypeError(text % (type(result).__name__, type(given[0]).__name__))
    except LocalError:
        raise  # it already names the problem
    except Exception as error:  # D-KVCODEC-7
        verb = call.split("_")[0] + "d"
        reason = cut_middle(str(error) or type(error).__name__)
        text = "%s cannot be %s by %s: %s" % (what, verb, _name_of(codec), reason)
        raise CodecError(text, entry) from error
    return result


def _unusable(what: str, given: str, error: InvalidName) -> InvalidName:
    return InvalidName("%s %s is not valid once encoded: %s" % (what, shorten(given), error))


def _name_of(codec: object) -> str:
    return type(codec).__name__
