"""JetStreamContext: publish to streams, and subscribe to consumers."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from jetstream.context import JetStream
from jetstream.streams.consumer import bind_consumer

from . import api
from .buckets import Buckets
from .constants import *  # noqa: F403
from .constants import DEFAULT_JS_SUB_PENDING_BYTES_LIMIT, DEFAULT_JS_SUB_PENDING_MSGS_LIMIT
from .errors import APIError, NotFoundError
from .failures import translating
from .manager import JetStreamManager
from .names import *  # noqa: F403
from .publishing import AsyncPublisher, publish_options, read_ack
from .pulling import reply_to
from .pushing import acknowledging, check_callback, check_group, create_push, limits_of
from .subscriptions import PullSubscription as _PullSubscription
from .subscriptions import PushSubscription as _PushSubscription

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from jetstream.push.api import PushMessages
    from natsproto.compat.nats.aio.client import Client
    from natsproto.compat.nats.aio.msg import Msg

    from .kv import KeyValue
    from .object_store import ObjectStore

_CONSUMER_EXISTS = (10013, 10148)  # the codes of servers before 2.10, and since then
_WITHOUT_ACKS = (api.AckPolicy.NONE, api.AckPolicy.FLOW_CONTROL)


class JetStreamContext(JetStreamManager):
    """JetStream of one connection. `Client.jetstream` returns it."""

    PushSubscription = _PushSubscription
    PullSubscription = _PullSubscription

    def __init__(
        self,
        conn: Client,
        prefix: str = api.DEFAULT_PREFIX,
        domain: str | None = None,
        timeout: float = 5,
        publish_async_max_pending: int = 4000,
    ) -> None:
        super().__init__(conn, f"$JS.{domain}.API" if domain else prefix, timeout)
        self._max_async = publish_async_max_pending
        self._async: AsyncPublisher | None = None
        self._made: tuple[object, JetStream] | None = None

    @property
    def _jsm(self) -> JetStreamManager:
        return JetStreamManager(self._nc, self._prefix, self._timeout)

    def _core(self) -> JetStream:
        """Return jetstream's object for the present connection."""
        self._nc._check_open()
        client = self._nc._client
        if self._made is None or self._made[0] is not client:
            assert client is not None
            self._made = client, JetStream(client, prefix=self._prefix, timeout=self._timeout)
        return self._made[1]

    # Publishing

    async def publish(
        self,
        subject: str,
        payload: bytes = b"",
        timeout: float | None = None,
        stream: str | None = None,
        headers: Mapping[str, Any] | None = None,
        msg_ttl: float | None = None,
    ) -> api.PubAck:
        """Publish, and wait for the acknowledgment of the stream.

        stream: the stream that must take the message
        msg_ttl: how long the message is kept, in seconds
        """
        options = publish_options(stream, headers, msg_ttl)
        self._nc._out_bytes += len(payload)
        with translating():
            ack = await self._core().publish(subject, payload, timeout=timeout, **options)
        return read_ack(ack)

    async def publish_async(
        self,
        subject: str,
        payload: bytes = b"",
        wait_stall: float | None = None,
        stream: str | None = None,
        headers: Mapping[str, Any] | None = None,
        msg_ttl: float | None = None,
    ) -> asyncio.Future[api.PubAck]:
        """Publish, and return a future of the acknowledgment.

        It waits while `publish_async_max_pending` acknowledgments are due, but not longer than
        `wait_stall`; then it raises TooManyStalledMsgsError.
        """
        core = self._core()
        if self._async is None or self._async.js is not core:
            self._async = AsyncPublisher(core, self._max_async)
        options = publish_options(stream, headers, msg_ttl)
        self._nc._out_bytes += len(payload)
        return await self._async.publish(subject, payload, wait_stall, options)

    def publish_async_pending(self) -> int:
        """Return how many publishes wait for their acknowledgment."""
        return 0 if self._async is None else self._async.pending

    async def publish_async_completed(self) -> None:
        """Wait until no publish waits for its acknowledgment."""
        if self._async is not None:
            await self._async.completed()

    # Push consumers

    async def subscribe(
        self,
        subject: str,
        queue: str | None = None,
        cb: Callable[[Msg], Awaitable[None]] | None = None,
        durable: str | None = None,
        stream: str | None = None,
        config: api.ConsumerConfig | None = None,
        manual_ack: bool = False,
        ordered_consumer: bool = False,
        idle_heartbeat: float | None = None,
        flow_control: bool = False,
        pending_msgs_limit: int = DEFAULT_JS_SUB_PENDING_MSGS_LIMIT,
        pending_bytes_limit: int = DEFAULT_JS_SUB_PENDING_BYTES_LIMIT,
        deliver_policy: api.DeliverPolicy | None = None,
        headers_only: bool | None = None,
        inactive_threshold: float | None = None,
    ) -> _PushSubscription:
        """Subscribe to a push consumer, which is created if it does not exist.

        Messages are acknowledged when the callback returns, unless `manual_ack` is set. Members
        of a `queue` share a durable consumer of that name. An ordered consumer delivers each
        message once and in order, and is recreated after a gap.
        """
        check_callback(cb, manual_ack or ordered_consumer)
        if stream is None:
            stream = await self.find_stream_name_by_subject(subject)
        config = (config or api.ConsumerConfig()).evolve()
        given = {
            "idle_heartbeat": idle_heartbeat,
            "flow_control": flow_control or None,
            "deliver_policy": deliver_policy,
            "headers_only": headers_only,
            "inactive_threshold": inactive_threshold,
        }
        config = config.evolve(**{key: each for key, each in given.items() if each is not None})
        limits = pending_msgs_limit, pending_bytes_limit
        if ordered_consumer:
            return await self._subscribe_ordered(subject, stream, config, cb, limits)
        name = durable or config.durable_name or config.name or queue
        info = await self._lookup(stream, name, queue)
        if info is None:
            if not config.filter_subjects:
                config.filter_subject = subject
            if durable:
                config.name = config.durable_name = durable
            elif not (config.durable_name or config.name) and queue:
                config.name = config.durable_name = queue
            config.deliver_group = queue or config.deliver_group
            config.deliver_subject = config.deliver_subject or self._nc.new_inbox()
            core = self._core()
            try:
                with translating():
                    source = await create_push(self, core._api, stream, config, limits_of(*limits))
            except APIError as error:
                info = None
                if name and error.err_code in _CONSUMER_EXISTS:
                    info = await self._lookup(stream, name, queue)  # another client was first
                if info is None:
                    raise
            else:
                return self._pushed(source, config, cb, manual_ack, limits)
        return await self._attach(info, cb, manual_ack, limits)

    async def subscribe_bind(
        self,
        stream: str,
        config: api.ConsumerConfig,
        consumer: str,
        cb: Callable[[Msg], Awaitable[None]] | None = None,
        manual_ack: bool = False,
        ordered_consumer: bool = False,
        pending_msgs_limit: int = DEFAULT_JS_SUB_PENDING_MSGS_LIMIT,
        pending_bytes_limit: int = DEFAULT_JS_SUB_PENDING_BYTES_LIMIT,
    ) -> _PushSubscription:
        """Subscribe to a push consumer that exists."""
        check_callback(cb, manual_ack or ordered_consumer)
        limits = pending_msgs_limit, pending_bytes_limit
        if ordered_consumer:
            subject = config.filter_subject or ">"
            return await self._subscribe_ordered(subject, stream, config, cb, limits)
        return await self._attach(
            await self.consumer_info(stream, consumer), cb, manual_ack, limits
        )

    async def _lookup(
        self, stream: str, name: str | None, queue: str | None
    ) -> api.ConsumerInfo | None:
        """Return the consumer of this name, if it can be used; raise Error if it cannot."""
        if not name:
            return None
        try:
            info = await self.consumer_info(stream, name)
        except NotFoundError:
            return None
        check_group(info, name, queue)
        return info

    async def _attach(
        self,
        info: api.ConsumerInfo,
        cb: Callable[[Msg], Awaitable[None]] | None,
        manual_ack: bool,
        limits: tuple[int, int],
    ) -> _PushSubscription:
        bounds = limits_of(*limits)
        with translating():
            source = await self._core().subscribe(
                stream=info.stream_name,
                name=info.name,
                queue=info.config.deliver_group or "",
                bind=True,
                max_pending_messages=bounds.max_messages,
                max_pending_bytes=bounds.max_bytes,
            )
        return self._pushed(source, info.config, cb, manual_ack, limits)

    def _pushed(
        self,
        source: PushMessages,
        config: api.ConsumerConfig,
        cb: Callable[[Msg], Awaitable[None]] | None,
        manual_ack: bool,
        limits: tuple[int, int],
    ) -> _PushSubscription:
        if cb is not None and not manual_ack and config.ack_policy not in _WITHOUT_ACKS:
            cb = acknowledging(cb)
        subject, queue = config.deliver_subject or "", config.deliver_group or ""
        return _PushSubscription(self, source, subject, queue, source.name, cb, *limits)

    async def _subscribe_ordered(
        self,
        subject: str,
        stream: str,
        config: api.ConsumerConfig,
        cb: Callable[[Msg], Awaitable[None]] | None,
        limits: tuple[int, int],
    ) -> _PushSubscription:
        wanted: dict[str, Any] = {
            "deliver_policy": config.deliver_policy,
            "opt_start_seq": config.opt_start_seq,
            "opt_start_time": config.opt_start_time,
            "headers_only": config.headers_only,
            "idle_heartbeat": config.idle_heartbeat,
            "inactive_threshold": config.inactive_threshold,
            "filter_subjects": config.filter_subjects,
        }
        fields: dict[str, Any] = {
            key: getattr(each, "value", each) for key, each in wanted.items() if each is not None
        }
        with translating():
            source = await self._core().subscribe(
                "" if config.filter_subjects else subject,
                stream=stream,
                ordered=True,
                max_pending_bytes=limits_of(*limits).max_bytes,
                **fields,
            )
        return _PushSubscription(self, source, subject, "", "", cb, *limits)

    # Pull consumers

    async def pull_subscribe(
        self,
        subject: str,
        durable: str | None = None,
        stream: str | None = None,
        config: api.ConsumerConfig | None = None,
        pending_msgs_limit: int = DEFAULT_JS_SUB_PENDING_MSGS_LIMIT,
        pending_bytes_limit: int = DEFAULT_JS_SUB_PENDING_BYTES_LIMIT,
        inbox_prefix: bytes | None = None,
    ) -> _PullSubscription:
        """Return a pull consumer, which is created if it does not exist.

        inbox_prefix: how the subjects begin to which the server delivers; nats-py does not add a
            dot to it either
        The limits have no effect: a fetch keeps only what it asked for.
        """
        if stream is None:
            stream = await self.find_stream_name_by_subject(subject)
        config = (config or api.ConsumerConfig()).evolve()
        name = durable or config.durable_name or config.name
        exists = False
        if name:
            try:
                await self.consumer_info(stream, name)
                exists = True
            except NotFoundError:
                pass
        if not exists:
            if not config.filter_subjects:
                config.filter_subject = subject
            if durable:
                config.name = config.durable_name = durable
            else:
                config.name = name or self._nc._nuid.next().decode()
            name = (await self.add_consumer(stream, config=config)).name
        return self._bind(stream, name, inbox_prefix)

    async def pull_subscribe_bind(
        self,
        consumer: str | None = None,
        stream: str | None = None,
        inbox_prefix: bytes | None = None,
        pending_msgs_limit: int = DEFAULT_JS_SUB_PENDING_MSGS_LIMIT,
        pending_bytes_limit: int = DEFAULT_JS_SUB_PENDING_BYTES_LIMIT,
        name: str | None = None,
        durable: str | None = None,
    ) -> _PullSubscription:
        """Return a pull consumer that exists; nothing is sent until the first fetch."""
        if not stream:
            raise ValueError("nats: stream name is required")
        return self._bind(stream, durable or name or consumer, inbox_prefix)

    def _bind(self, stream: str, name: str | None, prefix: bytes | None) -> _PullSubscription:
        if not name:
            raise ValueError("nats: consumer name is required")
        with translating():
            consumer = bind_consumer(self._core()._api, stream, name, {})
        if prefix is not None:
            consumer.puller = reply_to(consumer, prefix.decode())
        return _PullSubscription(self, consumer)

    # Buckets

    async def key_value(self, bucket: str) -> KeyValue:
        """Return a key-value store that exists; raise BucketNotFoundError."""
        return await Buckets(self).key_value(bucket)

    async def create_key_value(
        self, config: api.KeyValueConfig | None = None, **params: Any
    ) -> KeyValue:
        """Create a key-value store; the keywords are fields of KeyValueConfig."""
        return await Buckets(self).create_key_value(config, params)

    async def delete_key_value(self, bucket: str) -> bool:
        """Delete a key-value store."""
        return await Buckets(self).delete_key_value(bucket)

    async def object_store(self, bucket: str) -> ObjectStore:
        """Return an object store that exists; raise BucketNotFoundError."""
        return await Buckets(self).object_store(bucket)

    async def create_object_store(
        self,
        bucket: str | None = None,
        config: api.ObjectStoreConfig | None = None,
        **params: Any,
    ) -> ObjectStore:
        """Create an object store; the keywords are fields of ObjectStoreConfig."""
        return await Buckets(self).create_object_store(bucket, config, params)

    async def delete_object_store(self, bucket: str) -> bool:
        """Delete an object store."""
        return await Buckets(self).delete_object_store(bucket)

    @classmethod
    def is_status_msg(cls, msg: Msg | None) -> str | None:
        """Return the status of a message without a payload, or None."""
        return None if msg is None or msg.headers is None else msg.headers.get("Status")
