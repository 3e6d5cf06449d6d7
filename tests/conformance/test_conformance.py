"""Every check of natsproto.testing but those about JetStream, on every adapter, on a real server.

Another server than the installed one: NATS_SERVER=/path/to/nats-server pytest tests/conformance
"""

from __future__ import annotations

import importlib

import pytest

from natsproto.testing import CHECKS
from tests.conformance.runners import RUNNERS

NAMES = [name for name, check in CHECKS.items() if not check.group.startswith("js_")]


@pytest.mark.parametrize("check", NAMES)
@pytest.mark.parametrize("adapter", RUNNERS)
def test_conformance(adapter, check, servers):
    module, make_runner = RUNNERS[adapter]
    runner = make_runner()
    reason = CHECKS[check].reason_to_skip(runner, servers.version)
    if reason:
        pytest.skip(reason)
    connect = importlib.import_module(f"natsproto.adapters.{module}").connect
    CHECKS[check].run(connect, runner, servers)
