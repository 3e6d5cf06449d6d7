"""The command line of core NATS."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from natsproto.version import VERSION

from . import doctor, messages, server
from .commands import command_line
from .run import run

if TYPE_CHECKING:
    from .commands import Commands

TEXT = "Core NATS from a shell. The command `natsproto` of the extra cli can do more."


def build() -> Commands:
    """Return the tree of commands."""
    commands = command_line("python -m natsproto", TEXT, f"natsproto {VERSION}", [])
    messages.add(commands)
    server.add(commands)
    doctor.add(commands)
    return commands


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return run(build().parser.parse_args(sys.argv[1:] if argv is None else argv))
