"""Timestamps with nanosecond precision, as the server has them.

They are whole nanoseconds since 1970 in UTC, and RFC 3339 text on the wire. A datetime has
microseconds only and does not exist on MicroPython; conversions exist in both directions.
"""

from __future__ import annotations

from natsproto.errors import InvalidValue
from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import TypeAlias

    TimestampLike: TypeAlias = "Timestamp | datetime | str | int"

SECOND = 10**9
# The years 1 to 9999. The first moment is Go's zero time, which means "none".
FIRST = -62_135_596_800 * SECOND
LAST = 253_402_300_800 * SECOND - 1
_DIGITS = "0123456789"  # not str.isdigit(), which accepts those of other scripts
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
# The seconds of midnight by date, of days that were parsed before: most times are on few days.
_midnights: dict[str, int] = {}
_MAX_MIDNIGHTS = 32


class Timestamp:
    """A moment: `ns` nanoseconds since 1970-01-01T00:00:00Z. Timestamps are ordered and hashable.

    str() returns RFC 3339 text in UTC, with as many fractional digits as needed.
    """

    __slots__ = ("ns",)

    def __init__(self, ns: int) -> None:
        if not isinstance(ns, int) or isinstance(ns, bool):
            raise InvalidValue(
                "timestamp is not a whole number of nanoseconds: %s" % shorten(ns), "D-TIME-6"
            )
        if not FIRST <= ns <= LAST:
            raise InvalidValue(
                "timestamp is not in the years 1 to 9999: %s" % shorten(ns), "TIME-5"
            )
        self.ns: int = ns

    @classmethod
    def parse(cls, text: str) -> Timestamp:
        """Parse RFC 3339 text, to the nanosecond; raise InvalidValue if it is invalid."""
        return _parse(text, False)

    @classmethod
    def of(cls, value: TimestampLike) -> Timestamp:
        """Convert a Timestamp, RFC 3339 text, nanoseconds or an aware datetime.

        Raises InvalidValue for anything else.
        """
        if isinstance(value, Timestamp):
            return value
        if isinstance(value, str):
            return cls.parse(value)
        if isinstance(value, int):
            return cls(value)
        if not hasattr(value, "utcoffset"):
            text = "%s is neither RFC 3339 text nor a Timestamp, an aware datetime or nanoseconds"
            raise InvalidValue(text % shorten(value), "D-TIME-6")
        if value.utcoffset() is None:
            # It would depend on the time zone of the machine.
            raise InvalidValue(
                "datetime %s has no time zone: set its tzinfo" % shorten(value), "D-TIME-6"
            )
        return _parse(value.isoformat(), True)

    def datetime(self) -> datetime:
        """Return an aware datetime in UTC, truncated to microseconds."""
        from datetime import datetime, timedelta, timezone

        return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=self.ns // 1000)

    def __str__(self) -> str:
        seconds, ns = divmod(self.ns, SECOND)
        days, seconds = divmod(seconds, 86400)
        minutes, second = divmod(seconds, 60)
        year, month, day = _civil(days)
        date = "%04d-%02d-%02dT%02d:%02d:%02d" % (
            year,
            month,
            day,
            minutes // 60,
            minutes % 60,
            second,
        )
        return date + (("." + "%09d" % ns).rstrip("0") if ns else "") + "Z"  # TIME-3

    def __repr__(self) -> str:
        return "Timestamp(%r)" % str(self)

    def __eq__(self, other: object) -> bool:
        return self.ns == other.ns if isinstance(other, Timestamp) else NotImplemented

    def __lt__(self, other: Timestamp) -> bool:
        return self.ns < other.ns if isinstance(other, Timestamp) else NotImplemented

    def __le__(self, other: Timestamp) -> bool:
        return self.ns <= other.ns if isinstance(other, Timestamp) else NotImplemented

    def __gt__(self, other: Timestamp) -> bool:
        return self.ns > other.ns if isinstance(other, Timestamp) else NotImplemented

    def __ge__(self, other: Timestamp) -> bool:
        return self.ns >= other.ns if isinstance(other, Timestamp) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.ns)


