"""Push subscriptions without async and await: what subscribe of jetstream.blocking gives."""

from __future__ import annotations

from .pull import Iteration, MachineEvents

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.push import api as _pushing
    from natsproto.port import BlockingPort


class PushMessages(Iteration):
    """A push subscription: iterate it. Made by JetStream.subscribe.

    The iteration ends by `unsubscribe`, `drain` or the end of the client; it raises if the server
    says that the consumer is gone. Everything else is survived, and told by `events`.
    """

    def __init__(self, inner: _pushing.PushMessages, port: BlockingPort) -> None:
        super().__init__(inner, port)
        self._push = inner
        #: What happened: PushWarning, Gap, ConsumerSequenceReset. Iterate, or ask for the next.
        self.events = PushEvents(inner.events, port)

    @property
    def stream(self) -> str:
        """Where its messages come from."""
        return self._push.stream

    @property
    def name(self) -> str:
        """Its consumer; "" for an ordered one, which has one after the other."""
        return self._push.name

    @property
    def dropped(self) -> int:
        """Messages that did not fit in the queue, since the start."""
        return self._push.dropped

    def unsubscribe(self) -> None:
        """End now; what was not taken is forgotten."""
        self.stop()


class PushEvents(MachineEvents):
    """What happened to a push subscription."""
