"""Messages and Batch: what consume() and fetch() give, for every runtime."""

from __future__ import annotations

from natsproto.errors import ConnectionClosed, InvalidState, NatsError, TimeoutExpired

from .machine import Alarm
from .messages import JsMsg
from .running import NoLock, Running, async_call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from natsproto._record import Record
    from natsproto.session import Session

    from .consume import Consume
    from .machine import Machine

# How many messages an iterator gives without letting others run.
_TURN = 64
_NO_LOCK = NoLock()


class Batch:
    """The messages of a fetch: like a list. `error` says why it ended early, if it did."""

    __slots__ = ("_messages", "error")

    def __init__(self, messages: list[JsMsg], error: NatsError | None) -> None:
        self._messages = messages
        self.error = error

    def __len__(self) -> int:
        return len(self._messages)

    def __getitem__(self, index: int) -> JsMsg:
        return self._messages[index]

    def __iter__(self) -> Iterator[JsMsg]:
        return iter(self._messages)

    def __repr__(self) -> str:
        return "<Batch of %d, error %r>" % (len(self), self.error)


class Messages:
    """A consume() under way: iterate it. Made by Consumer.consume.

    The iteration ends by `stop`, `drain`, `stop_after` or the end of the client; it raises if the
    consumer is gone or cannot be pulled from. Everything else is survived, and told by `events`.
    """

    def __init__(self, session: Session, machine: Consume, ackless: bool) -> None:
        self._session = session
        self._machine = machine
        self._ackless = ackless
        self._turn = _TURN
        #: What happened to the pulls: PullWarning, Pinned, Unpinned. Iterate, or ask for the next.
        self.events = PullEvents(session, machine)

    @property
    def pending(self) -> int:
        """Messages that wait to be taken."""
        return 0 if self._machine.finished else self._machine.pending()

    @property
    def closed(self) -> bool:
        """Whether no message will come any more."""
        return not self.pending and (self._machine.ended or self._machine.finished)

    async def next(self, timeout: float | None = None) -> JsMsg:
        """The next message; TimeoutExpired, or InvalidState when the iteration would have ended."""
        deadline = None if timeout is None else self._session.deadline(timeout)
        while not self.pending:
            if self._over():
                raise InvalidState("consume() has ended")
            await wait(self._session, self._machine, deadline, "message")
        return self._take()

    def __aiter__(self) -> Messages:
        return self

    async def __anext__(self) -> JsMsg:
        self._turn -= 1
        if self._turn <= 0:
            self._turn = _TURN
            await self._session.port.checkpoint()
        while not self.pending:
            if self._over():
                raise StopAsyncIteration
            await self._session.port.wait(self._machine)
        return self._take()

    async def run(
        self,
        callback: Callable[[JsMsg], Awaitable[object]],
        *,
        concurrency: int = 1,
        nak: bool = False,
    ) -> None:
        """Call `callback(msg)` for each message, at most `concurrency` of them at once.

        Returns when the consume() has ended, as an iteration would, and all callbacks are done.
        When one of them raises, no other is begun, those at work are waited for, the consume() is
        stopped, and the error is raised; `nak` as in `stop`. Cancelled, it is stopped as well.
        """
        running = Running(self, async_call(callback), nak, _NO_LOCK)
        await running.run(self._session.port, concurrency)

    def _over(self) -> bool:
        if self._machine.error is not None:
            raise self._machine.error  # CONSUME-18
        return self.closed

    def _take(self) -> JsMsg:
        session = self._session
        machine = self._machine
        msg = machine.pop(session.port.now())
        if machine.unperformed:
            session.connection.perform(machine)
            session.port.flush_soon()
        elif machine.ended and not machine.pending():
            session.connection.consumed(session.port.now())  # a drain may wait for that
            session.port.flush_soon()
        return JsMsg(msg, session, self._ackless)

    async def stop(self, *, nak: bool = False) -> list[JsMsg]:
        """End now. Returns the messages that were not taken; nak: give them back to the consumer.

        Otherwise they will be delivered again when their ack wait is over.
        """
        session = self._session
        rest = [JsMsg(msg, session, self._ackless) for msg in self._machine.stop()]
        session.connection.perform(self._machine)
        session.connection.consumed(session.port.now())
        if nak:
            while rest:
                await rest[0].nak()
                rest.pop(0)
        session.port.flush_soon()
        return rest

    async def drain(self, timeout: float = 10.0) -> None:
        """Pull no more, but get what is on its way: the iteration ends with the last of it."""
        session = self._session
        self._machine.start_draining()
        fence = session.connection.start_drain_of([self._machine], session.deadline(timeout))
        await session.settle(fence)

    async def __aenter__(self) -> Messages:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()


class PullEvents:
    """What happened to the pulls of a consume()."""

    def __init__(self, session: Session, machine: Consume) -> None:
        self._session = session
        self._machine = machine

    async def next(self, timeout: float | None = None) -> Record:
        """The next event; TimeoutExpired, or ConnectionClosed when there will be none."""
        deadline = None if timeout is None else self._session.deadline(timeout)
        while not self._machine.news:
            if self._machine.ended:
                raise ConnectionClosed("there are no more events: consume() has ended")
            await wait(self._session, self._machine, deadline, "event")
        return self._machine.news.pop(0)

    def __aiter__(self) -> PullEvents:
        return self

    async def __anext__(self) -> Record:
        if not self._machine.news and self._machine.ended:
            raise StopAsyncIteration
        return await self.next()


async def wait(session: Session, machine: Machine, deadline: float | None, what: str) -> None:
    """Until the machine may be ready: look again. TimeoutExpired after the deadline."""
    if deadline is None:
        await session.port.wait(machine)
        return
    if session.port.now() >= deadline:
        raise TimeoutExpired("no %s in time" % what)
    alarm = Alarm(machine)
    session.connection.wake_at(alarm, deadline)
    session.port.flush_soon()
    try:
        await session.port.wait(machine)
    finally:
        alarm.deadline = None
