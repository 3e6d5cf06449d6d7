"""OrderedConsumer: the messages of a stream, each once, in order, without gaps (ADR-17).

There is one use at a time: a consume() or a fetch. The Cursor connects them: it holds the position
where the next use continues. consume() is a machine that creates its consumers itself (pull.py). A
fetch is short: it creates a consumer by an API call if there is none, and once more if it is gone.
"""

from __future__ import annotations

from jetstream.errors import (
    ConsumerDeleted,
    ConsumerUnavailable,
    HeartbeatMissed,
    JetStreamError,
    MessagesMissed,
)
from jetstream.errors.api import ConsumerExists, StreamNotFound
from jetstream.machine.cleanup import clean_up, may_exist
from jetstream.machine.policy import GAP, KEEP
from jetstream.pull.api import Puller
from jetstream.pull.consume import Consume
from jetstream.pull.ledger import MARGIN
from jetstream.pull.messages import Batch, Messages
from jetstream.pull.options import (
    check_count,
    check_time,
    consume_limits,
    consume_template,
    fetch_limits,
    fetch_template,
    next_subject,
)
from jetstream.schema.consumer_info import ConsumerInfo
from jetstream.schema.stream_info import StreamInfo
from natsproto.errors import (
    ConnectionClosed,
    InvalidState,
    NatsError,
    RemoteError,
)
from natsproto.wire.subjects import check_new_name
from natsproto.wire.text import shorten

from .config import HEARTBEAT
from .cursor import Cursor
from .policy import InOrder
from .recreate import CHECK, Recreator, clean_up_after

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.api.client import ApiClient
    from jetstream.config import ConsumerConfig
    from jetstream.events import StreamRecreated
    from jetstream.message import JsMsg
    from natsproto.durations import Seconds


_SERIAL_DIGITS = 10  # of the names of consumers
_TRIES = 5  # attempts to find an unused name
_TOO_LATE = 0.05  # too little time for a second pull
_SHORTEST = 0.001  # the least time that a pull may have
_LONG = 2.0  # a fetch of this time has heartbeats
_NO_MESSAGES = 404  # ends a pull with no_wait
_LOOK_AFTER = 1.0


async def open_ordered(
    api: ApiClient,
    stream: str,
    prefix: str,
    config: ConsumerConfig,
    most: int | None,
    calls: ApiClient | None = None,
) -> OrderedConsumer:
    """Create the first consumer, within the timeout of `calls` if given, and return the handle."""
    prefix = prefix or api.session.connection.new_token()
    check_new_name("name_prefix", prefix)
    check_new_name("consumer", "%s_%s" % (prefix, "9" * _SERIAL_DIGITS))
    attempts = 0 if most is None else check_count("max_reset_attempts", most)
    api.check_since(config)
    cursor = Cursor(stream, prefix, config.to_json())
    await _create(calls or api, cursor)
    return OrderedConsumer(api, cursor, attempts)


async def _create(api: ApiClient, cursor: Cursor, deadline: float | None = None) -> None:
    """Create the next consumer by an API call, if there is none."""
    tries = 0
    while not cursor.ready:
        tries += 1
        endpoint, body = cursor.next_consumer()
        try:
            cursor.installed(await api.call(endpoint, body, deadline=deadline))
        except ConsumerExists:
            if tries == _TRIES:
                raise
        except BaseException as error:
            if may_exist(error):
                clean_up(api, cursor.stream, cursor.name)  # D-ORDERED-29
            raise
        else:
            await _check(api, cursor, deadline)


async def _check(api: ApiClient, cursor: Cursor, deadline: float | None) -> None:
    """Use the consumer that was created, or have it deleted if its stream is a different one."""
    if cursor.ready:
        return
    try:
        recreated = await _recreated(api, cursor, deadline)
    except BaseException:
        clean_up(api, cursor.stream, cursor.name)
        raise
    if recreated:
        clean_up(api, cursor.stream, cursor.name)


async def _recreated(api: ApiClient, cursor: Cursor, deadline: float | None) -> bool:
    """Return whether the stream differs from that of the earlier consumers (D-ORDERED-30)."""
    latest = api.session.deadline(CHECK)
    try:
        reply = await api.call(
            "STREAM.INFO.%s" % cursor.stream,
            deadline=latest if deadline is None else min(deadline, latest),
        )
        created = StreamInfo.from_json(reply).created
    except (StreamNotFound, ConnectionClosed):
        raise
    except RemoteError:
        if not cursor.trust():
            raise
        return False
    return cursor.confirm(created) is not None


