"""stream: create, inspect, change and delete streams, and read their messages."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from jetstream import Timestamp
from jetstream.config import StreamConfig
from natsproto.errors import InvalidValue, RemoteError

from .confirm import add_force, confirm
from .context import jetstream
from .fields import add_fields, config_of
from .show import amount, delivered_fields, describe, message_text, stored_fields, table

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from jetstream import StreamInfo
    from natsproto.cli.commands import Commands
    from natsproto.cli.run import Session


def add(commands: Commands) -> None:
    """Add the group."""
    group = commands.group("stream", "Manage streams.")
    parser = group.command("ls", list_streams, "List the streams.")
    parser.add_argument("--subject", default="", help="only streams that overlap with it")
    parser.add_argument("--names", action="store_true", help="print names only")
    _named(group.command("info", info, "Show a stream."))
    parser = group.command("subjects", subjects, "List the subjects of a stream's messages.")
    _named(parser).add_argument("--filter", default=">", metavar="SUBJECT", help="only these")
    parser = group.command(
        "create", create, "Create a stream, unless it exists with this configuration."
    )
    add_fields(_named(parser), StreamConfig, {"name"})
    parser = group.command("edit", edit, "Change the configuration of a stream.")
    add_fields(_named(parser), StreamConfig, {"name"})
    parser = group.command("rm", remove, "Delete a stream with its messages and consumers.")
    add_force(_named(parser))
    _add_messages(group)
    parser = group.command("step-down", step_down, "Have the replicas elect another leader.")
    _named(parser).add_argument("--preferred", default="", metavar="SERVER", help="the new leader")


def _add_messages(group: Commands) -> None:
    parser = group.command("purge", purge, "Delete messages.")
    add_force(_named(parser))
    parser.add_argument("--subject", help="only those of this subject")
    parser.add_argument("--seq", type=int, metavar="N", help="only those below this sequence")
    parser.add_argument("--keep", type=int, metavar="N", help="all but the newest N")
    parser = group.command("get", get, "Print a stored message.")
    _named(parser).add_argument("seq", type=int, nargs="?", default=0, help="its sequence")
    parser.add_argument("--last-for", default="", metavar="SUBJECT", help="the last of a subject")
    parser.add_argument("--next-for", default="", metavar="SUBJECT", help="the next, from SEQ on")
    parser.add_argument("--raw", action="store_true", help="print the payload only")
    parser = group.command("view", view, "Print stored messages, in order.")
    _named(parser).add_argument("--seq", type=int, default=1, metavar="N", help="start here")
    parser.add_argument("--count", type=int, default=10, metavar="N", help="how many (10)")
    parser.add_argument("--subject", help="only those of this subject")
    parser.add_argument("--raw", action="store_true", help="print payloads only")
    parser = group.command("rm-msg", remove_message, "Delete one message.")
    add_force(_named(parser))
    parser.add_argument("seq", type=int, help="its sequence")
    parser.add_argument("--secure", action="store_true", help="overwrite it on disk")


def _named(parser: ArgumentParser) -> ArgumentParser:
    parser.add_argument("stream", help="name of the stream")
    return parser


def _show(session: Session, found: StreamInfo) -> None:
    session.out.result(found.to_json(), describe(found))


async def list_streams(session: Session) -> None:
    """Run stream ls."""
    async with jetstream(session) as js:
        found = await js.streams(session.args.subject)
    rows = [
        [each.config.name, each.config.storage, each.state.messages, amount(each.state.bytes)]
        + [each.state.consumer_count, each.config.subjects]
        for each in found
    ]
    if session.args.names:
        names = [each.config.name for each in found]
        session.out.result(names, "\n".join(names))
        return
    text = table(["NAME", "STORAGE", "MESSAGES", "SIZE", "CONSUMERS", "SUBJECTS"], rows)
    session.out.result([each.to_json() for each in found], text)
    for name in [*found.missing, *found.offline]:
        session.out.note(f"stream {name} exists, but no server describes it now")


async def info(session: Session) -> None:
    """Run stream info."""
    async with jetstream(session) as js:
        _show(session, await (await js.stream(session.args.stream)).info())


async def subjects(session: Session) -> None:
    """Run stream subjects."""
    async with jetstream(session) as js:
        stream = await js.stream(session.args.stream)
        found = (await stream.info(subjects_filter=session.args.filter)).state.subjects
    rows = [[subject, found[subject]] for subject in sorted(found)]
    session.out.result(found, table(["SUBJECT", "MESSAGES"], rows))


async def create(session: Session) -> None:
    """Run stream create."""
    config, fields = config_of(session.args, StreamConfig)
    async with jetstream(session) as js:
        stream = await js.create_stream(config, name=session.args.stream, **fields)
    _show(session, stream.cached_info)


async def edit(session: Session) -> None:
    """Run stream edit."""
    config, fields = config_of(session.args, StreamConfig)
    if config is None and not fields:
        raise InvalidValue("nothing to change: give a field, such as --max-age 1h, or --config")
    async with jetstream(session) as js:
        stream = await js.update_stream(config, name=session.args.stream, **fields)
    _show(session, stream.cached_info)


async def remove(session: Session) -> None:
    """Run stream rm."""
    name = session.args.stream
    confirm(session.args, f"Delete stream {name} with all its messages?")
    async with jetstream(session) as js:
        await js.delete_stream(name)
    session.out.result({"deleted": name}, f"deleted stream {name}")


async def purge(session: Session) -> None:
    """Run stream purge."""
    args = session.args
    confirm(args, f"Delete messages of stream {args.stream}?")
    async with jetstream(session) as js:
        stream = await js.stream(args.stream)
        count = await stream.purge(subject=args.subject, seq=args.seq, keep=args.keep)
    session.out.result({"purged": count}, f"deleted {count} messages of stream {args.stream}")


async def get(session: Session) -> None:
    """Run stream get."""
    args = session.args
    which: dict[str, Any] = {"last_by_subject": args.last_for, "next_by_subject": args.next_for}
    async with jetstream(session) as js:
        msg = await (await js.stream(args.stream)).get_msg(args.seq, **which)
    if session.out.as_json:
        session.out.json(stored_fields(msg))
    elif args.raw:
        session.out.raw(msg.data)
    else:
        head = f"[{msg.seq}] {msg.subject}: {len(msg.data)} bytes, stored {msg.time}"
        session.out.raw(message_text(head, msg))


async def view(session: Session) -> None:
    """Run stream view."""
    args = session.args
    async with jetstream(session) as js:
        stream = await js.stream(args.stream)
        consumer = await stream.ordered_consumer(
            filter_subjects=args.subject,
            deliver_policy="by_start_sequence",
            opt_start_seq=max(args.seq, 1),
        )
        found = await consumer.fetch(args.count, no_wait=True)
        with contextlib.suppress(RemoteError):  # the server deletes an unused one, but later
            await consumer.delete()
        for msg in found:
            if session.out.as_json:
                session.out.json(delivered_fields(msg))
            elif args.raw:
                session.out.raw(msg.data + b"\n")
            else:
                data = msg.metadata
                head = f"[{data.stream_seq}] {msg.subject}: {len(msg.data)} bytes"
                session.out.raw(
                    message_text(f"{head}, stored {Timestamp(data.timestamp_ns)}", msg) + b"\n"
                )


async def remove_message(session: Session) -> None:
    """Run stream rm-msg."""
    args = session.args
    confirm(args, f"Delete message {args.seq} of stream {args.stream}?")
    async with jetstream(session) as js:
        stream = await js.stream(args.stream)
        await stream.delete_msg(args.seq, secure=args.secure)
    session.out.result({"deleted": args.seq}, f"deleted message {args.seq}")


async def step_down(session: Session) -> None:
    """Run stream step-down."""
    args = session.args
    async with jetstream(session) as js:
        await (await js.stream(args.stream)).step_down(preferred=args.preferred)
    session.out.result({"stream": args.stream}, f"the leader of stream {args.stream} steps down")
