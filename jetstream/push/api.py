"""PushMessages: the messages of a push subscription, for every runtime."""

from __future__ import annotations

from jetstream.events import PushWarning
from jetstream.machine.iteration import Iteration, MachineEvents
from natsproto.errors import NatsError
from natsproto.hinting import add_hints

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from jetstream.ordered.cursor import Cursor
    from natsproto.session import Session

    from .machine import Push


class PushMessages(Iteration):
    """A push subscription: iterate it. Returned by JetStream.subscribe.

    The iteration ends with `unsubscribe`, `drain`, or the end of the client. It raises if the
    server reports that the consumer was deleted. It survives all other errors, and reports them as
    `events`.
    """

    _what = "the subscription"

    def __init__(self, session: Session, machine: Push) -> None:
        super().__init__(session, machine, machine.ack_none)
        self._push = machine
        #: The name of the stream.
        self.stream = ""
        #: The name of the consumer; "" for an ordered subscription, which may have several.
        self.name = ""
        #: The consumers of an ordered subscription, and their position in the stream.
        self.cursor: Cursor | None = None
        #: PushWarning, Gap and ConsumerSequenceReset. Iterate, or await the next one.
        self.events: PushEvents = PushEvents(session, machine)
        # PUSH-15: called once, after the last message was taken.
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
            self._log()

    async def _finish(self) -> None:
        call = self.on_end
        self.on_end = None
        if call is not None:
            await call()
            self._log()

    def _log(self) -> None:
        """Have the adapter log events that were not caused by an input of the connection."""
        if self._push.events.reports.events:
            self._push.wake()
            self._session.poke(self._push)


add_hints(
    PushMessages,
    "jetstream.api.attributes",
    "PUSH_SUBSCRIPTION",
    "messages next_msg consumer_info delivered pending_msgs pending_bytes fetch subject queue",
)


class PushEvents(MachineEvents):
    """The events of a push subscription."""

    _what = "the subscription"
