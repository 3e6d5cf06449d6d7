"""The adapters that run on an event loop, and how to run something on each."""

from __future__ import annotations

import asyncio
import importlib

import pytest

from natsproto.adapters import poll
from natsproto.testing import AsyncioRunner, Runner, TrioRunner
from natsproto.testing.poll_runner import PollRunner

RUNTIMES = ["asyncio", "uvloop", "trio", "poll"]


class Runtime:
    """`run` a main function; in it `connect`, `start` tasks, and `sleep`."""

    def __init__(self, name: str) -> None:
        self.name = name
        adapter = "asyncio" if name == "uvloop" else name
        self.connect = importlib.import_module(f"natsproto.adapters.{adapter}").connect
        self._runner = self._make_runner()
        self.start = self._runner.start

    def _make_runner(self) -> Runner:
        if self.name == "trio":
            self.sleep = pytest.importorskip("trio").sleep
            return TrioRunner()
        if self.name == "poll":
            self.sleep = poll.sleep
            return PollRunner()
        self.sleep = asyncio.sleep
        if self.name == "uvloop":
            return AsyncioRunner(pytest.importorskip("uvloop").new_event_loop)
        return AsyncioRunner()

    def run(self, main) -> None:
        self.run_for(main, 30)

    def run_for(self, main, timeout: float) -> None:
        self._runner.run(main, timeout)
