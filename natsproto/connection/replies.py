"""Answers to requests: one wildcard subscription for all of them, told apart by the last token."""

from __future__ import annotations

from .waitable import Receiver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from natsproto.errors import NatsError
    from natsproto.wire.frames import Msg

    from .timers import Timers
    from .tokens import Tokens
    from .waitable import Request


class Replies(Receiver):
    """The receiver of `<inbox>.*`; hands each message to the request that its token names.

    Answers that nobody waits for any more (late, or a second one) are dropped: that is what a
    request without a reader means.
    """

    __slots__ = ("_prefix", "_timers", "open")

    def __init__(self, inbox: bytes, timers: Timers, tokens: Tokens) -> None:
        super().__init__()
        self.tokens = tokens
        self.subject = inbox + b".*"
        self._prefix = inbox + b"."
        self._timers = timers
        self.open: dict[bytes, Request] = {}

    def register(self, request: Request) -> bytes:
        """Return the reply subject for the request; answers to that settle it from now on."""
        request.token = token = self.tokens.next()  # REQ-9
        self.open[token] = request
        return self._prefix + token

    def forget(self, request: Request) -> None:
        """Answers to it are dropped from now on; it need not be registered."""
        self.open.pop(request.token, None)

    def receive(self, msg: Msg, now: float) -> bool:
        request = self.open.get(msg.raw_subject[len(self._prefix) :])
        if request is not None:
            request.receive(msg, now)
            self.ready.append(request)
            if request.done:
                self.forget(request)
            else:
                self._timers.arm(request)  # REQ-8: the stall may end before the deadline
        return False

    def fail(self, error: NatsError, subject: str = "") -> None:
        """Settle the open requests to this subject, or all of them, with the error."""
        for request in list(self.open.values()):
            if subject in ("", request.subject):
                self.forget(request)
                request.finish(error=error)
                self.ready.append(request)

    def pending(self) -> int:
        return 0
