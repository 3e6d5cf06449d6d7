"""Consumer: a handle to one consumer, looked up or bound by its name alone (ADR-37)."""

from __future__ import annotations

from jetstream.pull.api import Puller
from jetstream.pull.options import check_options, default_expires
from natsproto.hinting import lazy_hints
from natsproto.wire.subjects import check_known_name
from natsproto.wire.text import cut_middle

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypedDict

    from typing_extensions import Unpack

    from jetstream.api.client import ApiClient
    from jetstream.dead_letters.api import DeadLetters
    from jetstream.message import JsMsg
    from jetstream.pull.batch import Fetch
    from jetstream.pull.messages import Messages
    from jetstream.pull.options import PriorityOptions
    from jetstream.schema.consumer_config import AckPolicy, ConsumerConfig, PriorityPolicy
    from jetstream.schema.consumer_info import ConsumerInfo
    from natsproto.durations import Seconds

    class KnownConfig(TypedDict, total=False):
        """The keywords of bind_consumer: the settings that pulling and acknowledging depend on."""

        ack_policy: AckPolicy
        ack_wait: Seconds
        backoff: Sequence[Seconds]
        priority_policy: PriorityPolicy


class BoundConsumer:
    """A consumer that is bound by name, without a lookup. Returned by JetStream.bind_consumer.

    `fetch`, `next`, `consume` and acknowledgments need only the permission to publish to
    `$JS.API.CONSUMER.MSG.NEXT.<stream>.<name>` and `$JS.ACK.<stream>.<name>.>`.
    """

    def __init__(
        self, api: ApiClient, stream: str, name: str, config: ConsumerConfig | None
    ) -> None:
        self._api = api
        self.stream = stream
        self.name = name
        self._info: ConsumerInfo | None = None
        self.puller: Puller = Puller(api, stream, name, False)
        self.puller.looks_up = False  # CONSUME-25
        self._learn(config)

    def _learn(self, config: ConsumerConfig | None) -> None:
        self._expires = default_expires(config)
        if config is not None:  # otherwise it has the defaults of the server
            self.puller.ack_none = config.ack_policy == "none"
            self.puller.pinned = config.priority_policy == "pinned_client"

    @property
    def cached_info(self) -> ConsumerInfo | None:
        """The info that the last call returned; None before the first `info`."""
        return self._info

    async def info(self) -> ConsumerInfo:
        """Return configuration and state; raise ConsumerNotFound if the consumer is gone."""
        from jetstream.schema.consumer_info import ConsumerInfo

        reply = await self._api.call("CONSUMER.INFO.%s.%s" % (self.stream, self.name))
        info = self._info = ConsumerInfo.from_json(reply)
        self._learn(info.config)
        self.puller.looks_up = True
        return info

    async def step_down(self, *, preferred: str = "") -> None:
        """Request that the leader of the consumer step down: the replicas elect another one.

        preferred  the server that becomes the leader (needs 2.11)
        """
        from jetstream.api.replicas import step_down

        await step_down(self._api, "CONSUMER.%s.%s" % (self.stream, self.name), preferred)

    async def delete(self) -> None:
        """Delete the consumer; raise ConsumerNotFound if it is gone."""
        await self._api.call("CONSUMER.DELETE.%s.%s" % (self.stream, self.name))

    def fetch(
        self,
        max_messages: int | None = None,
        *,
        max_bytes: int | None = None,
        expires: Seconds | None = None,
        heartbeat: Seconds | None = None,
        no_wait: bool = False,
        **priority: Unpack[PriorityOptions],
    ) -> Fetch:
        """Fetch up to `max_messages`, or `max_bytes` of them: await it, or iterate it.

        `await` returns a Batch, which may be empty, when it is full or `expires` is over. If the
        pull failed after messages arrived, the batch has them, and the `error`; otherwise the
        error is raised. `async for` returns each message when it arrives, and raises the error
        after the last one. Nothing is sent before that.

        expires  how long the server waits for messages: by default half of the consumer's
                 ack_wait, at most 30 s, so that no message of a batch is redelivered before its
                 end
        no_wait  fetch only messages that are available now
        """
        check_options("fetch", priority)
        if expires is None:
            expires = self._expires
        return self.puller.fetch(max_messages, max_bytes, expires, heartbeat, no_wait, priority)

    def iter_fetch(
        self,
        max_messages: int | None = None,
        *,
        max_bytes: int | None = None,
        expires: Seconds | None = None,
        heartbeat: Seconds | None = None,
        no_wait: bool = False,
        **priority: Unpack[PriorityOptions],
    ) -> Fetch:
        """Fetch message by message: `async for msg in consumer.iter_fetch(100)`.

        This is `fetch`, under the name that jetstream.blocking uses for the iteration:
        `for msg in consumer.iter_fetch(100)`.
        """
        return self.fetch(
            max_messages,
            max_bytes=max_bytes,
            expires=expires,
            heartbeat=heartbeat,
            no_wait=no_wait,
            **priority,
        )

    async def next(
        self,
        *,
        expires: Seconds = 30.0,
        heartbeat: Seconds | None = None,
        **priority: Unpack[PriorityOptions],
    ) -> JsMsg | None:
        """Pull and return the next message; None if there is none within `expires`."""
        check_options("next", priority)
        batch = await self.puller.fetch(1, None, expires, heartbeat, False, priority)
        return batch[0] if len(batch) else None

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
        nak_on_exit: bool = False,
        **priority: Unpack[PriorityOptions],
    ) -> Messages:
        """Deliver messages continuously: `async with consumer.consume() as messages`, then iterate.

        A buffer of `max_messages` (500) or `max_bytes` is kept full: below the threshold, half of
        it, more is pulled. It continues across lost connections, changes of leader, and restarts.
        It raises ConsumerNotFound, StreamNotFound or ConsumerDeleted if the consumer is gone.

        Messages that are in the buffer when the block is left are redelivered when their ack wait
        is over; with `nak_on_exit` they are returned to the consumer at once.
        """
        check_options("consume", priority)
        return self.puller.consume(
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

    async def dead_letters(self, *, durable: str = "") -> DeadLetters:
        """Return the messages that this consumer failed to process: `async with` it, and iterate.

        These are messages that reached max_deliver without an acknowledgment, and those that were
        terminated. Retry or discard each of them.

        durable  the name of a stream that captures them, which is created if it does not exist;
                 then nothing is lost while no program is listening, and a letter stays in the
                 stream until it is retried or discarded; without a name, only future letters
                 are returned
        """
        from jetstream.dead_letters.api import open_dead_letters

        return await open_dead_letters(self._api, self.stream, self.name, durable)

    if not TYPE_CHECKING:  # a type checker would accept every name
        __getattr__ = lazy_hints("jetstream.api.attributes", "CONSUMER")

    def __repr__(self) -> str:
        names = (type(self).__name__, cut_middle(self.name), cut_middle(self.stream))
        return "<%s %s of %s>" % names


class Consumer(BoundConsumer):
    """A consumer that was looked up or created. Returned by methods of JetStream and Stream."""

    def __init__(self, api: ApiClient, stream: str, name: str, info: ConsumerInfo) -> None:
        super().__init__(api, stream, name, info.config)
        self._info = info
        self.puller.looks_up = True

    @property
    def cached_info(self) -> ConsumerInfo:
        """The info that the last call returned."""
        assert self._info is not None
        return self._info


def bind_consumer(api: ApiClient, stream: str, name: str, known: KnownConfig) -> BoundConsumer:
    """Return a handle to a consumer without looking it up."""
    check_known_name("stream", stream)
    check_known_name("consumer", name)
    config: ConsumerConfig | None = None
    if known:
        from jetstream.schema.consumer_config import ConsumerConfig

        config = ConsumerConfig.of(None, known)
    return BoundConsumer(api, stream, name, config)
