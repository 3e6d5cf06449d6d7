"""object: stores of large objects."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from jetstream import ObjectStoreConfig

from .confirm import add_force, confirm
from .context import jetstream
from .fields import add_fields, config_of
from .progress import Progress
from .show import amount, describe, table

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Iterator

    from jetstream import ObjectInfo
    from natsproto.cli.commands import Commands
    from natsproto.cli.run import Session

CHUNK = 128 * 1024


def add(commands: Commands) -> None:
    """Add the group."""
    group = commands.group("object", "Large objects.")
    parser = group.command("ls", list_objects, "List the stores, or the objects of one.")
    parser.add_argument("bucket", nargs="?", help="list the objects of this store")
    parser = group.command(
        "create", create, "Create a store, unless it exists with this configuration."
    )
    add_fields(_named(parser), ObjectStoreConfig, {"bucket"})
    parser = group.command("rm-store", remove_store, "Delete a store with all its objects.")
    add_force(_named(parser))
    parser = group.command("put", put, "Store a file.")
    _named(parser).add_argument("file", help="the file; - is stdin")
    parser.add_argument("--name", help="name of the object; by default that of the file")
    parser.add_argument("--description", default="", metavar="TEXT", help="what it is")
    parser = group.command("get", get, "Read an object into a file.")
    _object(parser).add_argument(
        "-o", "--output", metavar="FILE", help="by default its name, without folders; - is stdout"
    )
    parser.add_argument("-f", "--force", action="store_true", help="replace an existing file")
    _object(group.command("info", info, "Show an object."))
    add_force(_object(group.command("rm", remove, "Delete an object.")))
    parser = group.command("watch", watch, "Print objects as they change.", live=True)
    _named(parser).add_argument("--updates-only", action="store_true", help="begin with the next")
    parser.add_argument("--count", type=int, default=0, metavar="N", help="end after N changes")


def _named(parser: ArgumentParser) -> ArgumentParser:
    parser.add_argument("bucket", help="name of the store")
    return parser


def _object(parser: ArgumentParser) -> ArgumentParser:
    _named(parser).add_argument("name", help="name of the object")
    return parser


async def list_objects(session: Session) -> None:
    """Run object ls."""
    async with jetstream(session) as js:
        if session.args.bucket:
            found = await (await js.object_store(session.args.bucket)).list()
            rows = [[each.name, amount(each.size), each.mtime] for each in found]
            text = table(["NAME", "SIZE", "TIME"], rows)
            session.out.result([each.to_json() for each in found], text)
            return
        stores = await js.object_stores()
    sizes = [[each.bucket, amount(each.stream_info.state.bytes), each.storage] for each in stores]
    text = table(["STORE", "SIZE", "STORAGE"], sizes)
    session.out.result([each.stream_info.to_json() for each in stores], text)


async def create(session: Session) -> None:
    """Run object create."""
    config, fields = config_of(session.args, ObjectStoreConfig)
    whole = ObjectStoreConfig.of(config, {**fields, "bucket": session.args.bucket})
    async with jetstream(session) as js:
        await js.create_object_store(whole)
    session.out.result(whole.to_json(), describe(whole))


async def remove_store(session: Session) -> None:
    """Run object rm-store."""
    name = session.args.bucket
    confirm(session.args, f"Delete store {name} with all its objects?")
    async with jetstream(session) as js:
        await js.delete_object_store(name)
    session.out.result({"deleted": name}, f"deleted store {name}")


async def put(session: Session) -> None:
    """Run object put."""
    args = session.args
    if args.file == "-":
        found = await _put(session, args.name or "stdin", sys.stdin.buffer, 0)
    else:
        path = Path(args.file)
        with path.open("rb") as file:
            found = await _put(session, args.name or path.name, file, path.stat().st_size)
    _show(session, found)


async def _put(session: Session, name: str, file: BinaryIO, size: int) -> ObjectInfo:
    args = session.args
    async with jetstream(session) as js:
        store = await js.object_store(args.bucket)
        with Progress(f"put {name}", size) as progress:
            return await store.put(name, _chunks(file, progress), description=args.description)


def _chunks(file: BinaryIO, progress: Progress) -> Iterator[bytes]:
    while data := file.read(CHUNK):
        progress.advance(len(data))
        yield data


async def get(session: Session) -> None:
    """Run object get."""
    args = session.args
    async with jetstream(session) as js:
        store = await js.object_store(args.bucket)
        async with await store.get(args.name) as reader:
            with Progress(f"get {args.name}", reader.info.size) as progress:
                if args.output == "-":
                    await _copy(reader, sys.stdout.buffer, progress)
                    return
                path = Path(args.output or Path(args.name).name)
                with path.open("wb" if args.force else "xb") as file:
                    await _copy(reader, file, progress)
            found = reader.info
    fields = {**found.to_json(), "file": str(path)}
    session.out.result(fields, f"wrote {amount(found.size)} to {path}")


async def _copy(reader: Any, file: BinaryIO, progress: Progress) -> None:
    async for chunk in reader:
        file.write(chunk)
        progress.advance(len(chunk))
    file.flush()


async def info(session: Session) -> None:
    """Run object info."""
    async with jetstream(session) as js:
        store = await js.object_store(session.args.bucket)
        _show(session, await store.get_info(session.args.name))


def _show(session: Session, found: ObjectInfo) -> None:
    session.out.result(found.to_json(), describe(found))


async def remove(session: Session) -> None:
    """Run object rm."""
    name = session.args.name
    confirm(session.args, f"Delete object {name}?")
    async with jetstream(session) as js:
        await (await js.object_store(session.args.bucket)).delete(name)
    session.out.result({"deleted": name}, f"deleted object {name}")


async def watch(session: Session) -> None:
    """Run object watch."""
    args = session.args
    left = args.count
    async with jetstream(session) as js:
        store = await js.object_store(args.bucket)
        async with await store.watch(updates_only=args.updates_only) as watcher:
            session.out.note(f"watching store {args.bucket}")
            async for found in watcher:
                what = "deleted" if found.deleted else amount(found.size)
                session.out.result(found.to_json(), f"{found.name}: {what}  ({found.mtime})")
                left -= 1
                if not left:
                    return
