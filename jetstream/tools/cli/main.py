"""The command line of the command `natsproto`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from natsproto.cli import doctor, messages
from natsproto.cli import server as server_of_client
from natsproto.cli.commands import command_line
from natsproto.cli.run import run
from natsproto.version import VERSION

from . import (
    account,
    backup,
    bench,
    completion,
    consume,
    consumer,
    dead_letters,
    events,
    explore,
    kv,
    objects,
    server,
    services,
    stream,
)
from .context import OPTIONS
from .exits import CODES
from .trace import command as trace

if TYPE_CHECKING:
    from natsproto.cli.commands import Commands

# In the order of the help.
GROUPS = [
    account,
    stream,
    consumer,
    consume,
    kv,
    objects,
    services,
    events,
    dead_letters,
    backup,
    trace,
    explore,
    bench,
    server,
    completion,
]
TEXT = "NATS, JetStream, buckets and services from a shell."


def build() -> Commands:
    """Return the tree of commands."""
    commands = command_line("natsproto", TEXT, f"natsproto {VERSION}", OPTIONS)
    messages.add(commands, reply=True)
    server_of_client.add(commands)
    for module in GROUPS:
        module.add(commands)
    doctor.add(commands)
    return commands


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return run(build().parser.parse_args(sys.argv[1:] if argv is None else argv), CODES)
