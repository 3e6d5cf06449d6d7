"""server: a nats-server for development, or a cluster of them; Ctrl-C stops all."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from natsproto.cli.exits import CommandFailed
from natsproto.errors import MissingExtra

if TYPE_CHECKING:
    from natsproto.cli.commands import Commands
    from natsproto.cli.run import Session
    from natsproto.testing import Server

POLL = 0.2


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.command(
        "server",
        serve,
        "Run a nats-server with JetStream for development.",
        details="It listens on 127.0.0.1 only.",
        live=True,
    )
    parser.add_argument("--port", type=int, default=4222, metavar="N", help="(4222); 0: any")
    parser.add_argument("--cluster", type=int, metavar="N", help="N servers, on free ports")
    parser.add_argument("--no-jetstream", action="store_true", help="core NATS only")
    parser.add_argument("--store", metavar="DIR", help="keep streams there; by default nowhere")
    parser.add_argument("--config", metavar="FILE", help="a configuration of nats-server to add")


async def serve(session: Session) -> None:
    """Run server."""
    servers, stop = await asyncio.to_thread(_start, session.args)
    try:
        for server in servers:
            fields = {"name": server.name, "url": server.url, "log": str(server.log_path)}
            fields["monitoring"] = server.urls["monitoring"]
            text = f"{server.name}: {server.url}  monitoring {server.urls['monitoring']}"
            session.out.result(fields, text)
        session.out.note("press Ctrl-C to stop")
        await _watch(servers)
    finally:
        stop()


def _start(args: Any) -> tuple[list[Server], Any]:
    from natsproto.testing import Cluster, Server, ServerFailed, ServerNotFound

    config = ""
    if args.config:
        with open(args.config, encoding="utf-8") as file:
            config = file.read()
    jetstream = not args.no_jetstream
    try:
        if args.cluster:
            cluster = Cluster(args.cluster, jetstream=jetstream, config=config)
            return list(cluster.members), cluster.stop
        server = Server(jetstream=jetstream, config=config, port=args.port, store=args.store)
        return [server], server.stop
    except ServerNotFound:
        text = "there is no nats-server; install it with `pip install 'natsproto[server]'`"
        raise MissingExtra(text) from None
    except ServerFailed as error:
        raise CommandFailed(str(error)) from None


async def _watch(servers: list[Server]) -> None:
    """Wait until a server ends by itself, which is an error."""
    from natsproto.testing import ServerFailed

    try:
        # A process that ends sets no event, but `pid` raises.
        while all(server.pid for server in servers):  # noqa: ASYNC110
            await asyncio.sleep(POLL)
    except ServerFailed as error:
        raise CommandFailed(str(error)) from None
