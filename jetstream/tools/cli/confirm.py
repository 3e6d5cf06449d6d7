"""Confirmation before something is deleted: on a terminal, or by --force (D-CLI-6)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from natsproto.cli.run import interruptible
from natsproto.errors import InvalidValue

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def add_force(parser: ArgumentParser) -> None:
    """Add the option --force."""
    parser.add_argument("-f", "--force", action="store_true", help="do not ask")


def confirm(args: Namespace, question: str) -> None:
    """Ask, unless --force was given; raise InvalidValue if the answer is not yes."""
    if args.force:
        return
    if not sys.stdin.isatty():
        raise InvalidValue(f"{question} Confirm with --force: there is no terminal to ask on")
    with interruptible():
        sys.stderr.write(f"{question} [y/N] ")
        sys.stderr.flush()
        answer = sys.stdin.readline()
    if answer.strip().lower() not in ("y", "yes"):
        raise InvalidValue("nothing was done")
