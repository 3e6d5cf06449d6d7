"""Runs checks of the conformance suite on Pyodide. The servers run outside: see remote.py."""

from __future__ import annotations

import asyncio
import traceback
from typing import Any

from natsproto.adapters import pyodide
from natsproto.testing import context, server
from tests.pyodide.remote import Server, call, websocket_url

context.Server = Server  # checks start servers in their context
server._is_free = lambda port: call("is_free", port)

from jetstream.testing import CHECKS as JETSTREAM  # noqa: E402
from natsproto.testing import CHECKS, AsyncioRunner, Servers  # noqa: E402


class Runner(AsyncioRunner):
    """Leaves a check to the event loop, which runs already."""

    def run(self, main: Any, timeout: float) -> None:
        self.check = asyncio.wait_for(main(), timeout)


def connect(servers: str | list[str], **options: Any) -> pyodide.Connecting:
    if isinstance(servers, str):
        return pyodide.connect(websocket_url(servers), **options)
    return pyodide.connect([websocket_url(url) for url in servers], **options)


async def main(names: list[str]) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """Run these checks; return those that passed, failed and were skipped, and why."""
    checks = {**CHECKS, **JETSTREAM}
    runner = Runner()
    passed, failed, skipped = [], {}, {}
    with Servers() as servers:
        for name in names:
            reason = checks[name].reason_to_skip(runner, servers.version)
            if reason:
                skipped[name] = reason
                continue
            checks[name].run(connect, runner, servers)
            try:
                await runner.check
                passed.append(name)
            except Exception:
                failed[name] = traceback.format_exc()
    return passed, failed, skipped
