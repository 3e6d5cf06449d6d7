# Written by `python -m tests.facades`. Do not edit.

from jetstream.blocking.pull import Iteration, MachineEvents
from jetstream.push import api as _pushing
from natsproto.port import BlockingPort

class PushMessages(Iteration):
    """A push subscription: iterate it. Returned by JetStream.subscribe.

    The iteration ends with `unsubscribe`, `drain` or the end of the client. It raises if the
    consumer was deleted. It survives all other errors, and reports them as `events`.
    """

    events: PushEvents

    def __init__(self, inner: _pushing.PushMessages, port: BlockingPort) -> None: ...
    @property
    def stream(self) -> str:
        """The name of the stream."""
        ...

    @property
    def name(self) -> str:
        """The name of its consumer; "" for an ordered subscription, whose consumer changes."""
        ...

    @property
    def dropped(self) -> int:
        """The number of messages dropped because the queue was full, since the start."""
        ...

    def unsubscribe(self) -> None:
        """End the subscription now; messages that were not taken are discarded."""
        ...

class PushEvents(MachineEvents):
    """The events of a push subscription."""
