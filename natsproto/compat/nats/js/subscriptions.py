"""PushSubscription and PullSubscription: the messages of a consumer."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from jetstream.errors import PullRefused
from jetstream.pull.options import first_template
from jetstream.subscribe.pull import PullSubscription as CorePullSubscription
from natsproto.compat.nats import errors
from natsproto.compat.nats.aio.headers import read_headers
from natsproto.compat.nats.aio.msg import Msg, build
from natsproto.compat.nats.aio.subscription import NOT_ITERABLE, Subscription
from natsproto.errors import InvalidState, NatsError, TimeoutExpired

from .errors import APIError, FetchTimeoutError
from .failures import after_end, translate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from jetstream.push.api import PushMessages
    from jetstream.streams.consumer import BoundConsumer

    from . import api
    from .client import JetStreamContext

# Without a timeout a fetch is a series of pulls, each of which lasts this long.
_ROUND = 30.0
_SHORTEST = 0.001
_PAUSE = 0.05
_OTHERS_WAIT = "Exceeded MaxWaiting"  # 409 with this text


class PushSubscription(Subscription):
    """The messages that a push consumer delivers.

    Heartbeats, flow control and, for an ordered consumer, gaps are handled by jetstream. If the
    server deletes the consumer, reading raises instead of waiting forever.
    """

    def __init__(
        self,
        js: JetStreamContext,
        source: PushMessages,
        subject: str,
        queue: str,
        consumer: str,
        cb: Callable[[Msg], Awaitable[None]] | None,
        pending_msgs_limit: int,
        pending_bytes_limit: int,
    ) -> None:
        super().__init__(
            js._nc,
            subject=subject,
            queue=queue,
            cb=cb,
            pending_msgs_limit=pending_msgs_limit,
            pending_bytes_limit=pending_bytes_limit,
        )
        self._js = js
        self._source = source
        self._stream = source.stream
        self._name = consumer
        self._machine = source._machine
        self._id = self._machine.sid
        self._limit = 0
        self._conn._subs[self._id] = self
        if cb is not None:
            self._task = self._conn._start_task(self._run_callback())

    @property
    def _consumer(self) -> str:
        cursor = self._source.cursor
        if cursor is not None and cursor.info is not None:
            return cursor.info.name  # an ordered consumer is recreated under other names
        return self._name

    @property
    def messages(self) -> AsyncIterator[Msg]:
        """The messages, to iterate over; the iteration ends with the subscription."""
        if self._cb is not None:
            raise errors.Error(NOT_ITERABLE)
        return _PushedMessages(self)

    @property
    def pending_msgs(self) -> int:
        """The number of messages that wait for the program."""
        return self._source.pending

    @property
    def pending_bytes(self) -> int:
        """The size of the messages that wait for the program."""
        return self._source._push._bytes if self._source.pending else 0

    @property
    def _received(self) -> int:
        return self._machine.received

    async def consumer_info(self) -> api.ConsumerInfo:
        """Return the configuration and the state of the consumer."""
        return await self._js.consumer_info(self._stream, self._consumer)

    async def next_msg(self, timeout: float | None = 1.0) -> Msg:
        """Return the next message; raise TimeoutError if there is none in time."""
        if self._conn.is_closed:
            raise errors.ConnectionClosedError
        if self._cb is not None:
            raise errors.Error("nats: next_msg cannot be used in async subscriptions")
        deadline = None if timeout is None else self._session.port.now() + max(0.0, timeout)
        try:
            return self._wrap(await self._source.next(timeout))
        except InvalidState:
            await self._wait_after_end(deadline)
            raise after_end(self._conn) from None
        except NatsError as error:
            raise translate(error) from error

    async def unsubscribe(self, limit: int = 0) -> None:
        """End the subscription, now or after `limit` messages in total. The consumer remains."""
        if self._conn.is_closed:
            raise errors.ConnectionClosedError
        if self._closed:
            raise errors.BadSubscriptionError
        if limit > self._taken:
            self._limit = limit
            return
        self._closed = True
        self._forget()
        await self._source.stop()

    async def _fence(self, timeout: float) -> None:
        await self._source.drain(timeout)

    def _wrap(self, msg: Any) -> Msg:
        self._taken += 1
        self._conn._in_bytes += len(msg.data)
        if self._taken == self._limit:
            self._machine.stop()
            self._session.poke(self._machine)
        if self._machine.ended and not self._source.pending:
            self._forget()
        block = msg.raw_headers
        return build(self._conn, msg, None if block is None else read_headers(block))

    async def _run_callback(self) -> None:
        try:
            async for msg in self._source:
                await self._call(self._wrap(msg))
        except NatsError as error:
            await self._conn._report(translate(error))
        finally:
            self._forget()


class _PushedMessages:
    """The iterator of a push subscription."""

    def __init__(self, sub: PushSubscription) -> None:
        self._sub = sub

    def __aiter__(self) -> _PushedMessages:
        return self

    async def __anext__(self) -> Msg:
        sub = self._sub
        try:
            return sub._wrap(await sub._source.__anext__())
        except NatsError as error:
            if sub._conn.is_closed:
                raise StopAsyncIteration from None
            raise translate(error) from error


class PullSubscription:
    """A pull consumer to fetch from.

    Canceling a fetch loses no message: what has already arrived is part of the next fetch.
    """

    def __init__(self, js: JetStreamContext, consumer: BoundConsumer) -> None:
        self._js = js
        self._nc = js._nc
        self._stream = consumer.stream
        self._consumer = consumer.name
        self._bound = consumer
        core = js._core()
        self._source = CorePullSubscription(core._streams, core._api, consumer, deletes=False)
        self._delivered = 0

    @property
    def pending_msgs(self) -> int:
        """The number of messages that wait for the program: none outside of a fetch."""
        return 0

    @property
    def pending_bytes(self) -> int:
        """The size of the messages that wait for the program."""
        return 0

    @property
    def delivered(self) -> int:
        """The number of messages that were fetched."""
        return self._delivered

    async def unsubscribe(self) -> None:
        """End the subscription. The consumer remains."""
        if self._nc.is_closed:
            raise errors.ConnectionClosedError
        await self._source.unsubscribe()

    async def consumer_info(self) -> api.ConsumerInfo:
        """Return the configuration and the state of the consumer."""
        return await self._js.consumer_info(self._stream, self._consumer)

    async def fetch(
        self, batch: int = 1, timeout: float | None = 5, heartbeat: float | None = None
    ) -> list[Msg]:
        """Return up to `batch` available messages; if there are none, wait for the first.

        Raises TimeoutError if there is none in time; a timeout of None waits forever. With
        `heartbeat` the server reports every so many seconds that it is there.
        """
        if self._nc.is_closed:
            raise errors.ConnectionClosedError
        if batch < 1:
            raise ValueError("nats: invalid batch size")
        if timeout is not None and timeout <= 0:
            raise ValueError("nats: invalid fetch timeout")
        try:
            found = await self._fetch(batch, timeout, heartbeat)
        except TimeoutExpired as error:
            raise (FetchTimeoutError if heartbeat else errors.TimeoutError) from error
        except InvalidState:
            raise errors.TimeoutError from None  # as nats-py after `unsubscribe`
        except NatsError as error:
            raise translate(error) from error
        return [self._wrap(msg) for msg in found]

    async def _fetch(self, batch: int, timeout: float | None, heartbeat: float | None) -> Any:
        if heartbeat:
            return await self._fetch_with_heartbeat(batch, timeout, heartbeat)
        port = self._nc._session.port
        end = None if timeout is None else port.now() + timeout
        while True:
            left = _ROUND if end is None else max(end - port.now(), _SHORTEST)
            try:
                return await self._source.fetch(batch, left)
            except TimeoutExpired:
                if end is not None:
                    raise
            except PullRefused as error:
                # nats-py waits if others have pulled already, and it was for more than one message.
                if batch == 1 or _OTHERS_WAIT not in error.description:
                    raise
                if left <= _PAUSE:
                    raise TimeoutExpired(str(error)) from error
                await asyncio.sleep(_PAUSE)

    async def _fetch_with_heartbeat(
        self, batch: int, timeout: float | None, heartbeat: float
    ) -> Any:
        expires = _ROUND if timeout is None else timeout
        if 2 * heartbeat >= expires:  # the server would refuse it
            raise APIError(code=400, description="Bad Request - heartbeat value too large")
        while True:
            if batch == 1:
                found = await self._bound.fetch(1, expires=expires, heartbeat=heartbeat)
            else:  # what is available, without waiting for a full batch
                puller = self._bound.puller
                template = first_template(puller.subject, expires, puller.pinned, heartbeat)
                found = await puller.pull(template, batch, 0, expires, eager=True)
            if len(found):
                return found
            if timeout is not None:
                raise TimeoutExpired("no message in time")
            await asyncio.sleep(_PAUSE)

    def _wrap(self, msg: Any) -> Msg:
        self._delivered += 1
        self._nc._in_bytes += len(msg.data)
        block = msg.raw_headers
        return build(self._nc, msg, None if block is None else read_headers(block))


__all__ = ["PullSubscription", "PushSubscription"]
