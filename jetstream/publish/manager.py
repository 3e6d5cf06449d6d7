"""PublishManager: the calls of JetStream that publish.

What only some programs use is imported by the call that needs it.
"""

from __future__ import annotations

from natsproto.errors import InvalidValue
from natsproto.session import check_patience
from natsproto.wire.headers import Headers
from natsproto.wire.text import shorten

from .request import publish, publish_headers, schedule_headers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Unpack

    from jetstream.api.client import Api
    from jetstream.schema.info import PubAck
    from natsproto.wire.encode import BytesLike

    from .acks import AckReader
    from .atomic import AtomicBatch
    from .fast import FastBatch
    from .request import PublishOptions
    from .window import PublishWindow


class PublishManager:
    """The part of JetStream that publishes."""

    _api: Api
    _acks: AckReader

    async def publish(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        timeout: float | None = None,
        retries: int = 2,
        **options: Unpack[PublishOptions],
    ) -> PubAck:
        """Store a message in the stream that takes the subject; returns when it is stored.

        headers       more headers
        msg_id        within its duplicate window a stream stores one message of each id; a second
                      one is acknowledged with `duplicate` set
        expect_stream, expect_last_seq, expect_last_subject_seq (of expect_last_subject, which may
        have wildcards, instead of the message's own), expect_last_msg_id
                      refused unless that holds: WrongStream, WrongLastSequence, WrongLastMsgId
        ttl           seconds until the stream drops it, or "never"

        When nobody is there (503) it is tried again after 250 ms, `retries` times (-1: until the
        timeout), and for 10 s in a cluster, which may be electing; then NoStreamResponse. The
        timeout is for all of that; without one each try has the timeout of this JetStream.

        PublishInDoubt: no acknowledgment came, so the message may be stored or not. If that is
        because of the timeout, the error is a TimeoutExpired as well.
        """
        headers = None
        if options:
            connection = self._api.session.connection
            headers = publish_headers(options, connection, ("timeout", "retries"))
        return await publish(
            self._api, subject, data, headers, self._acks, timeout=timeout, retries=retries
        )

    def publisher(
        self, *, max_pending: int = 1000, ack_timeout: float | None = None, retries: int = 2
    ) -> PublishWindow:
        """Publish without waiting for each acknowledgement: `async with js.publisher() as p`.

        At most `max_pending` acknowledgements are awaited at a time; `p.flush()`, and leaving the
        block, wait for all of them and raise PublishesFailed if there is any that did not come.
        """
        from .window import PublishWindow

        timeout = self._api.timeout if ack_timeout is None else ack_timeout
        return PublishWindow(self._api.session, max_pending, timeout, retries)

    def atomic_batch(self, *, timeout: float | None = None) -> AtomicBatch:
        """Messages that a stream stores all together or not at all (needs allow_atomic)."""
        from .atomic import AtomicBatch

        self._api.require_level(2, "an atomic batch")
        seconds = self._api.timeout if timeout is None else check_patience("timeout", timeout)
        return AtomicBatch(self._api.session, seconds)

    def fast_batch(
        self,
        *,
        allow_gaps: bool = False,
        flow: int = 500,
        max_acks: int = 2,
        ack_timeout: float | None = None,
    ) -> FastBatch:
        """Messages that a stream stores in order as they come: `async with js.fast_batch() as b`.

        Acknowledgements are for up to `flow` messages each, fewer if the server is busy, and at
        most `max_acks` of them are due at a time. Needs allow_batched and nats-server 2.14.
        """
        from .fast import FastBatch

        self._api.require_level(4, "a fast batch")
        timeout = self._api.timeout if ack_timeout is None else ack_timeout
        return FastBatch(self._api.session, allow_gaps, flow, max_acks, timeout)

    async def add_to_counter(
        self, subject: str, by: int = 1, **options: Unpack[PublishOptions]
    ) -> int:
        """Add to the counter of this subject; returns its new value (needs allow_msg_counter)."""
        from jetstream.api.counters import INCREMENT, increment, read_value

        value = increment(by)
        self._api.require_level(2, "a counter")  # COUNT-2: an older server would only store it
        headers = Headers(options.get("headers") or ())
        headers.set(INCREMENT, value)
        options["headers"] = headers
        ack = await self.publish(subject, **options)
        return read_value(ack.val)

    async def schedule(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        when: str,
        target: str,
        source: str = "",
        schedule_ttl: float | str | None = None,
        time_zone: str = "",
        rollup: bool = False,
        **options: Unpack[PublishOptions],
    ) -> PubAck:
        """Have the stream publish this to `target` later, once or again and again (ADR-51).

        `when` is "@at <RFC 3339>", "@every 5m", "@daily" or a cron expression of six fields, in
        `time_zone`. With a `source` the last message of that subject is published instead; with
        `rollup` each one replaces those before it. The schedule is the message stored under
        `subject`: publish it anew to change it, purge it to cancel it. Needs allow_msg_schedules.
        """
        if target == subject:
            raise InvalidValue(
                "target %s is the schedule's own subject" % shorten(target), "SCHED-5"
            )
        pairs = schedule_headers(when, target, source, schedule_ttl, time_zone, rollup)
        self._api.require_level(2, "a schedule")  # SCHED-2: an older server would only store it
        headers = Headers(options.get("headers") or ())
        for name, value in pairs:
            headers.set(name, value)
        options["headers"] = headers
        return await self.publish(subject, data, **options)
