"""Ordered consumers without async and await: the results of Stream.ordered_consumer."""

from __future__ import annotations

from jetstream.ordered import api as _ordered
from natsproto.port import blocking, blocking_to, locked_to

from .pull import Batch, Messages, facade_or_none

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.events import StreamRecreated
    from jetstream.schema.consumer_info import ConsumerInfo
    from natsproto.port import BlockingPort


class OrderedConsumer:
    """An ordered consumer. Returned by Stream.ordered_consumer.

    Only one consume() or fetch can use it at a time. Each continues after the last message that was
    taken from the previous one.
    """

    def __init__(self, inner: _ordered.OrderedConsumer, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    @property
    def name(self) -> str:
        """The name of the current consumer, or of the last one."""
        return self.inner.name

    @property
    def stream(self) -> str:
        """The name of the stream."""
        return self.inner.stream

    @property
    def cached_info(self) -> ConsumerInfo:
        """The last info of a consumer that a call returned."""
        return self.inner.cached_info

    @property
    def recreated(self) -> StreamRecreated | None:
        """The latest discovery that the stream was deleted and created again; None: it never was.

        Messages read after it belong to the new stream, starting with its first one.
        """
        return self.inner.recreated

    info = blocking(_ordered.OrderedConsumer.info)
    delete = blocking(_ordered.OrderedConsumer.delete)
    fetch = blocking_to(Batch, _ordered.OrderedConsumer.fetch)
    next = blocking_to(facade_or_none, _ordered.OrderedConsumer.next)
    consume = locked_to(Messages, _ordered.OrderedConsumer.consume)

    def __repr__(self) -> str:
        return repr(self.inner)
