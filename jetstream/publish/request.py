"""Publishing to a stream: the headers that say how, and the acknowledged publish itself."""

from __future__ import annotations

from jetstream.api.client import require_level
from jetstream.errors import NoStreamResponse, PublishInDoubt, PublishTimeout
from jetstream.schema.timestamp import Timestamp
from jetstream.schema.types import MOST_SEQUENCE
from natsproto.errors import (
    InvalidValue,
    NoResponders,
    PermissionDenied,
    RemoteError,
    TimeoutExpired,
)
from natsproto.session import check_count, check_flag, check_patience
from natsproto.wire.headers import Headers
from natsproto.wire.subjects import check_known_name, check_publish, check_subscribe
from natsproto.wire.text import shorten

from .acks import RETRY_WAIT, make_ack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypedDict

    from jetstream.api.client import Api
    from jetstream.schema.info import PubAck
    from natsproto.connection import Connection
    from natsproto.connection.waitable import Request
    from natsproto.session import Session
    from natsproto.wire.encode import BytesLike
    from natsproto.wire.frames import Msg
    from natsproto.wire.headers import HeadersLike

    from .acks import AckReader

    class PublishOptions(TypedDict, total=False):
        """How a stream is to take a message; see JetStream.publish."""

        headers: HeadersLike | None
        msg_id: str
        expect_stream: str
        expect_last_seq: int | None
        expect_last_subject_seq: int | None
        expect_last_subject: str
        expect_last_msg_id: str
        ttl: float | str | None


MSG_ID = "Nats-Msg-Id"
EXPECTED_STREAM = "Nats-Expected-Stream"
EXPECTED_LAST_SEQ = "Nats-Expected-Last-Sequence"
EXPECTED_LAST_SUBJECT_SEQ = "Nats-Expected-Last-Subject-Sequence"
EXPECTED_LAST_SUBJECT = "Nats-Expected-Last-Subject-Sequence-Subject"
EXPECTED_LAST_MSG_ID = "Nats-Expected-Last-Msg-Id"
TTL = "Nats-TTL"

# PUB-4: with a cluster behind it a 503 may be an election, which takes that long at most.
ELECTION = 10.0
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
_MOST_SECONDS = 2**63 // 10**9  # that a duration of the server holds
_MAX_SUBJECTS = 1024


class CheckedSubjects:
    """Subjects that were checked before are `known`, with what is sent of them."""

    __slots__ = ("known",)

    def __init__(self) -> None:
        self.known: dict[str, bytes] = {}

    def check(self, subject: str) -> bytes:
        """What is sent of this one from now on; InvalidSubject."""
        raw = check_publish(subject)
        if len(self.known) >= _MAX_SUBJECTS:
            self.known.clear()
        self.known[subject] = raw
        return raw


def publish_headers(
    options: PublishOptions, connection: Connection, others: tuple[str, ...] = ()
) -> Headers | None:
    """The user's headers and those of the options; None if there are none at all.

    `others` are the options that the caller has beside these.
    """
    for name in options:
        if name not in _OPTIONS:
            known = ", ".join(_OPTIONS + others)
            raise InvalidValue(
                "there is no option %s; there are %s" % (shorten(name), known), "PUB-9"
            )
    headers = options.get("headers")
    pairs = [
        (MSG_ID, _text(options, "msg_id")),
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
        # PUB-7: an older server would store it for ever and say nothing.
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
        raise InvalidValue("%s %s is not a str" % (name, shorten(value)), "PUB-9")
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


def time_to_live(ttl: float | str | None, name: str = "ttl") -> str:
    """Seconds as the server reads them: a whole number, or a duration, or never."""
    if ttl is None:
        return ""
    if ttl == "never":
        return "never"
    number = isinstance(ttl, (int, float)) and not isinstance(ttl, bool)
    if isinstance(ttl, str) or not number or not 1 <= ttl <= _MOST_SECONDS:
        text = "%s %s is neither 'never' nor a number of seconds from 1 to %d"
        raise InvalidValue(text % (name, shorten(ttl), _MOST_SECONDS), "PUB-7")
    return str(int(ttl)) if ttl == int(ttl) else "%dms" % round(ttl * 1000)


def schedule_headers(
    when: str, target: str, source: str, ttl: float | str | None, time_zone: str, rollup: bool
) -> list[tuple[str, str]]:
    """The headers of a scheduled message (ADR-51)."""
    _check_when(when)
    check_publish(target, "target")
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
        ("Nats-Schedule-TTL", time_to_live(ttl, "schedule_ttl")),
        ("Nats-Schedule-Time-Zone", time_zone),
        ("Nats-Schedule-Rollup", "sub" if check_flag("rollup", rollup) else ""),
    ]
    return [pair for pair in pairs if pair[1]]


