"""events: the advisories of servers, as they happen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jetstream.advisories.kinds import KINDS

from .context import jetstream

if TYPE_CHECKING:
    from jetstream import Advisory
    from natsproto.cli.commands import Commands
    from natsproto.cli.run import Session

_SHOWN_APART = ("type", "id", "timestamp")


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.command("events", events, "Print the advisories of servers.", live=True)
    kinds = [kind for kind, *_ in KINDS]
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(kinds)}")
    parser.add_argument("--stream", help="only those of this stream")
    parser.add_argument("--consumer", help="only those of this consumer")
    parser.add_argument("--count", type=int, default=0, metavar="N", help="end after N events")


async def events(session: Session) -> None:
    """Run events."""
    args = session.args
    left = args.count
    async with (
        jetstream(session) as js,
        js.advisories(*args.kinds, stream=args.stream, consumer=args.consumer) as found,
    ):
        session.out.note(f"waiting for events on {', '.join(found.subjects)}")
        async for event in found:
            session.out.result(event.to_json(), summary(event))
            left -= 1
            if not left:
                return


def summary(event: Advisory) -> str:
    """Return a line about an event: its time, its kind, and its fields."""
    fields: dict[str, Any] = {**event.to_json(), **event.extra}
    parts = [
        f"{name}={value}" for name, value in fields.items() if value and name not in _SHOWN_APART
    ]
    return f"{event.timestamp} {event.kind}: {' '.join(parts)}"
