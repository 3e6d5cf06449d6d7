"""Where a read starts and ends: startingOffsets, endingOffsets, and their counterparts by time.

Each is one value for all streams, or JSON by stream. The value of a stream is a position, or again
JSON by subject:

    {"ORDERS": {"orders.eu.>": 42, "orders.us.>": "latest"}}

A position is always one of the stream: messages of all subjects share its sequences. So a subject
that starts at 42 is read from the first of its messages whose sequence is 42 or higher. A range
with different starts or ends is divided into segments, each of which has other filters:

    1              42                    end
    | orders.us.>  | orders.us.>, eu.>   |
"""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, cast

from natsproto.errors import InvalidValue
from natsproto.wire.text import cut_middle, shorten

from .filters import overlap

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jetstream.schema.timestamp import Timestamp

    from .options import Settings

_STARTS = ("startingOffsets", "startingTimestamp")
_ENDS = ("endingOffsets", "endingTimestamp")
_NAMES = (*_STARTS, *_ENDS)


def place_of(settings: Settings, name: str, stream: str, subject: str = "") -> int | str | None:
    """Return the value of startingOffsets or endingOffsets; None if it was not given."""
    found: int | str | None = _value(settings, name, stream, subject)
    return found


def time_of(settings: Settings, name: str, stream: str, subject: str = "") -> Timestamp | None:
    """Return the value of startingTimestamp or endingTimestamp; None if it was not given."""
    found: Timestamp | None = _value(settings, name, stream, subject)
    return found


def _value(settings: Settings, name: str, stream: str, subject: str) -> Any:
    value: Any = settings.get(name)
    for key in (stream, subject):
        if isinstance(value, dict):
            value = cast("dict[str, Any]", value).get(key)
    return value


def subjects_of(settings: Settings) -> list[str]:
    """Return the filters if some option is by subject; otherwise [""]."""
    return settings.filters if any(_subjects_in(settings, name) for name in _NAMES) else [""]


def starts_by_subject(settings: Settings) -> bool:
    """Return whether subjects start at positions of their own."""
    return any(_subjects_in(settings, name) for name in _STARTS)


def _subjects_in(settings: Settings, name: str) -> list[str]:
    """Return the subjects that an option names."""
    value: Any = settings.get(name)
    inner: list[Any] = [*value.values()] if isinstance(value, dict) else []
    by_subject = [cast("dict[str, Any]", each) for each in inner if isinstance(each, dict)]
    return [subject for each in by_subject for subject in each]


def segments(bounds: Iterable[tuple[str, int, int]]) -> list[tuple[int, int, list[str]]]:
    """Return segments of sequences, in order, each with the subjects to read there.

    bounds  a subject, its first sequence, and the sequence to stop before
    """
    known = [(subject, start, end) for subject, start, end in bounds if start < end]
    places = sorted({place for _, start, end in known for place in (start, end)})
    found: list[tuple[int, int, list[str]]] = []
    for first, last in pairwise(places):
        active = [subject for subject, start, end in known if start <= first and last <= end]
        if active:
            found.append((first, last, active))
    return found


def check_bounds(settings: Settings) -> None:
    """Reject options for other streams or subjects, and ranges that end before they start."""
    streams = settings.list("stream")
    for name in _NAMES:
        value: Any = settings.get(name)
        named: list[str] = [*value] if isinstance(value, dict) else []
        if named and streams and set(named) != set(streams):
            text = "option %s is for streams %s, option stream for %s"
            raise InvalidValue(
                text % (name, cut_middle(",".join(named)), cut_middle(",".join(streams)))
            )
        _check_subjects(settings, name)
    for stream in streams or [""]:
        for subject in subjects_of(settings):
            _check_order(settings, stream, subject)


def _check_subjects(settings: Settings, name: str) -> None:
    named = _subjects_in(settings, name)
    if not named:
        return
    if len(settings.list("stream")) != 1:
        raise InvalidValue("option %s by subject is for a read of one stream" % name)
    filters = settings.filters
    if set(named) != set(filters):
        text = "option %s is for subjects %s, option filterSubjects for %s"
        shown = [cut_middle(",".join(each)) or "all" for each in (named, filters)]
        raise InvalidValue(text % (name, *shown))
    for one, other in combinations(filters, 2):
        if overlap(one, other):
            text = "option %s: subjects %s and %s overlap, so some messages have two positions"
            raise InvalidValue(text % (name, shorten(one), shorten(other)))


def _check_order(settings: Settings, stream: str, subject: str) -> None:
    """Reject a range that ends before it starts, as far as that is known here."""
    start = place_of(settings, "startingOffsets", stream, subject)
    end = place_of(settings, "endingOffsets", stream, subject)
    if isinstance(start, int) and isinstance(end, int) and start > end:
        text = "options startingOffsets %d and endingOffsets %d: the end is before the start"
        raise InvalidValue(text % (start, end))
    since = time_of(settings, "startingTimestamp", stream, subject)
    until = time_of(settings, "endingTimestamp", stream, subject)
    if since is not None and until is not None and since.ns > until.ns:
        text = "options startingTimestamp %s and endingTimestamp %s: the end is before the start"
        raise InvalidValue(text % (since, until))
