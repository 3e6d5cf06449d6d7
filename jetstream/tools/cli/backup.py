"""backup and restore: a whole stream in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .context import jetstream
from .progress import Progress
from .show import amount

if TYPE_CHECKING:
    from natsproto.cli.commands import Commands
    from natsproto.cli.run import Session


def add(commands: Commands) -> None:
    """Add the commands."""
    parser = commands.command("backup", backup, "Write a stream, with its consumers, to a file.")
    parser.add_argument("stream", help="name of the stream")
    parser.add_argument("file", help="the file, which must not exist")
    parser.add_argument("--no-consumers", action="store_true", help="leave out the consumers")
    parser.add_argument("--check", action="store_true", help="have the server check checksums")
    parser = commands.command("restore", restore, "Create a stream from a file of backup.")
    parser.add_argument("file", help="the file")


async def backup(session: Session) -> None:
    """Run backup."""
    args = session.args
    path = Path(args.file)
    complete = False
    with path.open("xb") as file:
        try:
            async with jetstream(session) as js:
                snapshot = await js.snapshot_stream(
                    args.stream, consumers=not args.no_consumers, check=args.check
                )
                state = snapshot.state
                with Progress(f"backup of {args.stream}", state.bytes) as progress:
                    async with snapshot:
                        size = await snapshot.save(file, progress=progress.reach)
            complete = True
        finally:
            if not complete:
                path.unlink()  # a partial backup is useless
    fields = {"stream": args.stream, "file": args.file, "messages": state.messages, "bytes": size}
    text = f"wrote {state.messages} messages, {amount(size)}, to {args.file}"
    session.out.result(fields, text)


async def restore(session: Session) -> None:
    """Run restore."""
    path = Path(session.args.file)
    with path.open("rb") as file:
        async with jetstream(session) as js:
            with Progress(f"restore of {path.name}", path.stat().st_size) as progress:
                stream = await js.restore_stream(file, progress=progress.reach)
    found = stream.cached_info
    text = f"restored stream {found.config.name}: {found.state.messages} messages"
    session.out.result(found.to_json(), text)