class OrderedMessages(Messages):
    """The messages of an ordered consume()."""

    def __init__(self, api: ApiClient, machine: Consume, recreator: Recreator) -> None:
        super().__init__(api.session, machine, True)
        self._api = api
        self._recreator = recreator

    async def _at_end(self) -> None:
        clean_up_after(self._api, self._recreator)

    async def _finish(self) -> None:
        clean_up_after(self._api, self._recreator)


class OrderedConsumer:
    """An ordered consumer. Returned by Stream.ordered_consumer.

    Only one consume() or fetch can use a handle at a time. Each continues after the last message
    that was taken from the previous one.
    """

    def __init__(self, api: ApiClient, cursor: Cursor, max_attempts: int) -> None:
        self._api = api
        #: Its successive consumers, and their position in the stream.
        self.cursor = cursor
        self._max_attempts = max_attempts
        self._machine: Consume | None = None
        self._puller: Puller | None = None
        self._fetching = False
        # When to check whether messages were lost; None: there is no reason to.
        self._look_at: float | None = None
        self.stream: str = cursor.stream

    @property
    def name(self) -> str:
        """The name of the current consumer, or of the last one."""
        return self.cursor.name

    @property
    def cached_info(self) -> ConsumerInfo:
        """The latest known info of a consumer."""
        assert self.cursor.info is not None
        return self.cursor.info

    @property
    def recreated(self) -> StreamRecreated | None:
        """The latest discovery that the stream was deleted and created again; None: it never was.

        Messages read after it belong to the new stream, starting with its first one (D-ORDERED-31).
        """
        return self.cursor.recreated

    async def info(self) -> ConsumerInfo:
        """Return the info of the current consumer; raise ConsumerNotFound if there is none."""
        reply = await self._api.call("CONSUMER.INFO.%s.%s" % (self.stream, self.name))
        self.cursor.info = ConsumerInfo.from_json(reply)
        return self.cursor.info

    async def delete(self) -> None:
        """Delete the current consumer; the next consume() or fetch creates another one."""
        self._claim()
        self.cursor.ready = False
        self._close_puller()
        await self._api.call("CONSUMER.DELETE.%s.%s" % (self.stream, self.name))

    async def fetch(
        self,
        max_messages: int | None = None,
        *,
        max_bytes: int | None = None,
        expires: Seconds = 30.0,
        heartbeat: Seconds | None = None,
        no_wait: bool = False,
    ) -> Batch:
        """Fetch the next messages, as Consumer.fetch does.

        If the consumer is gone, another one is created.
        """
        batch, size = fetch_limits(max_messages, max_bytes)
        template = fetch_template("", expires, heartbeat, no_wait, {}, False)
        ends, beat = template.expires, None if heartbeat is None else template.heartbeat
        if beat is None and not no_wait and ends >= _LONG:
            beat = min(HEARTBEAT, ends / 4)  # D-ORDERED-32
        self._claim()
        self._fetching = True
        try:
            return await self._fetch(batch, size, ends, beat, no_wait)
        except BaseException:
            self._forget()  # ORDERED-22: messages in flight are delivered again
            raise
        finally:
            self._fetching = False

    async def next(
        self, *, expires: Seconds = 30.0, heartbeat: Seconds | None = None
    ) -> JsMsg | None:
        """Return the next message; None if there is none within `expires`."""
        batch = await self.fetch(1, expires=expires, heartbeat=heartbeat)
        return batch[0] if len(batch) else None

    def consume(
        self,
        *,
        max_messages: int | None = None,
        max_bytes: int | None = None,
        expires: Seconds = 30.0,
        heartbeat: Seconds | None = None,
        threshold_messages: int | None = None,
        threshold_bytes: int | None = None,
        stop_after: int | None = None,
    ) -> Messages:
        """Deliver messages continuously, like Consumer.consume: each once, in order, without gaps.

        If the consumer or a message is lost, another consumer continues after the last message:
        `events` reports ConsumerReset. If the stream was deleted and created again, it continues
        with the first message: StreamRecreated. It raises when a reset can no longer succeed, as
        when the stream is gone.
        """
        limits = consume_limits(
            max_messages, max_bytes, threshold_messages, threshold_bytes, stop_after
        )
        if heartbeat is None:
            heartbeat = min(HEARTBEAT, check_time("expires", expires, 1.0) / 2)  # ORDERED-21
        subject = next_subject(self._api.prefix, self.stream, "")  # the policy adds the name
        template = consume_template(subject, expires, heartbeat, {}, False)
        self._claim()
        self._close_puller()
        session = self._api.session
        inbox = session.connection.new_inbox()
        recreator = self._recreator(inbox)
        name = "ordered consumer of stream %s" % shorten(self.stream)
        machine = Consume(inbox.encode(), template, InOrder(recreator), name=name, **limits)
        self._machine = machine
        session.attach(machine, inbox + ".*")
        return OrderedMessages(self._api, machine, recreator)

    def __repr__(self) -> str:
        return "<OrderedConsumer %s of %s>" % (self.name, self.stream)

    # How it works

    def _claim(self) -> None:
        """Continue where the last use ended; raise InvalidState if the handle is in use."""
        machine = self._machine
        if self._fetching or (machine is not None and not machine.ended):
            text = "ordered consumer %s is in use: one consume() or fetch at a time"
            raise InvalidState(text % shorten(self.name), "ORDERED-23")
        if machine is not None:
            machine.rewind()
            self._machine = None

    def _recreator(self, inbox: str) -> Recreator:
        """Return the Recreator of one consume(); its responses arrive at this inbox."""
        return Recreator(
            self.cursor,
            self._api.prefix,
            inbox.encode(),
            timeout=self._api.timeout,
            max_attempts=self._max_attempts,
        )

    async def _fetch(
        self, batch: int, size: int, expires: float, heartbeat: float | None, no_wait: bool
    ) -> Batch:
        port = self._api.session.port
        left = self._api.timeout if no_wait else expires
        deadline = port.now() + left
        failure: JetStreamError | None = None
        while True:
            if await self._prepare(deadline + MARGIN) or failure is not None:
                left = deadline - port.now()
            try:
                found = await self._pull(batch, size, left, heartbeat, no_wait)
            except (ConsumerDeleted, ConsumerUnavailable, HeartbeatMissed) as error:
                lost: JetStreamError = error
            else:
                messages, gap = self._sift(found)
                if gap or found.error is not None:
                    self._forget()
                if messages or not gap:
                    return Batch(messages, found.error)
                lost = MessagesMissed("consumer %s has skipped messages" % shorten(self.name))
            if failure is not None or deadline - port.now() < _TOO_LATE:
                raise lost
            failure = lost
            self._forget()

    async def _prepare(self, deadline: float) -> bool:
        """Ensure that there is a consumer to pull from; return whether that took a call."""
        port = self._api.session.port
        doubted = self._look_at is not None and port.now() >= self._look_at
        if self.cursor.ready and doubted:
            await self._look(deadline)
        elif self.cursor.ready:
            return False
        await _create(self._api, self.cursor, deadline)
        return True

    async def _look(self, deadline: float) -> None:
        """Abandon the consumer unless all messages that it delivered have arrived."""
        path = "CONSUMER.INFO.%s.%s" % (self.stream, self.name)
        self._look_at = None
        try:
            info = ConsumerInfo.from_json(await self._api.call(path, deadline=deadline))
        except NatsError:
            self._forget()
            return
        if info.delivered.consumer_seq != self.cursor.consumer_seq:
            self._forget()

    async def _pull(
        self, batch: int, size: int, left: float, heartbeat: float | None, no_wait: bool
    ) -> Batch:
        if self._puller is None:
            self._puller = Puller(self._api, self.stream, self.name, True)
        # D-ORDERED-28: however short the time, the server gets a pull that it accepts.
        expires = max(left, _SHORTEST)
        beat = heartbeat if not heartbeat or 2 * heartbeat <= expires else None
        template = fetch_template(self._puller.subject, expires, beat, no_wait, {}, False)
        return await self._puller.pull(template, batch, size, left)

    def _sift(self, found: Batch) -> tuple[list[JsMsg], bool]:
        """Return the messages up to a gap, and whether there is one."""
        puller = self._puller
        assert puller is not None
        messages: list[JsMsg] = []
        for msg in found:
            verdict = self.cursor.admit(msg.raw_reply)
            if verdict is GAP:
                return messages, True
            if verdict is KEEP:
                messages.append(msg)
        if puller.uncounted == _NO_MESSAGES:
            # D-ORDERED-27: this end is too frequent for a call each time.
            if self._look_at is None:
                self._look_at = self._api.session.port.now() + _LOOK_AFTER
        elif puller.uncounted:
            self._forget()  # D-ORDERED-27
        return messages, puller.lost > 0  # D-ORDERED-24

    def _forget(self) -> None:
        """Abandon the consumer; its later messages are dropped."""
        connection = self._api.session.connection
        if self.cursor.ready and connection.online:
            # ORDERED-12: no caller waits for the response.
            path = (self._api.prefix, self.stream, self.name)
            connection.publish("%s.CONSUMER.DELETE.%s.%s" % path, reply=connection.new_inbox())
        elif self.cursor.ready:
            clean_up(self._api, self.stream, self.name, used=True)  # D-ORDERED-29
        self.cursor.ready = False
        self._look_at = None
        self._close_puller()

    def _close_puller(self) -> None:
        if self._puller is not None:
            self._puller.close()
            self._puller = None
