"""Push subscriptions without async and await: what subscribe of jetstream.blocking gives."""

from __future__ import annotations

from natsproto.port import blocking, blocking_to

from . import messages as _messages
from . import pushing as _pushing
from .blocking_pull import JsMsg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from natsproto._record import Record
    from natsproto.port import BlockingPort


class PushEvents:
    """What happened to a push subscription."""

    def __init__(self, inner: _pushing.PushEvents, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    next = blocking(_pushing.PushEvents.next)
    _anext = blocking(_pushing.PushEvents.__anext__)

    def __iter__(self) -> PushEvents:
        return self

    def __next__(self) -> Record:
        try:
            return self._anext()
        except StopAsyncIteration:
            raise StopIteration from None


def _facades(messages: list[_messages.JsMsg], port: BlockingPort) -> list[JsMsg]:
    return [JsMsg(msg, port) for msg in messages]


class PushMessages:
    """A push subscription: iterate it. Made by JetStream.subscribe.

    The iteration ends by `unsubscribe`, `drain` or the end of the client; it raises if the server
    says that the consumer is gone. Everything else is survived, and told by `events`.
    """

    def __init__(self, inner: _pushing.PushMessages, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port
        #: What happened: PushWarning, Gap, Recounted. Iterate, or ask for the next.
        self.events = PushEvents(inner.events, port)

    @property
    def pending(self) -> int:
        """Messages that wait to be taken."""
        return self.inner.pending

    @property
    def closed(self) -> bool:
        """Whether no message will come any more."""
        return self.inner.closed

    @property
    def dropped(self) -> int:
        """Messages that did not fit in the queue, since the start."""
        return self.inner.dropped

    next = blocking_to(JsMsg, _pushing.PushMessages.next)
    stop = blocking_to(_facades, _pushing.PushMessages.stop)
    unsubscribe = blocking(_pushing.PushMessages.unsubscribe)
    drain = blocking(_pushing.PushMessages.drain)
    _anext = blocking_to(JsMsg, _pushing.PushMessages.__anext__)

    def __iter__(self) -> PushMessages:
        return self

    def __next__(self) -> JsMsg:
        try:
            return self._anext()
        except StopAsyncIteration:
            raise StopIteration from None

    def __enter__(self) -> PushMessages:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
