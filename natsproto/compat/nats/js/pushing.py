"""Create a push consumer for a subscription that exists already.

nats-py creates the consumer first. Until it subscribes, messages that the server delivers are lost,
and a consumer with a short `inactive_threshold` may be deleted.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from jetstream.config import ConsumerConfig
from jetstream.machine.cleanup import clean_up
from jetstream.subscribe.options import Limits
from jetstream.subscribe.push import begin, leave, listen
from natsproto.compat.nats import errors
from natsproto.compat.nats.aio.callbacks import NOT_A_COROUTINE, is_coroutine_function

from .errors import APIError, Error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from jetstream.api.client import ApiClient
    from jetstream.push.api import PushMessages
    from natsproto.compat.nats.aio.msg import Msg

    from . import api
    from .manager import JetStreamManager

# jetstream counts whole messages against the limit of bytes, and nats-py only payloads.
_SLACK = 4096
_ALARM_AFTER = 3.0  # heartbeats that are missed, as by default in jetstream


def limits_of(msgs: int, size: int) -> Limits:
    """Return the limits of a subscription; here 0 or less means none."""
    return Limits(_ALARM_AFTER, max(0, msgs), size + _SLACK if size > 0 else 0)


async def create_push(
    js: JetStreamManager, calls: ApiClient, stream: str, config: api.ConsumerConfig, limits: Limits
) -> PushMessages:
    """Subscribe to `deliver_subject`, create the consumer, and return its messages.

    A consumer without a name gets one, in its configuration. Raise APIError if another client has
    created one of this name.
    """
    target = config.deliver_subject or ""
    name = config.name or config.durable_name
    if not name:
        name = config.name = calls.session.connection.new_token()
    policy: Any = config.ack_policy or "explicit"
    known = ConsumerConfig(
        idle_heartbeat=config.idle_heartbeat or 0.0,
        flow_control=bool(config.flow_control),
        ack_policy=getattr(policy, "value", policy),
    )
    queue = config.deliver_group or ""
    machine = listen(calls, stream, name, target, known, queue, limits, 0)
    try:
        await js._put_consumer(stream, config, None, action="create")
    except BaseException as error:
        leave(calls, machine)
        if not isinstance(error, APIError):
            clean_up(calls, stream, name, target)  # it may exist
        raise
    return begin(calls, machine, stream, name, limits)


def check_group(info: api.ConsumerInfo, name: str, queue: str | None) -> None:
    """Raise Error if a subscription with this queue group cannot use the consumer."""
    group = info.config.deliver_group
    if not group and queue:
        raise Error(f"cannot create queue subscription '{queue}' to consumer '{name}'")
    if not group and info.push_bound:
        raise Error("consumer is already bound to a subscription")
    if group and not queue:
        raise Error(f"cannot create a subscription for a consumer with a deliver group {group}")
    if group and queue != group:
        raise Error(
            f"cannot create a queue subscription {queue} for a consumer "
            f"with a deliver group {group}"
        )


def check_callback(cb: Callable[[Msg], Any] | None, strict: bool) -> None:
    """Raise Error unless the callback is a coroutine function; only `acknowledging` is lenient."""
    if cb is not None and strict and not is_coroutine_function(cb):
        raise errors.Error(NOT_A_COROUTINE)


def acknowledging(cb: Callable[[Msg], Any]) -> Callable[[Msg], Awaitable[None]]:
    """Return a callback that also acknowledges, unless the program has done so."""

    async def call(msg: Msg) -> None:
        result = cb(msg)
        if inspect.isawaitable(result):
            await result
        if not msg.is_acked:
            await msg.ack()

    return call
