"""account: the limits and the usage of the account."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .context import jetstream
from .show import describe

if TYPE_CHECKING:
    from natsproto.cli.commands import Commands
    from natsproto.cli.run import Session


def add(commands: Commands) -> None:
    """Add the command."""
    commands.command("account", account, "Show the limits and the usage of the account.")


async def account(session: Session) -> None:
    """Run account."""
    async with jetstream(session) as js:
        found = await js.account_info()
    session.out.result(found.to_json(), describe(found))
