"""Ordered consumers without async and await, for Stream.ordered_consumer of jetstream.blocking."""

from __future__ import annotations

from jetstream.ordered import api as _ordered
from natsproto.port import blocking, blocking_to, locked_to

from .pull import Batch, Messages, facade_or_none

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.schema.info import ConsumerInfo
    from natsproto.port import BlockingPort


class OrderedConsumer:
    """An ordered consumer. Made by Stream.ordered_consumer.

    A handle is used by one consume() or fetch at a time. Each goes on behind the last message that
    was taken from the one before.
    """

    def __init__(self, inner: _ordered.OrderedConsumer, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    @property
    def name(self) -> str:
        """Of the present consumer, or the last one."""
        return self.inner.name

    @property
    def stream(self) -> str:
        return self.inner.stream

    @property
    def cached_info(self) -> ConsumerInfo:
        """What was last told about a consumer."""
        return self.inner.cached_info

    info = blocking(_ordered.OrderedConsumer.info)
    delete = blocking(_ordered.OrderedConsumer.delete)
    fetch = blocking_to(Batch, _ordered.OrderedConsumer.fetch)
    next = blocking_to(facade_or_none, _ordered.OrderedConsumer.next)
    consume = locked_to(Messages, _ordered.OrderedConsumer.consume)

    def __repr__(self) -> str:
        return repr(self.inner)
