# Written by `python -m tests.facades`. Do not edit.

from jetstream.blocking.pull import Batch, JsMsg, Messages
from jetstream.events import StreamRecreated
from jetstream.ordered import api as _ordered
from jetstream.schema.consumer_info import ConsumerInfo
from natsproto.durations import Seconds
from natsproto.port import BlockingPort

class OrderedConsumer:
    """An ordered consumer. Returned by Stream.ordered_consumer.

    Only one consume() or fetch can use it at a time. Each continues after the last message that was
    taken from the previous one.
    """

    inner: _ordered.OrderedConsumer
    port: BlockingPort

    def __init__(self, inner: _ordered.OrderedConsumer, port: BlockingPort) -> None: ...
    @property
    def name(self) -> str:
        """The name of the current consumer, or of the last one."""
        ...

    @property
    def stream(self) -> str:
        """The name of the stream."""
        ...

    @property
    def cached_info(self) -> ConsumerInfo:
        """The last info of a consumer that a call returned."""
        ...

    @property
    def recreated(self) -> StreamRecreated | None:
        """The latest discovery that the stream was deleted and created again; None: it never was.

        Messages read after it belong to the new stream, starting with its first one.
        """
        ...

    def info(self) -> ConsumerInfo:
        """Return the info of the current consumer; raise ConsumerNotFound if there is none."""
        ...

    def delete(self) -> None:
        """Delete the current consumer; the next consume() or fetch creates another one."""
        ...

    def fetch(
        self,
        max_messages: int | None = None,
        *,
        max_bytes: int | None = None,
        expires: Seconds = 30.0,
        heartbeat: Seconds | None = None,
        no_wait: bool = False,
    ) -> Batch:
        """Fetch the next messages, as Consumer.fetch does.

        If the consumer is gone, another one is created.
        """
        ...

    def next(self, *, expires: Seconds = 30.0, heartbeat: Seconds | None = None) -> JsMsg | None:
        """Return the next message; None if there is none within `expires`."""
        ...

    def consume(
        self,
        *,
        max_messages: int | None = None,
        max_bytes: int | None = None,
        expires: Seconds = 30.0,
        heartbeat: Seconds | None = None,
        threshold_messages: int | None = None,
        threshold_bytes: int | None = None,
        stop_after: int | None = None,
    ) -> Messages:
        """Deliver messages continuously, like Consumer.consume: each once, in order, without gaps.

        If the consumer or a message is lost, another consumer continues after the last message:
        `events` reports ConsumerReset. If the stream was deleted and created again, it continues
        with the first message: StreamRecreated. It raises when a reset can no longer succeed, as
        when the stream is gone.
        """
        ...

    def __repr__(self) -> str: ...
