"""Dead letters without async and await: the results of Consumer.dead_letters."""

from __future__ import annotations

from jetstream.dead_letters import api as _api
from jetstream.dead_letters import letter as _letter
from natsproto.port import blocking, blocking_next_to, blocking_to

from .loops import StoppableLoop

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.advisories.consumers import MaxDeliverAdvisory, TerminatedAdvisory
    from jetstream.api.stored import StoredMsg
    from jetstream.schema.timestamp import Timestamp
    from natsproto.port import BlockingPort


class DeadLetter:
    """A message that reached max_deliver, or was terminated. Returned by DeadLetters."""

    def __init__(self, inner: _letter.DeadLetter, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    @property
    def advisory(self) -> MaxDeliverAdvisory | TerminatedAdvisory:
        """The event of the server."""
        return self.inner.advisory

    @property
    def message(self) -> StoredMsg | None:
        """The stored message; None if the stream no longer has it."""
        return self.inner.message

    @property
    def settled(self) -> bool:
        """Whether the letter was retried or discarded."""
        return self.inner.settled

    @property
    def stream(self) -> str:
        """The name of the stream."""
        return self.inner.stream

    @property
    def consumer(self) -> str:
        """The name of the consumer."""
        return self.inner.consumer

    @property
    def seq(self) -> int:
        """The sequence of the message in the stream."""
        return self.inner.seq

    @property
    def deliveries(self) -> int:
        """How many times the message was delivered."""
        return self.inner.deliveries

    @property
    def kind(self) -> str:
        """The kind of failure: max_deliver or terminated."""
        return self.inner.kind

    @property
    def reason(self) -> str:
        """The reason that the message was terminated for, or ""."""
        return self.inner.reason

    @property
    def time(self) -> Timestamp | None:
        """The time of the failure."""
        return self.inner.time

    @property
    def gone(self) -> bool:
        """Whether the stream no longer has the message: it cannot be retried."""
        return self.inner.gone

    @property
    def retries(self) -> int:
        """How many times the message was retried before."""
        return self.inner.retries

    retry = blocking(_letter.DeadLetter.retry)
    discard = blocking(_letter.DeadLetter.discard)
    in_progress = blocking(_letter.DeadLetter.in_progress)

    def __repr__(self) -> str:
        return repr(self.inner)


class DeadLetters(StoppableLoop):
    """The messages that a consumer has failed to process: iterate it, and settle each letter.

    The iteration ends with `stop` or the end of the client. Letters of a durable capture that are
    not settled are delivered again after a minute, possibly to other programs with this capture.
    """

    def __init__(self, inner: _api.DeadLetters, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    @property
    def stream(self) -> str:
        """The name of the stream."""
        return self.inner.stream

    @property
    def consumer(self) -> str:
        """The name of the consumer."""
        return self.inner.consumer

    @property
    def closed(self) -> bool:
        """Whether there will be no more letters."""
        return self.inner.closed

    next = blocking_to(DeadLetter, _api.DeadLetters.next)
    __next__ = blocking_next_to(DeadLetter, _api.DeadLetters.__anext__)
    stop = blocking(_api.DeadLetters.stop)

    def __repr__(self) -> str:
        return repr(self.inner)
