"""rtt and info: the server that a client is connected to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .commands import Commands
    from .run import Session


def add(commands: Commands) -> None:
    """Add the commands."""
    parser = commands.command("rtt", round_trip, "Measure the round trip to the server.")
    parser.add_argument("--count", type=int, default=5, metavar="N", help="measure N times (5)")
    commands.command("info", info, "Print the server's description of itself.")


async def round_trip(session: Session) -> None:
    """Run rtt."""
    async with session.client() as client:
        times = [await client.rtt(session.timeout) for _ in range(max(session.args.count, 1))]
        url = client.connected_url
    least, most, mean = min(times), max(times), sum(times) / len(times)
    fields = {"server": url, "min": least, "max": most, "mean": mean, "count": len(times)}
    text = f"{url}: min {_ms(least)}, mean {_ms(mean)}, max {_ms(most)} ({len(times)} PINGs)"
    session.out.result(fields, text)


async def info(session: Session) -> None:
    """Run info."""
    async with session.client() as client:
        described = client.info
        assert described is not None
        fields: dict[str, Any] = {"connected_url": client.connected_url, **described.fields}
    fields.pop("nonce", None)
    width = max(len(name) for name in fields)
    lines = [f"{name:{width}}  {_text(value)}" for name, value in sorted(fields.items())]
    session.out.result(fields, "\n".join(lines))


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.3f} ms"


def _text(value: Any) -> str:
    if hasattr(value, "append"):
        return ", ".join(str(each) for each in value)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
