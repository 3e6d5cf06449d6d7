"""kv: buckets of keys and values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jetstream import KeyValueConfig
from natsproto.cli.messages import body_of
from natsproto.cli.options import seconds
from natsproto.cli.output import data_fields

from .confirm import add_force, confirm
from .context import jetstream
from .fields import add_fields, config_of
from .show import amount, describe, table

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from jetstream import KeyValueEntry
    from natsproto.cli.commands import Commands
    from natsproto.cli.run import Session


def add(commands: Commands) -> None:
    """Add the group."""
    group = commands.group("kv", "Keys and values.")
    parser = group.command("ls", list_keys, "List the buckets, or the keys of one.")
    parser.add_argument("bucket", nargs="?", help="list the keys of this bucket")
    parser.add_argument("--filter", nargs="+", metavar="KEYS", help="only these, as in a.*")
    _named(group.command("info", info, "Show a bucket."))
    parser = group.command(
        "create", create, "Create a bucket, unless it exists with this configuration."
    )
    add_fields(_named(parser), KeyValueConfig, {"bucket"})
    parser = group.command("edit", edit, "Replace the configuration of a bucket.")
    add_fields(_named(parser), KeyValueConfig, {"bucket"})
    add_force(_named(group.command("rm", remove, "Delete a bucket with all its keys.")))
    parser = group.command("get", get, "Print the value of a key.")
    _key(parser).add_argument("--revision", type=int, metavar="N", help="of this revision")
    parser.add_argument("--raw", action="store_true", help="print the value only")
    _add_writes(group)
    _key(group.command("history", history, "Print all values of a key that are kept."))
    parser = group.command("watch", watch, "Print keys as they change.", live=True)
    _named(parser).add_argument("keys", nargs="*", default=[">"], help="keys, as in a.* (all)")
    parser.add_argument("--history", action="store_true", help="begin with all that is kept")
    parser.add_argument("--updates-only", action="store_true", help="begin with the next change")
    parser.add_argument("--count", type=int, default=0, metavar="N", help="end after N entries")


def _add_writes(group: Commands) -> None:
    parser = group.command("put", put, "Set the value of a key.", details="Stdin as in pub.")
    _key(parser).add_argument("body", nargs="?", help="the value; by default stdin")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--new", action="store_true", help="only if the key does not exist")
    how.add_argument("--last", type=int, metavar="N", help="only if N is its latest revision")
    parser.add_argument("--ttl", type=seconds, metavar="SECONDS", help="with --new: expire then")
    parser = group.command("del", delete, "Delete a key; its history stays.")
    _key(parser).add_argument("--last", type=int, metavar="N", help="only if this is the latest")
    parser = group.command("purge", purge, "Delete a key and its history.")
    _key(parser).add_argument("--last", type=int, metavar="N", help="only if this is the latest")


def _named(parser: ArgumentParser) -> ArgumentParser:
    parser.add_argument("bucket", help="name of the bucket")
    return parser


def _key(parser: ArgumentParser) -> ArgumentParser:
    _named(parser).add_argument("key", help="the key")
    return parser


async def list_keys(session: Session) -> None:
    """Run kv ls."""
    async with jetstream(session) as js:
        if session.args.bucket:
            bucket = await js.key_value(session.args.bucket)
            keys = await bucket.keys(session.args.filter or ">")
            session.out.result(keys, "\n".join(keys))
            return
        found = await js.key_values()
    rows = [
        [each.bucket, each.values, amount(each.bytes), each.history, each.storage] for each in found
    ]
    text = table(["BUCKET", "VALUES", "SIZE", "HISTORY", "STORAGE"], rows)
    session.out.result([each.stream_info.to_json() for each in found], text)


async def info(session: Session) -> None:
    """Run kv info."""
    async with jetstream(session) as js:
        status = await (await js.key_value(session.args.bucket)).status()
    config = status.config
    state = status.stream_info.state
    fields = {"config": config.to_json(), "values": status.values, "bytes": state.bytes}
    lines = [describe(config), f"values: {status.values}", f"bytes: {amount(state.bytes)}"]
    session.out.result(fields, "\n".join(lines))


async def create(session: Session) -> None:
    """Run kv create."""
    await _configure(session, "create_key_value")


async def edit(session: Session) -> None:
    """Run kv edit."""
    await _configure(session, "update_key_value")


async def _configure(session: Session, call: str) -> None:
    config, fields = config_of(session.args, KeyValueConfig)
    whole = KeyValueConfig.of(config, {**fields, "bucket": session.args.bucket})
    async with jetstream(session) as js:
        status = await (await getattr(js, call)(whole)).status()
    # As the server has stored it, with its defaults.
    session.out.result(status.config.to_json(), describe(status.config))


async def remove(session: Session) -> None:
    """Run kv rm."""
    name = session.args.bucket
    confirm(session.args, f"Delete bucket {name} with all its keys?")
    async with jetstream(session) as js:
        await js.delete_key_value(name)
    session.out.result({"deleted": name}, f"deleted bucket {name}")


def entry_fields(entry: KeyValueEntry) -> dict[str, Any]:
    """Return an entry as an object of JSON."""
    fields: dict[str, Any] = {
        "bucket": entry.bucket,
        "key": entry.key,
        "revision": entry.revision,
        "created": str(entry.created),
        "operation": entry.operation,
    }
    fields.update(data_fields(entry.value, "value"))
    return fields


def _print(session: Session, entry: KeyValueEntry) -> None:
    if session.out.as_json:
        session.out.json(entry_fields(entry))
        return
    value = entry.value.decode("utf-8", "surrogateescape")
    shown = f" = {value}" if entry.operation == "PUT" else ""
    where = f"{entry.bucket} {entry.key}{shown}"
    session.out.line(f"{entry.operation} {where}  (revision {entry.revision}, {entry.created})")


async def get(session: Session) -> None:
    """Run kv get."""
    args = session.args
    async with jetstream(session) as js:
        entry = await (await js.key_value(args.bucket)).get(args.key, args.revision)
    if args.raw and not session.out.as_json:
        session.out.raw(entry.value)
    else:
        _print(session, entry)


async def put(session: Session) -> None:
    """Run kv put."""
    args = session.args
    value = body_of(args)
    async with jetstream(session) as js:
        bucket = await js.key_value(args.bucket)
        if args.new:
            revision = await bucket.create(args.key, value, ttl=args.ttl)
        elif args.last is not None:
            revision = await bucket.update(args.key, value, args.last)
        else:
            revision = await bucket.put(args.key, value)
    _revision(session, revision)


async def delete(session: Session) -> None:
    """Run kv del."""
    async with jetstream(session) as js:
        bucket = await js.key_value(session.args.bucket)
        _revision(session, await bucket.delete(session.args.key, last=session.args.last))


async def purge(session: Session) -> None:
    """Run kv purge."""
    async with jetstream(session) as js:
        bucket = await js.key_value(session.args.bucket)
        _revision(session, await bucket.purge(session.args.key, last=session.args.last))


def _revision(session: Session, revision: int) -> None:
    session.out.result({"revision": revision}, f"revision {revision}")


async def history(session: Session) -> None:
    """Run kv history."""
    async with jetstream(session) as js:
        for entry in await (await js.key_value(session.args.bucket)).history(session.args.key):
            _print(session, entry)


async def watch(session: Session) -> None:
    """Run kv watch."""
    args = session.args
    left = args.count
    async with jetstream(session) as js:
        bucket = await js.key_value(args.bucket)
        options = {"include_history": args.history, "updates_only": args.updates_only}
        async with await bucket.watch(args.keys, **options) as watcher:
            session.out.note(f"watching bucket {args.bucket}")
            async for entry in watcher:
                _print(session, entry)
                left -= 1
                if not left:
                    return