def _parse(text: str, seconds_in_offset: bool) -> Timestamp:
    if not isinstance(text, str):
        raise InvalidValue("timestamp %s is not a str" % shorten(text), "TIME-1")
    date, clock, fraction, offset = text[:10], text[10:19], "", text[19:]
    if offset[:1] == ".":
        rest = offset[1:].lstrip(_DIGITS)
        fraction, offset = offset[1 : len(offset) - len(rest)], rest
        if not fraction:
            raise _bad(text, "has no digit after the point")
    if date[4:5] + date[7:8] != "--" or clock[:1] not in ("T", "t", " "):
        raise _bad(text, "is not in the form 2006-01-02T15:04:05Z")
    if clock[3:4] + clock[6:7] != "::":
        raise _bad(text, "is not in the form 2006-01-02T15:04:05Z")
    midnight = _midnights.get(date)
    if midnight is None:
        midnight = _midnight(text, date)
    hour = _number(text, clock[1:3], 2, 0, 23, "hour")
    minute = _number(text, clock[4:6], 2, 0, 59, "minute")
    second = _number(text, clock[7:], 2, 0, 59, "second")
    total = midnight + (hour * 60 + minute) * 60 + second
    if offset != "Z":
        total -= _offset(text, offset, seconds_in_offset)
    # TIME-2: the server has nine digits; further digits of other sources are dropped.
    return Timestamp(total * SECOND + int((fraction + "000000000")[:9]))


def _midnight(text: str, date: str) -> int:
    year = _number(text, date[:4], 4, 1, 9999, "year")
    month = _number(text, date[5:7], 2, 1, 12, "month")
    last = 29 if month == 2 and _is_leap(year) else _DAYS[month - 1]
    day = _number(text, date[8:], 2, 1, last, "day")
    if len(_midnights) >= _MAX_MIDNIGHTS:
        _midnights.clear()
    _midnights[date] = _days(year, month, day) * 86400
    return _midnights[date]


def _offset(text: str, offset: str, seconds: bool) -> int:
    if offset == "z":
        return 0
    sign = {"+": 1, "-": -1}.get(offset[:1], 0)
    if not sign or offset[3:4] != ":":
        raise _bad(text, "does not end in Z or an offset like +01:00")
    total = _number(text, offset[1:3], 2, 0, 23, "hour of the offset") * 3600
    total += _number(text, offset[4:6], 2, 0, 59, "minute of the offset") * 60
    if len(offset) > 6:
        # Zones had such offsets before 1972; a datetime can express them, RFC 3339 cannot.
        if not seconds or offset[6] != ":":
            raise _bad(text, "continues after its offset")
        total += _number(text, offset[7:], 2, 0, 59, "second of the offset")
    return sign * total


def _number(text: str, digits: str, length: int, least: int, most: int, what: str) -> int:
    number = -1 if len(digits) != length or digits.strip(_DIGITS) else int(digits)
    if not least <= number <= most:
        raise _bad(text, "has the %s %s, not %d to %d" % (what, shorten(digits), least, most))
    return number


def _bad(text: str, why: str) -> InvalidValue:
    return InvalidValue("timestamp %s %s" % (shorten(text), why), "TIME-1")


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


# In the calendar used here, years begin in March, so that the leap day comes last; five months
# have 153 days, and the 400 years after which everything repeats have 146097 days.
def _days(year: int, month: int, day: int) -> int:
    """Return the days since 1970-01-01."""
    year -= month <= 2
    era, of_era = divmod(year, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


def _civil(days: int) -> tuple[int, int, int]:
    """Return year, month and day; the inverse of _days."""
    era, of_era = divmod(days + 719468, 146097)
    year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    return era * 400 + year + (month <= 2), month, day
