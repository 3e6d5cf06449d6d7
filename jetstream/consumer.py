"""Consumer: a handle to one consumer (ADR-37)."""

from __future__ import annotations

from .info import ConsumerInfo
from .pull_options import check_options
from .pulling import Pulling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .call import Api
    from .consuming import Batch, Messages
    from .messages import JsMsg
    from .pull_options import PriorityOptions


class Consumer:
    """A consumer. Made by the calls of JetStream; `cached_info` is what the last one told."""

    def __init__(self, api: Api, stream: str, name: str, info: ConsumerInfo) -> None:
        self._api = api
        self.stream = stream
        self.name = name
        self.cached_info = info
        config = info.config
        pinned = config.priority_policy == "pinned_client"
        self._pulling = Pulling(api, stream, name, config.ack_policy == "none", pinned)

    async def info(self) -> ConsumerInfo:
        """Configuration and state now; ConsumerNotFound if it is gone."""
        reply = await self._api.call("CONSUMER.INFO.%s.%s" % (self.stream, self.name))
        self.cached_info = ConsumerInfo.from_json(reply)
        return self.cached_info

    async def delete(self) -> None:
        """Delete it; ConsumerNotFound if it is gone."""
        await self._api.call("CONSUMER.DELETE.%s.%s" % (self.stream, self.name))

    async def fetch(
        self,
        max_messages: int | None = None,
        *,
        max_bytes: int | None = None,
        expires: float = 30.0,
        heartbeat: float | None = None,
        no_wait: bool = False,
        **priority: Unpack[PriorityOptions],
    ) -> Batch:
        """Up to `max_messages`, or `max_bytes` of them: what there is after at most `expires`.

        The batch may be empty. With `no_wait` it is what there is now. If the pull failed after
        messages came, the batch has them, and the `error`; otherwise the error is raised.
        """
        check_options("fetch", priority)
        return await self._pulling.fetch(
            max_messages, max_bytes, expires, heartbeat, no_wait, priority
        )

    async def next(
        self,
        *,
        expires: float = 30.0,
        heartbeat: float | None = None,
        **priority: Unpack[PriorityOptions],
    ) -> JsMsg | None:
        """The next message, pulled when this is called; None if there is none within `expires`."""
        check_options("next", priority)
        batch = await self._pulling.fetch(1, None, expires, heartbeat, False, priority)
        return batch[0] if len(batch) else None

    def consume(
        self,
        *,
        max_messages: int | None = None,
        max_bytes: int | None = None,
        expires: float = 30.0,
        heartbeat: float | None = None,
        threshold_messages: int | None = None,
        threshold_bytes: int | None = None,
        stop_after: int | None = None,
        nak_on_exit: bool = False,
        **priority: Unpack[PriorityOptions],
    ) -> Messages:
        """Receive messages without end: `async with consumer.consume() as messages`, then iterate.

        A buffer of `max_messages` (500) or `max_bytes` is kept full: below the threshold, half of
        it, more is pulled. It continues over lost connections, changes of leader and restarts, and
        raises ConsumerNotFound, StreamNotFound or ConsumerDeleted if the consumer is gone.

        Messages that are in the buffer when the block is left are redelivered when their ack wait
        is over; with `nak_on_exit` they are given back at once.
        """
        check_options("consume", priority)
        return self._pulling.consume(
            max_messages,
            max_bytes,
            expires,
            heartbeat,
            threshold_messages,
            threshold_bytes,
            stop_after,
            priority,
            nak_on_exit,
        )

    def __repr__(self) -> str:
        return "<Consumer %s of %s>" % (self.name, self.stream)
