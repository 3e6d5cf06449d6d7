"""subscribe_ordered: an ordered push subscription, for every runtime."""

from __future__ import annotations

from jetstream.push.api import PushMessages
from jetstream.push.machine import ALARM_AFTER, Push
from natsproto.errors import ConnectionClosed, TimeoutExpired
from natsproto.wire import text as _text

from .config import HEARTBEAT, ordered_push_config
from .cursor import Cursor
from .push import PushInOrder
from .recreate import Recreator, clean_up_after

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from jetstream.api.client import ApiClient
    from natsproto.session import Session


async def subscribe_ordered(
    api: ApiClient,
    stream: str,
    config: dict[str, Any],
    *,
    heartbeat: float = HEARTBEAT,
    alarm_after: float = ALARM_AFTER,
    max_messages: int | None = None,
    max_bytes: int | None = None,
    deadline: float | None = None,
) -> PushMessages:
    """Return an ordered push subscription (ADR-17), once its first consumer exists.

    `config` is the server's JSON with the filters and the start; the other settings are fixed.
    The consumer has to exist by `deadline`, by default within the timeout of the API.
    """
    session = api.session
    connection = session.connection
    inbox = connection.new_inbox()
    cursor = Cursor(stream, connection.new_token(), ordered_push_config(config, heartbeat))
    recreator = Recreator(cursor, api.prefix, inbox.encode(), timeout=api.timeout, delivers=True)
    policy = PushInOrder(inbox.encode(), recreator)
    machine = Push(
        policy,
        heartbeat=heartbeat,
        alarm_after=alarm_after,
        flow_control=True,
        ack_none=True,
        max_messages=max_messages,
        max_bytes=max_bytes,
        name="ordered subscription to stream %s" % _text.shorten(stream),
    )
    session.attach(machine, _text.decode(policy.subject))
    messages = PushMessages(session, machine)
    messages.stream = stream
    messages.cursor = cursor
    messages.on_end = _cleanup(api, recreator)
    try:
        latest = session.deadline(api.timeout) if deadline is None else deadline
        await _begun(session, machine, policy, latest)
    except BaseException:
        await messages.stop()
        raise
    return messages


def _cleanup(api: ApiClient, recreator: Recreator) -> Callable[[], Awaitable[object]]:
    async def clean() -> None:
        clean_up_after(api, recreator)  # D-ORDPUSH-11

    return clean


async def _begun(session: Session, machine: Push, policy: PushInOrder, deadline: float) -> None:
    while not policy.begun:
        if machine.ended:
            raise machine.error or ConnectionClosed(session.connection.closed)
        try:
            await session.wait(machine, deadline, "ordered consumer")
        except TimeoutExpired:
            # D-ORDPUSH-9: the actual failure says more than the timeout.
            raise policy.failure or TimeoutExpired("no ordered consumer in time") from None
