"""completion: scripts with which a shell completes commands and options.

    eval "$(natsproto completion bash)"

The scripts ask the command itself for words, so they never differ from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from natsproto.adapters.contexts import context_names
from natsproto.cli.commands import Commands

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from natsproto.cli.run import Session

_BASH = """_natsproto() {
    local IFS=$'\\n'
    COMPREPLY=($(natsproto completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _natsproto natsproto
"""
SCRIPTS = {
    "bash": _BASH,
    "zsh": f"autoload -U +X bashcompinit && bashcompinit\n{_BASH}",
    "fish": "complete -c natsproto -a "
    "'(natsproto completion words -- (commandline -opc)[2..] (commandline -ct))'\n",
}


def add(commands: Commands) -> None:
    """Add the command."""
    group = commands.group("completion", "Complete commands in a shell.")
    for shell in SCRIPTS:
        parser = group.command(shell, script, f"Print the script for {shell}.")
        parser.set_defaults(shell=shell)
    parser = group.command("words", words, "Print words that can follow.")
    parser.add_argument("words", nargs="*", help="the words so far; the last one is incomplete")
    parser.set_defaults(tree=commands)


async def script(session: Session) -> None:
    """Run completion bash, zsh or fish."""
    session.out.raw(SCRIPTS[session.args.shell].encode())


async def words(session: Session) -> None:
    """Run completion words."""
    found = candidates(session.args.tree, session.args.words)
    session.out.result(found, "\n".join(found))


def candidates(tree: Commands, given: list[str]) -> list[str]:
    """Return the words that can take the place of the last one."""
    *before, last = given or [""]
    place: Commands | ArgumentParser = tree
    for word in before:
        if isinstance(place, Commands):
            place = place.find(word) or place
    if before and before[-1] == "--context":
        return [name for name in context_names() if name.startswith(last)]
    if last.startswith("-"):
        found = _flags(tree.parser) | _flags(_parser(place))
    elif isinstance(place, Commands):
        found = set(place.entries)
    else:
        found = set[str]()
    return sorted(each for each in found if each.startswith(last))


def _parser(place: Commands | ArgumentParser) -> ArgumentParser:
    return place.parser if isinstance(place, Commands) else place


def _flags(parser: ArgumentParser) -> set[str]:
    actions = parser._actions  # pyright: ignore[reportPrivateUsage] - there is no other way
    return {flag for action in actions for flag in action.option_strings if flag[:2] == "--"}
