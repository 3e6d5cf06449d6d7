"""Answers to requests: one wildcard subscription for all of them, told apart by the last token."""

from __future__ import annotations

from .waitable import Receiver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .frames import Msg
    from .waitable import Request, Waitable


class Replies(Receiver):
    """The receiver of `<inbox>.*`; hands each message to the request that its token names.

    Answers that nobody waits for any more (late, or a second one) are dropped: that is what a
    request without a reader means.
    """

    __slots__ = ("_count", "_prefix", "_ready", "open")

    def __init__(self, inbox: bytes, ready: list[Waitable]) -> None:
        super().__init__()
        self._prefix = inbox + b"."
        self._ready = ready
        self._count = 0
        self.open: dict[bytes, Request] = {}

    def register(self, request: Request) -> bytes:
        """The reply subject for it; from now on answers to that are its own."""
        self._count += 1
        request.token = b"%d" % self._count
        self.open[request.token] = request
        return self._prefix + request.token

    def forget(self, request: Request) -> None:
        """Answers to it are dropped from now on; it need not be registered."""
        self.open.pop(request.token, None)

    def receive(self, msg: Msg, now: float) -> bool:
        request = self.open.get(msg.raw_subject[len(self._prefix) :])
        if request is not None:
            if request.receive(msg, now):
                self._ready.append(request)
            if request.done:
                del self.open[request.token]
        return False

    def pending(self) -> int:
        return 0
