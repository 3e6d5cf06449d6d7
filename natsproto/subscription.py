"""Subscription: the messages of one subject, for every runtime (see client.py)."""

from __future__ import annotations

from .errors import InvalidState
from .wire import text as _text

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .connection.receiver import Mailbox
    from .durations import Seconds
    from .session import Session
    from .wire.frames import Msg

# How many messages an iterator returns without letting other tasks run.
_TURN = 64


class Subscription:
    """The messages of one subject: iterate, or take one after the other with `next`.

    The iteration ends with the subscription: after `unsubscribe` or `drain`, or when the client is
    closed. It raises PermissionDenied if the server rejects the subscription, and the error of the
    connection if that fails for good.
    """

    def __init__(self, session: Session, mailbox: Mailbox) -> None:
        self._session = session
        self._mailbox = mailbox
        self._turn = _TURN

    @property
    def subject(self) -> str:
        """The subject of the subscription."""
        return _text.decode(self._mailbox.subject)

    @property
    def queue(self) -> str:
        """The queue group, or ""."""
        return _text.decode(self._mailbox.queue)

    @property
    def sid(self) -> int:
        """The id of the subscription on its connection."""
        return self._mailbox.sid

    @property
    def pending(self) -> int:
        """The number of messages that wait to be taken."""
        return self._mailbox.pending()

    @property
    def dropped(self) -> int:
        """The number of messages dropped because the queue was full, since the start."""
        return self._mailbox.dropped

    async def next(self, timeout: Seconds | None = None) -> Msg:
        """Return the next message; raise TimeoutExpired, or InvalidState after the end.

        A timeout of 0 polls: it returns a message only if there is one.
        """
        deadline = None if timeout is None else self._session.deadline(timeout)
        mailbox = self._mailbox
        while not mailbox.pending():
            if mailbox.error is not None:
                raise mailbox.error
            if mailbox.ended:
                raise InvalidState("the subscription to %s has ended" % self._shown())
            await self._session.wait(mailbox, deadline, "message on %s" % self._shown())
        return self._session.take(mailbox)

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Msg:
        mailbox = self._mailbox
        self._turn -= 1
        if mailbox.batch and self._turn and not mailbox.ended:
            # The common case of nearly every call, inlined: 0.3 us instead of 0.6.
            msg = mailbox.batch.pop()
            mailbox.bytes -= msg.size
            return msg
        if self._turn <= 0:
            self._turn = _TURN
            await self._session.port.checkpoint()
        while not mailbox.batch and not mailbox.fresh:  # pending(), without two calls a wake-up
            if mailbox.error is not None:
                raise mailbox.error
            if mailbox.ended:
                raise StopAsyncIteration
            await self._session.port.wait(mailbox)
        return self._session.take(mailbox) if mailbox.ended else mailbox.pop()

    async def run(
        self,
        callback: Callable[[Msg], Awaitable[object]],
        *,
        concurrency: int = 1,
        on_error: Callable[[Msg, Exception], Awaitable[object]] | None = None,
    ) -> None:
        """Call `callback(msg)` for each message, at most `concurrency` of them at once.

        Returns when the subscription has ended and all callbacks are done. When a callback raises,
        `on_error(msg, error)` is called, and the next message is handled. Without `on_error`, or if
        that raises, no other callback starts, the running ones finish, the subscription ends, and
        the error is raised. Canceling `run` ends the subscription as well.

        Concurrent callbacks run in tasks of an event loop, or in threads;
        natsproto.adapters.blocking has only one thread. The callback is async if the client is.
        """
        from .callbacks import CallbackRunner

        running = CallbackRunner(self._session, self._mailbox, callback, on_error)
        await running.run(self._session.port, concurrency)

    async def unsubscribe(self, after: int = 0) -> None:
        """Stop now, or after `after` messages in total. Received messages can still be taken."""
        self._session.connection.unsubscribe(self._mailbox.sid, after=after)
        self._session.port.flush_soon()

    async def drain(self, timeout: Seconds = 10.0) -> None:
        """Stop after the messages in flight: the iteration ends with the last of them."""
        deadline = self._session.answer_deadline(timeout)
        fence = self._session.connection.start_drain_of([self._mailbox], deadline)
        await self._session.settle(fence)

    async def __aenter__(self) -> Subscription:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.unsubscribe()

    if not TYPE_CHECKING:  # a type checker would accept every name

        def __getattr__(self, name):
            from .hints import SUBSCRIPTION, no_attribute

            raise no_attribute(self, name, SUBSCRIPTION)

    def __repr__(self) -> str:
        return "<Subscription %d to %s, %d pending>" % (self.sid, self._shown(), self.pending)

    def _shown(self) -> str:
        return _text.shorten(self.subject)


def at_hand(subscription: Subscription) -> Msg | None:
    """Return the next message if it can be taken without further work; otherwise None."""
    mailbox = subscription._mailbox  # pyright: ignore[reportPrivateUsage]
    if not mailbox.batch or mailbox.ended:
        return None
    msg = mailbox.batch.pop()
    mailbox.bytes -= msg.size
    return msg
