"""The options of the source and the sink: how they are parsed and checked (option_table.py).

Spark passes texts under case-insensitive names. An option that is unknown, does not apply,
contradicts another, or is out of range is rejected by name before anything is sent. Secrets appear
neither in repr nor in the errors that are raised here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from natsproto.errors import InvalidValue, LocalError
from natsproto.wire.text import cut_middle, shorten

from .bounds import check_bounds
from .filters import minimal
from .option_hints import hint_for
from .option_table import BATCH as BATCH
from .option_table import OPTIONS, READ, STREAM, WRITE, Option

if TYPE_CHECKING:
    from collections.abc import Mapping

# Options that Spark itself adds to those of a write.
_SPARKS_OWN = {"checkpointlocation", "queryname"}
# Spark's asynchronous progress tracking. It does not log every micro-batch, so a restarted query
# repeats rows under other numbers, and ids and markers would not fit.
_ASYNC = "asyncprogresstracking"
_BY_NAME = {option.name.lower(): option for option in OPTIONS}
_APART = [  # options that exclude each other, and the reason
    ("credsFile", "nkeySeedFile", "creds contain a seed"),
    ("credsFile", "user", "one kind of credentials is enough"),
    ("credsFile", "token", "one kind of credentials is enough"),
    ("nkeySeedFile", "user", "one kind of credentials is enough"),
    ("nkeySeedFile", "token", "one kind of credentials is enough"),
    ("user", "token", "the server uses only one of them"),
    ("domain", "apiPrefix", "a domain is a prefix"),
    ("subject", "filterSubjects", "both select the subjects to read"),
    ("bucket", "stream", "a bucket has its own stream"),
    ("objectStore", "stream", "an object store has its own stream"),
    ("bucket", "objectStore", "a read has one of them"),
    ("stream", "streamPattern", "both name the streams"),
    ("bucket", "streamPattern", "a bucket has its own stream"),
    ("objectStore", "streamPattern", "an object store has its own stream"),
    ("startingOffsets", "startingTimestamp", "both say where to start"),
    ("endingOffsets", "endingTimestamp", "both say where to end"),
]
_NEEDS = [  # options that require another
    ("user", "password"),
    ("password", "user"),
    ("tlsCert", "tlsKey"),
    ("tlsKey", "tlsCert"),
    ("maxTriggerDelay", "minMessagesPerTrigger"),
    ("keys", "bucket"),
    ("changes", "bucket"),
    ("pathGlobFilter", "objectStore"),
]
_CONSUMERS_OWN = [  # options that mode=consume leaves to its consumer
    "streamPattern",
    "startingOffsets",
    "startingTimestamp",
    "filterSubjects",
    "subject",
    "headersOnly",
    "minPartitions",
    "maxRecordsPerPartition",
    "minMessagesPerTrigger",
    "onRecreate",
]
_NEEDED = {"atomic": ("stream", "markerSubject"), "fast": ("stream",)}  # by the delivery
_ONE_DELIVERY = [  # options of one delivery only
    ("markerSubject", "atomic"),
    ("minDuplicateWindow", "dedup"),
    ("rowIds", "dedup"),
]

Names = list[str]  # in the class below `list` is a method


class Settings:
    """Parsed options. Picklable, because Spark sends them to its workers; repr hides secrets."""

    def __init__(self, values: dict[str, Any], given: set[str]) -> None:
        self._values = values
        self._given = given

    def given(self, name: str) -> bool:
        """Return whether the user has set this option."""
        return name in self._given

    def get(self, name: str) -> Any:
        """Return the parsed value; None if it was not given and has no default."""
        return self._values[name]

    def text(self, name: str) -> str:
        """Return a text, choice or secret; "" for none."""
        value: str | None = self._values[name]
        return value or ""

    def number(self, name: str) -> int:
        """Return a number; 0 for none."""
        value: int | None = self._values[name]
        return value or 0

    def seconds(self, name: str) -> float:
        """Return a duration in seconds; 0 for none."""
        value: float | None = self._values[name]
        return value or 0.0

    def flag(self, name: str) -> bool:
        """Return a flag."""
        value: bool = self._values[name]
        return value

    def list(self, name: str) -> list[str]:
        """Return a list; empty for none."""
        value: list[str] | None = self._values[name]
        return value or []

    @property
    def filters(self) -> Names:
        """The subjects to read, none of which covers another; empty for all."""
        subject = self.text("subject")
        return minimal([subject] if subject else self.list("filterSubjects"))

    def for_streams(self, names: Names) -> Settings:
        """Return these settings with a list of streams instead of a pattern."""
        return Settings({**self._values, "stream": names}, self._given)

    def __repr__(self) -> str:
        shown = ["%s=%s" % (name, self._show(name)) for name in sorted(self._given)]
        return "Settings(%s)" % ", ".join(shown)

    def _show(self, name: str) -> str:
        secret = _BY_NAME[name.lower()].type.secret
        return "***" if secret else cut_middle(str(self._values[name]))


def read_options(texts: Mapping[str, str], where: str | None) -> Settings:
    """Parse the options of a read or write; raise InvalidValue if one is invalid.

    `where` is None if it is not known yet whether it is a read or a write.
    """
    known = {name.lower(): text for name, text in texts.items()}
    values: dict[str, Any] = {}
    given: set[str] = set()
    for name, text in known.items():
        option = _BY_NAME.get(name)
        if option is not None and (where is None or where in option.where):
            values[option.name] = _value(option, text)
            given.add(option.name)
        elif option is not None:
            places = " and ".join(option.where)
            raise InvalidValue("option %s is for %s, not for a %s" % (option.name, places, where))
        elif name.lstrip("_").startswith(_ASYNC) and where in (WRITE, None):
            _check_async(name, text)
        elif not (name in _SPARKS_OWN and where in (WRITE, None)):
            raise _unknown(name, where)
    for option in OPTIONS:
        if option.name not in values:
            values[option.name] = None if option.default is None else _value(option, option.default)
    settings = Settings(values, given)
    _check_together(settings)
    if where in READ:
        if not (settings.given("stream") or settings.given("streamPattern")):
            raise InvalidValue("option stream is missing, or bucket, or objectStore")
        if settings.given("subject"):
            _value(_BY_NAME["filtersubjects"], settings.text("subject"))
    if where == STREAM:
        _check_stream(settings)
    if where == WRITE:
        _check_write(settings)
    return settings


def _value(option: Option, text: str) -> Any:
    try:
        return option.type.read(text.strip())
    except LocalError as error:  # first, because some are a ValueError as well
        raise InvalidValue("option %s: %s" % (option.name, error)) from None
    except ValueError as error:
        shown = "" if option.type.secret else " %s" % shorten(text)
        raise InvalidValue("option %s%s is not %s" % (option.name, shown, error)) from None


def _check_async(name: str, text: str) -> None:
    if name != _ASYNC + "enabled" or text.strip().lower() != "false":
        raise InvalidValue(
            "option %s is not supported: with asynchronous progress tracking a restarted query does"
            " not repeat the same micro-batches, so rows would be lost or stored twice"
            % cut_middle(name)
        )


def _unknown(name: str, where: str | None) -> InvalidValue:
    known = [option.name for option in OPTIONS if where is None or where in option.where]
    hint = hint_for(name, known)
    return InvalidValue("option %s is unknown%s" % (cut_middle(name), ": " + hint if hint else ""))


def _check_together(settings: Settings) -> None:
    for one, other, why in _APART:
        if settings.given(one) and settings.given(other):
            raise InvalidValue("options %s and %s exclude each other: %s" % (one, other, why))
    for one, other in _NEEDS:
        if settings.given(one) and not settings.given(other):
            raise InvalidValue("option %s needs option %s" % (one, other))
    if settings.text("fetchMode") == "direct" and settings.flag("headersOnly"):
        raise InvalidValue("options fetchMode=direct and headersOnly: direct get has no such mode")
    streams = settings.list("stream")
    if len(set(streams)) < len(streams):
        raise InvalidValue("option stream has a duplicate: %s" % cut_middle(",".join(streams)))
    check_bounds(settings)


def _check_stream(settings: Settings) -> None:
    least, most = settings.number("minMessagesPerTrigger"), settings.number("maxMessagesPerTrigger")
    if most and least > most:
        text = "minMessagesPerTrigger %d exceeds maxMessagesPerTrigger %d"
        raise InvalidValue(text % (least, most))
    if settings.text("mode") == "sequence":
        if settings.given("consumer"):
            raise InvalidValue("option consumer is for mode=consume")
        return
    if not settings.given("consumer"):
        raise InvalidValue("mode=consume needs option consumer, the name of a durable consumer")
    if len(settings.list("stream")) > 1:
        raise InvalidValue(
            "mode=consume reads one stream, not %s" % shorten(settings.list("stream"))
        )
    for name in [name for name in _CONSUMERS_OWN if settings.given(name)]:
        raise InvalidValue("option %s does not apply to mode=consume" % name)
    if settings.text("fetchMode") == "direct" or settings.text("onCommit") == "purge":
        text = "mode=consume reads and acknowledges by its consumer: no fetchMode or onCommit"
        raise InvalidValue(text)


def _check_write(settings: Settings) -> None:
    if settings.given("subject"):
        _value(_BY_NAME["markersubject"]._replace(name="subject"), settings.text("subject"))
    if len(settings.list("stream")) > 1:
        streams = shorten(settings.list("stream"))
        raise InvalidValue("option stream: a write has one stream, not %s" % streams)
    delivery = settings.text("delivery")
    for name in _NEEDED.get(delivery, ()):
        if not settings.given(name):
            raise InvalidValue("delivery=%s needs option %s" % (delivery, name))
    if settings.given("deadLetterSubject") and delivery in ("atomic", "fast"):
        text = "option deadLetterSubject is for delivery=dedup and atLeastOnce, not %s"
        raise InvalidValue(text % delivery)
    for name, other in _ONE_DELIVERY:
        if settings.given(name) and delivery != other:
            raise InvalidValue("option %s is for delivery=%s, not %s" % (name, other, delivery))
