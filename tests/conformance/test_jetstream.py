"""Every check of jetstream.testing, on every adapter, against a real nats-server.

Checks that wait for elections run on one adapter with an event loop and on one without, because
they test the machines, which all adapters share.
"""

from __future__ import annotations

import importlib

import pytest

from jetstream.testing import CHECKS
from tests.conformance.runners import RUNNERS


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("adapter", RUNNERS)
def test_jetstream(adapter, check, servers):
    module, make_runner = RUNNERS[adapter]
    runner = make_runner()
    reason = CHECKS[check].reason_to_skip(runner, servers.version)
    if CHECKS[check].slow and adapter not in ("asyncio", "blocking"):
        reason = "slow: run on asyncio and blocking"
    if reason:
        pytest.skip(reason)
    connect = importlib.import_module(f"natsproto.adapters.{module}").connect
    CHECKS[check].run(connect, runner, servers)
