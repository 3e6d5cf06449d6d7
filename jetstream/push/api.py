"""PushMessages: the messages of a push subscription, for every runtime."""

from __future__ import annotations

from jetstream.events import PushWarning
from jetstream.machine.iteration import Iteration, MachineEvents
from natsproto.errors import NatsError

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from jetstream.ordered.cursor import Cursor
    from natsproto.session import Session

    from .machine import Push


class PushMessages(Iteration):
    """A push subscription: iterate it. Made by JetStream.subscribe.

    The iteration ends by `unsubscribe`, `drain` or the end of the client; it raises if the server
    says that the consumer is gone. Everything else is survived, and told by `events`.
    """

    _what = "the subscription"

    def __init__(self, session: Session, machine: Push) -> None:
        super().__init__(session, machine, machine.ack_none)
        self._push = machine
        #: Where its messages come from.
        self.stream = ""
        #: Its consumer; "" for an ordered one, which has one after the other.
        self.name = ""
        #: Of an ordered one: its consumers, and how far they have come.
        self.cursor: Cursor | None = None
        #: What happened: PushWarning, Gap, ConsumerSequenceReset. Iterate, or ask for the next.
        self.events: PushEvents = PushEvents(session, machine)
        # PUSH-15: runs once, when nothing is to come any more and what came was taken.
        self.on_end: Callable[[], Awaitable[object]] | None = None

    @property
    def dropped(self) -> int:
        """The number of messages dropped because the queue was full, since the start."""
        return self._push.dropped

    async def unsubscribe(self) -> None:
        """End now; messages that were not taken are discarded."""
        await self.stop()

    async def _at_end(self) -> None:
        try:
            await self._finish()
        except NatsError as error:
            self._push.events.add(PushWarning(error))  # PUSH-15: no call waits for it

    async def _finish(self) -> None:
        call = self.on_end
        self.on_end = None
        if call is not None:
            await call()


class PushEvents(MachineEvents):
    """The events of a push subscription."""

    _what = "the subscription"
