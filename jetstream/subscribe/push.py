"""The push subscribe workflow of ADR-15: find or create a consumer, and subscribe to it.

    stream      as given, or the one that takes the subject
    a name      durable, name, or the queue: look for that consumer
      found     check that it fits, then SUB to its deliver_subject
      not found create it, unless `bind` is set
    no name     create one, which lives as long as this subscription
    create      SUB first, so that no message is delivered without it; then CONSUMER.CREATE
      exists    another client was first: look it up, check it, and SUB to its deliver_subject

If a step fails or is canceled, the subscription is removed, and so is a consumer that was created
for it.
"""

from __future__ import annotations

from jetstream.api.assets import put_consumer
from jetstream.errors.api import ApiError, ConsumerExists, ConsumerNotFound, StreamNotFound
from jetstream.events import PushWarning
from jetstream.machine.cleanup import clean_up
from jetstream.ordered.subscribe import subscribe_ordered
from jetstream.push.api import PushMessages
from jetstream.push.liveness import LivenessProbe
from jetstream.push.machine import Push
from jetstream.push.policy import PlainPush
from natsproto.errors import NatsError
from natsproto.wire.text import shorten

from .binding import bind

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from jetstream.api.client import ApiClient
    from jetstream.config import ConsumerConfig
    from jetstream.schema.consumer_info import ConsumerInfo
    from jetstream.streams.manager import StreamManager

    from .options import Limits, OrderedSubscribeOptions, SubscribeOptions


async def subscribe(  # JSSUB-3
    streams: StreamManager, api: ApiClient, wanted: SubscribeOptions, limits: Limits
) -> PushMessages:
    """Find or create the consumer, and return the active subscription."""
    streams = streams.bounded()
    stream = wanted.stream or await streams.stream_name_by_subject(wanted.subject)
    if wanted.name:
        try:
            found = await streams.consumer(stream, wanted.name)
        except ConsumerNotFound:
            if wanted.bind:
                raise
        else:
            return _attach(api, found.cached_info, wanted, limits)
    return await _create(streams, api, stream, wanted, limits)


async def subscribe_in_order(
    streams: StreamManager, api: ApiClient, wanted: OrderedSubscribeOptions, limits: Limits
) -> PushMessages:
    """Return an ordered subscription; its machine creates its consumers one after the other."""
    api.check_since(wanted.config)
    stream = wanted.stream or await streams.stream_name_by_subject(wanted.subject)
    return await subscribe_ordered(
        api,
        stream,
        wanted.config.to_json(),
        heartbeat=wanted.heartbeat,
        alarm_after=limits.alarm_after,
        max_messages=limits.max_messages,
        max_bytes=limits.max_bytes,
    )


def _attach(
    api: ApiClient, info: ConsumerInfo, wanted: SubscribeOptions, limits: Limits
) -> PushMessages:
    """Subscribe to a consumer that exists; it is not deleted at the end."""
    config = wanted.config
    target = bind(
        info, subject=wanted.subject, queue=wanted.queue, config=config, given=wanted.given
    )
    # JSSUB-9: there was no subscriber, so this is the last delivery. Group members see only a part.
    last = None if wanted.queue else info.delivered.consumer_seq
    names = (info.stream_name, info.name)
    machine = listen(api, *names, target, info.config, wanted.queue, limits, last)
    return begin(api, machine, info.stream_name, info.name, limits)


async def _create(
    streams: StreamManager, api: ApiClient, stream: str, wanted: SubscribeOptions, limits: Limits
) -> PushMessages:
    connection = api.session.connection
    name = wanted.name or connection.new_token()
    target = wanted.target or connection.new_inbox()
    config = wanted.config_for(name, target)
    # JSSUB-2: before the consumer, which would deliver without a subscriber.
    machine = listen(api, stream, name, target, config, wanted.queue, limits, 0)
    try:
        await put_consumer(streams.calls, stream, "create", config)
    except BaseException as error:
        leave(api, machine)
        if isinstance(error, ConsumerExists) and wanted.name:
            return await _lost_race(streams, api, stream, wanted, limits)
        if not isinstance(error, ApiError):
            clean_up(api, stream, name, target)  # D-JSSUB-12: the consumer may exist
        raise
    messages = begin(api, machine, stream, name, limits)
    if wanted.deletes:
        messages.on_end = _deletion(streams.root, stream, name, machine)
    return messages


async def _lost_race(
    streams: StreamManager, api: ApiClient, stream: str, wanted: SubscribeOptions, limits: Limits
) -> PushMessages:
    # JSSUB-10: another client created it after the lookup.
    found = await streams.consumer(stream, wanted.name)
    return _attach(api, found.cached_info, wanted, limits)


def listen(
    api: ApiClient,
    stream: str,
    name: str,
    target: str,
    config: ConsumerConfig,
    queue: str,
    limits: Limits,
    last: int | None,
) -> Push:
    """Subscribe a machine to the consumer's deliveries, and start its liveness probe."""
    connection = api.session.connection
    inbox = connection.new_inbox()
    probe = LivenessProbe(api.prefix, stream, name, target, inbox)
    machine = Push(
        PlainPush(last, bool(queue), probe, not config.idle_heartbeat),
        heartbeat=config.idle_heartbeat,  # JSSUB-15
        alarm_after=limits.alarm_after,
        flow_control=config.flow_control,
        ack_none=config.ack_policy == "none",
        max_messages=limits.max_messages,
        max_bytes=limits.max_bytes,
        name="consumer %s of stream %s" % (shorten(name), shorten(stream)),
    )
    probe.watch(machine)
    connection.subscribe(inbox, probe)
    connection.subscribe(target, machine, queue=queue)
    return machine


def leave(api: ApiClient, machine: Push) -> None:
    """Unsubscribe a machine that has not begun."""
    connection = api.session.connection
    connection.unsubscribe(machine.sid)
    connection.consumed(api.session.port.now())
    api.session.port.flush_soon()


def begin(api: ApiClient, machine: Push, stream: str, name: str, limits: Limits) -> PushMessages:
    """Return the messages of a machine whose consumer exists."""
    session = api.session
    session.begin(machine)
    messages = PushMessages(session, machine)
    messages.stream = stream
    messages.name = name
    messages.nak_on_exit = limits.nak_on_exit
    return messages


def _deletion(
    streams: StreamManager, stream: str, name: str, machine: Push
) -> Callable[[], Awaitable[object]]:
    async def delete() -> None:
        try:
            await streams.delete_consumer(stream, name)
        except (ConsumerNotFound, StreamNotFound):
            pass  # already deleted
        except NatsError as error:
            # JSSUB-11: the subscription has ended in any case.
            machine.events.add(PushWarning(error))

    return delete
