"""Every public call ends in time if the server freezes, on every runtime, with a documented error.

All calls of a runtime run at once, and are ready to send when the server is stopped (SIGSTOP).
Calls that wait for messages without a timeout are still waiting then; they continue when the server
does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jetstream.blocking import JetStream
from natsproto.adapters import blocking
from natsproto.port import run_sync
from natsproto.testing import Server
from natsproto.testing.blocking_view import view_of
from tests.conformance.runners import RUNNERS
from tests.sweep.stage import furnish
from tests.sweep.test_coroutines import CALLS
from tests.sweep.theater import Curtain, Theater

if TYPE_CHECKING:
    from pathlib import Path


class Freeze(Curtain):
    """Stops the server when all calls are ready."""

    def __init__(self, server: Server, count: int) -> None:
        super().__init__(count)
        self._server = server

    def silence(self) -> None:
        self._server.freeze()

    def thaw(self) -> None:
        self._server.thaw()


class FrozenTheater(Theater):
    """All calls, with one server."""

    def __init__(self, adapter: str, server: Server, folder: Path) -> None:
        super().__init__(adapter, folder, dict(CALLS))
        self._server = server
        self.curtain = Freeze(server, len(CALLS))

    def address(self, name: str, swept: bool) -> tuple[str, Any]:
        return self._server.url, {}

    async def begin(self, name: str) -> None:
        while not self.curtain.raised:
            await self.sleep(0.005)


@pytest.fixture
def server():
    with Server(jetstream=True) as server:
        with blocking.connect(server.url) as client:
            run_sync(furnish(view_of(JetStream(client))))
        yield server


@pytest.mark.parametrize("adapter", RUNNERS)
def test_a_server_that_freezes(adapter, server, tmp_path):
    problems = FrozenTheater(adapter, server, tmp_path).problems()
    assert not problems, "\n".join(problems)
