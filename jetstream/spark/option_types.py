"""The types of options: how the text of each is parsed.

`read` raises ValueError with a description of valid texts, or a LocalError with the problem.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from jetstream.schema.timestamp import Timestamp
from natsproto.errors import InvalidValue, LocalError
from natsproto.wire.subjects import check_known_name, check_publish, check_subscribe

if TYPE_CHECKING:
    from collections.abc import Callable

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_LONGEST = 10**9  # seconds, 31 years
_FLAGS = {"true": True, "false": False}
_BIGINT = 2**63 - 1


class OptionType(NamedTuple):
    """A parser for the text of an option; neither the text nor the value of a secret is shown."""

    name: str
    read: Callable[[str], Any]
    secret: bool = False


def _text(text: str) -> str:
    if not text:
        raise ValueError("a nonempty text")
    return text


def _list(text: str) -> list[str]:
    parts = [part.strip() for part in text.split(",")]
    if "" in parts:
        raise ValueError("a list of names separated by commas")
    return parts


def _urls(text: str) -> list[str]:
    urls = _list(text)
    if any("@" in url.rpartition("://")[2].partition("/")[0] for url in urls):
        raise InvalidValue(
            "a URL contains credentials, and Spark shows this option in the plan of a query: use"
            " options user and password, or token, whose values it hides"
        )
    return urls


def _name(text: str) -> str:
    check_known_name("name", text)
    return text


def _names(text: str) -> list[str]:
    return [_name(part) for part in _list(text)]


def _flag(text: str) -> bool:
    if text.lower() not in _FLAGS:
        raise ValueError("true or false")
    return _FLAGS[text.lower()]


def _duration(text: str) -> float:
    number, unit = text, "s"
    for each in sorted(_UNITS, key=len, reverse=True):
        if text.endswith(each):
            number, unit = text[: -len(each)].strip(), each
            break
    if not (number.isascii() and number.replace(".", "", 1).isdigit()):
        raise ValueError("a duration such as 30, 30s, 500ms, 5m or 1h")
    seconds = float(number) * _UNITS[unit]
    if seconds > _LONGEST:
        raise ValueError("a duration of at most %d s" % _LONGEST)
    return seconds


def _timeout(text: str) -> float:
    seconds = _duration(text)
    if not seconds:
        raise ValueError("a timeout greater than 0")
    return seconds


def _timestamp(text: str) -> Timestamp:
    if text.isascii() and text.isdigit() and len(text) < 16:
        return Timestamp(int(text) * 10**6)
    try:
        return Timestamp.parse(text)
    except InvalidValue:
        raise ValueError("RFC 3339 such as 2006-01-02T15:04:05Z, or milliseconds") from None


def _timestamps(text: str) -> Any:
    """Parse a time for all streams, or one for each, or for each of its subjects."""
    if not text.startswith("{"):
        return _timestamp(text)
    wanted = 'a time, or JSON such as {"ORDERS": "2006-01-02T15:04:05Z", "EVENTS": 1136214245000}'
    return _by_stream(text, wanted, _timestamp)


def _by_subject(value: Any, read: Callable[[str], Any]) -> Any:
    """Read a value of a stream, or those of its subjects."""
    if not isinstance(value, dict) or not value:
        return read(str(cast("object", value)))
    subjects = cast("dict[str, Any]", value)
    return {_filter(subject): read(str(each)) for subject, each in subjects.items()}


def _by_stream(text: str, wanted: str, read: Callable[[str], Any]) -> dict[str, Any]:
    """Parse JSON by stream, whose values may be JSON by subject."""
    try:
        found: dict[str, Any] = json.loads(text)
        return {name: _by_subject(value, read) for name, value in found.items()}
    except ValueError as error:
        if isinstance(error, LocalError):
            raise
        raise ValueError(wanted) from None


def _filter(subject: str) -> str:
    check_subscribe(subject)
    return subject


def _regex(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError("a regular expression: %s" % error) from None


def _offsets(text: str) -> Any:
    """Parse a place for all streams, or one for each, or for each of its subjects."""
    wanted = 'earliest, latest, a sequence, or JSON such as {"ORDERS": 42, "EVENTS": "latest"}'
    if not text.startswith("{"):
        return _place(text, wanted)
    return _by_stream(text, wanted, lambda place: _place(place, wanted))


def _place(text: str, wanted: str) -> int | str:
    if text.lower() in ("earliest", "latest"):
        return text.lower()
    if not _is_number(text, 1, _BIGINT):
        raise ValueError(wanted)
    return int(text)


def _is_number(text: str, least: int, most: int) -> bool:
    return len(text) < 20 and text.isascii() and text.isdigit() and least <= int(text) <= most


def _subject(text: str) -> str:
    check_publish(text)
    return text


def _subjects(text: str) -> list[str]:
    subjects = _list(text)
    for subject in subjects:
        check_subscribe(subject)
    return subjects


def _token(text: str) -> str:
    if "." in text:
        raise ValueError("a single token of a subject, without dots")
    return _subject(text)


def whole(least: int, most: int = _BIGINT) -> OptionType:
    """Return the type of whole numbers in this range."""

    def read(text: str) -> int:
        if not _is_number(text, least, most):
            raise ValueError("a whole number from %d to %d" % (least, most))
        return int(text)

    return OptionType("number", read)


def choice(*names: str) -> OptionType:
    """Return the type of these names, in upper or lower case."""
    known = {name.lower(): name for name in names}

    def read(text: str) -> str:
        if text.lower() not in known:
            raise ValueError("one of " + ", ".join(names))
        return known[text.lower()]

    return OptionType(" / ".join(names), read)


TEXT = OptionType("text", _text)
SECRET = OptionType("secret", _text, secret=True)
FILE = OptionType("file", _text)
NAME = OptionType("name", _name)
NAMES = OptionType("list", _names)
URLS = OptionType("list", _urls, secret=True)  # an invalid one may contain a password
FLAG = OptionType("true / false", _flag)
DURATION = OptionType("duration", _duration)
TIMEOUT = OptionType("duration", _timeout)
TIMESTAMPS = OptionType("times", _timestamps)
REGEX = OptionType("regex", _regex)
OFFSETS = OptionType("offsets", _offsets)
SUBJECT = OptionType("subject", _subject)
SUBJECTS = OptionType("list", _subjects)
TOKEN = OptionType("token", _token)
