# Written by `python -m tests.facades`. Do not edit.

from jetstream.advisories.consumers import MaxDeliverAdvisory, TerminatedAdvisory
from jetstream.api.stored import StoredMsg
from jetstream.blocking.loops import StoppableLoop
from jetstream.dead_letters import api as _api
from jetstream.dead_letters import letter as _letter
from jetstream.schema.pub_ack import PubAck
from jetstream.schema.timestamp import Timestamp
from natsproto.durations import Seconds
from natsproto.port import BlockingPort
from natsproto.wire.headers import HeadersLike

class DeadLetter:
    """A message that reached max_deliver, or was terminated. Returned by DeadLetters."""

    inner: _letter.DeadLetter
    port: BlockingPort

    def __init__(self, inner: _letter.DeadLetter, port: BlockingPort) -> None: ...
    @property
    def advisory(self) -> MaxDeliverAdvisory | TerminatedAdvisory:
        """The event of the server."""
        ...

    @property
    def message(self) -> StoredMsg | None:
        """The stored message; None if the stream no longer has it."""
        ...

    @property
    def settled(self) -> bool:
        """Whether the letter was retried or discarded."""
        ...

    @property
    def stream(self) -> str:
        """The name of the stream."""
        ...

    @property
    def consumer(self) -> str:
        """The name of the consumer."""
        ...

    @property
    def seq(self) -> int:
        """The sequence of the message in the stream."""
        ...

    @property
    def deliveries(self) -> int:
        """How many times the message was delivered."""
        ...

    @property
    def kind(self) -> str:
        """The kind of failure: max_deliver or terminated."""
        ...

    @property
    def reason(self) -> str:
        """The reason that the message was terminated for, or ""."""
        ...

    @property
    def time(self) -> Timestamp | None:
        """The time of the failure."""
        ...

    @property
    def gone(self) -> bool:
        """Whether the stream no longer has the message: it cannot be retried."""
        ...

    @property
    def retries(self) -> int:
        """How many times the message was retried before."""
        ...

    def retry(
        self,
        *,
        subject: str = "",
        headers: HeadersLike | None = None,
        delete: bool | None = None,
        timeout: Seconds | None = None,
    ) -> PubAck:
        """Publish the message again, for another max_deliver deliveries; return its PubAck.

        subject  the target; by default its own subject. All consumers of that subject receive it.
        headers  further headers
        delete   delete the old message from the stream; by default only from a work queue, because
                 other consumers may need it elsewhere
        timeout  the timeout of the publish, as in JetStream.publish

        The new message has the payload and the headers of the old one, except those that instruct
        the server (`Nats-...`, except Nats-TTL), and `Dead-Letter-...` headers. Repeating a retry
        that failed does not store the message twice, within the stream's duplicate window.
        MessageNotFound: the message is gone.
        """
        ...

    def discard(self, *, delete: bool | None = None) -> None:
        """Discard the letter: the message is not processed.

        delete  delete it from the stream; by default only from a work queue, because other
                consumers may need it elsewhere
        """
        ...

    def in_progress(self) -> None:
        """Extend the time until a durable dead letter is delivered again."""
        ...

    def __repr__(self) -> str: ...

class DeadLetters(StoppableLoop):
    """The messages that a consumer has failed to process: iterate it, and settle each letter.

    The iteration ends with `stop` or the end of the client. Letters of a durable capture that are
    not settled are delivered again after a minute, possibly to other programs with this capture.
    """

    inner: _api.DeadLetters
    port: BlockingPort

    def __init__(self, inner: _api.DeadLetters, port: BlockingPort) -> None: ...
    @property
    def stream(self) -> str:
        """The name of the stream."""
        ...

    @property
    def consumer(self) -> str:
        """The name of the consumer."""
        ...

    @property
    def closed(self) -> bool:
        """Whether there will be no more letters."""
        ...

    def next(self, timeout: Seconds | None = None) -> DeadLetter:
        """Return the next letter; raise TimeoutExpired, or InvalidState after the end.

        A timeout of 0 polls: it returns a letter only if it is complete.
        """
        ...

    def __next__(self) -> DeadLetter: ...
    def stop(self) -> None:
        """End the iteration now; letters of a durable capture that were not read stay in it."""
        ...

    def __repr__(self) -> str: ...
