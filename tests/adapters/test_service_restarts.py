"""Instances of a service are replaced under load: every request gets the answer of a handler."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from jetstream import Services
from natsproto.adapters.asyncio import connect
from natsproto.testing import Server
from tests.core import ROOT

INSTANCE = Path(__file__).parent / "service_instance.py"
REPLACED = 4
LOOPS = 30


class Instance:
    """A process that serves."""

    @classmethod
    async def start(cls, url: str) -> Instance:
        made = cls()
        made.process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(INSTANCE),
            url,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert await made.read() == "ready"
        return made

    process: asyncio.subprocess.Process

    async def read(self) -> str:
        assert self.process.stdout is not None
        return (await self.process.stdout.readline()).decode().strip()

    async def stop(self) -> tuple[int, int]:
        """Return the number of requests and errors since its start."""
        self.process.send_signal(signal.SIGTERM)
        requests, errors = (await self.read()).split()
        assert await self.process.wait() == 0
        return int(requests), int(errors)


class Load:
    """Loops that send one request after the other until they are stopped."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.sent = 0
        self.ended = False
        self.loops = [asyncio.create_task(self._run()) for _ in range(LOOPS)]
        self._wanted = 0
        self._reached = asyncio.Event()

    async def _run(self) -> None:
        while not self.ended:
            data = b"%d" % self.sent
            self.sent += 1
            answer = await self.services.request("work", data, timeout=10.0)
            assert answer.data == data
            if self.sent >= self._wanted:
                self._reached.set()

    async def advance(self, count: int) -> None:
        """Wait until this many more requests were sent, or a loop has failed."""
        self._wanted = self.sent + count
        self._reached.clear()
        reached = asyncio.create_task(self._reached.wait())
        await asyncio.wait([reached, *self.loops], return_when=asyncio.FIRST_COMPLETED)
        reached.cancel()

    async def end(self) -> None:
        """Wait for the last answers."""
        self.ended = True
        await asyncio.gather(*self.loops)


async def replace_instances(url: str) -> None:
    instances = [await Instance.start(url) for _ in range(2)]
    counts: list[tuple[int, int]] = []
    async with connect(url) as client:
        load = Load(Services(client))
        for _ in range(REPLACED):
            instances.append(await Instance.start(url))
            counts.append(await instances.pop(0).stop())
            await load.advance(5 * LOOPS)
        await load.end()
        counts += [await instance.stop() for instance in instances]
    assert sum(requests for requests, _ in counts) == load.sent
    assert [errors for _, errors in counts] == [0] * len(counts)
    assert load.sent > REPLACED * 5 * LOOPS


@pytest.mark.rule("SERVICE-22")
def test_no_request_is_lost_when_instances_are_replaced():
    with Server() as server:
        asyncio.run(replace_instances(server.url))
