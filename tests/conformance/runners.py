"""The adapters, and how checks run on each."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsproto.testing import AsyncioRunner, BlockingRunner, Runner, TrioRunner

if TYPE_CHECKING:
    from collections.abc import Callable


def uvloop_runner() -> Runner:
    uvloop = pytest.importorskip("uvloop")
    return AsyncioRunner(uvloop.new_event_loop)


def trio_runner() -> Runner:
    pytest.importorskip("trio")
    return TrioRunner()


RUNNERS: dict[str, tuple[str, Callable[[], Runner]]] = {
    "asyncio": ("asyncio", lambda: AsyncioRunner(asyncio.new_event_loop)),
    "uvloop": ("asyncio", uvloop_runner),
    "trio": ("trio", trio_runner),
    "blocking": ("blocking", lambda: BlockingRunner(shares_clients=False)),
    "threads": ("threads", lambda: BlockingRunner(shares_clients=True)),
}
