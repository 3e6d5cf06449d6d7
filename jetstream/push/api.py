"""PushMessages: what a push subscription gives, for every runtime."""

from __future__ import annotations

from jetstream.machine.cleanup import clean_up_after
from jetstream.machine.iteration import Iteration, MachineEvents, wait
from jetstream.ordered.lineage import Lineage
from jetstream.ordered.push import HEARTBEAT, OrderedPush, ordered_config
from jetstream.ordered.recreate import Succession
from natsproto.errors import ConnectionClosed, NatsError, TimeoutExpired

from .machine import ALARM_AFTER, PushWarning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from jetstream.api.client import Api
    from natsproto.session import Session

    from .machine import Push


class PushMessages(Iteration):
    """A push subscription: iterate it. Made by JetStream.subscribe.

    The iteration ends by `unsubscribe`, `drain` or the end of the client; it raises if the server
    says that the consumer is gone. Everything else is survived, and told by `events`.
    """

    _what = "the subscription"

    def __init__(self, session: Session, machine: Push) -> None:
        super().__init__(session, machine, machine.ackless)
        self._push = machine
        #: Where its messages come from.
        self.stream = ""
        #: Its consumer; "" for an ordered one, which has one after the other.
        self.name = ""
        #: Of an ordered one: its consumers, and how far they have come.
        self.lineage: Lineage | None = None
        #: What happened: PushWarning, Gap, Recounted. Iterate, or ask for the next.
        self.events = PushEvents(session, machine)
        # PUSH-15: runs once, when nothing is to come any more and what came was taken.
        self.on_end: Callable[[], Awaitable[object]] | None = None

    @property
    def dropped(self) -> int:
        """Messages that did not fit in the queue, since the start."""
        return self._push.dropped

    async def unsubscribe(self) -> None:
        """End now; what was not taken is forgotten."""
        await self.stop()

    async def _at_end(self) -> None:
        try:
            await self._finish()
        except NatsError as error:
            self._push.tell(PushWarning(error))  # PUSH-15: nobody waits for it

    async def _finish(self) -> None:
        call = self.on_end
        self.on_end = None
        if call is not None:
            await call()


class PushEvents(MachineEvents):
    """What happened to a push subscription."""

    _what = "the subscription"


async def subscribe_ordered(
    api: Api,
    stream: str,
    config: dict[str, Any],
    *,
    heartbeat: float = HEARTBEAT,
    alarm_after: float = ALARM_AFTER,
    max_messages: int | None = None,
    max_bytes: int | None = None,
) -> PushMessages:
    """An ordered push subscription (ADR-17), once its first consumer is there.

    `config` is the server's JSON: filters and where to start; the rest is forced.
    """
    session = api.session
    connection = session.connection
    inbox = connection.new_inbox()
    lineage = Lineage(stream, connection.new_token(), ordered_config(config, heartbeat))
    succession = Succession(lineage, api.prefix, inbox.encode(), timeout=api.timeout, delivers=True)
    machine = OrderedPush(
        inbox.encode(),
        succession,
        heartbeat=heartbeat,
        alarm_after=alarm_after,
        max_messages=max_messages,
        max_bytes=max_bytes,
    )
    connection.subscribe(inbox + ".d1", machine)
    session.begin(machine)
    messages = PushMessages(session, machine)
    messages.stream = stream
    messages.lineage = lineage
    messages.on_end = _cleanup(api, succession)
    try:
        await _begun(session, machine, session.deadline(api.timeout))
    except BaseException:
        await messages.stop()
        raise
    return messages


def _cleanup(api: Api, succession: Succession) -> Callable[[], Awaitable[object]]:
    async def clean() -> None:
        clean_up_after(api, succession)  # ORDPUSH-11

    return clean


async def _begun(session: Session, machine: OrderedPush, deadline: float) -> None:
    while not machine.begun:
        if machine.ended:
            raise machine.error or ConnectionClosed(session.connection.closed)
        try:
            await wait(session, machine, deadline, "ordered consumer")
        except TimeoutExpired:
            # ORDPUSH-9: what went wrong says more.
            raise machine.last_failure or TimeoutExpired("no ordered consumer in time") from None
