"""Fetch: what Consumer.fetch returns. Await it for a Batch, or iterate it, message by message."""

from __future__ import annotations

from jetstream.message import JsMsg
from natsproto.errors import InvalidState

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator
    from typing import Any

    from jetstream.machine.snapshot import ConsumerSnapshot
    from natsproto.errors import NatsError
    from natsproto.wire.frames import Msg

    from .api import Puller
    from .fetch import Fetcher
    from .ledger import PullTemplate
    from .messages import Batch

    Base = Coroutine[Any, Any, Batch]
else:
    Base = object

# How many messages the iteration returns without letting other tasks run.
_TURN = 64


class Fetch(Base):
    """A fetch, made by Consumer.fetch. It is used once; until then nothing is sent.

        batch = await consumer.fetch(100)                # all messages, when the fetch has ended
        async for msg in consumer.fetch(100): ...        # each message when it arrives

    The iteration ends with the batch. If the pull failed, the error is raised after the messages
    that arrived before. If the loop is left early, by `break`, an exception or `aclose`, the pull
    is canceled at the server, and messages that were not taken are kept for the next fetch.

    It is a coroutine as far as event loops are concerned: tasks can be made of it.
    """

    def __init__(
        self,
        puller: Puller,
        template: PullTemplate,
        batch: int,
        size: int,
        patience: float,
        eager: bool,
    ) -> None:
        self._puller = puller
        self._pull = (template, batch, size, patience, eager)
        self._coroutine: Coroutine[Any, Any, Batch] | None = None
        self._used = False
        self._iterated = False
        self._turn = _TURN
        self._fetcher: Fetcher | None = None  # while it is iterated
        self._rest: list[Msg] = []  # taken from the fetcher, last one first

    # The batch

    def __await__(self) -> Generator[Any, None, Batch]:
        return self._batch().__await__()

    def __iter__(self) -> Coroutine[Any, Any, Batch]:
        # This is what MicroPython's await looks for. It is of no use to a plain `for`.
        return self._batch()

    def send(self, value: Any) -> Any:
        """Run it as a coroutine, as event loops do."""
        if self._coroutine is None:
            self._coroutine = self._batch()
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        """Raise an error in the coroutine, as event loops do."""
        if self._coroutine is None:
            self._coroutine = self._batch()
        return self._coroutine.throw(*error)

    def close(self) -> None:
        """Close the coroutine, as event loops do."""
        if self._coroutine is not None:
            self._coroutine.close()

    async def _batch(self) -> Batch:
        self._use()
        return await self._puller.pull(*self._pull)

    def _use(self) -> None:
        if self._used:
            raise InvalidState("the fetch was used before: call fetch() again", "FETCH-14")
        self._used = True

    # The iteration

    def __aiter__(self) -> Fetch:
        return self

    async def __anext__(self) -> JsMsg:
        try:
            await self._fill()
        except BaseException:
            self._leave()
            raise
        puller = self._puller
        if self._rest:
            return JsMsg(self._rest.pop(), puller.session, puller.ack_none)
        failure = self._leave()
        if failure is not None:
            raise failure
        raise StopAsyncIteration

    async def _fill(self) -> None:
        """Wait until there is a message, or there will be none."""
        port = self._puller.session.port
        if not self._iterated:
            self._use()
            self._iterated = True
            self._fetcher = await self._puller.begin(*self._pull, streaming=True)
        fetcher = self._fetcher
        if fetcher is None:
            return  # it has ended
        self._turn -= 1
        if self._turn <= 0:
            self._turn = _TURN
            await port.checkpoint()
        while not self._rest:
            over = fetcher.done
            self._rest = fetcher.take()
            self._rest.reverse()
            if over:
                return
            if not self._rest:
                port.flush_soon()
                await port.wait(fetcher)

    def snapshot(self) -> ConsumerSnapshot:
        """Return the state of the iteration at this moment, without I/O.

        Its `reason` says why no message comes. Before the iteration, nothing is requested.
        """
        puller = self._puller
        now = puller.session.port.now()
        if self._fetcher is not None:
            made = self._fetcher.snapshot(now)
            made.pending += len(self._rest)
            return made
        from jetstream.machine.snapshot import ConsumerSnapshot

        made = ConsumerSnapshot(puller.name)
        made.online = puller.session.connection.online
        made.stopped = not self._used
        made.ended = self._used
        return made

    async def aclose(self) -> None:
        """End the iteration now, without waiting for the garbage collector."""
        self._used = self._iterated = True
        self._leave()

    def _leave(self) -> NatsError | None:
        fetcher, self._fetcher = self._fetcher, None
        rest, self._rest = self._rest, []
        rest.reverse()
        return None if fetcher is None else self._puller.leave(fetcher, rest)

    def __del__(self) -> None:
        if self._fetcher is not None:
            self._rest.reverse()
            self._puller.abandon(self._fetcher, self._rest)
