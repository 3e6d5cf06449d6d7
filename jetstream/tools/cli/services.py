"""service: find the services of an account (ADR-32)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jetstream import Services

from .show import describe, duration, table

if TYPE_CHECKING:
    from natsproto.cli.commands import Commands
    from natsproto.cli.run import Session


def add(commands: Commands) -> None:
    """Add the group."""
    group = commands.group("service", "Find services.")
    for name, run, text in [
        ("ls", list_services, "List the services, with the number of their instances."),
        ("ping", ping, "List the instances, with their round-trip times."),
        ("info", info, "Show descriptions and endpoints."),
        ("stats", stats, "Show requests, errors and processing times of endpoints."),
    ]:
        parser = group.command(name, run, text)
        parser.add_argument("name", nargs="?", default="", help="only services of this name")
        if name != "ls":
            parser.add_argument("id", nargs="?", default="", help="only the instance of this id")


async def _ask(session: Session, verb: str) -> Any:
    args = session.args
    async with session.client() as client:
        ask = getattr(Services(client, timeout=session.timeout), verb)
        return await ask(args.name, getattr(args, "id", ""))


async def list_services(session: Session) -> None:
    """Run service ls."""
    found: dict[tuple[str, str], int] = {}
    for each in await _ask(session, "ping"):
        found[each.name, each.version] = found.get((each.name, each.version), 0) + 1
    rows = [[name, version, found[name, version]] for name, version in sorted(found)]
    fields = [{"name": row[0], "version": row[1], "instances": row[2]} for row in rows]
    session.out.result(fields, table(["NAME", "VERSION", "INSTANCES"], rows))


async def ping(session: Session) -> None:
    """Run service ping."""
    found = await _ask(session, "ping")
    rows = [
        [each.name, each.version, each.id, duration(round(rtt, 6))]
        for each, rtt in zip(found, found.rtts)
    ]
    fields = [{**each.to_json(), "rtt": rtt} for each, rtt in zip(found, found.rtts)]
    session.out.result(fields, table(["NAME", "VERSION", "ID", "RTT"], rows))


async def info(session: Session) -> None:
    """Run service info."""
    found = await _ask(session, "info")
    session.out.result(
        [each.to_json() for each in found], "\n\n".join(describe(each) for each in found)
    )


async def stats(session: Session) -> None:
    """Run service stats."""
    found = await _ask(session, "stats")
    rows = [
        [each.name, each.id, endpoint.name, endpoint.num_requests, endpoint.num_errors]
        + [duration(round(endpoint.average_processing_time, 6))]
        for each in found
        for endpoint in each.endpoints
    ]
    heads = ["NAME", "ID", "ENDPOINT", "REQUESTS", "ERRORS", "AVERAGE"]
    session.out.result([each.to_json() for each in found], table(heads, rows))