def _check_when(when: str) -> None:
    """What is sure to be no schedule; the server, whose error tells nothing, looks closer."""
    known = "'@at <RFC 3339>', '@every 5m', '@daily' or a cron expression of six fields"
    wrong = not isinstance(when, str) or not when
    if not wrong and when.startswith("@at "):
        Timestamp.parse(when[4:])
    elif not wrong:
        # A cron expression without its seconds, or a duration without its unit.
        wrong = len(when.split()) < 6 if when[0] != "@" else when[-1].isdigit()
    if wrong:
        raise InvalidValue("when %s is not %s" % (shorten(when), known), "SCHED-5")


def in_cluster(connection: Connection) -> bool:
    """Whether the server is one of several, so that a stream may be without a leader for a time."""
    return connection.info is not None and connection.info.cluster != ""


def no_stream(connection: Connection, subject: str) -> NoStreamResponse:
    """Return the error for a 503, with the likely reason (PUB-22)."""
    info = connection.info
    if info is None or info.jetstream:
        return NoStreamResponse(subject)
    return NoStreamResponse(subject, "server %s has JetStream disabled" % shorten(info.server_name))


async def settle_publish(session: Session, request: Request) -> Msg:
    """Wait for the answer to a publish. PublishInDoubt if it was sent and none comes (PUB-21)."""
    try:
        reply = await session.settle(request)
    except NoResponders:
        raise
    except RemoteError as error:
        if isinstance(error, PermissionDenied) and error.subject == request.subject:
            raise  # the server has refused it
        late = isinstance(error, TimeoutExpired)
        text = "publish to %s was not acknowledged: %s: it may be stored or not" % (
            shorten(request.subject),
            "no answer in time" if late else error,
        )
        raise (PublishTimeout if late else PublishInDoubt)(text) from error
    assert reply is not None
    return reply


async def publish(
    api: Api,
    subject: str,
    data: BytesLike,
    headers: Headers | None,
    acks: AckReader,
    *,
    timeout: float | None,
    retries: int,
) -> PubAck:
    """Publish and wait for the stream's word; a 503 is tried again `retries` times (-1: always).

    A given timeout is for all of it. Without one each try may take the time that the API has.
    """
    if not isinstance(retries, int) or isinstance(retries, bool) or retries < -1:
        text = "retries %s is not a whole number from -1" % shorten(retries)
        raise InvalidValue(text, "PUB-3")
    session = api.session
    patience = ELECTION if retries and in_cluster(session.connection) else 0.0
    started = session.port.now()
    each = api.timeout if timeout is None else check_patience("timeout", timeout)
    end = started + (max(each, patience) if timeout is None else each)
    tries = 0
    while True:
        now = session.port.now()
        request = session.connection.start_request(
            subject, data, deadline=min(now + each, end), headers=headers
        )
        tries += 1
        try:
            reply = await settle_publish(session, request)
        except NoResponders:
            now = session.port.now()
            spent = retries >= 0 and tries > retries and now - started >= patience
            if spent or now + RETRY_WAIT >= end:
                raise no_stream(session.connection, subject) from None
            await session.sleep(RETRY_WAIT)
            continue
        return make_ack(acks.read(reply.data))
