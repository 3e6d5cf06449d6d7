"""The events of a connection as calls of the program's callbacks."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from typing import TYPE_CHECKING, Any

from natsproto import events
from natsproto.compat.nats import errors
from natsproto.errors import InvalidValue

from .failures import of_transport, translate

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .client import Client

CALLBACKS = (
    "error_cb",
    "disconnected_cb",
    "closed_cb",
    "discovered_server_cb",
    "reconnected_cb",
    "lame_duck_mode_cb",
)
NOT_A_COROUTINE = "nats: must use coroutine for subscriptions"
_LOG = logging.getLogger("nats.aio.client")


def check_callbacks(given: dict[str, Any]) -> None:
    """Raise InvalidCallbackTypeError unless each callback is a coroutine function."""
    for name in CALLBACKS:
        callback = given[name]
        if callback is not None and not is_coroutine_function(callback):
            raise errors.InvalidCallbackTypeError


def is_coroutine_function(callback: object) -> bool:
    """Return whether calling it returns a coroutine; partials and objects count as well."""
    while isinstance(callback, functools.partial):
        callback = callback.func  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(
        getattr(callback, "__call__", None)  # noqa: B004
    )


def is_canceled() -> bool:
    """Return whether the current task was canceled; Python 3.10 cannot tell, so assume it.

    Otherwise a CancelledError in it is that of something that it awaited.
    """
    cancelling = getattr(asyncio.current_task(), "cancelling", None)
    return cancelling is None or cancelling() > 0


class Callbacks:
    """Calls the callbacks of one client, one after the other, in the order of the events.

    They run in a task of their own: a callback that waits delays the next one, and nothing else.
    `skip_to_end` is for a client that is closed while a callback does not return.
    """

    def __init__(self, client: Client, given: dict[str, Any]) -> None:
        self._client = client
        self._given = {name: given[name] for name in CALLBACKS}
        self._last: events.Event | None = None
        self._known: set[str] = set()  # the addresses of servers at the last connect
        self._at_end = False  # whether the client is closed, and its last events are handled
        self._skipping = False  # whether callbacks are skipped until then

    async def error(self, error: Exception) -> None:
        """Report an error, to `error_cb` or, without one, to the log."""
        if self._given["error_cb"] is None:
            _LOG.error("nats: encountered error", exc_info=error)
        else:
            await self._call("error_cb", error)

    async def handle(self, event: events.Event) -> None:
        """Call the callbacks of an event."""
        if isinstance(event, (events.Disconnected, events.Closed)) and self._client.is_closed:
            self._at_end, self._skipping = True, False
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            await handler(self, event)
        self._last = event

    async def never_connected(self) -> None:
        """Call the callbacks of a client that is closed without having connected."""
        await self._call("disconnected_cb")
        await self._call("closed_cb")

    def skip_to_end(self) -> bool:
        """Skip the callbacks of events before the client was closed.

        Return True if one of them is running: the caller must cancel it, once.
        """
        if self._at_end or self._skipping:
            return False
        self._skipping = True
        return True

    async def _call(self, name: str, *args: object) -> None:
        callback: Callable[..., Awaitable[object]] | None = self._given[name]
        if callback is None or self._skipping:
            return
        try:
            await callback(*args)
        except asyncio.CancelledError:
            if is_canceled() and not self._skipping:
                raise
            _LOG.warning("nats: %s was canceled", name)
        except Exception:
            _LOG.exception("nats: %s failed", name)

    async def _on_connected(self, event: events.Connected) -> None:
        # nats-py calls `discovered_server_cb` for no server that the first INFO has announced.
        self._known = {srv.uri.netloc.rpartition("@")[2] for srv in self._client._server_pool}
        if event.again:
            await self._call("reconnected_cb")

    async def _on_disconnected(self, event: events.Disconnected) -> None:
        if event.error is not None:
            await self._fail(of_transport(event.error, self._client._causes.pop(event.url, None)))
        await self._call("disconnected_cb")

    async def _on_attempt_failed(self, event: events.AttemptFailed) -> None:
        await self._fail(of_transport(event.error, self._client._causes.pop(event.url, None)))

    async def _on_server_error(self, event: events.ServerError) -> None:
        self._client._errors_received += 1
        await self._fail(translate(event.error))

    async def _on_choice_failed(self, event: events.ServerChoiceFailed) -> None:
        error = translate(event.error)
        if isinstance(event.error, InvalidValue) and "not in the pool" in str(event.error):
            error = errors.ServerNotInPoolError()
        await self._fail(error)

    async def _on_slow_consumer(self, event: events.SlowConsumer) -> None:
        sub = self._client._subs.get(event.sid)
        for _ in range(event.dropped):  # nats-py reports each message
            await self._fail(errors.SlowConsumerError(event.subject, "", event.sid, sub))

    async def _on_discovered(self, event: events.Discovered) -> None:
        if not self._known.issuperset([url.rpartition("//")[2] for url in event.urls]):
            await self._call("discovered_server_cb")

    async def _on_lame_duck(self, event: events.LameDuck) -> None:
        await self._call("lame_duck_mode_cb")

    async def _on_closed(self, event: events.Closed) -> None:
        if event.error is not None:
            self._client._err = translate(event.error)
        await self._client._on_closed()
        last = self._last
        if not isinstance(last, events.Disconnected) or last.error is not None:
            await self._call("disconnected_cb")  # nats-py calls it again at the end
        await self._call("closed_cb")

    async def _fail(self, error: Exception) -> None:
        self._client._err = error
        await self.error(error)


_HANDLERS: dict[type[events.Event], Callable[[Callbacks, Any], Awaitable[None]]] = {
    events.Connected: Callbacks._on_connected,
    events.Disconnected: Callbacks._on_disconnected,
    events.AttemptFailed: Callbacks._on_attempt_failed,
    events.ServerError: Callbacks._on_server_error,
    events.ServerChoiceFailed: Callbacks._on_choice_failed,
    events.SlowConsumer: Callbacks._on_slow_consumer,
    events.Discovered: Callbacks._on_discovered,
    events.LameDuck: Callbacks._on_lame_duck,
    events.Closed: Callbacks._on_closed,
}
