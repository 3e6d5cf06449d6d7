"""Consume from a connection that the program drives itself: machines, without coroutines.

    machine = start_consume(connection, "ORDERS", "worker", now, max_messages=100)
    ...  # after each input of the connection:
    while machine.pending():
        msg = take(connection, machine, now)
        connection.respond(msg.raw_reply, b"+ACK")

docs/embedding.md has the rest of the program.
"""

from __future__ import annotations

from jetstream.machine.probe import Probe
from natsproto.wire.subjects import check_known_name

from .consume import Consume
from .options import consume_limits, consume_template, next_subject

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.connection.machine import Connection
    from natsproto.durations import Seconds
    from natsproto.wire.frames import Msg

__all__ = ["Consume", "start_consume", "take"]


def start_consume(
    connection: Connection,
    stream: str,
    consumer: str,
    now: float,
    *,
    max_messages: int | None = None,
    max_bytes: int | None = None,
    expires: Seconds = 30.0,
    heartbeat: Seconds | None = None,
    threshold_messages: int | None = None,
    threshold_bytes: int | None = None,
    stop_after: int | None = None,
    prefix: str = "$JS.API",
) -> Consume:
    """Begin to pull messages of an existing consumer, now or when there is a connection.

    The parameters are those of Consumer.consume; `prefix` is that of JetStream's API. The machine
    survives lost connections. When it has `ended`, its `error` says why.
    """
    limits = consume_limits(
        max_messages, max_bytes, threshold_messages, threshold_bytes, stop_after
    )
    subject = next_subject(
        prefix, check_known_name("stream", stream), check_known_name("consumer", consumer)
    )
    template = consume_template(subject, expires, heartbeat, {}, False)
    inbox = connection.new_inbox()
    machine = Consume(
        inbox.encode(),
        template,
        probe=Probe(prefix, stream, consumer),
        name="consumer %s of stream %s" % (consumer, stream),
        **limits,
    )
    connection.subscribe(inbox + ".*", machine)
    if connection.online:
        machine.connected(now)
        connection.apply(machine)
    return machine


def take(connection: Connection, machine: Consume, now: float) -> Msg:
    """Remove and return the oldest message; there must be one. More may be pulled then."""
    msg = machine.pop(now)
    if machine.needs_poke:
        connection.apply(machine)
    return msg
