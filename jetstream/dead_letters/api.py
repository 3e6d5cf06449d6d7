"""DeadLetters: iterate the messages that a consumer has failed to process.

There are two sources of entries. Live reads the advisories as servers publish them. Captured
consumes them from a stream that stores them (capture.py). For each entry a Lookup gets the stored
message. An entry stays the current one until its letter is returned, so that a canceled call loses
nothing.
"""

from __future__ import annotations

from jetstream.advisories.api import domain_of, open_advisories
from jetstream.advisories.consumers import MaxDeliverAdvisory, TerminatedAdvisory
from jetstream.advisories.kinds import decode_advisory
from jetstream.api.assets import stream_info
from jetstream.publish.request import Publisher
from natsproto.wire.text import cut_middle

from .capture import open_capture
from .letter import DeadLetter, Desk
from .lookup import Lookup

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from typing_extensions import Self

    from jetstream.advisories.api import Advisories
    from jetstream.advisories.event import Advisory
    from jetstream.api.client import ApiClient
    from jetstream.message import JsMsg
    from jetstream.pull.messages import Messages
    from jetstream.schema.stream_info import StreamInfo
    from natsproto.durations import Seconds

    Failure: TypeAlias = "MaxDeliverAdvisory | TerminatedAdvisory"
    Entry: TypeAlias = tuple[Advisory, JsMsg | None]


_FAILURES = (MaxDeliverAdvisory, TerminatedAdvisory)


class Live:
    """The advisories as servers publish them."""

    def __init__(self, events: Advisories) -> None:
        self._events = events

    @property
    def closed(self) -> bool:
        return self._events.closed

    async def next(self, timeout: Seconds | None) -> Entry:
        return await self._events.next(timeout), None

    async def iterate(self) -> Entry:
        return await self._events.__anext__(), None

    async def stop(self) -> None:
        await self._events.stop()


class Captured:
    """The advisories that a stream has stored; each is acknowledged when its letter is settled."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages

    @property
    def closed(self) -> bool:
        return self._messages.closed

    async def next(self, timeout: Seconds | None) -> Entry:
        return _captured(await self._messages.next(timeout))

    async def iterate(self) -> Entry:
        return _captured(await self._messages.__anext__())

    async def stop(self) -> None:
        await self._messages.stop(nak=True)


def _captured(msg: JsMsg) -> Entry:
    return decode_advisory(msg.data), msg


async def open_dead_letters(
    api: ApiClient, stream: str, consumer: str, durable: str = ""
) -> DeadLetters:
    """Return the dead letters of a consumer: future ones or, with `durable`, captured ones."""
    events = None
    if not durable:
        # Subscribe first, so that nothing is missed in the meantime.
        events = open_advisories(api, ["max_deliver", "terminated"], stream, consumer)
    try:
        info = await stream_info(api, stream)
        source: Live | Captured
        if events is None:
            source = Captured(await open_capture(api, durable, info, consumer))
        else:
            source = Live(events)
    except BaseException:
        if events is not None:
            await events.stop()
        raise
    return DeadLetters(api, info, consumer, source)


class DeadLetters:
    """The messages that a consumer has failed to process: iterate it, and settle each letter.

    The iteration ends with `stop` or the end of the client. Letters of a durable capture that are
    not settled are delivered again after a minute, possibly to other programs with this capture.
    """

    def __init__(
        self, api: ApiClient, info: StreamInfo, consumer: str, source: Live | Captured
    ) -> None:
        self._session = api.session
        self._source = source
        self._created = info.created
        self._stream = info.config.name
        self._consumer = consumer
        self._domain = domain_of(api.prefix)
        self._entry: tuple[Failure, JsMsg | None] | None = None
        # D-DEAD-7: no other consumer has the message.
        self._desk = Desk(api, Publisher(api), info.config.retention == "workqueue")
        inbox = api.session.connection.new_inbox()
        self._lookup = Lookup(api.prefix, self._stream, inbox)
        api.session.attach(self._lookup, inbox + ".*")

    @property
    def stream(self) -> str:
        """The name of the stream."""
        return self._stream

    @property
    def consumer(self) -> str:
        """The name of the consumer."""
        return self._consumer

    @property
    def closed(self) -> bool:
        """Whether there will be no more letters."""
        return self._entry is None and self._source.closed

    async def next(self, timeout: Seconds | None = None) -> DeadLetter:
        """Return the next letter; raise TimeoutExpired, or InvalidState after the end.

        A timeout of 0 polls: it returns a letter only if it is complete.
        """
        session = self._session
        deadline = None if timeout is None else session.deadline(timeout)
        while True:
            while self._entry is None:
                left = None if deadline is None else max(0.0, deadline - session.port.now())
                await self._accept(await self._source.next(left))
            letter = await self._complete(deadline)
            if letter is not None:
                return letter

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> DeadLetter:
        while True:
            while self._entry is None:
                await self._accept(await self._source.iterate())
            letter = await self._complete(None)
            if letter is not None:
                return letter

    async def _accept(self, entry: Entry) -> None:
        """Make this the current entry, if it is about a message of this consumer."""
        advisory, msg = entry
        failure = advisory if isinstance(advisory, _FAILURES) else None
        if failure is not None and self._is_ours(failure):
            self._entry = (failure, msg)
        elif msg is not None:
            await msg.term("not an advisory about a dead letter")  # D-DEAD-11

    def _is_ours(self, advisory: Failure) -> bool:
        if self._domain and advisory.domain != self._domain:
            return False  # D-ADVIS-7
        names = (advisory.stream, advisory.consumer)
        return names == (self._stream, self._consumer) and advisory.stream_seq > 0

    async def _complete(self, deadline: float | None) -> DeadLetter | None:
        """Return the letter of the current entry; None if another caller has taken it."""
        entry = self._entry
        assert entry is not None
        advisory, msg = entry
        message = None
        if not self._is_older_than_the_stream(advisory):
            lookup = self._lookup
            session = self._session
            if not lookup.done:
                lookup.start(advisory.stream_seq, session.port.now())
                session.poke(lookup)
            while not lookup.done:
                if lookup.ended:
                    self._entry = None
                    if lookup.error is not None:
                        raise lookup.error
                    return None  # the source has also ended
                await session.wait(lookup, deadline, "stored message")
                if self._entry is not entry:
                    return None
            message = lookup.finish()
        self._entry = None
        return DeadLetter(self._desk, advisory, message, msg)

    def _is_older_than_the_stream(self, advisory: Failure) -> bool:
        # D-DEAD-4: the sequence belongs to another message if the stream was created again.
        time = advisory.timestamp
        return time is not None and self._created is not None and time < self._created

    async def stop(self) -> None:
        """End the iteration now; letters of a durable capture that were not read stay in it."""
        entry, self._entry = self._entry, None
        if entry is not None and entry[1] is not None:
            await entry[1].nak()
        await self._source.stop()
        self._lookup.leave()
        self._session.poke(self._lookup)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    def __repr__(self) -> str:
        return "<DeadLetters of consumer %s of stream %s>" % (
            cut_middle(self._consumer),
            cut_middle(self._stream),
        )
