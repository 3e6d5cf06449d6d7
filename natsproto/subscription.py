"""Subscription: the messages of one subject, for every runtime (see client.py)."""

from __future__ import annotations

from .errors import InvalidState
from .wire import text as _text

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from .connection.waitable import Mailbox
    from .session import Session
    from .wire.frames import Msg

# How many messages an iterator gives without letting others run.
_TURN = 64


class Subscription:
    """Messages of one subject: iterate, or take one after the other with `next`.

    The iteration ends when the subscription does: by `unsubscribe`, `drain`, or the end of the
    client. It raises if the server refused it (PermissionDenied) or the connection failed for good.
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
        """Messages that wait to be taken."""
        return self._mailbox.pending()

    @property
    def dropped(self) -> int:
        """Messages that did not fit, since the start."""
        return self._mailbox.dropped

    async def next(self, timeout: float | None = None) -> Msg:
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
        return self._take()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Msg:
        mailbox = self._mailbox
        self._turn -= 1
        if mailbox.batch and self._turn and not mailbox.ended:
            # What nearly every call comes to, without another call: 0.3 us against 0.6.
            msg = mailbox.batch.pop()
            mailbox.bytes -= msg.size
            return msg
        if self._turn <= 0:
            self._turn = _TURN
            await self._session.port.checkpoint()
        while not mailbox.pending():
            if mailbox.error is not None:
                raise mailbox.error
            if mailbox.ended:
                raise StopAsyncIteration
            await self._session.port.wait(mailbox)
        return self._take()

    def _take(self) -> Msg:
        mailbox = self._mailbox
        msg = mailbox.pop()
        if mailbox.ended and not mailbox.pending():
            self._session.connection.consumed(self._session.port.now())
            self._session.port.flush_soon()
        return msg

    async def unsubscribe(self, after: int = 0) -> None:
        """Stop now, or when `after` messages have come in all. What has come can still be taken."""
        self._session.connection.unsubscribe(self._mailbox.sid, after=after)
        self._session.port.flush_soon()

    async def drain(self, timeout: float = 10.0) -> None:
        """Stop, but get what is on its way: afterwards the iteration ends with the last of it."""
        deadline = self._session.answer_deadline(timeout)
        fence = self._session.connection.start_drain_of([self._mailbox], deadline)
        await self._session.settle(fence)

    async def __aenter__(self) -> Subscription:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.unsubscribe()

    def __repr__(self) -> str:
        return "<Subscription %d to %s, %d pending>" % (self.sid, self._shown(), self.pending)

    def _shown(self) -> str:
        return _text.shorten(self.subject)


def at_hand(subscription: Subscription) -> Msg | None:
    """The next message, if taking it is all there is to do; for those who need not wait for it."""
    mailbox = subscription._mailbox  # pyright: ignore[reportPrivateUsage]
    if not mailbox.batch or mailbox.ended:
        return None
    msg = mailbox.batch.pop()
    mailbox.bytes -= msg.size
    return msg
