"""Publisher: one publish and its acknowledgment, and the entry point to the other ways to publish.

A publish is a request whose response is a PubAck. This file contains the JetStream part of it:
sending, retrying on 503, and reading the acknowledgment.
"""

from __future__ import annotations

from jetstream.api.client import read_reply
from jetstream.errors import InvalidResponse, NoStreamResponse, PublishInDoubt, PublishTimeout
from jetstream.schema.pub_ack import PubAck
from natsproto.durations import check_patience
from natsproto.errors import (
    InvalidValue,
    NoResponders,
    PermissionDenied,
    RemoteError,
    TimeoutExpired,
)
from natsproto.wire.headers import Headers
from natsproto.wire.subjects import check_publish
from natsproto.wire.text import shorten

from .headers import publish_headers, schedule_headers

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import NoReturn, TypeAlias

    from typing_extensions import Unpack

    from jetstream.api.client import ApiClient
    from natsproto.connection import Connection
    from natsproto.connection.waitable import Request
    from natsproto.durations import Seconds
    from natsproto.wire.encode import BytesLike

    from .atomic import AtomicBatch
    from .fast import FastBatch
    from .headers import PublishOptions
    from .window import PublishWindow

    # An acknowledgment that was read before, and the digits of the sequence that differs, if any.
    Ack: TypeAlias = tuple[PubAck, bytes]

# PUB-4: in a cluster a 503 may be due to a leader election, which takes at most this long.
ELECTION = 10.0
RETRIES = 2  # of a publish that got a 503, at least
RETRY_WAIT = 0.25  # before a publish that got a 503 is sent again
_PUBLISH_ONLY = ("timeout", "retries")  # options of `publish` that other calls do not have
_MOST_DIGITS = 19  # any number with this many digits fits into a uint64
_ZERO = 48  # "0"
_BRACE = 125  # "}"


