"""The page of the command natsproto, docs/command.md, from its parsers.

The text before the reference is docs/generate/texts/command.md. For each command the page has its
usage, its arguments and its options; those of all commands are listed once.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from jetstream.tools.cli.main import build
from natsproto.cli.commands import Commands
from natsproto.cli.exits import MEANINGS
from tests.core import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = ROOT / "docs" / "command.md"
HEAD = Path(__file__).with_name("texts") / "command.md"


def render() -> dict[Path, str]:
    """Return the page."""
    # The page must not depend on the terminal and the settings of whoever makes it.
    kept = {key: os.environ.pop(key) for key in list(os.environ) if key.startswith("NATS_")}
    try:
        tree = build()
    finally:
        os.environ.update(kept)
    parts = [HEAD.read_text(encoding="utf-8"), *exit_codes(), *shared_options(tree)]
    parts += ["## Commands", *commands(tree, [])]
    return {PAGE: "\n\n".join(part.strip("\n") for part in parts) + "\n"}


def exit_codes() -> list[str]:
    rows = [f"| {code} | {meaning} |" for code, meaning in MEANINGS.items()]
    return ["## Exit codes", "\n".join(["| code | meaning |", "|---|---|", *rows])]


def shared_options(tree: Commands) -> list[str]:
    text = "They can be given before or after the name of the command."
    own = [action for action in tree.parser._actions if action.dest != "version"]
    return ["## Options of all commands", text, options(own)]


def commands(place: Commands, path: list[str]) -> Iterator[str]:
    for name, entry in place.entries.items():
        here = [*path, name]
        title = " ".join(here)
        if isinstance(entry, Commands):
            yield f"### {title}\n\n{place.help[name]}"
            yield from commands(entry, here)
            continue
        yield f"{'####' if path else '###'} {title}\n\n{entry.description}"
        yield f"```\n{usage(entry, title)}\n```"
        shown = [each for each in entry._actions if each.help is not argparse.SUPPRESS]
        table = options(shown)
        if table:
            yield table


def usage(parser: argparse.ArgumentParser, title: str) -> str:
    """Return the arguments in their order; a group of options is one word."""
    words = ["natsproto", title]
    words += [_form(each) for each in parser._actions if not each.option_strings]
    has_options = any(
        each.option_strings and each.help is not argparse.SUPPRESS and each.dest != "help"
        for each in parser._actions
    )
    return " ".join([*words, *["[options]"] * has_options])


def _form(action: argparse.Action) -> str:
    name = action.dest.upper()
    return {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} ..."}.get(
        str(action.nargs or ""), name
    )


def options(actions: list[argparse.Action]) -> str:
    rows: list[str] = []
    for action in actions:
        if action.dest == "help" or isinstance(action, argparse._SubParsersAction):
            continue
        flags = ", ".join(f"`{flag}`" for flag in action.option_strings)
        what = flags + _value(action) if flags else f"`{action.dest.upper()}`"
        text = (action.help or "").replace("%%", "%").replace("|", "\\|")
        rows.append(f"| {what} | {text} |")
    return "\n".join(["| argument | meaning |", "|---|---|", *rows]) if rows else ""


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    if action.choices:
        return " " + ", ".join(f"`{each}`" for each in action.choices)
    return f" {action.metavar}{' ...' if action.nargs == '+' else ''}" if action.metavar else ""
