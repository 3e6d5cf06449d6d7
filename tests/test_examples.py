"""Every example runs to its end, against a server of these tests if it wants one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from natsproto.testing import Server
from tests.core import ROOT

# The others are those of gevent, which tests/test_gevent_adapter.py runs.
EXAMPLES = [
    path for path in sorted(ROOT.glob("examples/*.py")) if not path.name.startswith("gevent_")
]


@pytest.fixture(scope="module")
def server():
    with Server(jetstream=True) as server:
        yield server


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_runs(path, server):
    run = subprocess.run(
        [sys.executable, "-W", "error", str(path), server.url],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout
    assert not run.stderr
