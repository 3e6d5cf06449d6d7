"""Push subscriptions without async and await: the results of JetStream.subscribe."""

from __future__ import annotations

from natsproto.hinting import add_hints

from .pull import Iteration, MachineEvents

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.push import api as _pushing
    from natsproto.port import BlockingPort


class PushMessages(Iteration):
    """A push subscription: iterate it. Returned by JetStream.subscribe.

    The iteration ends with `unsubscribe`, `drain` or the end of the client. It raises if the
    consumer was deleted. It survives all other errors, and reports them as `events`.
    """

    def __init__(self, inner: _pushing.PushMessages, port: BlockingPort) -> None:
        super().__init__(inner, port)
        self._push = inner
        #: PushWarning, Gap, ConsumerSequenceReset. Iterate, or call next.
        self.events: PushEvents = PushEvents(inner.events, port)

    @property
    def stream(self) -> str:
        """The name of the stream."""
        return self._push.stream

    @property
    def name(self) -> str:
        """The name of its consumer; "" for an ordered subscription, whose consumer changes."""
        return self._push.name

    @property
    def dropped(self) -> int:
        """The number of messages dropped because the queue was full, since the start."""
        return self._push.dropped

    def unsubscribe(self) -> None:
        """End the subscription now; messages that were not taken are discarded."""
        self.stop()


add_hints(
    PushMessages,
    "jetstream.api.attributes",
    "PUSH_SUBSCRIPTION",
    "messages next_msg consumer_info delivered pending_msgs pending_bytes fetch subject queue",
)


class PushEvents(MachineEvents):
    """The events of a push subscription."""
