"""Runs checks of the conformance suite on Pyodide."""

from __future__ import annotations

import asyncio
import traceback
from typing import Any

from natsproto.adapters.pyodide import connect
from natsproto.testing import context
from tests.pyodide.remote import Server

context.Server = Server  # checks start servers in their context

from jetstream.testing import CHECKS as JETSTREAM  # noqa: E402
from natsproto.testing import CHECKS, AsyncioRunner, Servers  # noqa: E402


class Runner(AsyncioRunner):
    """Hands a check over to the loop that runs already."""

    def run(self, main: Any, timeout: float) -> None:
        self.check = asyncio.wait_for(main(), timeout)


async def main(names: list[str]) -> None:
    """Run these checks, and print the outcome of each."""
    checks = {**CHECKS, **JETSTREAM}
    runner = Runner()
    with Servers() as servers:
        for name in names:
            check = checks[name]
            reason = check.reason_to_skip(runner, servers.version)
            if not reason:
                reason = await run(check, runner, servers)
            print(f"{name}: {reason}", flush=True)


async def run(check: Any, runner: Runner, servers: Servers) -> str:
    check.run(connect, runner, servers)
    try:
        await runner.check
    except Exception:
        return traceback.format_exc()
    return "passed"
