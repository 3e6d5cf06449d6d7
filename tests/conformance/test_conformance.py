"""Every check of natsproto.testing, on every adapter, against a real nats-server.

To use another server than the installed one: NATS_SERVER=/path/to/nats-server pytest
tests/conformance
"""

from __future__ import annotations

import importlib

import pytest

from natsproto.testing import CHECKS
from tests.conformance.runners import RUNNERS


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
