"""consumer: create, inspect, pause and delete consumers, and take messages from them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from jetstream import Timestamp
from jetstream.config import ConsumerConfig
from natsproto.cli.options import seconds
from natsproto.errors import InvalidValue, TimeoutExpired

from .confirm import add_force, confirm
from .context import jetstream
from .fields import add_fields, config_of
from .show import delivered_fields, describe, message_text, table

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from jetstream import ConsumerInfo, ConsumerPause, JsMsg
    from natsproto.cli.commands import Commands
    from natsproto.cli.run import Session


def add(commands: Commands) -> None:
    """Add the group."""
    group = commands.group("consumer", "Manage consumers.")
    parser = group.command("ls", list_consumers, "List the consumers of a stream.")
    parser.add_argument("stream", help="name of the stream")
    parser.add_argument("--names", action="store_true", help="print names only")
    _named(group.command("info", info, "Show a consumer."))
    parser = group.command("create", create, "Create a durable consumer, unless it exists.")
    add_fields(_named(parser), ConsumerConfig, {"name", "durable_name"})
    parser.add_argument("--ephemeral", action="store_true", help="delete it when it is unused")
    parser = group.command("edit", edit, "Change the configuration of a consumer.")
    add_fields(_named(parser), ConsumerConfig, {"name", "durable_name"})
    add_force(_named(group.command("rm", remove, "Delete a consumer.")))
    parser = group.command("next", next_messages, "Take messages, and acknowledge them.")
    _named(parser).add_argument("--count", type=int, default=1, metavar="N", help="how many (1)")
    settle = ["ack", "nak", "term", "none"]
    parser.add_argument("--settle", choices=settle, default="ack", help="what to do with them")
    parser.add_argument("--no-wait", action="store_true", help="only what is available now")
    parser.add_argument("--raw", action="store_true", help="print payloads only")
    parser = group.command("pause", pause, "Pause a consumer.")
    _named(parser).add_argument("duration", type=seconds, help="how long, such as 10m")
    _named(group.command("resume", resume, "Resume a consumer."))
    parser = group.command("reset", reset, "Have a consumer deliver again from a message on.")
    _named(parser).add_argument("seq", type=int, nargs="?", default=0, help="by default ack floor")
    parser = group.command("unpin", unpin, "Unpin the client of a priority group.")
    _named(parser).add_argument("group", help="the group")
    parser = group.command("step-down", step_down, "Have the replicas elect another leader.")
    _named(parser).add_argument("--preferred", default="", metavar="SERVER", help="the new leader")


def _named(parser: ArgumentParser) -> ArgumentParser:
    parser.add_argument("stream", help="name of the stream")
    parser.add_argument("consumer", help="name of the consumer")
    return parser


def _show(session: Session, found: ConsumerInfo | ConsumerPause) -> None:
    session.out.result(found.to_json(), describe(found))


async def list_consumers(session: Session) -> None:
    """Run consumer ls."""
    async with jetstream(session) as js:
        found = await js.consumers(session.args.stream)
    if session.args.names:
        names = [each.name for each in found]
        session.out.result(names, "\n".join(names))
        return
    rows = [
        [each.name, "push" if each.config.deliver_subject else "pull", each.num_pending]
        + [each.num_ack_pending, each.num_redelivered, each.ack_floor.stream_seq]
        for each in found
    ]
    heads = ["NAME", "KIND", "PENDING", "UNACKED", "REDELIVERED", "ACK FLOOR"]
    session.out.result([each.to_json() for each in found], table(heads, rows))


async def info(session: Session) -> None:
    """Run consumer info."""
    async with jetstream(session) as js:
        _show(session, (await js.consumer(*_names(session))).cached_info)


async def create(session: Session) -> None:
    """Run consumer create."""
    stream, name = _names(session)
    config, fields = config_of(session.args, ConsumerConfig)
    fields["name"] = name
    if not session.args.ephemeral:
        fields["durable_name"] = name
    async with jetstream(session) as js:
        _show(session, (await js.create_consumer(stream, config, **fields)).cached_info)


async def edit(session: Session) -> None:
    """Run consumer edit."""
    stream, name = _names(session)
    config, fields = config_of(session.args, ConsumerConfig)
    if config is None and not fields:
        raise InvalidValue("no field to change: pass one, such as --ack-wait 1m, or --config")
    async with jetstream(session) as js:
        _show(session, (await js.update_consumer(stream, config, name=name, **fields)).cached_info)


async def remove(session: Session) -> None:
    """Run consumer rm."""
    stream, name = _names(session)
    confirm(session.args, f"Delete consumer {name} of stream {stream}?")
    async with jetstream(session) as js:
        await js.delete_consumer(stream, name)
    session.out.result({"deleted": name}, f"deleted consumer {name} of stream {stream}")


async def next_messages(session: Session) -> None:
    """Run consumer next."""
    args = session.args
    count = 0
    async with jetstream(session) as js:
        consumer = await js.consumer(*_names(session))
        expires = None if args.no_wait else session.timeout
        async for msg in consumer.fetch(args.count, expires=expires, no_wait=args.no_wait):
            count += 1
            print_delivery(session, msg)
            await settle(msg, args.settle)
    if count < args.count and not args.no_wait:
        raise TimeoutExpired(f"{count} of {args.count} messages within {session.timeout:g} s")


def print_delivery(session: Session, msg: JsMsg) -> None:
    """Print a message of a consumer."""
    if session.out.as_json:
        session.out.json(delivered_fields(msg))
    elif session.args.raw:
        session.out.raw(msg.data + b"\n")
    else:
        data = msg.metadata
        again = f", delivery {data.delivered}" if data.delivered > 1 else ""
        head = f"[{data.stream_seq}] {msg.subject}: {len(msg.data)} bytes{again}"
        session.out.raw(message_text(f"{head}, {data.pending} pending", msg) + b"\n")


async def settle(msg: JsMsg, how: str) -> None:
    """Acknowledge a message, reject it, terminate it, or do nothing."""
    if how == "ack" and not msg.settled:
        await msg.ack_sync()
    elif how == "nak":
        await msg.nak()
    elif how == "term":
        await msg.term()


async def pause(session: Session) -> None:
    """Run consumer pause."""
    until = Timestamp(time.time_ns() + int(session.args.duration * 1e9))
    async with jetstream(session) as js:
        _show(session, await js.pause_consumer(*_names(session), until))


async def resume(session: Session) -> None:
    """Run consumer resume."""
    async with jetstream(session) as js:
        _show(session, await js.resume_consumer(*_names(session)))


async def reset(session: Session) -> None:
    """Run consumer reset."""
    async with jetstream(session) as js:
        _show(session, await js.reset_consumer(*_names(session), session.args.seq))


async def unpin(session: Session) -> None:
    """Run consumer unpin."""
    group = session.args.group
    async with jetstream(session) as js:
        await js.unpin_consumer(*_names(session), group)
    session.out.result({"group": group}, f"unpinned group {group}")


async def step_down(session: Session) -> None:
    """Run consumer step-down."""
    async with jetstream(session) as js:
        consumer = await js.consumer(*_names(session))
        await consumer.step_down(preferred=session.args.preferred)
    name = session.args.consumer
    session.out.result({"consumer": name}, f"the leader of consumer {name} steps down")


def _names(session: Session) -> tuple[str, str]:
    return session.args.stream, session.args.consumer
