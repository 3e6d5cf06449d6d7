"""The tree of commands. Each group and each command is a parser of argparse.

Every command has `run`, a coroutine function that takes a Session; a `live` command runs until it
is interrupted, which counts as success. The command's documentation and the shell completion are
generated from the tree.
"""

from __future__ import annotations

import argparse
import difflib
from typing import TYPE_CHECKING, Any

from .exits import USAGE
from .options import CONNECTION, OUTPUT, add_options

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable
    from typing import NoReturn


# D-CLI-9: further names of commands, as the command nats has them.
ALIASES = {"create": ["add"], "edit": ["update"], "ls": ["list"]}


LONGEST_USAGE = 4  # lines; more would hide the error


class Parser(argparse.ArgumentParser):
    """A parser whose errors are short and suggest the closest name (D-CLI-9)."""

    def error(self, message: str) -> NoReturn:
        """Print the error, and how to get help; exit."""
        usage = self.format_usage()
        if usage.count("\n") > LONGEST_USAGE:
            usage = ""
        self.exit(USAGE, f"{usage}{self.prog}: {message}\ntry: {self.prog} --help\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        choices = [str(each) for each in action.choices or []]
        if not choices or value in choices:
            return
        close = difflib.get_close_matches(str(value), choices, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        if isinstance(action.choices, dict):  # of commands
            raise argparse.ArgumentError(None, f"{value!r} is not a command{hint}")
        names = ", ".join(choices)
        raise argparse.ArgumentError(action, f"{value!r} is not one of {names}{hint}")


class Commands:
    """A group of commands, or the whole command line."""

    def __init__(self, parser: ArgumentParser, rows: list[Any]) -> None:
        self.parser = parser
        #: The options of all commands.
        self.rows = rows
        #: The commands of this group, and the groups below it, by name.
        self.entries: dict[str, Commands | ArgumentParser] = {}
        #: What each of them does, in a line.
        self.help: dict[str, str] = {}
        self._subparsers: Any = parser.add_subparsers(
            metavar="COMMAND", title="commands", required=True
        )

    def group(self, name: str, text: str) -> Commands:
        """Add a group of commands."""
        entry = Commands(self._add(name, text, text), self.rows)
        self.entries[name] = entry
        return entry

    def command(
        self,
        name: str,
        run: Callable[..., Any],
        text: str,
        *,
        details: str = "",
        live: bool = False,
    ) -> ArgumentParser:
        """Add a command."""
        parser = self._add(name, text, f"{text} {details}".strip())
        add_options(parser, self.rows, hidden=True)
        parser.set_defaults(run=run, live=live)
        self.entries[name] = parser
        return parser

    def find(self, name: str) -> Commands | ArgumentParser | None:
        """Return the command or group of a name or alias."""
        names = [each for each in self.entries if name == each or name in ALIASES.get(each, [])]
        return self.entries[names[0]] if names else None

    def _add(self, name: str, text: str, description: str) -> ArgumentParser:
        self.help[name] = text
        parser: ArgumentParser = self._subparsers.add_parser(
            name,
            help=text,
            description=description,
            allow_abbrev=False,
            aliases=ALIASES.get(name, []),
        )
        return parser


def command_line(prog: str, text: str, version: str, extra: list[Any]) -> Commands:
    """Return a command line without commands; `extra` are further options of all of them."""
    parser = Parser(prog=prog, description=text, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=version)
    rows = CONNECTION + extra + OUTPUT
    add_options(parser, rows, hidden=False)
    return Commands(parser, rows)