class Publisher:
    """Publish to the streams of one JetStream. The docstrings of JetStream describe the calls."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        self._acks = AckReader()

    async def publish(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        timeout: Seconds | None = None,
        retries: int = RETRIES,
        **options: Unpack[PublishOptions],
    ) -> PubAck:
        """Publish, and wait for the PubAck; see JetStream.publish."""
        return await self.send(subject, data, options, timeout, retries)

    async def send(
        self,
        subject: str,
        data: BytesLike,
        options: PublishOptions,
        timeout: Seconds | None,
        retries: int,
    ) -> PubAck:
        """Publish, and wait for the PubAck; retry on 503.

        A given timeout covers all attempts. Without one, each attempt has the timeout of the API.
        """
        # All arguments are positional: passing keywords on costs 0.3 us.
        api = self._api
        session = api.session
        connection = session.connection
        headers = publish_headers(options, connection, _PUBLISH_ONLY) if options else None
        if not isinstance(retries, int) or isinstance(retries, bool) or retries < -1:
            text = "retries %s is not a whole number from -1" % shorten(retries)
            raise InvalidValue(text, "PUB-3")
        patience = ELECTION if retries and in_cluster(connection) else 0.0
        each = api.timeout if timeout is None else check_patience("timeout", timeout)
        started = now = session.port.now()
        end = started + (max(each, patience) if timeout is None else each)  # PUB-5
        tries = 0
        while True:
            request = connection.start_request(
                subject, data, deadline=min(now + each, end), headers=headers
            )
            tries += 1
            try:
                reply = await session.settle(request)
            except NoResponders:
                now = session.port.now()
                spent = retries >= 0 and tries > retries and now - started >= patience
                if spent or now + RETRY_WAIT >= end:
                    raise no_stream(connection, subject) from None
            except RemoteError as error:
                raise_in_doubt(request, error)
            else:
                assert reply is not None
                return make_ack(self._acks.read(reply.data))
            await session.sleep(RETRY_WAIT)
            now = session.port.now()

    def window(
        self, max_pending: int = 1000, ack_timeout: Seconds | None = None, retries: int = 2
    ) -> PublishWindow:
        """Return a window of publishes that are acknowledged together."""
        # Imported here, as below: many programs do not use it.
        from .window import PublishWindow

        timeout = self._api.timeout if ack_timeout is None else ack_timeout
        return PublishWindow(self._api.session, max_pending, timeout, retries)

    def atomic_batch(self, timeout: Seconds | None = None) -> AtomicBatch:
        """Return a batch of messages that is stored as a whole or not at all."""
        from .atomic import AtomicBatch

        self._api.require_level(2, "an atomic batch")
        seconds = self._api.timeout if timeout is None else check_patience("timeout", timeout)
        return AtomicBatch(self._api.session, seconds)

    def fast_batch(
        self, allow_gaps: bool, flow: int, max_acks: int, ack_timeout: Seconds | None
    ) -> FastBatch:
        """Return a batch of messages that are stored in order as they arrive."""
        from .fast import FastBatch

        self._api.require_level(4, "a fast batch")  # FAST-12
        timeout = self._api.timeout if ack_timeout is None else ack_timeout
        return FastBatch(self._api.session, allow_gaps, flow, max_acks, timeout)

    async def add_to_counter(
        self, subject: str, by: int = 1, **options: Unpack[PublishOptions]
    ) -> int:
        """Add to the counter of a subject, and return its new value."""
        from jetstream.api.counters import INCREMENT, increment, read_counter, read_value
        from jetstream.api.stored import get_by_api

        value = increment(by)
        self._api.require_level(2, "a counter")  # COUNT-2: an older server would only store it
        options["headers"] = _add_headers(options, [(INCREMENT, value)])
        ack = await self.publish(subject, **options)
        if ack.duplicate:  # COUNT-5
            last = await get_by_api(self._api, ack.stream, {"last_by_subj": subject})
            return read_counter(last).value
        return read_value(ack.val)

    async def schedule(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        when: str,
        target: str,
        source: str = "",
        schedule_ttl: Seconds | str | None = None,
        time_zone: str = "",
        rollup: bool = False,
        **options: Unpack[PublishOptions],
    ) -> PubAck:
        """Store a message that the stream publishes later."""
        if target == subject:
            raise InvalidValue(
                "target %s is the schedule's own subject" % shorten(target), "SCHED-5"
            )
        pairs = schedule_headers(when, target, source, schedule_ttl, time_zone, rollup)
        self._api.require_level(2, "a schedule")  # SCHED-2: an older server would only store it
        options["headers"] = _add_headers(options, pairs)
        return await self.publish(subject, data, **options)

    async def cancel_schedule(
        self, subject: str, data: BytesLike = b"", *, target: str, **options: Unpack[PublishOptions]
    ) -> PubAck:
        """Publish to the target of a schedule and remove the schedule, in one step."""
        check_publish(subject)
        self._api.require_level(2, "a schedule")
        from jetstream.api.republished import PURGE, SCHEDULE_NEXT, SCHEDULER

        pairs = [(SCHEDULER, subject), (SCHEDULE_NEXT, PURGE)]  # SCHED-7
        options["headers"] = _add_headers(options, pairs)
        return await self.publish(target, data, **options)


def _add_headers(options: PublishOptions, pairs: list[tuple[str, str]]) -> Headers:
    """Return the user's headers with these added; the user's headers are not changed."""
    headers = Headers(options.get("headers") or ())
    for name, value in pairs:
        headers.set(name, value)
    return headers


def in_cluster(connection: Connection) -> bool:
    """Return whether the server is part of a cluster, where a stream may lack a leader."""
    return connection.info is not None and connection.info.cluster != ""


def no_stream(connection: Connection, subject: str) -> NoStreamResponse:
    """Return the error for a 503, with the likely reason (D-PUB-22)."""
    info = connection.info
    if info is None or info.jetstream:
        return NoStreamResponse(subject)
    return NoStreamResponse(subject, "server %s has JetStream disabled" % shorten(info.server_name))


def raise_in_doubt(request: Request, error: RemoteError) -> NoReturn:
    """Raise PublishInDoubt for an unanswered publish (D-PUB-21)."""
    if isinstance(error, PermissionDenied) and error.subject == request.subject:
        raise error  # the server rejected it
    late = isinstance(error, TimeoutExpired)
    text = "publish to %s was not acknowledged: %s: it may or may not be stored" % (
        shorten(request.subject),
        "no answer in time" if late else error,
    )
    raise (PublishTimeout if late else PublishInDoubt)(text) from error


# Acknowledgments


def read_ack(data: bytes) -> PubAck:
    """Return the acknowledgment; raise ApiError if the stream refused the message.

    InvalidResponse: the response is neither.
    """
    ack = PubAck.from_json(read_reply(data))  # PUB-2
    if not ack.stream:
        # PUB-1: another service replies on this subject, or no stream does.
        raise InvalidResponse("response is not an acknowledgment: %s" % shorten(data))
    return ack


class AckReader:
    """Read many acknowledgments; those that differ only in their sequence are cheap.

    Nearly all of them are: `{"stream":"S","seq":7}` after `{"stream":"S","seq":6}` is the same
    object with another number, whatever precedes the number. So its JSON is not parsed, and its
    PubAck is created on demand: 0.5 us instead of 7.
    """

    __slots__ = ("_head", "_like", "_size")

    def __init__(self) -> None:
        self._head = b"\0"  # no response starts with it
        self._size = 0
        self._like = PubAck()

    def read(self, data: bytes) -> Ack:
        """Return the acknowledgment in this response, for `make_ack`; raises like `read_ack`."""
        digits = data[self._size : -1]
        # Like `_is_sequence`, but inlined: 0.1 us less.
        number = digits.isdigit() and digits[0] != _ZERO and len(digits) <= _MOST_DIGITS
        if number and data.startswith(self._head) and data[-1] == _BRACE:  # D-PUB-19
            return self._like, digits
        like = read_ack(data)
        head = data[: data.rfind(b":") + 1]
        if head.endswith(b'"seq":') and _is_sequence(data[len(head) : -1]):
            self._head = head
            self._size = len(head)
            self._like = like
        return like, b""


def _is_sequence(digits: bytes) -> bool:
    # JSON has no numbers like 007.
    return digits.isdigit() and digits[0] != _ZERO and len(digits) <= _MOST_DIGITS


def make_ack(ack: Ack) -> PubAck:
    """Return the PubAck that `AckReader.read` found; a new object each time."""
    like, digits = ack
    return like.with_value("seq", int(digits) if digits else like.seq)
