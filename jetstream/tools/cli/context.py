"""JetStream as a command uses it: `async with jetstream(session) as js`."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from jetstream import JetStream
from natsproto.adapters.contexts import read_context
from natsproto.cli.options import context_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from natsproto.cli.run import Session
    from natsproto.client import Client

# Options of all commands, as in natsproto/cli/options.py.
OPTIONS: list[tuple[list[str], str, dict[str, Any]]] = [
    (["--domain"], "NATS_DOMAIN", {"metavar": "NAME", "help": "domain of JetStream"}),
    (["--api-prefix"], "", {"metavar": "SUBJECT", "help": "prefix of the API of JetStream"}),
]


@asynccontextmanager
async def jetstream(session: Session) -> AsyncGenerator[JetStream, None]:
    """Connect and yield JetStream."""
    async with session.client() as client:
        yield jetstream_of(session, client)


def jetstream_of(session: Session, client: Client) -> JetStream:
    """Return JetStream on a client, in the domain that the options or the context name."""
    args = session.args
    options: dict[str, Any] = {}
    name = context_of(args)
    if args.domain:
        options["domain"] = args.domain
    elif args.api_prefix:
        options["prefix"] = args.api_prefix
    elif name:
        options.update(read_context(name).jetstream)
    return JetStream(client, timeout=session.timeout, **options)
