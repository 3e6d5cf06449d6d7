"""The checks of jetstream.testing on every adapter, against a real nats-server.

On some adapters only a part of them; runners.py says which.

Checks that wait for elections run on one adapter with an event loop and on one without, because
they test the machines, which all adapters share.
"""

from __future__ import annotations

import importlib

import pytest

from jetstream.testing import CHECKS
from tests.conformance.runners import RUNNERS, make_runner, selected


@pytest.mark.parametrize(("adapter", "check"), selected(CHECKS))
def test_jetstream(adapter, check, servers):
    runner = make_runner(adapter)
    reason = CHECKS[check].reason_to_skip(runner, servers.version)
    if CHECKS[check].slow and adapter not in ("asyncio", "blocking"):
        reason = "slow: run on asyncio and blocking"
    if reason:
        pytest.skip(reason)
    connect = importlib.import_module(f"natsproto.adapters.{RUNNERS[adapter][0]}").connect
    CHECKS[check].run(connect, runner, servers)
