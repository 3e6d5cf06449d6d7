"""The options of the source and the sink: one table, and the settings that it parses.

Spark passes texts under case-insensitive names. An option that is unknown, does not apply,
contradicts another, or is out of range is rejected by name before anything is sent. Secrets appear
neither in repr nor in the errors that are raised here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from natsproto.errors import InvalidValue, LocalError
from natsproto.wire.text import cut_middle, shorten

from .bounds import check_bounds
from .filters import minimal
from .option_hints import hint_for
from .option_types import (
    DURATION,
    FILE,
    FLAG,
    NAME,
    NAMES,
    OFFSETS,
    REGEX,
    SECRET,
    SUBJECT,
    SUBJECTS,
    TEXT,
    TIMEOUT,
    TIMESTAMPS,
    TOKEN,
    URLS,
    OptionType,
    choice,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


# Where an option applies.
BATCH, STREAM, WRITE = "batch read", "stream read", "write"
READ = (BATCH, STREAM)
EVERYWHERE = (BATCH, STREAM, WRITE)

# Options that Spark itself adds to those of a write.
_SPARKS_OWN = {"checkpointlocation", "queryname"}
# Spark's asynchronous progress tracking. It does not log every micro-batch, so a restarted query
# repeats rows under other numbers, and ids and markers would not fit.
_ASYNC = "asyncprogresstracking"


class Option(NamedTuple):
    """A row of the table; `default` is a text as a user would write it, or None."""

    name: str
    default: str | None
    type: OptionType
    where: tuple[str, ...]
    help: str


OPTIONS = [
    # The connection
    Option("servers", "nats://127.0.0.1:4222", URLS, EVERYWHERE, "URLs, without credentials"),
    Option("credsFile", None, FILE, EVERYWHERE, "a .creds file"),
    Option("nkeySeedFile", None, FILE, EVERYWHERE, "a file with the seed of an nkey"),
    Option("user", None, SECRET, EVERYWHERE, "with `password`"),
    Option("password", None, SECRET, EVERYWHERE, "with `user`"),
    Option("token", None, SECRET, EVERYWHERE, "a token"),
    Option("tls", "false", FLAG, EVERYWHERE, "no connection without TLS; implied by the others"),
    Option("tlsFirst", "false", FLAG, EVERYWHERE, "TLS handshake before the server sends INFO"),
    Option("tlsCa", None, FILE, EVERYWHERE, "certificates to trust, instead of the system's"),
    Option("tlsCert", None, FILE, EVERYWHERE, "our certificate, with `tlsKey`"),
    Option("tlsKey", None, FILE, EVERYWHERE, "the key of `tlsCert`"),
    Option("inboxPrefix", "_INBOX", SUBJECT, EVERYWHERE, "first tokens of reply subjects"),
    Option("domain", None, NAME, EVERYWHERE, "a JetStream domain"),
    Option("apiPrefix", None, SUBJECT, EVERYWHERE, "instead of `$JS.API`"),
    Option("requestTimeout", "5s", TIMEOUT, EVERYWHERE, "for each response of the server"),
    # The messages to read
    Option(
        "stream",
        None,
        NAMES,
        EVERYWHERE,
        "one stream or several; required; writing: one, and rows are stored in no other",
    ),
    Option(
        "streamPattern",
        None,
        REGEX,
        READ,
        "instead of `stream`: all streams whose whole name matches; see *Several streams*",
    ),
    Option("filterSubjects", None, SUBJECTS, READ, "read only these, wildcards allowed"),
    Option(
        "startingOffsets",
        None,
        OFFSETS,
        READ,
        "earliest, latest, a sequence, or JSON by stream or subject; default"
        ' "earliest" for batches, "latest" for queries without a checkpoint',
    ),
    Option(
        "startingTimestamp",
        None,
        TIMESTAMPS,
        READ,
        "the first message of that time or later; a time, or JSON by stream or subject",
    ),
    Option("endingOffsets", None, OFFSETS, (BATCH,), "the sequence to stop before; default latest"),
    Option(
        "endingTimestamp",
        None,
        TIMESTAMPS,
        (BATCH,),
        "only messages before that time; a time, or JSON by stream or subject",
    ),
    Option("headersOnly", "false", FLAG, READ, "no payloads: `data` is null"),
    Option("failOnDataLoss", "true", FLAG, READ, "false: warn if messages are gone, and continue"),
    # Key-value buckets and object stores: stores.py
    Option("bucket", None, NAME, READ, "instead of `stream`: a key-value bucket, as a table"),
    Option("keys", None, SUBJECTS, READ, "with `bucket`: only these keys, wildcards allowed"),
    Option("changes", "false", FLAG, READ, "with `bucket`: every change, not the latest values"),
    Option("objectStore", None, NAME, (BATCH,), "instead of `stream`: an object store, as files"),
    Option("pathGlobFilter", None, TEXT, (BATCH,), "with `objectStore`: only names like `*.png`"),
    # How to read them
    Option(
        "minPartitions", None, whole(1, 100_000), READ, "the least number of tasks, if possible"
    ),
    Option("maxRecordsPerPartition", None, whole(1), READ, "the most sequences for one task"),
    Option("fetchMode", "pull", choice("pull", "direct"), READ, "direct: without a consumer"),
    Option("fetchSize", "10000", whole(1, 1_000_000), READ, "messages per pull"),
    Option("arrowBatchRows", "10000", whole(1, 1_000_000), READ, "the most rows of an Arrow batch"),
    # Streaming
    Option("maxMessagesPerTrigger", None, whole(1), (STREAM,), "limit of a micro-batch"),
    Option(
        "maxBytesPerTrigger",
        None,
        whole(1),
        (STREAM,),
        "limit of a micro-batch, payloads and headers",
    ),
    Option("minMessagesPerTrigger", None, whole(1), (STREAM,), "wait until there are this many"),
    Option("maxTriggerDelay", None, DURATION, (STREAM,), "but no longer than this; default 15m"),
    Option(
        "mode", "sequence", choice("sequence", "consume"), (STREAM,), "how the position is kept"
    ),
    Option("consumer", None, NAME, (STREAM,), "the durable pull consumer of mode=consume"),
    Option(
        "onCommit", "none", choice("none", "purge"), (STREAM,), "purge messages of finished batches"
    ),
    # Writing
    Option(
        "subject",
        None,
        TEXT,
        EVERYWHERE,
        "reading: one subject, like `filterSubjects`; writing: for rows whose column has none",
    ),
    Option(
        "delivery",
        "dedup",
        choice("dedup", "atomic", "fast", "atLeastOnce"),
        (WRITE,),
        "what happens to stored rows when a task runs again",
    ),
    Option(
        "rowIds",
        "position",
        choice("position", "content"),
        (WRITE,),
        "delivery=dedup: the id of a row without a `msg_id`; content: equal rows of a micro-batch"
        " are one row",
    ),
    Option(
        "deadLetterSubject",
        None,
        SUBJECT,
        (WRITE,),
        "delivery=dedup and atLeastOnce: rows that cannot be written are published there: see"
        " *Dead letters*",
    ),
    Option("maxInFlight", "4096", whole(1, 65_536), (WRITE,), "the most unacknowledged messages"),
    Option(
        "writeId",
        None,
        TOKEN,
        (WRITE,),
        "names a batch write, so that it can be repeated: see *writeId*; default: a new name;"
        " queries are also identified by the id in their checkpoint",
    ),
    Option(
        "markerSubject",
        None,
        SUBJECT,
        (WRITE,),
        "delivery=atomic: the stream has `<markerSubject>.>`, and nothing else is published there",
    ),
    Option(
        "minDuplicateWindow",
        "2m",
        DURATION,
        (WRITE,),
        "delivery=dedup: warn if the stream's `duplicate_window` is shorter",
    ),
]
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
