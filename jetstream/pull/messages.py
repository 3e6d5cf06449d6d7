"""Messages and Batch: what consume() and fetch() give, for every runtime."""

from __future__ import annotations

from jetstream.machine.iteration import Iteration, MachineEvents
from natsproto.wire.text import show

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from jetstream.message import JsMsg
    from natsproto.errors import NatsError
    from natsproto.session import Session

    from .consume import Consume


class Batch:
    """The messages of a fetch: like a list. `error` says why it ended early, if it did."""

    __slots__ = ("_messages", "error")

    def __init__(self, messages: list[JsMsg], error: NatsError | None) -> None:
        self._messages = messages
        self.error: NatsError | None = error

    def __len__(self) -> int:
        return len(self._messages)

    def __getitem__(self, index: int) -> JsMsg:
        return self._messages[index]

    def __iter__(self) -> Iterator[JsMsg]:
        return iter(self._messages)

    def __repr__(self) -> str:
        return "<Batch of %d, error %s>" % (len(self), show(self.error))


class Messages(Iteration):
    """A consume() under way: iterate it. Made by Consumer.consume.

    The iteration ends by `stop`, `drain`, `stop_after` or the end of the client. It raises if the
    consumer is gone or cannot be pulled from. `events` reports everything else.

    End it by `async with`, `stop` or `drain`: if it is dropped, it stops only when it is
    garbage-collected, with a ResourceWarning.
    """

    _what = "consume()"

    def __init__(self, session: Session, machine: Consume, ack_none: bool) -> None:
        super().__init__(session, machine, ack_none)
        self._consume = machine
        #: What happened: PullWarning, Pinned, Unpinned; ConsumerReset and StreamRecreated of an
        #: ordered one. Iterate, or call next.
        self.events: PullEvents = PullEvents(session, machine)

    @property
    def dropped(self) -> int:
        """The number of messages dropped that no pull had requested, since the start."""
        return self._consume.dropped


def machine_of(messages: Messages) -> Consume:
    """Return the machine, for a caller that waits for several things at once."""
    return messages._consume  # pyright: ignore[reportPrivateUsage]


class PullEvents(MachineEvents):
    """What happened to the pulls of a consume()."""

    _what = "consume()"
