"""The checks of natsproto.testing on every adapter, against a real nats-server.

On some adapters only a part of them; runners.py says which.

To use another server than the installed one: NATS_SERVER=/path/to/nats-server pytest
tests/conformance
"""

from __future__ import annotations

import importlib

import pytest

from natsproto.testing import CHECKS
from tests.conformance.runners import RUNNERS, make_runner, selected


@pytest.mark.parametrize(("adapter", "check"), selected(CHECKS))
def test_conformance(adapter, check, servers):
    runner = make_runner(adapter)
    reason = CHECKS[check].reason_to_skip(runner, servers.version)
    if reason:
        pytest.skip(reason)
    connect = importlib.import_module(f"natsproto.adapters.{RUNNERS[adapter][0]}").connect
    CHECKS[check].run(connect, runner, servers)
