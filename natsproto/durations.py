"""Durations that users pass: a number of seconds, or an object such as a timedelta.

Every public parameter that takes seconds accepts both. Numbers are used unchanged, at no extra
cost; any other value is converted here, and nowhere else. The core does not import
datetime, which MicroPython lacks: whatever has `total_seconds()` is a duration.
"""

from __future__ import annotations

from .errors import InvalidValue
from .wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any, Protocol, TypeAlias

    class HasTotalSeconds(Protocol):
        """A duration; datetime.timedelta is one."""

        def total_seconds(self) -> float:
            """Return the duration in seconds."""
            ...

    Seconds: TypeAlias = float | HasTotalSeconds


LONGEST = 10**9  # 31 years


def to_seconds(value: Any) -> Any:  # D-SPAN-1
    """Return a timedelta in seconds, and any other value unchanged, for the caller to check."""
    if isinstance(value, (int, float, type)):
        return value
    convert = getattr(value, "total_seconds", None)
    return value if convert is None else convert()


def in_range(seconds: Any, least: float, most: float) -> bool:
    """Return whether it is a number in this range; NaN, infinity and bools are not."""
    number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    return number and least <= seconds <= most


def check_seconds(
    name: str, value: Seconds, least: float = 0.0, most: float = LONGEST, rule: str = "D-SPAN-2"
) -> float:
    """Return a duration in seconds; raise InvalidValue unless it is from `least` to `most`."""
    kind = type(value)
    if (kind is float or kind is int) and least <= value <= most:  # type: ignore[operator]
        return value  # type: ignore[return-value]  # the common case, in 0.1 us
    seconds: float = to_seconds(value)
    if not in_range(seconds, least, most):
        text = "%s %s is not a number of seconds from %g to %d"
        raise InvalidValue(text % (name, shorten(value), least, most), rule)
    return seconds


def check_patience(name: str, value: Seconds) -> float:
    """Return a duration in seconds; raise InvalidValue if it leaves no time for a response."""
    if type(value) is float and 0.0 < value <= LONGEST:
        return value  # the common case, without a call
    seconds = check_seconds(name, value)
    if seconds == 0:
        text = "%s 0 leaves no time for a response of the server: it must be above 0"
        raise InvalidValue(text % name, "D-REQ-11")
    return seconds
