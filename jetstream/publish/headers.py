"""Headers of a publish: the options that JetStream reads from headers, checked and encoded."""

from __future__ import annotations

from jetstream.api.client import require_level
from jetstream.schema.types import MOST_SEQUENCE
from natsproto.durations import in_range, to_seconds
from natsproto.errors import InvalidValue
from natsproto.session import check_count, check_flag
from natsproto.wire.headers import Headers
from natsproto.wire.subjects import check_known_name, check_publish, check_subscribe
from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any, TypedDict

    from natsproto.connection import Connection
    from natsproto.durations import Seconds
    from natsproto.wire.headers import HeadersLike

    class PublishOptions(TypedDict, total=False):
        """The options of a publish; see JetStream.publish."""

        headers: HeadersLike | None
        msg_id: str
        expect_stream: str
        expect_last_seq: int | None
        expect_last_subject_seq: int | None
        expect_last_subject: str
        expect_last_msg_id: str
        ttl: Seconds | str | None


MSG_ID = "Nats-Msg-Id"
EXPECTED_STREAM = "Nats-Expected-Stream"
EXPECTED_LAST_SEQ = "Nats-Expected-Last-Sequence"
EXPECTED_LAST_SUBJECT_SEQ = "Nats-Expected-Last-Subject-Sequence"
EXPECTED_LAST_SUBJECT = "Nats-Expected-Last-Subject-Sequence-Subject"
EXPECTED_LAST_MSG_ID = "Nats-Expected-Last-Msg-Id"
TTL = "Nats-TTL"

_OPTIONS = (
    "headers",
    "msg_id",
    "expect_stream",
    "expect_last_seq",
    "expect_last_subject_seq",
    "expect_last_subject",
    "expect_last_msg_id",
    "ttl",
)
_MOST_SECONDS = 2**63 // 10**9  # the longest duration that the server can represent


def publish_headers(
    options: PublishOptions, connection: Connection, others: tuple[str, ...] = ()
) -> Headers | None:
    """Return the user's headers and those of the options; None if there are none.

    `others` are further options of the caller, for the error message.
    """
    for name in options:
        if name not in _OPTIONS:
            from jetstream.api.hints import PUBLISH
            from natsproto.hints import with_hint

            if name in PUBLISH:
                raise InvalidValue(with_hint("option does not exist: %s", name, PUBLISH), "D-PUB-9")
            known = ", ".join(_OPTIONS + others)
            raise InvalidValue(
                "option does not exist: %s; the options are %s" % (shorten(name), known), "D-PUB-9"
            )
    headers = options.get("headers")
    pairs = [
        (MSG_ID, _text(options, "msg_id")),  # PUB-8
        (EXPECTED_STREAM, _expected_stream(options)),
        (EXPECTED_LAST_SEQ, _sequence(options, "expect_last_seq")),
        (EXPECTED_LAST_SUBJECT_SEQ, _sequence(options, "expect_last_subject_seq")),
        (EXPECTED_LAST_SUBJECT, _expected_subject(options)),
        (EXPECTED_LAST_MSG_ID, _text(options, "expect_last_msg_id")),
        (TTL, time_to_live(options.get("ttl"))),
    ]
    pairs = [pair for pair in pairs if pair[1]]
    if headers is None and not pairs:
        return None
    result = Headers(headers or ())
    for header, value in pairs:
        result.set(header, value)
    if TTL in result:
        # PUB-7: an older server would silently keep the message forever.
        require_level(connection.info, 1, "the TTL of a message")
    if EXPECTED_LAST_SUBJECT in result:
        # PUB-20: an older server would compare with the message's own subject.
        require_level(connection.info, 1, "expect_last_subject")
    return result


def _text(options: PublishOptions, name: str) -> str:
    value: object = options.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidValue("%s %s is not a str" % (name, shorten(value)), "D-PUB-9")
    return value


def _expected_stream(options: PublishOptions) -> str:
    name = _text(options, "expect_stream")
    return check_known_name("expect_stream", name) if name else ""


def _sequence(options: PublishOptions, name: str) -> str:
    value: Any = options.get(name)
    return "" if value is None else str(check_count(name, value, 0, MOST_SEQUENCE, "PUB-6"))


def _expected_subject(options: PublishOptions) -> str:
    subject = options.get("expect_last_subject") or ""
    if subject:
        check_subscribe(subject, "expect_last_subject")
        if options.get("expect_last_subject_seq") is None:
            text = "expect_last_subject %s needs expect_last_subject_seq" % shorten(subject)
            raise InvalidValue(text, "PUB-6")
    return subject


def time_to_live(ttl: Seconds | str | None, name: str = "ttl") -> str:
    """Return a TTL in the server's form: whole seconds, milliseconds, or never."""
    if ttl is None:
        return ""
    if ttl == "never":
        return "never"
    seconds: float = to_seconds(ttl)
    if not in_range(seconds, 1, _MOST_SECONDS):
        text = "%s %s is neither 'never' nor a number of seconds from 1 to %d"
        raise InvalidValue(text % (name, shorten(ttl), _MOST_SECONDS), "PUB-7")
    return str(int(seconds)) if seconds == int(seconds) else "%dms" % round(seconds * 1000)


def schedule_headers(
    when: str, target: str, source: str, ttl: Seconds | str | None, time_zone: str, rollup: bool
) -> list[tuple[str, str]]:
    """Return the headers of a scheduled message (ADR-51)."""
    _check_when(when)
    check_publish(target, "target")  # SCHED-1
    if source:
        check_publish(source, "source")
    if not isinstance(time_zone, str):
        raise InvalidValue("time_zone %s is not a str" % shorten(time_zone), "SCHED-3")
    if time_zone and when.startswith(("@at ", "@every ")):
        raise InvalidValue("%s has no time zone; cron schedules do" % shorten(when), "SCHED-3")
    pairs = [
        ("Nats-Schedule", when),
        ("Nats-Schedule-Target", target),
        ("Nats-Schedule-Source", source),
        ("Nats-Schedule-TTL", time_to_live(ttl, "schedule_ttl")),  # SCHED-4
        ("Nats-Schedule-Time-Zone", time_zone),
        ("Nats-Schedule-Rollup", "sub" if check_flag("rollup", rollup) else ""),
    ]
    return [pair for pair in pairs if pair[1]]


def _check_when(when: str) -> None:
    """Reject an obviously invalid schedule: the server's own error does not name the reason."""
    known = "'@at <RFC 3339>', '@every 5m', '@daily' or a cron expression of six fields"
    wrong = not isinstance(when, str) or not when
    if not wrong and when.startswith("@at "):
        from jetstream.schema.timestamp import Timestamp

        Timestamp.parse(when[4:])
    elif not wrong:
        # A cron expression without its seconds, or a duration without its unit.
        wrong = len(when.split()) < 6 if when[0] != "@" else when[-1].isdigit()
    if wrong:
        raise InvalidValue("when %s is not %s" % (shorten(when), known), "SCHED-5")
