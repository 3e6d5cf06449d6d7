"""Publishing to a stream: the headers that say how, and the acknowledged publish itself."""

from __future__ import annotations

from natsproto.errors import InvalidValue, NoResponders
from natsproto.headers import Headers
from natsproto.subjects import check_publish

from .call import read_reply
from .errors import NoStreamResponse
from .info import PubAck
from .publisher import RETRY_WAIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from natsproto.encode import BytesLike
    from natsproto.headers import HeadersLike
    from natsproto.session import Session

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
_ELECTION = 10.0


def publish_headers(options: PublishOptions) -> Headers | None:
    """The user's headers and those of the options; None if there are none at all."""
    headers = options.get("headers")
    pairs = [
        (MSG_ID, options.get("msg_id", "")),
        (EXPECTED_STREAM, options.get("expect_stream", "")),
        (EXPECTED_LAST_SEQ, _sequence(options, "expect_last_seq")),
        (EXPECTED_LAST_SUBJECT_SEQ, _sequence(options, "expect_last_subject_seq")),
        (EXPECTED_LAST_SUBJECT, options.get("expect_last_subject", "")),
        (EXPECTED_LAST_MSG_ID, options.get("expect_last_msg_id", "")),
        (TTL, time_to_live(options.get("ttl"))),
    ]
    pairs = [pair for pair in pairs if pair[1]]
    if headers is None and not pairs:
        return None
    result = Headers(headers or ())
    for name, value in pairs:
        result.set(name, value)
    return result


def _sequence(options: PublishOptions, name: str) -> str:
    value: object = options.get(name)
    if value is None:
        return ""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidValue("%s %r is not a sequence" % (name, value), "PUB-6")
    return str(value)


def time_to_live(ttl: float | str | None) -> str:
    """Seconds as the server reads them: a whole number, or a duration, or never."""
    if ttl is None:
        return ""
    if ttl == "never":
        return "never"
    if not isinstance(ttl, (int, float)) or isinstance(ttl, bool) or not ttl >= 1:
        raise InvalidValue("ttl %r is neither 'never' nor 1 second or more" % (ttl,), "PUB-7")
    return str(int(ttl)) if ttl == int(ttl) else "%dms" % round(ttl * 1000)


def schedule_headers(
    when: str, target: str, source: str, ttl: float | str | None, time_zone: str
) -> list[tuple[str, str]]:
    """The headers of a scheduled message (ADR-51)."""
    if not when:
        raise InvalidValue("when is empty: a schedule needs a time", "SCHED-1")
    check_publish(target, "target")
    pairs = [
        ("Nats-Schedule", when),
        ("Nats-Schedule-Target", target),
        ("Nats-Schedule-Source", source),
        ("Nats-Schedule-TTL", time_to_live(ttl)),
        ("Nats-Schedule-Time-Zone", time_zone),
    ]
    return [pair for pair in pairs if pair[1]]


async def publish(
    session: Session,
    subject: str,
    data: BytesLike,
    headers: Headers | None,
    *,
    timeout: float,
    retries: int,
) -> PubAck:
    """Publish and wait for the stream's word; a 503 is tried again `retries` times (-1: always)."""
    started = session.port.now()
    deadline = session.deadline(timeout)
    info = session.connection.info
    clustered = info is not None and bool(info.cluster)
    tries = 0
    while True:
        request = session.connection.start_request(
            subject, data, deadline=deadline, headers=headers
        )
        tries += 1
        try:
            reply = await session.settle(request)
        except NoResponders:
            now = session.port.now()
            electing = clustered and retries > 0 and now - started < _ELECTION
            if (retries >= 0 and tries > retries and not electing) or now + RETRY_WAIT >= deadline:
                raise NoStreamResponse(subject) from None
            await session.sleep(RETRY_WAIT)
            continue
        assert reply is not None
        return PubAck.from_json(read_reply(reply.data))
