"""Filters of a query that narrow the read: on sequence, timestamp and subject.

Spark applies all filters to the rows as well, so reading too much is harmless; reading too little
is not.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from jetstream.schema.timestamp import Timestamp
from natsproto.errors import LocalError
from natsproto.wire.subjects import check_publish

from .filters import intersection

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

_FAR = 2**63 - 1
_MICROSECOND = 1000  # nanoseconds
# The maximum number of filters of a consumer, which checks each of them for each message.
_MOST_SUBJECTS = 100
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# The clocks of successive leaders differ, so times are in order only up to this skew.
SKEW = 10 * 10**9


class Narrowing:
    """The range that the filters leave: sequences, times in nanoseconds, and subjects."""

    def __init__(self) -> None:
        self.first: int = 1
        self.last: int = _FAR
        self.earliest: int = 0
        self.latest: int = _FAR
        #: None for all subjects.
        self.subjects: list[str] | None = None

    def add(self, query: Filter) -> None:
        """Apply a filter, if it narrows the read."""
        name = type(query).__name__
        attribute: tuple[str, ...] = getattr(query, "attribute", ())
        value: Any = getattr(query, "value", None)
        if attribute == ("sequence",):
            self._narrow("first", "last", name, value, 1)
        elif attribute == ("timestamp_ns",):
            self._narrow("earliest", "latest", name, value, 1)
        elif attribute == ("timestamp",):
            values = value if name == "In" else (value,)
            if all(isinstance(each, datetime) for each in values):
                moments = tuple(_nanoseconds(each) for each in values)
                scaled = moments if name == "In" else moments[0]
                self._narrow("earliest", "latest", name, scaled, _MICROSECOND)
        elif attribute == ("subject",):
            self._subjects(name, value)

    def _narrow(self, low: str, high: str, name: str, value: Any, unit: int) -> None:
        """Narrow a range; values that differ by less than `unit` are equal to Spark."""
        values = value if name == "In" else (value,)
        if not values or not all(type(each) is int for each in values):
            return
        least, most = min(values), max(values) + unit - 1
        if name in ("EqualTo", "EqualNullSafe", "In", "GreaterThanOrEqual"):
            setattr(self, low, max(getattr(self, low), least))
        if name in ("EqualTo", "EqualNullSafe", "In", "LessThanOrEqual"):
            setattr(self, high, min(getattr(self, high), most))
        if name == "GreaterThan":
            setattr(self, low, max(getattr(self, low), most + 1))
        if name == "LessThan":
            setattr(self, high, min(getattr(self, high), least - 1))

    def _subjects(self, name: str, value: Any) -> None:
        if name in ("EqualTo", "EqualNullSafe", "In"):
            values = value if name == "In" else (value,)
            if all(_is_subject(each) for each in values):
                self._keep(list(dict.fromkeys(values)))
        elif name == "StringStartsWith" and isinstance(value, str):
            # Up to the last dot: the text after it may be the start of a token.
            tokens = value.rpartition(".")[0]
            if _is_subject(tokens):
                self._keep([tokens + ".>"])

    def _keep(self, subjects: list[str]) -> None:
        if len(subjects) <= _MOST_SUBJECTS:
            self.subjects = intersection(self.subjects, subjects)

    @property
    def by_time(self) -> tuple[Timestamp | None, Timestamp | None]:
        """The earliest and, exclusively, the latest time to read, with room for clock skew."""
        earliest = Timestamp(self.earliest - SKEW) if self.earliest > SKEW else None
        latest = Timestamp(self.latest + 1 + SKEW) if self.latest < _FAR - SKEW else None
        return earliest, latest


def _nanoseconds(value: datetime) -> int:
    # A naive datetime is UTC: this is how Spark passes literals.
    moment = value if value.tzinfo is not None else value.replace(tzinfo=timezone.utc)
    difference = moment - _EPOCH
    microseconds = (difference.days * 86400 + difference.seconds) * 10**6
    return (microseconds + difference.microseconds) * _MICROSECOND


def _is_subject(value: Any) -> bool:
    """Return whether the server can filter by it; a replacement character stands for any byte."""
    if not isinstance(value, str) or "\ufffd" in value:
        return False
    try:
        check_publish(value)
    except LocalError:
        return False
    return True
