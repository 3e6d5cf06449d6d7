"""Replies: the responses to a request with many of them (ADR-47), one by one.

`Client.request_many` returns a list, so it needs an end. The iteration does not: a response is
returned when it arrives, and makes room for another one. Nothing is sent before the first step. All
requests share one subscription, so leaving the loop early leaves none behind: the request is
forgotten, and later responses are dropped.
"""

from __future__ import annotations

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from .connection.waitable import MultiRequest
    from .session import Session
    from .wire.frames import Msg

    Sentinel: TypeAlias = Callable[[Msg], bool]

# How many responses are returned without letting other tasks run.
_TURN = 64


class ReplyReader:
    """Takes the responses to one request as they arrive, until its end or `leave`.

    With `patience`, each wait may take that many seconds, not counting the time that the caller
    takes between two responses. Otherwise the deadline of the request applies.
    """

    def __init__(
        self, session: Session, request: MultiRequest, patience: float | None = None
    ) -> None:
        self._session = session
        self._request: MultiRequest | None = request
        self._patience = patience
        self._rest: list[Msg] = []  # in reverse order
        self._turn = _TURN
        session.port.flush_soon()

    async def next(self) -> Msg | None:
        """Return the next response; None after the last one. Raises the error of the request."""
        if self._rest:
            self._turn -= 1
            if self._turn <= 0:
                self._turn = _TURN
                await self._session.port.checkpoint()
            return self._rest.pop()
        request = self._request
        if request is None:
            return None
        deadline = None
        if self._patience is not None:
            deadline = self._session.port.now() + self._patience
        try:
            while not request.replies and not request.done:
                await self._wait(request, deadline)
        except BaseException:
            self.leave()
            raise
        if request.replies:
            self._rest = request.take()
            self._rest.reverse()
            return self._rest.pop()
        self.leave()
        if request.error is not None:
            raise request.error
        return None

    async def _wait(self, request: MultiRequest, deadline: float | None) -> None:
        session = self._session
        if deadline is None:
            await session.port.wait(request)
            return
        session.connection.wake_at(request, deadline)  # the same after a wake-up that was too early
        session.port.flush_soon()
        try:
            await session.port.wait(request)
        finally:
            request.deadline = None

    def leave(self) -> None:
        """Stop waiting: later responses are dropped."""
        request, self._request = self._request, None
        self._rest = []
        if request is not None:
            self._session.connection.cancel(request)

    def __del__(self) -> None:
        request = self._request
        if request is not None:
            session = self._session
            session.port.run_soon(lambda: session.connection.cancel(request))


class Replies:
    """The responses to a request, one by one. Returned by Client.iter_request_many.

    The request is sent when the iteration starts. A loop may be left at any time; `aclose` ends the
    iteration without waiting for the garbage collector.
    """

    def __init__(
        self, session: Session, start: Callable[[], MultiRequest], sentinel: Sentinel | None
    ) -> None:
        self._session = session
        self._start: Callable[[], MultiRequest] | None = start
        self._sentinel = sentinel
        self._reader: ReplyReader | None = None

    def __aiter__(self) -> Replies:
        return self

    async def __anext__(self) -> Msg:
        start, self._start = self._start, None
        if start is not None:
            self._reader = ReplyReader(self._session, start())
        reader = self._reader
        msg = None if reader is None else await reader.next()
        if msg is None or (self._sentinel is not None and self._sentinel(msg)):
            await self.aclose()
            raise StopAsyncIteration
        return msg

    async def aclose(self) -> None:
        """End the iteration: later responses are dropped."""
        self._start = None
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.leave()
