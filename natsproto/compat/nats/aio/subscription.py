"""Subscription: messages for a callback, an iterator, a future, or `next_msg`."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from natsproto import errors as core
from natsproto.compat.nats import errors

from .callbacks import is_canceled
from .failures import translate
from .headers import read_headers
from .msg import Msg, build
from .queue import PendingQueue

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from natsproto.session import Session
    from natsproto.wire.frames import Msg as RawMsg

    from .client import Client

DEFAULT_SUB_PENDING_MSGS_LIMIT = 512 * 1024
DEFAULT_SUB_PENDING_BYTES_LIMIT = 128 * 1024 * 1024
NOT_ITERABLE = "cannot iterate over messages with a non iteration subscription type"
# After this many callbacks in a row that did not suspend, other tasks run.
_TURN = 64


class Subscription:
    """The messages of one subject.

    With a callback, a task of the subscription calls it for one message after the other; the
    connection goes on reading meanwhile. An exception of the callback goes to `error_cb`.
    """

    def __init__(
        self,
        conn: Client,
        id: int = 0,
        subject: str = "",
        queue: str = "",
        cb: Callable[[Msg], Awaitable[None]] | None = None,
        future: asyncio.Future[Msg] | None = None,
        max_msgs: int = 0,
        pending_msgs_limit: int = DEFAULT_SUB_PENDING_MSGS_LIMIT,
        pending_bytes_limit: int = DEFAULT_SUB_PENDING_BYTES_LIMIT,
    ) -> None:
        self._conn = conn
        self._id = id
        self._subject = subject
        self._queue = queue
        self._cb = cb
        self._future = future
        self._max_msgs = max_msgs
        self._pending_msgs_limit = pending_msgs_limit
        self._pending_bytes_limit = pending_bytes_limit
        self._pending_queue = PendingQueue(pending_msgs_limit, pending_bytes_limit)
        self._task: asyncio.Task[None] | None = None
        self._taken: int = 0
        self._gone = asyncio.Event()  # set when the client forgets the subscription
        self._closed = False

    @property
    def subject(self) -> str:
        """The subject of the subscription."""
        return self._subject

    @property
    def queue(self) -> str:
        """The queue group, or ""."""
        return self._queue

    @property
    def messages(self) -> AsyncIterator[Msg]:
        """The messages, to iterate over; the iteration ends with the subscription."""
        if self._cb is not None or self._future is not None:
            raise errors.Error(NOT_ITERABLE)
        return _Messages(self)

    @property
    def pending_msgs(self) -> int:
        """The number of messages that wait for the program."""
        return self._pending_queue.pending()

    @property
    def pending_bytes(self) -> int:
        """The size of the payloads that wait for the program."""
        return self._pending_queue.bytes

    @property
    def delivered(self) -> int:
        """The number of messages that have arrived, including those that wait."""
        return self._received

    @property
    def _received(self) -> int:
        return self._pending_queue.received

    @property
    def _session(self) -> Session:
        return self._conn._session

    async def next_msg(self, timeout: float | None = 1.0) -> Msg:
        """Return the next message; raise TimeoutError if there is none in time.

        A timeout of None waits for a message, and raises BadSubscriptionError if the subscription
        has ended.
        """
        if self._conn.is_closed:
            raise errors.ConnectionClosedError
        if self._cb is not None:
            raise errors.Error("nats: next_msg cannot be used in async subscriptions")
        pending = self._pending_queue
        if not pending.msgs:
            deadline = None if timeout is None else self._session.port.now() + max(0.0, timeout)
            while not pending.msgs:
                if pending.ended and pending.error is None:
                    await self._wait_after_end(deadline)
                self._check_open()
                try:
                    await self._session.wait(pending, deadline, "message")
                except core.NatsError as error:
                    raise translate(error) from error
        return self._take()

    async def drain(self) -> None:
        """Unsubscribe, and wait until the program has taken the messages that were in flight."""
        self._check_active()
        await self._drain()

    async def unsubscribe(self, limit: int = 0) -> None:
        """Unsubscribe, now or after `limit` messages in total.

        Messages that wait for a callback are discarded; a callback that runs is not canceled. Use
        `drain` to have them handled.
        """
        self._check_active()
        self._max_msgs = limit
        self._leave(limit)
        self._closed = self._pending_queue.ended
        if not limit and self._cb is not None:
            self._pending_queue.clear()

    def _check_active(self) -> None:
        if self._conn.is_closed:
            raise errors.ConnectionClosedError
        if self._conn.is_draining:
            raise errors.ConnectionDrainingError
        if self._closed:
            raise errors.BadSubscriptionError

    # For the client

    def _start(self) -> None:
        """Subscribe, and start the task of the callback or the future."""
        connection = self._session.connection
        connection.subscribe(self._subject, self._pending_queue, queue=self._queue)
        self._id = self._pending_queue.sid
        if self._max_msgs > 0:
            connection.unsubscribe(self._id, after=self._max_msgs)
        self._session.port.flush_soon()
        self._conn._subs[self._id] = self
        if self._cb is not None or self._future is not None:
            work = self._run_callback() if self._cb is not None else self._run_future()
            self._task = self._conn._start_task(work)

    def _leave(self, limit: int = 0) -> None:
        pending = self._pending_queue
        if pending.ended:
            return
        self._session.connection.unsubscribe(pending.sid, after=limit)
        self._session.port.flush_soon()
        if pending.ended:
            self._forget()

    def _forget(self) -> None:
        self._conn._subs.pop(self._id, None)
        self._gone.set()

    async def _drain(self, caller: asyncio.Task[Any] | None = None) -> None:
        """Drain; `caller` is a task to which the drain returns, so it does not wait for it.

        The server must confirm the end within `drain_timeout`. The program may take as long as it
        needs for its messages.
        """
        try:
            await self._fence(self._conn.options.get("drain_timeout", 30))
            if self._task is None:
                if self.pending_msgs:
                    await self._gone.wait()
            elif self._task is not (caller or asyncio.current_task()):
                await asyncio.wait([self._task])
        except core.NatsError as error:
            raise translate(error) from error
        finally:
            self._closed = True
            self._forget()

    async def _fence(self, timeout: float) -> None:
        """Unsubscribe, and wait until all messages in flight have arrived."""
        session = self._session
        deadline = session.port.now() + timeout
        await session.settle(session.connection.start_drain_of([self._pending_queue], deadline))

    # Taking messages

    async def _wait_after_end(self, deadline: float | None) -> None:
        """Wait as nats-py does if the subscription has ended, and raise TimeoutError."""
        self._forget()
        if deadline is not None and not self._conn.is_closed:
            await asyncio.sleep(deadline - self._session.port.now())
            raise errors.TimeoutError

    def _check_open(self) -> None:
        pending = self._pending_queue
        if self._conn.is_closed:
            raise errors.ConnectionClosedError
        if pending.error is not None:
            raise translate(pending.error)
        if pending.ended:
            self._forget()
            raise errors.BadSubscriptionError

    def _take(self) -> Msg:
        """Remove and return the oldest message."""
        pending = self._pending_queue
        raw = pending.pop()
        self._taken += 1
        if pending.ended and not pending.msgs:
            self._forget()
            self._session.connection.consumed(self._session.port.now())
            self._session.port.flush_soon()
        return self._build(raw)

    def _build(self, raw: RawMsg) -> Msg:
        headers = None if raw.raw_headers is None else read_headers(raw.raw_headers)
        self._conn._in_bytes += len(raw.data)
        return build(self._conn, raw, headers)

    async def _run_callback(self) -> None:
        """Call the callback for each message until the subscription ends."""
        assert self._cb is not None
        callback, conn = self._cb, self._conn
        pending, port = self._pending_queue, self._session.port
        msgs = pending.msgs
        turn = _TURN
        while True:
            while not msgs:
                if pending.ended:
                    self._forget()
                    return
                turn = _TURN
                await port.wait(pending)
            if pending.ended or conn.msg_class is not Msg:
                await self._call(self._take())
            else:
                # The common case, inlined: a third less for each message.
                raw = msgs.popleft()
                size = len(raw.data)
                pending.bytes -= size
                conn._in_bytes += size
                self._taken += 1
                block = raw.raw_headers
                headers = None if block is None else read_headers(block)
                msg = Msg(conn, raw.subject, raw.reply, raw.data, headers, None, False, raw.sid)
                try:
                    await callback(msg)
                except (asyncio.CancelledError, Exception) as error:
                    await self._failed(error)
            turn -= 1
            if not turn:
                turn = _TURN
                await asyncio.sleep(0)

    async def _call(self, msg: Msg) -> None:
        assert self._cb is not None
        try:
            await self._cb(msg)
        except (asyncio.CancelledError, Exception) as error:
            await self._failed(error)

    async def _failed(self, error: BaseException) -> None:
        """Handle an exception of the callback."""
        if isinstance(error, Exception):
            await self._conn._report(error)
            return
        if self._conn.is_closed or is_canceled():
            raise error
        # The callback canceled something of its own; the subscription goes on.

    async def _run_future(self) -> None:
        """Set the result of the future to the first message."""
        pending, port = self._pending_queue, self._session.port
        while not pending.msgs:
            if pending.ended:
                return
            await port.wait(pending)
        msg = self._take()
        if self._future is not None and not self._future.done():
            self._future.set_result(msg)


class _Messages:
    """The iterator of a subscription. Several of them share its messages."""

    def __init__(self, sub: Subscription) -> None:
        self._sub = sub

    def __aiter__(self) -> _Messages:
        return self

    async def __anext__(self) -> Msg:
        sub = self._sub
        pending = sub._pending_queue
        while not pending.msgs:
            if pending.error is not None and not sub._conn.is_closed:
                raise translate(pending.error)
            if pending.ended:
                sub._forget()
                raise StopAsyncIteration
            await sub._session.port.wait(pending)
        # Nothing is awaited after the message was removed: canceling the reader loses none.
        return sub._take()
