"""Write events to the log: the logger `natsproto` of the standard library.

Machines return events, and the driver passes each of them to an EventLogger, whether or not the
program reads `client.events` or `messages.events`. The record of an event has these fields, for
handlers that write structured logs (D-LOG-6):

    nats_event    the class of the event, as in "Disconnected"
    nats_source   what the event is about, as in "consumer 'w' of stream 'ORDERS'"; "" for the
                  connection
    nats_client   the `name` option of the client
    nats_repeats  how many equal warnings were suppressed since the last record
    nats_...      the fields of the event: nats_url, nats_error, nats_subject, nats_dropped, ...

A warning that occurs repeatedly is logged at growing intervals. This module does nothing
where `logging` is missing, as on MicroPython.
"""

from __future__ import annotations

import sys

from natsproto.errors import NatsError
from natsproto.events import WARNING, AttemptFailed, Connected, SlowConsumer
from natsproto.urls import hide_credentials

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from logging import Logger

    from natsproto.connection.waitable import Reported, Reports

LOGGER = "natsproto"
# D-LOG-3: seconds until an equal warning is logged again; the time doubles up to the longest.
FIRST_REPEAT = 10.0
LONGEST_REPEAT = 60.0
# How many different warnings are distinguished; beyond that, only their classes are.
MOST_CAUSES = 64
_LEVELS = {"debug": 10, "info": 20, "warning": 30}


class Cause:
    """The warnings with one cause: when to log the next one, and how many were suppressed."""

    def __init__(self) -> None:
        self.due: float = 0.0
        self.interval: float = FIRST_REPEAT
        self.repeats: int = 0
        self.dropped: int = 0

    def admits(self, now: float) -> bool:
        """Return whether to log a warning now."""
        if now < self.due:
            self.repeats += 1
            return False
        if now >= self.due + LONGEST_REPEAT:
            self.interval = FIRST_REPEAT  # it is no longer the same problem
        self.due = now + self.interval
        self.interval = min(2 * self.interval, LONGEST_REPEAT)
        return True


class EventLogger:
    """Writes the events of one client to the log."""

    def __init__(self, client: str) -> None:
        self._client = client
        self._causes: dict[tuple[str, ...], Cause] = {}

    def write(self, reports: Reports, clock: Callable[[], float]) -> None:
        """Take the events of one source and write them to the log; the clock returns the time."""
        for event in reports.take():
            level = event.level
            logger = _logger(level)
            if logger is not None:
                try:
                    self._write(logger, level, reports.source, event, clock())
                except Exception:  # D-LOG-5: of a filter or a handler, not of the connection
                    _print_traceback()

    def _write(self, logger: Logger, level: str, source: str, event: Reported, now: float) -> None:
        if isinstance(event, Connected):
            self._forget_attempts()
        name = type(event).__name__
        text = event.text
        slow = event if isinstance(event, SlowConsumer) else None
        # The text of a SlowConsumer contains a number that differs each time.
        cause = Cause()
        if level == WARNING:
            cause = self._cause(name, source, text if slow is None else str(slow.sid))
        if slow is not None:
            cause.dropped += slow.dropped
        if not cause.admits(now):
            return
        if slow is not None:
            event = SlowConsumer(slow.subject, slow.sid, cause.dropped)
            text = event.text
        fields = self._fields(name, source, event)
        fields["nats_repeats"] = cause.repeats
        cause.repeats = cause.dropped = 0
        text = _clean(text)
        if source and source not in text:
            text = "%s: %s" % (source, text)
        # The class is part of the format, not of the arguments: error trackers group by it.
        logger.log(_LEVELS[level], "%s (" + name + ")", text, extra=fields)

    def _cause(self, name: str, source: str, text: str) -> Cause:
        key: tuple[str, ...] = (name, source, text)
        if key not in self._causes and len(self._causes) >= MOST_CAUSES:
            key = (name,)
        if key not in self._causes:
            self._causes[key] = Cause()
        return self._causes[key]

    def _forget_attempts(self) -> None:
        """Reset the intervals of failed attempts: the next one belongs to another outage."""
        name = AttemptFailed.__name__
        self._causes = {key: self._causes[key] for key in self._causes if key[0] != name}

    def _fields(self, name: str, source: str, event: Reported) -> dict[str, object]:
        fields: dict[str, object] = {
            "nats_event": name,
            "nats_source": source,
            "nats_client": self._client,
        }
        for field in event.__slots__:
            fields["nats_" + field] = _field(getattr(event, field))
        return fields


def _field(value: object) -> object:
    """Return the value of a field: a number, or text that may be shown."""
    if value is None or isinstance(value, (int, float)):
        return value
    if isinstance(value, BaseException) and not isinstance(value, NatsError):
        return type(value).__name__  # D-LOG-2: the user's text may quote a message
    return _clean(str(value))


def _clean(text: str) -> str:
    """Return the text without credentials, and without characters that would break a line."""
    from natsproto.explain import printable

    return printable(hide_credentials(text))  # D-LOG-2


def _logger(level: str) -> Logger | None:
    """Return the logger, if it may write this level; None without the module `logging`."""
    # A program that has not imported logging has not configured it either: only warnings are
    # visible then, and only they are worth the import.
    if level != WARNING and "logging" not in sys.modules:
        return None
    try:
        import logging
    except ImportError:
        return None
    logger = logging.getLogger(LOGGER)
    return logger if logger.isEnabledFor(_LEVELS[level]) else None


def _print_traceback() -> None:
    import traceback

    traceback.print_exc()
