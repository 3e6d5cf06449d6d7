"""CallbackRunner: the workers of Subscription.run."""

from __future__ import annotations

from .errors import NatsError
from .workers import Workers, check_async, check_callback

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .connection.receiver import Mailbox
    from .session import Session
    from .wire.frames import Msg

WRONG_KIND = "D-SUB-12"
# How many messages a worker takes without letting others run.
_TURN = 64


class CallbackRunner(Workers):
    """One call of `run`."""

    __slots__ = ("_callback", "_mailbox", "_on_error", "_session", "_stopped")
    rule = WRONG_KIND

    def __init__(
        self,
        session: Session,
        mailbox: Mailbox,
        callback: Callable[[Msg], Any],
        on_error: Callable[[Msg, Exception], Any] | None,
    ) -> None:
        super().__init__()
        check_callback(callback, WRONG_KIND)
        if on_error is not None:
            check_callback(on_error, WRONG_KIND, "on_error")
        self._session = session
        self._mailbox = mailbox
        self._callback = callback
        self._on_error = on_error
        self._stopped = False

    async def call_all(self) -> None:  # D-SUB-10
        """Call the callback for each message, until there are no more."""
        mailbox = self._mailbox
        callback = self._callback
        awaitable: type | None = None  # the class of a result that is known to be awaitable
        turn = _TURN
        while True:
            turn -= 1
            # As in Subscription.__anext__: nearly every message has already arrived.
            if mailbox.batch and turn and not mailbox.ended and not self._stopped:
                msg = mailbox.batch.pop()
                mailbox.bytes -= msg.size
            else:
                if turn <= 0:
                    turn = _TURN
                    await self._session.port.checkpoint()
                taken = await self.next()
                if taken is None:
                    return
                msg = taken
            try:
                result = callback(msg)
                if type(result) is not awaitable:
                    awaitable = check_async(result, callback, WRONG_KIND)
                await result
            except Exception as error:
                handled = self.handle(msg, error)
                check_async(handled, self._on_error, WRONG_KIND, "on_error")
                await handled

    async def next(self) -> Msg | None:
        """Wait for the next message and return it; None at the end, or if a callback failed."""
        mailbox = self._mailbox
        while not self._stopped:
            if mailbox.pending():
                return self._session.take(mailbox)
            if mailbox.error is not None:
                raise mailbox.error
            if mailbox.ended:
                return None
            await self._session.port.wait(mailbox)
        return None

    def handle(self, msg: Msg, error: Exception) -> Any:
        """Pass the error of a callback to `on_error`, or raise it if there is none."""
        # A callback of the wrong kind would fail for each message: that ends it.
        if self._on_error is None or getattr(error, "rule", "") == WRONG_KIND:
            raise error
        return self._on_error(msg, error)

    async def stop(self) -> None:
        """Start no other call, and end the subscription."""
        self._stopped = True
        try:
            self._session.connection.unsubscribe(self._mailbox.sid)
            self._session.port.flush_soon()
        except NatsError:
            pass  # the connection is closed: the subscription has ended
