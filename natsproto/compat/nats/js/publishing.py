"""AsyncPublisher: publishes whose acknowledgments arrive later."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from jetstream.publish.request import read_ack as read_core_ack
from jetstream.publish.window import PublishWindow
from natsproto.compat.nats.aio.headers import write_headers
from natsproto.errors import NatsError

from . import api
from .errors import TooManyStalledMsgsError
from .failures import translate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jetstream.context import JetStream
    from jetstream.publish.window_machine import Publication

    from .client import JetStreamContext


class AsyncPublisher:
    """A window of publishes, and a task that settles their futures in order."""

    def __init__(self, js: JetStream, max_pending: int) -> None:
        self.js = js
        # The window itself never blocks: callers decide how long they wait for room.
        self._window: PublishWindow = js.publisher(max_pending=2 * max_pending + 1000)
        self._max_pending = max_pending
        self._open: dict[asyncio.Future[api.PubAck], Publication] = {}
        self._task: asyncio.Task[None] | None = None
        self._moved = asyncio.Event()

    @property
    def pending(self) -> int:
        """The number of publishes without an acknowledgment."""
        return len(self._open)

    async def publish(
        self, subject: str, payload: bytes, stall: float | None, options: dict[str, Any]
    ) -> asyncio.Future[api.PubAck]:
        """Publish, and return a future of the acknowledgment."""
        if len(self._open) >= self._max_pending:
            await self._wait_for_room(stall)
        future: asyncio.Future[api.PubAck] = asyncio.get_running_loop().create_future()
        try:
            self._open[future] = await self._window.publish(subject, payload, **options)
        except NatsError as error:
            raise translate(error) from error
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._settle())
        return future

    async def completed(self) -> None:
        """Wait until no publish is pending."""
        while self._open:
            self._moved.clear()
            await self._moved.wait()

    async def _wait_for_room(self, stall: float | None) -> None:
        async def room() -> None:
            while len(self._open) >= self._max_pending:
                self._moved.clear()
                await self._moved.wait()

        try:
            await asyncio.wait_for(room(), stall)
        except asyncio.TimeoutError:
            raise TooManyStalledMsgsError from None

    async def _settle(self) -> None:
        """Settle the futures, the oldest first; end when none is left."""
        while self._open:
            future, publication = next(iter(self._open.items()))
            try:
                ack = await publication.result()
            except NatsError as error:
                if not future.done():
                    future.set_exception(translate(error))
            else:
                if not future.done():
                    future.set_result(read_ack(ack))
            del self._open[future]
            self._moved.set()


def read_ack(ack: Any) -> api.PubAck:
    """Return the acknowledgment of this layer for one of jetstream."""
    return api.PubAck(
        stream=ack.stream,
        seq=ack.seq,
        domain=ack.domain or None,
        duplicate=ack.duplicate or None,
        batch_id=ack.batch or None,
        batch_size=ack.count or None,
        val=ack.val or None,
    )


def publish_options(
    stream: str | None, headers: Mapping[str, Any] | None, msg_ttl: float | None
) -> dict[str, Any]:
    """Return the keywords of jetstream for these arguments of nats-py."""
    options: dict[str, Any] = {}
    if headers is not None:
        pairs = write_headers(headers)
        if pairs is not None:
            options["headers"] = pairs
    if stream:
        options["expect_stream"] = stream
    if msg_ttl is not None:
        options["ttl"] = msg_ttl
    return options


async def publish_anywhere(
    js: JetStreamContext, subject: str, payload: bytes, headers: Mapping[str, Any]
) -> api.PubAck:
    """Publish to a subject that may have wildcards, as nats-py allows it."""
    session = js._nc._session
    try:
        request = session.connection.start_request(
            subject,
            payload,
            deadline=session.port.now() + js._timeout,
            headers=write_headers(headers),
            wildcards=True,
        )
        reply = await session.settle(request)
        assert reply is not None
        return read_ack(read_core_ack(reply.data))
    except NatsError as error:
        raise translate(error) from error
