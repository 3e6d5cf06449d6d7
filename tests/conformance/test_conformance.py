"""Every check of natsproto.testing, on every adapter, against a real nats-server.

Another server than the installed one: NATS_SERVER=/path/to/nats-server pytest tests/conformance
"""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING

import pytest

from natsproto.testing import CHECKS, AsyncioRunner, BlockingRunner, Runner, Servers, TrioRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


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


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    with Servers() as servers:
        yield servers


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("adapter", RUNNERS)
def test_conformance(adapter, check, servers):
    module, make_runner = RUNNERS[adapter]
    runner = make_runner()
    reason = CHECKS[check].reason_to_skip(runner, servers.version)
    if reason:
        pytest.skip(reason)
    connect = importlib.import_module(f"natsproto.adapters.{module}").connect
    CHECKS[check].run(connect, runner, servers)
