"""Servers that report on a traced message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.connection.support import msg
from tests.jetstream.support import Stage

if TYPE_CHECKING:
    from natsproto.connection.waitable import Waitable

INBOX = "_INBOX." + "0" * 22
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Servers(Stage):
    """Servers that send these reports, one whenever the client waits."""

    def __init__(self, *reports: bytes, dest: str = INBOX, **info: object) -> None:
        super().__init__(**info)
        self.reports = list(reports)
        self.dest = dest

    async def wait(self, waitable: Waitable) -> None:
        if self.reports:
            self.wire.data(msg(self.dest, 1, self.reports.pop(0)))
        else:
            await super().wait(waitable)
